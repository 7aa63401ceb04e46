package inventory

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/musterdl/muster/model/unit"
)

const (
	zoneLabel   = "topology.kubernetes.io/zone"
	regionLabel = "topology.kubernetes.io/region"
	// uplinkName is the node annotation or label with a node's bandwidth ("25Gbps").
	uplinkName = "muster.dev/uplink"
)

// rackLabels are the levels that labellers write, the tightest first: NVLink
// domains, then leaf switches and racks, blocks and spines, zones, regions. AWS
// numbers its layers from the top; Topograph's tiers begin at the node.
var rackLabels = []string{
	"nvidia.com/gpu.clique",
	"accelerator.topograph.run/sub-domain",
	"accelerator.topograph.run/domain",
	"network.topology.nvidia.com/accelerator",
	"cloud.google.com/gce-topology-subblock",
	"network.topology.nvidia.com/leaf",
	"network.topology.nvidia.com/tier-0",
	"fabric.topograph.run/tier-0",
	"topology.k8s.aws/network-node-layer-3",
	"oci.oraclecloud.com/rdma.local_block_id",
	"topology.kubernetes.io/rack",
	"cloud.google.com/gce-topology-block",
	"network.topology.nvidia.com/block",
	"oci.oraclecloud.com/rdma.network_block_id",
	"topology.k8s.aws/network-node-layer-2",
	"network.topology.nvidia.com/spine",
	"network.topology.nvidia.com/tier-1",
	"fabric.topograph.run/tier-1",
	"oci.oraclecloud.com/rdma.hpc_island_id",
	"topology.k8s.aws/network-node-layer-1",
	"network.topology.nvidia.com/core",
	"network.topology.nvidia.com/datacenter",
	zoneLabel,
	regionLabel,
}

// RackLabel is the label whose values are the racks of these nodes. The engine knows
// one level between node and cluster, so one must be chosen: the tightest that puts
// at least two nodes together and that at least half of the nodes carry, so that two
// nodes with an NVLink domain do not flatten the racks of a thousand others. Without
// any the network is flat, and the label empty.
func (r Rules) RackLabel(nodes []*corev1.Node) string {
	labels := r.RackLabels
	if len(labels) == 0 {
		labels = rackLabels
	}
	for _, label := range labels {
		carriers, together := 0, false
		sizes := map[string]int{}
		for _, n := range nodes {
			if n.Labels[label] == "" {
				continue
			}
			carriers++
			rack := rackOf(n, label)
			sizes[rack]++
			together = together || sizes[rack] > 1
		}
		if together && 2*carriers >= len(nodes) {
			return label
		}
	}
	return ""
}

// rackOf is the name of a node's rack. Below the zone it begins with the zone, as
// rack names are often only unique there; the nodes of a zone that lack the label
// share one rack.
func rackOf(n *corev1.Node, label string) string {
	if label == "" {
		return "all"
	}
	value := n.Labels[label]
	if value == "" {
		value = "unlabelled"
	}
	if zone := n.Labels[zoneLabel]; zone != "" && label != zoneLabel && label != regionLabel {
		return zone + "/" + value
	}
	return value
}

func uplink(n *corev1.Node) (unit.Mbps, Problem) {
	value := n.Annotations[uplinkName]
	if value == "" {
		value = n.Labels[uplinkName]
	}
	if value == "" {
		return 0, Problem{}
	}
	b, err := unit.ParseMbps(value)
	if err != nil {
		return 0, wrong("node %s: %s %q: expected a bandwidth like 25Gbps; taken as unlimited", n.Name, uplinkName, value)
	}
	return b, Problem{}
}
