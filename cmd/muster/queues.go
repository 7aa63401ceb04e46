package main

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/musterdl/muster/internal/client"
	"github.com/musterdl/muster/internal/foreign"
	"github.com/musterdl/muster/internal/spec"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/queue"
)

func queuesCommand() *cobra.Command {
	var l live
	var asYAML bool
	cmd := &cobra.Command{Use: "queues", GroupID: "operate", Args: cobra.NoArgs, Short: "Show the tree of queues, or set another",
		Long: "Show the tree of queues: what each is guaranteed, may hold, keeps for itself and may borrow. A job is in the queue\n" +
			"that its tenant names, or in the nearest one above that there is.",
		Example: "  muster queues\n  muster queues --yaml > queues.yaml\n  muster queues set queues.yaml\n" +
			"  muster queues import clusterqueues.yaml > queues.yaml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			tree, err := l.client().Queues(cmd.Context())
			if err != nil {
				return err
			}
			if asYAML {
				_, err := cmd.OutOrStdout().Write(spec.FormatQueues(tree))
				return err
			}
			return l.show(cmd.OutOrStdout(), tree, func(w io.Writer, o view.TextOptions) error { return view.WriteQueues(w, &tree, o) })
		}}
	l.flags(cmd)
	cmd.Flags().BoolVar(&asYAML, "yaml", false, "print the file that muster queues set reads")
	cmd.MarkFlagsMutuallyExclusive("yaml", "json")
	cmd.AddCommand(setQueuesCommand(), importQueuesCommand())
	return cmd
}

func setQueuesCommand() *cobra.Command {
	return answered(&cobra.Command{Use: "set FILE", Args: cobra.ExactArgs(1), Short: "Give the cluster another tree of queues, at once",
		Long: "Give the cluster another tree of queues, from a YAML file or one of the presets venus, philly and queues:NxG. It holds\n" +
			"at once and after restarts. Jobs and accounts stay; jobs whose queue is gone are in the nearest one above it."},
		func(ctx context.Context, c *client.Client, args []string) (queue.Tree, error) {
			nodes, err := c.Nodes(ctx)
			if err != nil {
				return queue.Tree{}, err
			}
			tree, err := spec.ResolveQueues(args[0], devicesOf(nodes.Nodes))
			if err != nil {
				return queue.Tree{}, err
			}
			return c.SetQueues(ctx, tree)
		}, view.WriteQueues)
}

// devicesOf is of a cluster what a file of queues is read for: the device models by
// name, and how many devices there are.
func devicesOf(nodes []view.Node) *cluster.Cluster {
	c := &cluster.Cluster{}
	for i := range nodes {
		if _, known := c.ModelID(nodes[i].Model); !known && nodes[i].Model != "" {
			c.Models = append(c.Models, cluster.Model{Name: nodes[i].Model})
		}
		c.Devices = append(c.Devices, make([]cluster.Device, len(nodes[i].Devices))...)
	}
	return c
}

func importQueuesCommand() *cobra.Command {
	return &cobra.Command{Use: "import FILE", Args: cobra.ExactArgs(1), Short: "Print the file of queues that another system's queues come to",
		Long: "Print the file of queues that another system's queues come to: Kueue's ClusterQueues and Cohorts, Volcano's Queues, what\n" +
			"sacctmgr -P show assoc prints, and partitions of slurm.conf or of scontrol show partition. What cannot be said here is\n" +
			"told. No server is asked, and nothing is set.",
		Example: "  sacctmgr -P show assoc format=Account,ParentName,User,Share,GrpTRES,MaxTRES,MaxWall > assoc.txt\n" +
			"  muster queues import assoc.txt > queues.yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			data, err := os.ReadFile(args[0])
			if err != nil {
				return err
			}
			tree, found, err := foreign.Queues(args[0], data)
			if err != nil {
				return err
			}
			tell(cmd.ErrOrStderr(), args[0], &found)
			_, err = cmd.OutOrStdout().Write(spec.FormatQueues(tree))
			return err
		}}
}
