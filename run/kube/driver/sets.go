package driver

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run/kube/filter"
)

// sets are the sets of nodes that the engine knows, by the signature of the pods.
type sets struct {
	ids  map[string]int32
	pods []*corev1.Pod // by set - 1: one of the signature
	told []*filter.Set
	bars []map[string]unit.Time // nodes that did not work out, until when
}

// confine gives the gang the set of nodes that its pods may go to.
func (c *Core) confine(e *entry, pod *corev1.Pod) (set, perNode int32) {
	f := c.config.Filter
	if f == nil {
		return 0, 0
	}
	e.set = f.Signature(pod)
	id, known := c.sets.ids[e.set]
	if !known {
		id = int32(len(c.sets.pods)) + 1
		c.sets.ids[e.set] = id
		c.sets.pods, c.sets.told, c.sets.bars = append(c.sets.pods, pod), append(c.sets.told, nil), append(c.sets.bars, nil)
	}
	c.sets.pods[id-1] = pod
	c.refreshSet(id)
	if told := c.sets.told[id-1]; told != nil {
		perNode = int32(told.PerNode)
	}
	return id, perNode
}

// refreshSet tells the engine which nodes a set has, if that changed.
func (c *Core) refreshSet(id int32) {
	set, err := c.config.Filter.Nodes(c.ctx, c.sets.pods[id-1])
	if err != nil {
		c.config.Log.Error("the constraints of a pod cannot be looked at", "pod", c.sets.pods[id-1].Name, "error", err)
		return
	}
	lifted := c.lift(id)
	if set == c.sets.told[id-1] && !lifted {
		return
	}
	c.sets.told[id-1] = set
	c.tellSet(id)
}

func (c *Core) tellSet(id int32) {
	set, bars := c.sets.told[id-1], c.sets.bars[id-1]
	within := make([]uint64, (len(c.places.told)+63)/64)
	allowed := make(map[string]bool, len(set.Allowed))
	for _, name := range set.Allowed {
		_, barred := bars[name]
		allowed[name] = !barred
	}
	for i := range c.machines {
		if node, ok := c.places.ids[c.machines[i].Name]; ok && allowed[c.machines[i].KubeNode] {
			within[node>>6] |= 1 << (node & 63)
		}
	}
	c.report(engine.Event{Kind: engine.Confined, Outside: engine.Outside{Set: id, Within: within}})
}

// barFor is how long a node that did not work out is left alone.
const barFor = 5 * unit.Second

// bar keeps work of a signature from a node for a while.
func (c *Core) bar(set int32, node string) {
	if set == 0 {
		return
	}
	if c.sets.bars[set-1] == nil {
		c.sets.bars[set-1] = map[string]unit.Time{}
	}
	c.sets.bars[set-1][node] = c.config.Now().Add(barFor)
	if c.sets.told[set-1] == nil {
		c.staleSets = true // it has not been looked at since the beginning; it is told then
		return
	}
	c.tellSet(set)
}

// lift ends the bars of a set that are over, and reports whether there was one.
func (c *Core) lift(id int32) (lifted bool) {
	for node, until := range c.sets.bars[id-1] {
		if until <= c.config.Now() {
			delete(c.sets.bars[id-1], node)
			lifted = true
		}
	}
	return lifted
}

// settleSets looks again at the sets that work waits for.
func (c *Core) settleSets() {
	if !c.staleSets || c.config.Filter == nil {
		return
	}
	c.staleSets = false
	used := map[int32]bool{}
	for _, e := range c.byJob {
		if e.spec != nil && !e.over && e.run == nil && e.spec.NodeSet > 0 {
			used[e.spec.NodeSet] = true
		}
	}
	for id := int32(1); int(id) <= len(c.sets.pods); id++ {
		if used[id] {
			c.refreshSet(id)
		}
	}
}

// Tick lets time pass: what was barred may be tried again.
func (c *Core) Tick() {
	for _, e := range c.later {
		c.stir(e)
	}
	c.later = c.later[:0]
	for _, bars := range c.sets.bars {
		if len(bars) > 0 {
			c.staleSets = true
		}
	}
}
