package plan

import (
	"math"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// Filling is how long devices take to be sent all that a plan puts on them by those who hold it, through the links of their
// nodes and racks, each as fast as mbps says; only those places are sent anything of which needs says so. What
// a device needs while it computes is counted with what it holds, and each byte as if it crossed the rack: it takes no longer.
// Forever where nobody knows what they need, or a link is down.
func (v View) Filling(spare workload.Spare, on []DeviceID, needs func(place int) bool, mbps func(link int32) float64) unit.Duration {
	c := v.Cluster()
	sent := map[int32]float64{} // by link, bytes
	longest := unit.Duration(0)
	for place, device := range on {
		if !needs(place) {
			continue
		}
		peak := spare.Peak(int32(place))
		if peak <= 0 {
			return unit.Forever
		}
		node := int32(v.Device(device).Node)
		for _, link := range [2]int32{c.NodeLink(node), c.RackLink(c.Nodes[node].Rack)} {
			sent[link] += float64(peak) * (1 << 20)
			switch fast := mbps(link); {
			case fast <= 0:
				return unit.Forever
			case !math.IsInf(fast, 1):
				longest = max(longest, unit.Seconds(sent[link]*8/(fast*1e6)))
			}
		}
	}
	return longest
}
