package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/musterdl/muster/internal/client"
	"github.com/musterdl/muster/internal/view"
)

func nodesCommand() *cobra.Command {
	return answered(&cobra.Command{Use: "nodes", GroupID: "operate", Args: cobra.NoArgs, Short: "List the nodes and who is on their devices"},
		func(ctx context.Context, c *client.Client, _ []string) (view.Nodes, error) { return c.Nodes(ctx) },
		func(w io.Writer, list *view.Nodes, o view.TextOptions) error {
			return view.WriteNodes(w, list.Nodes, o)
		})
}

func clusterCommand() *cobra.Command {
	return answered(&cobra.Command{Use: "status", GroupID: "operate", Args: cobra.NoArgs, Short: "Sum up devices, nodes, jobs and the queue"},
		func(ctx context.Context, c *client.Client, _ []string) (view.Cluster, error) { return c.Cluster(ctx) }, view.WriteCluster)
}

// nodeCommand is a command that asks one thing of nodes.
func nodeCommand(verb, short string) *cobra.Command {
	return changed(&cobra.Command{Use: verb + " NODE...", GroupID: "operate", Short: short},
		func(ctx context.Context, c *client.Client, name string) (view.Node, error) {
			return c.ChangeNode(ctx, name, verb)
		},
		func(n view.Node) string { return fmt.Sprintf("%s is %s", n.Name, n.Status) })
}

// pauseCommand stops the decisions or lets them go on.
func pauseCommand(verb, short string) *cobra.Command {
	return answered(&cobra.Command{Use: verb, GroupID: "operate", Args: cobra.NoArgs, Short: short},
		func(ctx context.Context, c *client.Client, _ []string) (view.Cluster, error) {
			if verb == "unpause" {
				return c.Unpause(ctx)
			}
			return c.Pause(ctx)
		}, view.WriteCluster)
}
