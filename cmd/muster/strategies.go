package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/experiment/reproduce"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/internal/whatif"
	"github.com/musterdl/muster/model/unit"
)

func strategiesCommand() *cobra.Command {
	var asJSON, markdown bool
	var s catalogue.Selection
	var claims string
	cmd := &cobra.Command{Use: "strategies", GroupID: "try", Short: "List the strategies of each step", Args: cobra.NoArgs,
		Long: "List the strategies of each step, all of them or those that answer a challenge of the survey (C1 to C14),\n" +
			"are after a goal or fill a step, and say which systems the survey has there that are not here.",
		Example: "  muster strategies --challenge C6 --goal throughput\n  muster strategies --step allocate",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.Check(); err != nil {
				return err
			}
			switch {
			case asJSON:
				return printJSON(cmd.OutOrStdout(), catalogue.Listing(s))
			case markdown:
				found, err := readFindings(claims)
				if err != nil {
					return err
				}
				return catalogue.WriteMarkdown(cmd.OutOrStdout(), reproduce.Grounds(), found)
			}
			return catalogue.WriteListing(cmd.OutOrStdout(), s)
		}}
	cmd.Flags().StringVar(&s.Challenge, "challenge", "", "those that answer this challenge of the survey, C1 to C14")
	cmd.Flags().StringVar(&s.Goal, "goal", "", "those after throughput, cost, deadline, latency or energy")
	cmd.Flags().StringVar(&s.Step, "step", "", "those of profile, allocate, schedule, pipeline, flow or run")
	cmd.Flags().StringVar(&claims, "claims", "docs/claims.json", "what was found last, for the page")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON list")
	cmd.Flags().BoolVar(&markdown, "markdown", false, "print the page docs/strategies.md")
	cmd.MarkFlagsMutuallyExclusive("json", "markdown")
	cmd.AddCommand(showStrategyCommand(), newStrategyCommand(), switchStrategyCommand())
	return cmd
}

// readFindings reads what muster reproduce --write wrote; nothing where it wrote nothing.
func readFindings(file string) ([]catalogue.Finding, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return catalogue.ReadFindings(f)
}

func showStrategyCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{Use: "show NAME", Args: cobra.ExactArgs(1), Short: "Describe a strategy and its options",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return catalogue.Names(nil), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := catalogue.Show(args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), s)
			}
			return catalogue.WriteShown(cmd.OutOrStdout(), s)
		}}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func newStrategyCommand() *cobra.Command {
	var part, step, dir string
	var asJSON bool
	cmd := &cobra.Command{Use: "new NAME --part PART", Args: cobra.ExactArgs(1),
		Short:   "Write the folder of a new strategy, which compiles, passes its test and shows what it does",
		Example: "  muster strategies new my-order --part order\n  muster strategies new my-shares --part place --step serve",
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := catalogue.NewStrategy(dir, part, step, args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), s)
			}
			for _, f := range s.Files {
				fmt.Fprintln(cmd.OutOrStdout(), "wrote", f)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "added its line and its import to %s\n", s.List)
			return err
		}}
	cmd.Flags().StringVar(&part, "part", "", "what it fills: "+strings.Join(catalogue.Stubs(), ", "))
	cmd.Flags().StringVar(&step, "step", "", "the step it belongs to, where that is not its part's own, as serve")
	cmd.Flags().StringVar(&dir, "dir", ".", "the root of the source")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cobra.CheckErr(cmd.MarkFlagRequired("part"))
	return cmd
}

func switchStrategyCommand() *cobra.Command {
	var l live
	var q whatif.SwitchRequest
	var horizon unit.Duration
	cmd := &cobra.Command{Use: "switch {NAME | FILE | --undo}", Args: cobra.MaximumNArgs(1), Short: "Let another strategy decide, while everything runs",
		Long: "Let another strategy decide from now on, also after restarts that name none. No job is lost: what runs goes on, but for\n" +
			"runs that only the strategy before would have resumed, which save, stop and queue. --dry-run says what the other one would\n" +
			"decide at this moment and runs both forward. --undo goes back to the one before; again, further back.",
		Example: "  muster strategies switch srtf --dry-run\n  muster strategies switch srtf\n  muster strategies switch --undo",
		RunE: func(cmd *cobra.Command, args []string) error {
			if q.Undo == (len(args) > 0) {
				return misused("expected a strategy, or --undo")
			}
			if len(args) > 0 {
				c, err := catalogue.ResolveLive(args[0])
				if err != nil {
					return err
				}
				q.Strategy = c.Text
			}
			q.HorizonS = horizon.Seconds()
			out, err := l.client().SwitchStrategy(cmd.Context(), q)
			if err != nil {
				return err
			}
			return l.show(cmd.OutOrStdout(), out, func(w io.Writer, _ view.TextOptions) error { return whatif.WriteSwitched(w, &out) })
		}}
	l.flags(cmd)
	cmd.Flags().BoolVar(&q.DryRun, "dry-run", false, "say what it would do, and do nothing")
	cmd.Flags().BoolVar(&q.Undo, "undo", false, "go back to the strategy that decided before")
	cmd.Flags().Var(durationFlag(&horizon), "horizon", "how far a dry run looks ahead (default 7d)")
	return cmd
}
