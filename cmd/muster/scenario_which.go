package main

import (
	"github.com/spf13/cobra"

	"github.com/musterdl/muster/experiment/reproduce"
	"github.com/musterdl/muster/experiment/reproduce/which"
)

// whichLong is its help.
const whichLong = "Run what an operator may choose between on four histories: one that is drawn (480 jobs on 60 devices) and months of Helios'\n" +
	"Venus, of Philly and of PAI, each on whole devices under the prices of muster simulate. Mean completion times are over those of\n" +
	"an order that is told all running times, which nobody can run. Each is run twice: every job saves when it is asked to, and one in\n" +
	"three never saves. A history whose data is absent is left out, and said to be.\n" +
	"docs/which.md is made with --markdown and --plot, and says which to choose."

func whichCommand() *cobra.Command {
	var s which.Study
	var o showing
	var markdown bool
	var claims string
	cmd := &cobra.Command{Use: "which", Args: cobra.NoArgs, Long: whichLong, Short: "Run what an operator may choose between on the histories of four clusters",
		Example: "  muster scenario which --seeds 5\n  muster scenario which --plot which.svg --markdown > which.md",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if s.Seeds < 1 {
				return misused("--seeds is %d: expected 1 or more", s.Seeds)
			}
			s.Progress = studyBar(o.quiet)
			if !markdown {
				return o.present(cmd, &s)
			}
			found, err := readFindings(claims)
			if err != nil {
				return err
			}
			return o.present(cmd, which.Page{Study: &s, Found: found})
		}}
	o.flags(cmd.Flags(), "the completion times")
	cmd.Flags().IntVar(&s.Seeds, "seeds", 20, "how often what is drawn is drawn")
	cmd.Flags().StringVar(&s.Data, "data", reproduce.DataFolder(), "folder of the published data")
	cmd.Flags().IntVar(&s.Workers, "parallel", 0, "simulations at once; 0 is one per core")
	cmd.Flags().BoolVar(&markdown, "markdown", false, "print the page for operators")
	cmd.Flags().StringVar(&claims, "claims", "docs/claims.json", "what claims found last, for the page")
	cmd.MarkFlagsMutuallyExclusive("json", "markdown")
	return cmd
}
