package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/experiment/reproduce"
	"github.com/musterdl/muster/run/report"
)

func compareCommand() *cobra.Command {
	c := reproduce.Comparison{Setup: reproduce.Defaults(), Strategies: []string{"fifo", catalogue.House}, Seeds: 10}
	var asJSON, quiet bool
	var html, plot string
	cmd := &cobra.Command{Use: "compare", GroupID: "try", Args: cobra.NoArgs,
		Short: "Run several strategies on the same work and compare them",
		Long: "Run several strategies on the same work, in parallel on the cores, and compare each with the first.\n" +
			"Generated work is drawn from the seeds 1 to --seeds, the same for every strategy, and the intervals\n" +
			"are over seeds; a trace is one history, and the intervals are over its weeks. Each --without STEP\n" +
			"adds every strategy once more with the null of that step.",
		Example: "  muster compare --trace gen:rw-a --cluster gpus:15x4 --strategies fifo,tiresias --seeds 20\n" +
			"  muster compare --trace helios:../shared/data/helios --cluster gpus:74x8 --strategies fifo,srtf,tiresias --html venus.html\n" +
			"  muster compare --trace gen:rw-l --cluster gpus:16x4 --strategies tiresias+consolidate --without allocate --without schedule",
		RunE: func(cmd *cobra.Command, _ []string) error {
			defer simulatedScripts(cmd.ErrOrStderr())()
			if !quiet && !asJSON && term.IsTerminal(int(os.Stderr.Fd())) {
				c.Progress = comparisonBar(os.Stderr)
			}
			c.Pictures = html != "" || plot != ""
			compared, err := reproduce.Compare(c)
			if err != nil {
				return err
			}
			if c.Pictures {
				if err := writePictures(compared.Page(time.Now().Format(time.RFC1123)), html, plot); err != nil {
					return err
				}
			}
			return showCompared(cmd.OutOrStdout(), compared, asJSON)
		}}
	setupFlags(cmd.Flags(), &c.Setup)
	cmd.Flags().StringSliceVar(&c.Strategies, "strategies", c.Strategies, "what to compare, separated by commas; the first is what the others are compared with")
	cmd.Flags().IntVar(&c.Seeds, "seeds", c.Seeds, "how often generated work is drawn; a trace is run once")
	cmd.Flags().IntVar(&c.Workers, "parallel", 0, "simulations at once; 0 is one per core")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object (see docs/json.md)")
	cmd.Flags().BoolVar(&quiet, "quiet", false, "no progress bar")
	cmd.Flags().StringVar(&html, "html", "", "write a report with plots over each other to this file")
	cmd.Flags().StringVar(&plot, "plot", "", "draw these plots to this file, as SVG")
	return cmd
}

// showCompared prints a comparison and fails when a ledger does not balance.
func showCompared(w io.Writer, c *reproduce.Compared, asJSON bool) error {
	if asJSON {
		if err := printJSON(w, c); err != nil {
			return err
		}
	} else if err := writeCompared(w, c); err != nil {
		return err
	}
	for i := range c.Rows {
		if !c.Rows[i].Balanced {
			fmt.Fprintf(os.Stderr, "muster: the ledger of %s does not balance: device time or jobs were lost or counted twice; this is a bug\n", c.Rows[i].Strategy)
			return exit(1)
		}
	}
	return nil
}

func writeCompared(w io.Writer, c *reproduce.Compared) error {
	over := fmt.Sprintf("seeds 1 to %d", len(c.Seeds))
	if c.Over == "weeks" {
		over = fmt.Sprintf("seed %d", c.Seeds[0])
	}
	fmt.Fprintf(w, "%s on %s, %s, offered load %.1f%%, mean duration %.0f s\n\n", c.Trace, c.Cluster, over,
		c.Rows[0].OfferedLoad*100, c.Rows[0].MeanDurationSec)
	if err := report.WriteComparison(w, c.ReportRows(), report.TextOptions{Width: width(), Color: colour()}); err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%s\n", c.Method())
	for i := range c.Rows {
		for _, note := range c.Rows[i].Notes {
			fmt.Fprintf(w, "%s: %s\n", c.Rows[i].Strategy, note)
		}
	}
	return nil
}

// comparisonBar redraws one line a few times a second.
func comparisonBar(w io.Writer) func(reproduce.Progress) {
	var last time.Time
	return func(p reproduce.Progress) {
		if p.Done == p.Runs {
			fmt.Fprint(w, "\r\x1b[K")
			return
		}
		if time.Since(last) < 200*time.Millisecond {
			return
		}
		last = time.Now()
		fmt.Fprintf(w, "\r%d of %d simulations done, %d jobs ended \x1b[K", p.Done, p.Runs, p.JobsEnded)
	}
}

func printJSON(w io.Writer, value any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(value)
}
