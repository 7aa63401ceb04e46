package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/musterdl/muster/internal/client"
	"github.com/musterdl/muster/internal/view"
)

// liveCommands talk to a server that is running.
func liveCommands() []*cobra.Command {
	return []*cobra.Command{submitCommand(), runCommand(), waitCommand(), lsCommand(), showCommand(), whyCommand(), logsCommand(),
		changeCommand("cancel", "End jobs, whatever they are doing"),
		changeCommand("hold", "Keep jobs back; those that run are stopped and keep their work"),
		changeCommand("release", "Let held jobs go on, or try failed ones again at once"),
		changeCommand("requeue", "Stop jobs and put them back in the queue, or run ended ones again"),
		nodesCommand(), clusterCommand(),
		nodeCommand("cordon", "Start nothing new on nodes; what runs goes on"),
		nodeCommand("uncordon", "Let nodes take jobs again"),
		nodeCommand("drain", "Cordon nodes and stop what runs on them; it goes on elsewhere"),
		pauseCommand("pause", "Decide nothing until unpaused; what runs goes on"),
		pauseCommand("unpause", "Decide again")}
}

// defaultSocket is where a server of this user's is looked for.
func defaultSocket() string {
	if path := os.Getenv("MUSTER_SOCKET"); path != "" {
		return path
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		path := filepath.Join(dir, "muster", "muster.sock")
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return filepath.Join(defaultState(), "muster.sock")
}

// live is what the commands that ask a server have in common.
type live struct {
	socket    string
	remote    client.Remote // but for the token, which is no flag: others see flags
	tokenFile string
	asJSON    bool
}

// flags adds the flags of every such command.
func (l *live) flags(cmd *cobra.Command) {
	l.target(cmd)
	cmd.Flags().BoolVar(&l.asJSON, "json", false, "print JSON")
}

// target adds the flags that say which server.
func (l *live) target(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&l.socket, "socket", "", "the server's socket (default: MUSTER_SOCKET, or muster.sock in the runtime or state directory)")
	fl.StringVar(&l.remote.Address, "server", "", "a server elsewhere, HOST:PORT, or http://127.0.0.1:PORT for one on this machine (default: MUSTER_SERVER, or that of muster login)")
	fl.StringVar(&l.remote.CA, "ca", "", "file of certificates, one of which vouches for that server's")
	fl.StringVar(&l.remote.Fingerprint, "fingerprint", "", "the certificate of that server, as muster up printed it")
	fl.StringVar(&l.tokenFile, "token-file", "", "file with the token for it (default: MUSTER_TOKEN, or that of muster login)")
}

func (l *live) client() *client.Client {
	c := l.dial()
	c.Plain = !l.asJSON
	c.Away = func(err error) {
		fmt.Fprintf(os.Stderr, "muster: %v: waiting for it to come back; an interrupt ends this\n", err)
	}
	return c
}

func (l *live) dial() *client.Client {
	remote, elsewhere, err := l.elsewhere()
	switch {
	case err != nil:
		return client.Broken(err)
	case elsewhere:
		return client.NewRemote(remote)
	}
	if l.socket == "" {
		l.socket = defaultSocket()
	}
	return client.New(l.socket)
}

// show prints a value as JSON, or as its text.
func (l *live) show(w io.Writer, value any, text func(w io.Writer, o view.TextOptions) error) error {
	if l.asJSON {
		data, err := json.MarshalIndent(value, "", "  ")
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(w, view.PlainJSON(string(data)))
		return err
	}
	return text(w, view.TextOptions{Width: width(), Color: colour()})
}

// answered makes a command that asks the server one thing and shows the answer.
func answered[T any](cmd *cobra.Command, ask func(ctx context.Context, c *client.Client, args []string) (T, error), write func(w io.Writer, answer *T, o view.TextOptions) error) *cobra.Command {
	var l live
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		answer, err := ask(cmd.Context(), l.client(), args)
		if err != nil {
			return err
		}
		return l.show(cmd.OutOrStdout(), answer, func(w io.Writer, o view.TextOptions) error { return write(w, &answer, o) })
	}
	l.flags(cmd)
	return cmd
}

// changed makes a command that asks the server for one change of each thing that it names.
func changed[T any](cmd *cobra.Command, ask func(ctx context.Context, c *client.Client, name string) (T, error), is func(T) string) *cobra.Command {
	var l live
	cmd.Args = cobra.MinimumNArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c := l.client()
		return each(cmd.Context(), args, func(ctx context.Context, name string) error {
			answer, err := ask(ctx, c, name)
			if err != nil {
				return err
			}
			return l.show(cmd.OutOrStdout(), answer, func(w io.Writer, _ view.TextOptions) error {
				_, err := fmt.Fprintln(w, is(answer))
				return err
			})
		})
	}
	l.flags(cmd)
	return cmd
}

// each calls f for every name, goes on after errors, and tells all but the last as
// they come.
func each(ctx context.Context, names []string, f func(ctx context.Context, name string) error) error {
	var last error
	for _, name := range names {
		if last != nil {
			fmt.Fprintln(os.Stderr, "muster:", last)
		}
		if err := f(ctx, name); err != nil {
			last = err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return last
}
