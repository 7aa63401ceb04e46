package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/musterdl/muster/experiment/reproduce"
)

func benchCommand() *cobra.Command {
	var asJSON, strategies, large bool
	cmd := &cobra.Command{Use: "bench [sim|commit|queues|all|api]", GroupID: "operate", ValidArgs: []string{"sim", "commit", "queues", "all"},
		Short: "Measure this program on this machine",
		Long: "Measure this program on this machine, each figure in a process of its own on one core.\n" +
			"sim: whole simulations of published traces (from ../shared/data or $MUSTER_DATA), of\n" +
			"generated work, and of a million jobs on 100,000 devices: processor time and memory.\n" +
			"commit: the time and the allocations of single commits on 1,000 and 100,000 devices.\n" +
			"queues: a thousand queues, 10,000 devices, 100,000 waiting jobs: admissions, decisions.\n" +
			"--strategies: for how much processor time every order, every decider for all jobs at once and\n" +
			"what users compose of them holds the engine up at 10,000 devices and 5,000 jobs, and beside\n" +
			"it the answers that do not; --large: at 100,000 devices and 100,000 jobs.",
		Args: cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			group := "all"
			if strategies {
				list, err := timeStrategies(cmd.Context(), large, os.Stderr)
				switch {
				case err != nil:
					return err
				case asJSON:
					return printJSON(cmd.OutOrStdout(), list)
				}
				return writeDecisionTimes(cmd.OutOrStdout(), list)
			}
			if large {
				return misused("--large is a size of --strategies")
			}
			if len(args) > 0 {
				group = args[0]
			}
			list, err := measureAll(group, os.Stderr)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), list)
			}
			return writeMeasurements(cmd.OutOrStdout(), list)
		}}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON list (see docs/json.md)")
	cmd.Flags().BoolVar(&strategies, "strategies", false, "time the decisions of every strategy instead")
	cmd.Flags().BoolVar(&large, "large", false, "with --strategies: 100,000 devices and 100,000 jobs")
	cmd.AddCommand(benchAPICommand(), measureCommand(), timeCommand())
	return cmd
}

// measureCommand is what the children run.
func measureCommand() *cobra.Command {
	return &cobra.Command{Use: "measure NAME", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, b := range reproduce.Benchmarks() {
				if b.Name == args[0] {
					m, err := b.Measure()
					if err != nil {
						return err
					}
					return json.NewEncoder(cmd.OutOrStdout()).Encode(m)
				}
			}
			return misused("there is no measurement %q", args[0])
		}}
}

// measureAll runs the benchmarks of a group, one after the other.
func measureAll(group string, progress io.Writer) ([]reproduce.Measurement, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var list []reproduce.Measurement
	for _, b := range reproduce.Benchmarks() {
		if group != "all" && group != b.Group {
			continue
		}
		fmt.Fprintf(progress, "measuring %s\n", b.Name)
		child := exec.Command(self, "bench", "measure", b.Name)
		child.Env = append(os.Environ(), "GOMAXPROCS=1")
		child.Stderr = progress
		out, err := child.Output()
		if err != nil {
			return nil, fmt.Errorf("measuring %s: %w", b.Name, err)
		}
		var m reproduce.Measurement
		if err := json.Unmarshal(out, &m); err != nil {
			return nil, fmt.Errorf("measuring %s: reading %q: %w", b.Name, out, err)
		}
		list = append(list, m)
	}
	reproduce.JudgeCommits(list)
	return list, nil
}

func writeMeasurements(w io.Writer, list []reproduce.Measurement) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(cells ...string) { fmt.Fprintln(t, strings.Join(cells, "\t")) }
	row("MEASUREMENT", "DEVICES", "JOBS", "CPU", "JOBS/CPU s", "MEMORY", "p50 COMMIT", "p99 COMMIT", "ALLOCS", "TARGET")
	cell := func(has bool, format string, args ...any) string {
		if !has {
			return ""
		}
		return fmt.Sprintf(format, args...)
	}
	var missing []string
	for i := range list {
		m := &list[i]
		if m.Missing != "" {
			missing = append(missing, fmt.Sprintf("%s was not measured: %s", m.Name, m.Missing))
			continue
		}
		verdict := ""
		switch {
		case m.Target != "" && m.Missed:
			verdict = "MISSED: at most " + m.Target
		case m.Target != "":
			verdict = "met: at most " + m.Target
		}
		timed := m.P50CommitSec > 0
		row(m.Name, fmt.Sprint(m.Devices), fmt.Sprint(m.Jobs), fmt.Sprintf("%.2f s", m.CPUSec), cell(!timed, "%.0f", m.JobsPerCPUSec),
			fmt.Sprintf("%.0f MB", float64(m.RSSBytes)/1e6), cell(timed, "%.1f us", m.P50CommitSec*1e6),
			cell(timed, "%.1f us", m.P99CommitSec*1e6), cell(timed, "%.1f", m.AllocsPerCommit), verdict)
	}
	for _, line := range missing {
		fmt.Fprintln(t, line)
	}
	return t.Flush()
}
