package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/musterdl/muster/engine/defrag"
	"github.com/musterdl/muster/internal/view"
)

func defragCommand() *cobra.Command {
	var l live
	var apply bool
	var ask defrag.Request
	cmd := &cobra.Command{Use: "defrag [JOB]", GroupID: "operate", Args: cobra.MaximumNArgs(1), Short: "Make room for a waiting job by moving others",
		Long: "Plan moves of running jobs after which a waiting job fits, where enough devices are free but not together. Only jobs\n" +
			"that save when they are asked to are moved; they keep their size and their device model, and no queue's protection or\n" +
			"limit, no claim on room and no maintenance window is passed over. Without JOB the best-ranked job that there is a\n" +
			"plan for is taken. Nothing is moved without --apply, which carries out exactly the plan that it has shown.",
		Example: "  muster defrag --plan\n  muster defrag protein-big --price-most 2\n  muster defrag protein-big --apply",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				ask.Job = args[0]
			}
			return l.defrag(cmd, ask, apply)
		}}
	l.flags(cmd)
	fl := cmd.Flags()
	fl.Bool("plan", false, "show the plan and move nothing, as without --apply")
	fl.BoolVar(&apply, "apply", false, "show the plan and carry it out")
	fl.IntVar(&ask.MovesMost, "moves-most", defrag.DefaultBudget().Moves, "move at most so many jobs")
	fl.Float64Var(&ask.PriceMostDeviceHours, "price-most", 0, "spend at most so many device-hours (0: no bound)")
	cmd.MarkFlagsMutuallyExclusive("plan", "apply")
	return cmd
}

// defrag shows the plan and, if it is to be applied, has that very plan carried out.
func (l *live) defrag(cmd *cobra.Command, ask defrag.Request, apply bool) error {
	shown, err := l.client().Defrag(cmd.Context(), ask)
	if err != nil {
		return err
	}
	if apply && shown.Digest != "" {
		if !l.asJSON {
			if err := writePlan(cmd.OutOrStdout(), &shown); err != nil {
				return err
			}
		}
		ask.Job, ask.Apply, ask.Digest = shown.Job, true, shown.Digest
		if shown, err = l.client().Defrag(cmd.Context(), ask); err != nil {
			return err
		}
	}
	err = l.show(cmd.OutOrStdout(), shown, func(w io.Writer, _ view.TextOptions) error {
		if shown.Applied {
			_, err := fmt.Fprintf(w, "applied: %s starts when the moved jobs have saved\n", shown.Job)
			return err
		}
		if err := writePlan(w, &shown); err != nil || apply || shown.Digest == "" {
			return err
		}
		_, err := fmt.Fprintf(w, "nothing was moved; to do it: muster defrag %s --apply\n", shown.Job)
		return err
	})
	if err == nil && apply && !shown.Applied {
		return exit(1)
	}
	return err
}

// writePlan writes the moves, and the nodes before and after them.
func writePlan(w io.Writer, s *defrag.Shown) error {
	var b bytes.Buffer
	fmt.Fprintln(&b, s.Words)
	if len(s.Moves) > 0 {
		t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "\nMOVE\tJOB\tDEVICES\tFROM\tTO\tPRICE\tDEVICE-HOURS")
		for i, m := range s.Moves {
			fmt.Fprintf(t, "%d\t%s\t%g\t%s\t%s\t%s\t%.3g\n", i+1, m.Job, m.Devices, strings.Join(m.From, " "), strings.Join(m.To, " "),
				view.SpanSec(m.PriceSec), m.PriceDeviceHours)
		}
		fmt.Fprintf(t, "\t%s\t%g\t\t%s\tstarts\t%.3g\n", s.Starts.Job, s.Starts.Devices, strings.Join(s.Starts.Nodes, " "), s.PriceDeviceHours)
		fmt.Fprintln(t, "\nNODE\tBEFORE\tAFTER")
		for i := range s.Before {
			fmt.Fprintf(t, "%s\t%s\t%s\n", s.Before[i].Node, onDevices(s.Before[i].Devices), onDevices(s.After[i].Devices))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// onDevices writes who is on the devices of a node: "a*4 | b | free*3".
func onDevices(devices []string) string {
	var words []string
	for i := 0; i < len(devices); {
		name, from := devices[i], i
		for i < len(devices) && devices[i] == name {
			i++
		}
		if name == "" {
			name = "free"
		}
		if n := i - from; n > 1 {
			name = fmt.Sprintf("%s*%d", name, n)
		}
		words = append(words, name)
	}
	return strings.Join(words, " | ")
}
