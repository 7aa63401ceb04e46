package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/musterdl/muster/experiment/reproduce"
	"github.com/musterdl/muster/internal/snapshot"
	"github.com/musterdl/muster/run/report"
)

func snapshotReplayCommand() *cobra.Command {
	var strategies []string
	var asJSON bool
	o := snapshot.ReadOptions{Restart: reproduce.Defaults().Prices.Restart}
	cmd := &cobra.Command{Use: "replay FILE", Args: cobra.ExactArgs(1), Short: "Replay a snapshot's history under other strategies",
		Long: "Submit the jobs of a snapshot's history at the instants they were submitted, with the run times that were observed,\n" +
			"to a simulated cluster under each strategy, and compare with what was recorded, which is the first row. What\n" +
			"people asked and what broke happens at its instant again. It ends at the instant of the snapshot; jobs that had\n" +
			"not ended by then, or were cancelled, run for as long as was declared, or else for twice what they had run, or\n" +
			"else for the median of the finished.",
		Example: "  muster snapshot replay cluster.zip --strategy fifo --strategy tiresias+history",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			f, err := snapshot.Open(args[0])
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, f.Close()) }()
			past, err := snapshot.Read(f, o)
			if err != nil {
				return err
			}
			rows, err := past.Replay(cmd.Context(), strategies)
			if err != nil {
				return err
			}
			return showCompared(cmd.OutOrStdout(), comparedRows(args[0], past, rows), asJSON)
		}}
	cmd.Flags().StringArrayVar(&strategies, "strategy", nil, "a strategy, several joined by +, or a YAML file (may be repeated)")
	cmd.Flags().Var(durationFlag(&o.Restart), "restart-cost", "what a resumed job loses that says nothing of it")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object, as muster compare does (see docs/json.md)")
	return cmd
}

// comparedRows makes of a replay what muster compare prints of a trace.
func comparedRows(file string, past *snapshot.Past, rows []snapshot.Row) *reproduce.Compared {
	boot := report.Bootstrap{Seed: 1}
	out := &reproduce.Compared{Trace: file, Cluster: past.Cluster, Load: 1, Over: "weeks", Seeds: []uint64{past.Recorded.Result.Seed},
		BootstrapSeed: boot.Seed}
	for _, row := range append([]snapshot.Row{past.Recorded}, rows...) {
		row.Result.Trace = file
		out.Rows = append(out.Rows, reproduce.ComparedRow{Result: row.Result, BySeed: []report.Result{row.Result},
			AvgJCT: report.MeanJCTByWeek(row.Jobs, boot), Ratio: report.JCTRatioByWeek(row.Jobs, past.Recorded.Jobs, boot)})
	}
	return out
}
