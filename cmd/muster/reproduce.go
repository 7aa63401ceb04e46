package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/experiment/reproduce"
	"github.com/musterdl/muster/run/report/terminal"
)

func reproduceCommand() *cobra.Command {
	var step, data, write, plots string
	var all, asJSON bool
	var r reproduce.ClaimRun
	cmd := &cobra.Command{Use: "reproduce {NAME | FILE | --step STEP | --all}", GroupID: "try", Args: cobra.MaximumNArgs(1),
		Short: "Run the headline experiments of published systems",
		Long: "Run the headline experiment of a system and print the published figure, ours, the accepted band and\n" +
			"whether it holds. The exit code is 1 when a band is missed. A claim whose published data is absent is\n" +
			"skipped. --quick takes fewer seeds: a figure whose interval crosses the end of its band is then open.",
		Example: "  muster reproduce tiresias\n  muster reproduce --step allocate --quick\n  muster reproduce --all --write docs/claims.json",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return claimNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if chosen := len(args) + count(step != "") + count(all); chosen != 1 {
				return misused("expected one claim of %s, or --step, or --all", strings.Join(claimNames(), ", "))
			}
			claims, err := reproduce.Claims(strings.Join(args, ""), step)
			if err != nil {
				return err
			}
			if data != "" { // clusters are looked up there too
				if err := os.Setenv("MUSTER_DATA", data); err != nil {
					return err
				}
			}
			r.Data = reproduce.DataFolder()
			return runClaims(cmd.OutOrStdout(), r, claims, asJSON, write, plots)
		}}
	cmd.Flags().StringVar(&step, "step", "", "the claims of all strategies of a step")
	cmd.Flags().BoolVar(&all, "all", false, "every claim")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON list (see experiment/reproduce/CLAIMS.md)")
	cmd.Flags().BoolVar(&r.Quick, "quick", false, "fewer seeds, and no long metrics")
	cmd.Flags().IntVar(&r.Seeds, "seeds", 0, "so many seeds, whatever the claims say")
	cmd.Flags().StringVar(&data, "data", "", "the folder of published data (default $MUSTER_DATA, else ../shared/data)")
	cmd.Flags().StringVar(&write, "write", "", "write the findings to this file, such as docs/claims.json; what it says of other claims stays")
	cmd.Flags().StringVar(&plots, "plot", "", "draw the plots of the claims into this folder, as CLAIM-PLOT.svg")
	return cmd
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

func claimNames() []string {
	claims, err := reproduce.Claims("", "")
	if err != nil {
		return nil
	}
	names := make([]string, len(claims))
	for i, c := range claims {
		names[i] = c.Name
	}
	return names
}

// runClaims runs claim after claim and prints each as soon as it is known.
func runClaims(w io.Writer, r reproduce.ClaimRun, claims []*reproduce.Claim, asJSON bool, write, plots string) error {
	if term.IsTerminal(int(os.Stderr.Fd())) {
		r.Progress = claimBar(os.Stderr)
	}
	found, missed := []catalogue.Finding{}, 0
	for _, c := range claims {
		list, err := r.Run(c)
		if err != nil {
			return err
		}
		for i := range list {
			missed += count(list[i].Verdict == catalogue.Missed)
		}
		found = append(found, list...)
		if plots != "" {
			if err := drawPlots(plots, c, list); err != nil {
				return err
			}
		}
		if !asJSON {
			if err := writeFindings(w, c, list); err != nil {
				return err
			}
		}
	}
	if write != "" {
		if err := keepFindings(write, claims, found); err != nil {
			return err
		}
	}
	if asJSON {
		if err := printJSON(w, found); err != nil {
			return err
		}
	}
	if missed > 0 {
		fmt.Fprintf(os.Stderr, "muster: %d of %d figures lie outside their band\n", missed, len(found))
		return exit(1)
	}
	return nil
}

// keepFindings writes what was found to a file, in the place of what that said of the same
// claims; what it says of the others of the catalogue it goes on saying.
func keepFindings(file string, ran []*reproduce.Claim, found []catalogue.Finding) error {
	of := map[string][]catalogue.Finding{}
	old, err := readFindings(file)
	if err != nil {
		return err
	}
	names := claimNames()
	for _, f := range append(old, found...) {
		of[f.Name] = append(of[f.Name], f)
		if !slices.Contains(names, f.Name) {
			names = append(names, f.Name) // of a file of the user's own
		}
	}
	for _, c := range ran {
		of[c.Name] = nil
	}
	for _, f := range found {
		of[f.Name] = append(of[f.Name], f)
	}
	all := []catalogue.Finding{}
	for _, name := range names {
		all = append(all, of[name]...)
	}
	return toFile(file, func(w io.Writer) error { return printJSON(w, all) })
}

// drawPlots writes the plots of a claim that was run.
func drawPlots(dir string, c *reproduce.Claim, list []catalogue.Finding) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for i := range c.Plots {
		p := &c.Plots[i]
		err := toFile(filepath.Join(dir, c.Name+"-"+p.Name+".svg"), func(w io.Writer) error { return c.Draw(w, p, list) })
		if err != nil {
			return err
		}
	}
	return nil
}

// claimBar redraws one line a few times a second.
func claimBar(w io.Writer) func(string, int, int) {
	var last time.Time
	return func(claim string, done, runs int) {
		if done == runs {
			fmt.Fprint(w, "\r\x1b[K")
		} else if time.Since(last) > 200*time.Millisecond {
			last = time.Now()
			fmt.Fprintf(w, "\r%s: %d of %d runs done \x1b[K", claim, done, runs)
		}
	}
}

// writeFindings prints a claim as a table, with the notes on what does not hold.
func writeFindings(w io.Writer, c *reproduce.Claim, list []catalogue.Finding) error {
	if len(list) == 0 {
		_, err := fmt.Fprintf(w, "%s: every metric is left out of a quick run\n\n", c.Name)
		return err
	}
	fmt.Fprintf(w, "%s (%s), %s; %s\n", c.Name, c.System, c.Entry.Step, c.Source)
	if list[0].Verdict == catalogue.Skipped {
		_, err := fmt.Fprintf(w, "  skipped: %s\n\n", list[0].Note)
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "  METRIC\tBY\tPUBLISHED\tOURS\tBAND\tFROM\tVERDICT")
	for i := range list {
		f := &list[i]
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\t%s\t%s\n", f.Metric, f.By, f.Published, f.Ours(), f.Band(), f.BandFrom, verdict(f.Verdict))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, note := range catalogue.Notes(list) {
		fmt.Fprintf(w, "  %s\n", note)
	}
	_, err := fmt.Fprintf(w, "  %d seeds, %.1f s\n\n", list[0].Seeds, list[0].WallSec)
	return err
}

// verdict colours a verdict where the terminal has colours.
func verdict(v string) string {
	styles := map[string]terminal.Style{catalogue.Holds: terminal.Green, catalogue.Open: terminal.Yellow, catalogue.Missed: terminal.Red}
	return terminal.Options{Color: colour()}.Paint(styles[v], v)
}
