package main

import (
	"github.com/spf13/cobra"

	"github.com/musterdl/muster/experiment/reproduce/month"
)

// monthLong is its help.
const monthLong = "Have the engine run one job that trains Llama 3 70B on 1,024 H100 through a month: lost nodes, slow devices, slow links,\n" +
	"machines taken back, racks that fail, all of these, and failures as often as Llama 3's own. After each the composition's part\n" +
	"reaction says how the job goes on: the cheapest way by expected device-seconds lost, always to ride it through, always a spare,\n" +
	"always fewer workers, always to wait, or the queue. The price should do no more than 3 % worse than the best of the others."

func monthCommand() *cobra.Command {
	s := &month.Study{}
	var o showing
	cmd := &cobra.Command{Use: "month", Args: cobra.NoArgs, Long: monthLong, Short: "Run one large job through a month of failures, by price and by every fixed remedy",
		Example: "  muster scenario month\n  muster scenario month --seeds 10 --plot month.svg\n  muster scenario month --nodes 32 --json"}
	f := cmd.Flags()
	f.IntVar(&s.Seeds, "seeds", 3, "how often failures are drawn")
	f.IntVar(&s.Days, "days", 30, "how long a month is")
	f.IntVar(&s.Nodes, "nodes", 128, "nodes of eight devices, a multiple of 16, without the spares")
	o.flags(f, "the goodput of every policy")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if s.Seeds < 1 || s.Days < 1 || s.Nodes < 16 || s.Nodes%16 != 0 {
			return misused("--seeds is %d, --days %d and --nodes %d: expected at least 1 and 1, and a multiple of 16", s.Seeds, s.Days, s.Nodes)
		}
		s.Progress = studyBar(o.quiet)
		return o.present(cmd, s)
	}
	return cmd
}
