package fleet

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run/kube/filter"
)

// Sets are the sets of nodes that the engine knows, by the signature of the pods: which of them
// may go where, by the constraints of Kubernetes. It knows no gangs.
type Sets struct {
	config *Config
	fleet  *Fleet
	stale  bool // the nodes of sets may be others than were told
	ids    map[string]int32
	pods   []*corev1.Pod // by set - 1: one of the signature
	told   []*filter.Set
	bars   []map[string]unit.Time // nodes that did not work out, until when
}

// NewSets returns none, of the nodes of a fleet.
func NewSets(config *Config, of *Fleet) *Sets {
	return &Sets{config: config, fleet: of, ids: map[string]int32{}}
}

// Confine returns the set of nodes that pods alike may go to, and how many to each; 0 is no
// bound.
func (ns *Sets) Confine(pod *corev1.Pod) (signature string, set, perNode int32) {
	f := ns.config.Filter
	if f == nil {
		return "", 0, 0
	}
	signature = f.Signature(pod)
	id, known := ns.ids[signature]
	if !known {
		id = ns.Add(signature, pod)
	}
	ns.pods[id-1] = pod
	ns.refreshSet(id)
	if told := ns.told[id-1]; told != nil {
		perNode = int32(told.PerNode)
	}
	return signature, id, perNode
}

// Add makes room for one more set.
func (ns *Sets) Add(signature string, pod *corev1.Pod) (id int32) {
	id = int32(len(ns.pods)) + 1
	ns.ids[signature] = id
	ns.pods, ns.told, ns.bars = append(ns.pods, pod), append(ns.told, nil), append(ns.bars, nil)
	return id
}

// Doubt has the sets be looked at again that work waits for.
func (ns *Sets) Doubt() { ns.stale = true }

// Sample takes in pods that wait for a set, for the one that stands for it: that may be gone, with
// the claims and volumes that were made for it. Where none is known, any is as good.
func (ns *Sets) Sample(set int32, pods []*corev1.Pod) {
	if set <= 0 || int(set) > len(ns.pods) || len(pods) == 0 {
		return
	}
	was := ns.pods[set-1]
	if was == nil {
		ns.pods[set-1] = pods[len(pods)-1]
		return
	}
	if ns.config.Filter == nil || slices.Contains(pods, was) {
		return
	}
	for _, p := range pods {
		if id, known := ns.ids[ns.config.Filter.Signature(p)]; known && id == set {
			ns.pods[set-1], ns.stale = p, true
			return
		}
	}
}

// refreshSet tells the engine which nodes a set has, if that changed.
func (ns *Sets) refreshSet(id int32) {
	set, err := ns.config.Filter.Nodes(context.Background(), ns.pods[id-1])
	if err != nil {
		ns.config.Log.Error("the constraints of a pod cannot be looked at", "pod", ns.pods[id-1].Name, "error", err)
		return
	}
	lifted := ns.lift(id)
	if set == ns.told[id-1] && !lifted {
		return
	}
	ns.told[id-1] = set
	ns.tellSet(id)
}

func (ns *Sets) tellSet(id int32) {
	set, bars := ns.told[id-1], ns.bars[id-1]
	within := make([]uint64, (len(ns.fleet.places.told)+63)/64)
	allowed := make(map[string]bool, len(set.Allowed))
	for _, name := range set.Allowed {
		_, barred := bars[name]
		allowed[name] = !barred
	}
	for i := range ns.fleet.machines {
		if node, ok := ns.fleet.places.ids[ns.fleet.machines[i].Name]; ok && allowed[ns.fleet.machines[i].KubeNode] {
			within[node>>6] |= 1 << (node & 63)
		}
	}
	ns.config.Report(engine.Event{Kind: engine.Confined, Outside: engine.Outside{Set: id, Within: within}})
}

// barFor is how long a node that did not work out is left alone.
const barFor = 5 * unit.Second

// Bar keeps work of a signature from a node for a while.
func (ns *Sets) Bar(set int32, node string) {
	if set == 0 {
		return
	}
	if ns.bars[set-1] == nil {
		ns.bars[set-1] = map[string]unit.Time{}
	}
	ns.bars[set-1][node] = ns.config.Now().Add(barFor)
	if ns.told[set-1] == nil {
		ns.stale = true // it has not been looked at since the beginning; it is told then
		return
	}
	ns.tellSet(set)
}

// lift ends the bars of a set that are over, and reports whether there was one.
func (ns *Sets) lift(id int32) bool {
	barred := len(ns.bars[id-1])
	maps.DeleteFunc(ns.bars[id-1], func(_ string, until unit.Time) bool { return until <= ns.config.Now() })
	return len(ns.bars[id-1]) < barred
}

// TellChanged looks again at the sets that work waits for.
func (ns *Sets) TellChanged(waitedFor func() map[int32]bool) {
	if !ns.stale || ns.config.Filter == nil {
		return
	}
	ns.stale = false
	used := waitedFor()
	for id := int32(1); int(id) <= len(ns.pods); id++ {
		if used[id] {
			ns.refreshSet(id)
		}
	}
}

// Grow takes in that there are more nodes to tell about.
func (ns *Sets) Grow() {
	for id := range ns.told {
		ns.told[id] = nil
	}
}

// Pass lets a while pass: what was barred may be tried again, and the filter may have heard of volumes, claims and classes, of
// which it tells nobody.
func (ns *Sets) Pass() { ns.stale = true }

// Refusals says, in words, which nodes the pods of a signature may not go to.
func (ns *Sets) Refusals(signature string) string {
	if id := ns.ids[signature]; id > 0 && ns.told[id-1] != nil && len(ns.told[id-1].Refused) > 0 {
		return ns.told[id-1].Words()
	}
	return ""
}

// Signatures are those of all sets, by number.
func (ns *Sets) Signatures() []string {
	list := make([]string, len(ns.pods))
	for s, id := range ns.ids {
		list[id-1] = s
	}
	return list
}
