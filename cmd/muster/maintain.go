package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/model/unit"
)

func maintainCommand() *cobra.Command {
	var l live
	var from string
	var length unit.Duration
	var cancel bool
	var ask view.WindowRequest
	cmd := &cobra.Command{Use: "maintain NODE", GroupID: "operate", Args: cobra.ExactArgs(1), Short: "Close a node for maintenance, now or later",
		Long: "Close a node for maintenance. Until then jobs may start there that are over before it begins, save their work or may be\n" +
			"tried again. When it begins the node is drained, and when it ends it takes jobs again. Who will be stopped and who will\n" +
			"wait is told. --cancel takes all windows of the node out of the calendar and opens it if one has begun.",
		Example: "  muster maintain node3 --for 1h\n  muster maintain node3 --from +2h --for 90m\n  muster maintain node3 --from '2026-03-10 22:00' --for 4h\n  muster maintain node3 --cancel",
		RunE: func(cmd *cobra.Command, args []string) error {
			var n view.Node
			var err error
			switch {
			case cancel:
				n, err = l.client().ChangeNode(cmd.Context(), args[0], "reopen")
			case length <= 0:
				return misused("how long is it closed? expected --for, as in --for 1h")
			default:
				var at unit.Time
				if at, err = begins(from, now()); err != nil {
					return err
				}
				ask.FromUs, ask.ToUs = int64(at), int64(at.Add(length))
				n, err = l.client().CloseNode(cmd.Context(), args[0], ask)
			}
			if err != nil {
				return err
			}
			return l.show(cmd.OutOrStdout(), n, func(w io.Writer, _ view.TextOptions) error { return writeWindows(w, &n, ask.DryRun) })
		}}
	l.flags(cmd)
	fl := cmd.Flags()
	fl.StringVar(&from, "from", "", "when it begins: 2026-03-10T22:00:00Z, '2026-03-10 22:00' or +2h (default now)")
	fl.Var(durationFlag(&length), "for", "how long it takes")
	fl.BoolVar(&cancel, "cancel", false, "take the windows back")
	fl.BoolVar(&ask.DryRun, "dry-run", false, "tell what it would mean to jobs, and change nothing")
	cmd.MarkFlagsMutuallyExclusive("cancel", "from")
	cmd.MarkFlagsMutuallyExclusive("cancel", "for")
	cmd.MarkFlagsMutuallyExclusive("cancel", "dry-run")
	return cmd
}

// begins reads an instant, given as such or from now.
func begins(text string, now unit.Time) (unit.Time, error) {
	if text == "" {
		return now, nil
	}
	if after, ok := strings.CutPrefix(text, "+"); ok {
		d, err := unit.ParseDuration(after)
		if err != nil {
			return 0, fmt.Errorf("--from: %w", err)
		}
		return now.Add(d), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04", "2006-01-02 15:04:05"} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return unit.Time(t.UnixMicro()), nil
		}
	}
	return 0, misused("--from %q: expected a time as in 2026-03-10T22:00:00Z or '2026-03-10 22:00', or +2h", text)
}

func writeWindows(w io.Writer, n *view.Node, dryRun bool) error {
	if c := n.Closing; c != nil {
		for _, line := range c.Lines() {
			if _, err := fmt.Fprintln(w, line); err != nil {
				return err
			}
		}
	}
	if dryRun {
		_, err := fmt.Fprintln(w, "nothing was changed")
		return err
	}
	if len(n.Windows) == 0 {
		_, err := fmt.Fprintf(w, "%s is %s, and no maintenance is planned\n", n.Name, n.Status)
		return err
	}
	for _, window := range n.Windows {
		if _, err := fmt.Fprintf(w, "%s is closed from %s to %s\n", n.Name, day(window.FromUs), day(window.ToUs)); err != nil {
			return err
		}
	}
	return nil
}
