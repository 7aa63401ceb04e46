package main

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/musterdl/muster/experiment/reproduce/scenario"
)

// largeOptions are what muster scenario large was asked.
type largeOptions struct {
	study scenario.LargeStudy
	showing
}

func largeCommand() *cobra.Command {
	var o largeOptions
	cmd := &cobra.Command{Use: "large", Short: "Run a day of large models with the planner in the loop, and with plans made by hand", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), cmd.OutOrStdout()) }}
	cmd.Long = "Train sixteen published models among 200 other jobs on pods of A100, V100 and T4 whose racks are oversubscribed\n" +
		"2:1. With every step at work a planner offers each job plans for several sizes and kinds of device; without step 4\n" +
		"its owner plans by hand for the devices that he asks for, without step 2 it gets these wherever there is room first.\n" +
		"The other jobs are guests: on devices that nobody else has, and in what plans leave idle; --without guests lets\n" +
		"nobody into that. BUBBLES USED is the part of it that guests computed in, HARM how much longer they kept owners.\n" +
		"Layers and links truly are otherwise than the planner believes. docs/scenario.md says more."
	cmd.Example = "  muster scenario large\n  muster scenario large --without pipeline --seeds 30 --plot large.svg"
	f := cmd.Flags()
	f.StringSliceVar(&o.study.Without, "without", nil, "leave only this step out, beside the full day (default each)")
	f.IntVar(&o.study.Seeds, "seeds", 5, "how many days are drawn")
	o.flags(f, "the ratios")
	return cmd
}

func (o *largeOptions) run(ctx context.Context, w io.Writer) error {
	s := &o.study
	if s.Seeds < 1 {
		return misused("--seeds is %d: expected 1 or more", s.Seeds)
	}
	for _, step := range s.Without {
		if !slices.Contains(s.Steps(), step) {
			return misused("--without %s: this day can leave out %s", step, strings.Join(s.Steps(), ", "))
		}
	}
	s.Progress = studyBar(o.quiet)
	err := s.Run(ctx)
	if err == nil && o.plot != "" {
		err = toFile(o.plot, s.Plot)
	}
	switch {
	case err != nil:
		return err
	case o.asJSON:
		return printJSON(w, s)
	}
	return s.Write(w)
}
