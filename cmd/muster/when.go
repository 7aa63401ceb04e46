package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/musterdl/muster/internal/view"
)

func whenCommand() *cobra.Command {
	var l live
	cmd := &cobra.Command{Use: "when JOB", GroupID: "run", Args: cobra.ExactArgs(1), Short: "Say when a job starts and ends, as ranges, and how good past ones were",
		Long: "Say when a job starts and ends, as ranges that should hold four times in five. The cluster is run forward from its\n" +
			"present state through futures with run times and arrivals like those of its past, and the ranges are corrected by\n" +
			"how past ones turned out. Whatever is said is kept and scored: see muster promises.",
		RunE: func(cmd *cobra.Command, args []string) error {
			y, err := l.client().When(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return l.show(cmd.OutOrStdout(), y, func(w io.Writer, o view.TextOptions) error { return view.WriteWhen(w, &y, o) })
		}}
	l.flags(cmd)
	return cmd
}
