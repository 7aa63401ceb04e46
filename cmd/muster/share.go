package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/musterdl/muster/internal/client"
	"github.com/musterdl/muster/internal/view"
)

// shareCommands are about who may have what, and when.
func shareCommands() []*cobra.Command {
	return []*cobra.Command{shareCommand(), queuesCommand(), calendarCommand(), maintainCommand()}
}

func shareCommand() *cobra.Command {
	var l live
	var accounts bool
	cmd := &cobra.Command{Use: "share [QUEUE]", GroupID: "operate", Args: cobra.MaximumNArgs(1), Short: "Say what each queue deserves, uses, borrows and lends, and why",
		Long: "Say what each queue, or one and those below it, deserves, uses, borrows and lends at this moment, with the\n" +
			"arithmetic behind it. With --accounts: how much device time each user of each tenant has used of each device\n" +
			"model, and whether every device-hour is in the books exactly once.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if accounts && len(args) > 0 {
				return misused("--accounts lists tenants and users, not a queue: leave %q out", args[0])
			}
			if accounts {
				return l.accounts(cmd)
			}
			shares, err := l.client().Shares(cmd.Context())
			if err != nil {
				return err
			}
			if len(args) > 0 {
				if shares.Queues = below(shares.Queues, args[0]); len(shares.Queues) == 0 {
					return fmt.Errorf("there is no queue %q: muster queues lists them", args[0])
				}
			}
			return l.show(cmd.OutOrStdout(), shares, func(w io.Writer, o view.TextOptions) error { return view.WriteShares(w, &shares, o) })
		}}
	l.flags(cmd)
	cmd.Flags().BoolVar(&accounts, "accounts", false, "device-hours by tenant, user and device model")
	return cmd
}

// below are a queue and those below it.
func below(queues []view.QueueShare, name string) (list []view.QueueShare) {
	for _, q := range queues {
		if q.Name == name || strings.HasPrefix(q.Name, name+"/") {
			list = append(list, q)
		}
	}
	return list
}

func (l *live) accounts(cmd *cobra.Command) error {
	books, err := l.client().Accounts(cmd.Context())
	if err != nil {
		return err
	}
	err = l.show(cmd.OutOrStdout(), books, func(w io.Writer, o view.TextOptions) error { return view.WriteAccounts(w, &books, o) })
	if err == nil && !books.Balanced {
		err = exit(1)
	}
	return err
}

func calendarCommand() *cobra.Command {
	return answered(&cobra.Command{Use: "calendar", GroupID: "operate", Args: cobra.NoArgs, Short: "Say what runs until when, what is reserved for whom, and when nodes are closed"},
		func(ctx context.Context, c *client.Client, _ []string) (view.Calendar, error) { return c.Calendar(ctx) }, view.WriteCalendar)
}
