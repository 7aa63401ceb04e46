package main

import (
	"context"
	"log/slog"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/musterdl/muster/internal/client"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/promise"
	"github.com/musterdl/muster/internal/view"
)

func promisesCommand() *cobra.Command {
	return answered(&cobra.Command{Use: "promises", GroupID: "operate", Args: cobra.NoArgs, Short: "Say how good what muster when said was, by queue",
		Long: "Every range that was given, asked for or not, is in a log that is never edited. This says of each queue how many\n" +
			"were scored since, how many held (four in five should), and how far off the middle of the range was."},
		func(ctx context.Context, c *client.Client, _ []string) (view.Promises, error) { return c.Promises(ctx) }, view.WritePromises)
}

// keepPromises opens the log of promises of a control plane.
func keepPromises(p *plane.Plane, state string, log *slog.Logger) (*promise.Keeper, error) {
	config := promise.Default(p, log)
	config.Path = filepath.Join(state, "promises.jsonl")
	return promise.Open(config)
}
