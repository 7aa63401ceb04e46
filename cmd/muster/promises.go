package main

import (
	"io"
	"log/slog"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/promise"
	"github.com/musterdl/muster/internal/view"
)

func promisesCommand() *cobra.Command {
	var l live
	cmd := &cobra.Command{Use: "promises", GroupID: "operate", Args: cobra.NoArgs, Short: "Say how good what muster when said was, by queue",
		Long: "Every range that was given, asked for or not, is in a log that is never edited. This says of each queue how many\n" +
			"were scored since, how many held (four in five should), and how far off the middle of the range was.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := l.client().Promises(cmd.Context())
			if err != nil {
				return err
			}
			return l.show(cmd.OutOrStdout(), p, func(w io.Writer, o view.TextOptions) error { return view.WritePromises(w, &p, o) })
		}}
	l.flags(cmd)
	return cmd
}

// keepPromises opens the log of promises of a control plane.
func keepPromises(p *plane.Plane, state string, log *slog.Logger) (*promise.Keeper, error) {
	config := promise.Default(p, log)
	config.Path = filepath.Join(state, "promises.jsonl")
	return promise.Open(config)
}
