package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/musterdl/muster/internal/view"
)

func nodesCommand() *cobra.Command {
	var l live
	cmd := &cobra.Command{Use: "nodes", GroupID: "operate", Args: cobra.NoArgs, Short: "List the nodes and who is on their devices",
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := l.client().Nodes(cmd.Context())
			if err != nil {
				return err
			}
			return l.show(cmd.OutOrStdout(), list, func(w io.Writer, o view.TextOptions) error { return view.WriteNodes(w, list.Nodes, o) })
		}}
	l.flags(cmd)
	return cmd
}

func clusterCommand() *cobra.Command {
	var l live
	cmd := &cobra.Command{Use: "status", GroupID: "operate", Args: cobra.NoArgs, Short: "Sum up devices, nodes, jobs and the queue",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := l.client().Cluster(cmd.Context())
			if err != nil {
				return err
			}
			return l.showCluster(cmd.OutOrStdout(), &c)
		}}
	l.flags(cmd)
	return cmd
}

func (l *live) showCluster(w io.Writer, c *view.Cluster) error {
	return l.show(w, c, func(w io.Writer, o view.TextOptions) error { return view.WriteCluster(w, c, o) })
}

// nodeCommand is a command that asks one thing of nodes.
func nodeCommand(verb, short string) *cobra.Command {
	var l live
	cmd := &cobra.Command{Use: verb + " NODE...", GroupID: "operate", Args: cobra.MinimumNArgs(1), Short: short,
		RunE: func(cmd *cobra.Command, args []string) error {
			c := l.client()
			return each(cmd.Context(), args, func(ctx context.Context, name string) error {
				n, err := c.ChangeNode(ctx, name, verb)
				if err != nil {
					return err
				}
				return l.show(cmd.OutOrStdout(), n, func(w io.Writer, _ view.TextOptions) error {
					_, err := fmt.Fprintf(w, "%s is %s\n", n.Name, n.Status)
					return err
				})
			})
		}}
	l.flags(cmd)
	return cmd
}

// pauseCommand stops the decisions or lets them go on.
func pauseCommand(verb, short string) *cobra.Command {
	var l live
	cmd := &cobra.Command{Use: verb, GroupID: "operate", Args: cobra.NoArgs, Short: short,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ask := l.client().Pause
			if verb == "unpause" {
				ask = l.client().Unpause
			}
			c, err := ask(cmd.Context())
			if err != nil {
				return err
			}
			return l.showCluster(cmd.OutOrStdout(), &c)
		}}
	l.flags(cmd)
	return cmd
}
