package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/musterdl/muster/internal/access"
	"github.com/musterdl/muster/internal/client"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/model/unit"
)

// accessCommands are about who may do what.
func accessCommands() []*cobra.Command {
	user := &cobra.Command{Use: "user", GroupID: "operate", Short: "Say who may use this server, and what they may do there"}
	user.AddCommand(setUserCommand("add", "Add a user or a service account", (*client.Client).AddUser),
		setUserCommand("set", "Say anew what a user may do; the tokens stay", (*client.Client).SetUser), listUsersCommand(), removeUserCommand())
	token := &cobra.Command{Use: "token", GroupID: "operate", Short: "Make, list and revoke the tokens that users show from elsewhere"}
	token.AddCommand(newTokenCommand(), listTokensCommand(), revokeTokenCommand())
	return []*cobra.Command{user, token, auditCommand(), loginCommand(), logoutCommand(), whoamiCommand()}
}

// allOr is a list of paths in words.
func allOr(paths []string, none string) string {
	switch {
	case slices.Contains(paths, access.Everything):
		return "everything"
	case len(paths) == 0:
		return none
	}
	return strings.Join(paths, ", ")
}

func day(us int64) string { return time.UnixMicro(us).Format("2006-01-02 15:04") }

// columns writes a table.
func columns(w io.Writer, rows ...[]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	return t.Flush()
}

func setUserCommand(verb, short string, ask func(*client.Client, context.Context, access.User) (access.ChangedUser, error)) *cobra.Command {
	var l live
	var u access.User
	var role string
	cmd := &cobra.Command{Use: verb + " NAME", Args: cobra.ExactArgs(1), Short: short,
		Long: short + ". The name is also that of the account on the server's machine that the jobs run as.\n\n" +
			"A viewer sees the jobs of its tenants and its own; a submitter submits for its tenants too, and changes its own\n" +
			"jobs; a queue-admin also changes its queues, those below them, and the jobs in them; an operator does everything.",
		Example: "  muster user " + verb + " alice --role submitter --tenant research/vision\n  muster user " + verb + " nightly --service --role submitter --tenant research\n" +
			"  muster user " + verb + " bob --role queue-admin --queue research\n  muster user " + verb + " carol --role viewer --tenant '*'",
		RunE: func(cmd *cobra.Command, args []string) error {
			u.Name = args[0]
			if err := u.Role.UnmarshalText([]byte(role)); err != nil {
				return fmt.Errorf("--role: %w", err)
			}
			made, err := ask(l.client(), cmd.Context(), u)
			if err != nil {
				return err
			}
			return l.show(cmd.OutOrStdout(), made, func(w io.Writer, _ view.TextOptions) error {
				if made.Warning != "" {
					fmt.Fprintln(cmd.ErrOrStderr(), "muster:", made.Warning)
				}
				_, err := fmt.Fprintf(w, "%s has the role %s\n", made.Name, made.Role)
				return err
			})
		}}
	l.flags(cmd)
	fl := cmd.Flags()
	fl.StringVar(&role, "role", "viewer", "viewer, submitter, queue-admin or operator")
	fl.StringSliceVar(&u.Tenants, "tenant", nil, "tenants whose jobs it sees and submits, those below included; '*' is all")
	fl.StringSliceVar(&u.Queues, "queue", nil, "queues that a queue-admin administers, those below included; '*' is all")
	fl.BoolVar(&u.Service, "service", false, "it is a program, not a person")
	return cmd
}

func listUsersCommand() *cobra.Command {
	return answered(&cobra.Command{Use: "ls", Args: cobra.NoArgs, Short: "List the users"},
		func(ctx context.Context, c *client.Client, _ []string) (access.UserList, error) { return c.Users(ctx) },
		func(w io.Writer, list *access.UserList, _ view.TextOptions) error {
			rows := [][]string{{"USER", "ROLE", "TENANTS", "QUEUES", "KIND", "ADDED", "BY"}}
			for _, u := range list.Users {
				kind := "person"
				if u.Service {
					kind = "service"
				}
				rows = append(rows, []string{u.Name, u.Role.String(), allOr(u.Tenants, "-"), allOr(u.Queues, "-"), kind, day(u.AddedUs), u.By})
			}
			return columns(w, rows...)
		})
}

func removeUserCommand() *cobra.Command {
	var l live
	cmd := &cobra.Command{Use: "rm NAME...", Args: cobra.MinimumNArgs(1), Short: "Remove users and their tokens; their jobs stay",
		RunE: func(cmd *cobra.Command, args []string) error { return each(cmd.Context(), args, l.client().RemoveUser) }}
	l.flags(cmd)
	return cmd
}

func newTokenCommand() *cobra.Command {
	var l live
	var r access.TokenRequest
	life := unit.Duration(access.UsualLife.Microseconds())
	cmd := &cobra.Command{Use: "new [USER]", Args: cobra.MaximumNArgs(1), Short: "Make a token and print it, this one time",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				r.User = args[0]
			}
			r.LifeS = life.Seconds()
			made, err := l.client().NewToken(cmd.Context(), r)
			if err != nil {
				return err
			}
			return l.show(cmd.OutOrStdout(), made, func(w io.Writer, _ view.TextOptions) error {
				fmt.Fprintf(cmd.ErrOrStderr(), "token %s of %s, until %s; it is not shown again:\n", made.ID, made.User, day(made.ExpiresUs))
				_, err := fmt.Fprintln(w, made.Secret)
				return err
			})
		}}
	l.flags(cmd)
	cmd.Flags().Var(durationFlag(&life), "life", "how long it lives, at most 366d")
	cmd.Flags().StringVar(&r.Note, "note", "", "what it is for")
	return cmd
}

func listTokensCommand() *cobra.Command {
	return answered(&cobra.Command{Use: "ls", Args: cobra.NoArgs, Short: "List your tokens; an operator's list has everybody's"},
		func(ctx context.Context, c *client.Client, _ []string) (access.TokenList, error) {
			return c.Tokens(ctx)
		},
		func(w io.Writer, list *access.TokenList, _ view.TextOptions) error {
			rows := [][]string{{"TOKEN", "USER", "MADE", "UNTIL", "BY", "NOTE"}}
			for _, t := range list.Tokens {
				until := day(t.ExpiresUs)
				if t.RevokedUs != 0 {
					until = "revoked " + day(t.RevokedUs)
				}
				rows = append(rows, []string{t.ID, t.User, day(t.MadeUs), until, t.By, t.Note})
			}
			return columns(w, rows...)
		})
}

func revokeTokenCommand() *cobra.Command {
	var l live
	cmd := &cobra.Command{Use: "revoke TOKEN...", Args: cobra.MinimumNArgs(1), Short: "End tokens at once, by their ids",
		RunE: func(cmd *cobra.Command, args []string) error {
			c := l.client()
			return each(cmd.Context(), args, func(ctx context.Context, id string) error {
				_, err := c.RevokeToken(ctx, id)
				return err
			})
		}}
	l.flags(cmd)
	return cmd
}

func auditCommand() *cobra.Command {
	var q access.Query
	var last unit.Duration
	cmd := answered(&cobra.Command{Use: "audit", GroupID: "operate", Args: cobra.NoArgs, Short: "Say who changed what, and who was refused what"},
		func(ctx context.Context, c *client.Client, _ []string) (access.AuditList, error) {
			if last > 0 {
				q.SinceUs = int64(now().Add(-last))
			}
			return c.Audit(ctx, q)
		}, writeAudit)
	fl := cmd.Flags()
	fl.StringVar(&q.Who, "who", "", "only what this user did")
	fl.BoolVar(&q.Refused, "refused", false, "only what was refused")
	fl.Var(durationFlag(&last), "last", "only the last so long, as in 2h")
	fl.IntVar(&q.Limit, "limit", 100, "the latest so many")
	return cmd
}

// plain keeps what a caller chose from steering the terminal of who reads it.
func plain(text string) string {
	return strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return '?'
		}
		return c
	}, text)
}

func writeAudit(w io.Writer, list *access.AuditList, _ view.TextOptions) error {
	var rows [][]string
	for i := range list.Entries {
		e := &list.Entries[i]
		who, outcome := e.Who, fmt.Sprintf("%d", e.Status)
		if who == "" {
			who = "-"
		}
		if !e.Allowed {
			outcome += " refused"
		}
		rows = append(rows, []string{time.UnixMicro(e.AtUs).Format("2006-01-02 15:04:05.000"), who, e.How, e.From, plain(e.Method + " " + e.Path), outcome, plain(e.Note + e.Why)})
	}
	return columns(w, rows...)
}
