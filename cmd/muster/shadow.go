package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/internal/client"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/shadow"
	"github.com/musterdl/muster/internal/view"
)

func shadowCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "shadow", GroupID: "operate", Short: "Ask other strategies what they would have decided, and do none of it",
		Long: "Let strategies follow in the shadow of the one that decides. Each is asked about every batch of events what it would\n" +
			"decide, on a copy of the state; nothing of it is done. Divergence is the part of the decisions in which something\n" +
			"else would have been started, elsewhere, or stopped."}
	cmd.AddCommand(shadowAddCommand(), shadowRemoveCommand(), shadowListCommand())
	return cmd
}

func shadowAddCommand() *cobra.Command {
	return shadowChangeCommand("add STRATEGY", "Let a strategy follow in the shadow: a name, several joined by +, or a YAML file",
		func(ref string) (view.ShadowRequest, error) {
			c, err := catalogue.Resolve(ref) // a file is this machine's, not the server's
			return view.ShadowRequest{Add: c.Text}, err
		})
}

func shadowRemoveCommand() *cobra.Command {
	return shadowChangeCommand("rm NAME", "End a shadow", func(name string) (view.ShadowRequest, error) { return view.ShadowRequest{Remove: name}, nil })
}

// shadowChangeCommand is a command that asks for one change.
func shadowChangeCommand(use, short string, request func(arg string) (view.ShadowRequest, error)) *cobra.Command {
	return answered(&cobra.Command{Use: use, Args: cobra.ExactArgs(1), Short: short},
		func(ctx context.Context, c *client.Client, args []string) (view.Shadows, error) {
			r, err := request(args[0])
			if err != nil {
				return view.Shadows{}, err
			}
			return c.ChangeShadows(ctx, r)
		}, view.WriteShadows)
}

func shadowListCommand() *cobra.Command {
	var regret bool
	cmd := answered(&cobra.Command{Use: "ls", Args: cobra.NoArgs, Short: "List the shadows, and where they would have decided otherwise"},
		func(ctx context.Context, c *client.Client, _ []string) (view.Shadows, error) {
			if regret {
				return c.Regrets(ctx)
			}
			return c.Shadows(ctx)
		}, view.WriteShadows)
	cmd.Flags().BoolVar(&regret, "regret", false, "replay the history under each, and compare the mean time to completion")
	return cmd
}

// followers are the strategies that begin in the shadow of a control plane.
func (f *upFlags) followers(p *plane.Plane, log *slog.Logger) (*shadow.Set, error) {
	set := shadow.New(shadow.Config{Plane: p, Log: log})
	for _, ref := range f.shadows {
		c, err := catalogue.Resolve(ref)
		if err == nil {
			err = set.Add(c, now())
		}
		if err != nil {
			return nil, fmt.Errorf("--shadow: %w", err)
		}
	}
	return set, nil
}
