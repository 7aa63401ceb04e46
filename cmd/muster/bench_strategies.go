package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/musterdl/muster/experiment/reproduce"
)

// longestTiming is how long timing one strategy may take: one that has not decided by
// then is too slow for the size. The clock goes on while others have the processor.
const longestTiming = 5 * time.Minute

// decisionsAt is the size that decisions are timed at.
func decisionsAt(large bool) reproduce.DecisionWork {
	if large {
		return reproduce.LargeDecisions
	}
	return reproduce.Decisions
}

// timeCommand is what the children of bench --strategies run.
func timeCommand() *cobra.Command {
	var large bool
	cmd := &cobra.Command{Use: "decisions NAME", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := reproduce.MeasureDecisions(args[0], decisionsAt(large))
			if err != nil {
				return err
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(m)
		}}
	cmd.Flags().BoolVar(&large, "large", false, "at the larger size")
	return cmd
}

// timeStrategies times the decisions of every strategy that ranks jobs or decides for
// all, and of compositions, each in a process of its own.
func timeStrategies(ctx context.Context, large bool, progress io.Writer) ([]reproduce.DecisionTime, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var list []reproduce.DecisionTime
	for _, name := range reproduce.TimedStrategies() {
		fmt.Fprintf(progress, "timing %s\n", name)
		m, err := timeOne(ctx, self, name, large, progress)
		if err != nil {
			w := decisionsAt(large)
			m = reproduce.DecisionTime{Strategy: name, Devices: w.Devices, Active: w.Active, Missing: err.Error()}
		}
		list = append(list, m)
	}
	return list, nil
}

func timeOne(ctx context.Context, self, name string, large bool, progress io.Writer) (m reproduce.DecisionTime, err error) {
	ctx, cancel := context.WithTimeout(ctx, longestTiming)
	defer cancel()
	child := exec.CommandContext(ctx, self, "bench", "decisions", name, fmt.Sprintf("--large=%t", large))
	child.Env = append(os.Environ(), "GOMAXPROCS=1")
	child.Stderr = progress
	out, err := child.Output()
	switch {
	case ctx.Err() != nil:
		return m, fmt.Errorf("it was not done after %s", longestTiming)
	case err != nil:
		return m, err
	}
	return m, json.Unmarshal(out, &m)
}

func writeDecisionTimes(w io.Writer, list []reproduce.DecisionTime) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "processor time of decisions on %d devices with %d jobs that wait or run\n", list[0].Devices, list[0].Active)
	fmt.Fprintln(t, "STRATEGY\tPART\tRUNNING\tSTEPS\tALL AT ONCE\tp50\tp99\tMOST\tALLOCS\tANSWERS\tp50 ANSWER\tLONGEST\tTARGET")
	ms := func(s float64) string { return fmt.Sprintf("%.2f ms", s*1000) }
	for i := range list {
		m := &list[i]
		if m.Missing != "" {
			fmt.Fprintf(t, "%s\t%s\tnot measured: %s\n", m.Strategy, m.Part, m.Missing)
			continue
		}
		answers, verdict := "\t\t", ""
		if m.Answers > 0 {
			answers = fmt.Sprintf("%d\t%s\t%s", m.Answers, ms(m.P50AnswerSec), ms(m.MaxAnswerSec))
		}
		if m.Target != "" {
			verdict = map[bool]string{false: "met: at most ", true: "MISSED: at most "}[m.Missed] + m.Target
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\t%.0f\t%s\t%s\n", m.Strategy, m.Part, m.Running, m.Steps, ms(m.FirstSec), ms(m.P50Sec), ms(m.P99Sec), ms(m.MaxSec), m.Allocs, answers, verdict)
	}
	return t.Flush()
}
