package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/musterdl/muster/internal/client"
	"github.com/musterdl/muster/internal/view"
)

func whenCommand() *cobra.Command {
	return answered(&cobra.Command{Use: "when JOB", GroupID: "run", Args: cobra.ExactArgs(1), Short: "Say when a job starts and ends, as ranges, and how good past ones were",
		Long: "Say when a job starts and ends, as ranges that should hold four times in five. The cluster is run forward from its\n" +
			"present state through futures with run times and arrivals like those of its past, and the ranges are corrected by\n" +
			"how past ones turned out. Whatever is said is kept and scored: see muster promises."},
		func(ctx context.Context, c *client.Client, args []string) (view.When, error) {
			return c.When(ctx, args[0])
		}, view.WriteWhen)
}
