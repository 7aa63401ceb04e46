package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/musterdl/muster/catalogue"
)

func strategiesCommand() *cobra.Command {
	var asJSON, markdown bool
	cmd := &cobra.Command{Use: "strategies", GroupID: "try", Short: "List the strategies of each step", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case asJSON:
				return printJSON(cmd.OutOrStdout(), catalogue.Listing())
			case markdown:
				return catalogue.WriteMarkdown(cmd.OutOrStdout())
			}
			return catalogue.WriteListing(cmd.OutOrStdout())
		}}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON list")
	cmd.Flags().BoolVar(&markdown, "markdown", false, "print the page docs/strategies.md")
	cmd.MarkFlagsMutuallyExclusive("json", "markdown")
	cmd.AddCommand(showStrategyCommand(), newStrategyCommand())
	return cmd
}

func showStrategyCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{Use: "show NAME", Args: cobra.ExactArgs(1), Short: "Describe a strategy and its options",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return catalogue.Names(""), cobra.ShellCompDirectiveNoFileComp
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
	var step, dir string
	var asJSON bool
	cmd := &cobra.Command{Use: "new NAME --step STEP", Args: cobra.ExactArgs(1),
		Short:   "Write the folder of a new strategy, which compiles and passes its test",
		Example: "  muster strategies new my-order --step schedule",
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := catalogue.NewStrategy(dir, step, args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), s)
			}
			for _, f := range s.Files {
				fmt.Fprintln(cmd.OutOrStdout(), "wrote", f)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "\nadd to catalogue/all.go this line\n\n\t%s\n\nand its import\n\n\t%s\n", s.Line, s.Import)
			return err
		}}
	cmd.Flags().StringVar(&step, "step", "", "profile, allocate, schedule, pipeline or flow")
	cmd.Flags().StringVar(&dir, "dir", ".", "the root of the source")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cobra.CheckErr(cmd.MarkFlagRequired("step"))
	return cmd
}
