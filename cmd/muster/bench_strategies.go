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
// then is too slow for the size.
const longestTiming = time.Minute

// timeCommand is what the children of bench --strategies run.
func timeCommand() *cobra.Command {
	return &cobra.Command{Use: "decisions NAME", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := reproduce.MeasureDecisions(args[0], reproduce.Decisions)
			if err != nil {
				return err
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(m)
		}}
}

// timeStrategies times the decisions of every strategy that ranks jobs or decides for
// all, each in a process of its own.
func timeStrategies(ctx context.Context, progress io.Writer) ([]reproduce.DecisionTime, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var list []reproduce.DecisionTime
	for _, e := range reproduce.TimedStrategies() {
		fmt.Fprintf(progress, "timing %s\n", e.Name)
		m, err := timeOne(ctx, self, e.Name, progress)
		if err != nil {
			m = reproduce.DecisionTime{Strategy: e.Name, Devices: reproduce.Decisions.Devices, Active: reproduce.Decisions.Active, Missing: err.Error()}
		}
		m.Part = e.Part.Name
		list = append(list, m)
	}
	return list, nil
}

func timeOne(ctx context.Context, self, name string, progress io.Writer) (m reproduce.DecisionTime, err error) {
	ctx, cancel := context.WithTimeout(ctx, longestTiming)
	defer cancel()
	child := exec.CommandContext(ctx, self, "bench", "decisions", name)
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
	fmt.Fprintf(t, "decisions on %d devices with %d jobs that wait or run\n", reproduce.Decisions.Devices, reproduce.Decisions.Active)
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
