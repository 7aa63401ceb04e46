package planning

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/musterdl/muster/model/objection"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/shape"
)

// Check says what no plan can do about: sizes that do not divide, a batch below the copies that
// there have to be, a layer that no device holds. It says all at once, each with the nearest
// that works.
func Check(t *Task) (all []objection.Objection) {
	wrong := func(field, found, expected, do string) {
		all = append(all, objection.Objection{Field: field, Found: found, Expected: expected, Do: do})
	}
	n, layers, l := t.On.Len(), t.Model.Profile.Layers(), &t.Limits
	inNode := 0
	for _, node := range t.On.Nodes {
		inNode = max(inNode, int(node.Count))
	}
	x := parallel.NewSimulator(t.Model, t.On)
	if l.Tensor > inNode {
		wrong("--tp", fmt.Sprint(l.Tensor), fmt.Sprintf("at most the %d devices of a node", inNode), "")
	} else if l.Tensor > 0 {
		if _, why := x.Ways(layers/2, 0, l.Tensor, 1); why != "" {
			wrong("--tp", string(why), "", "")
		}
	}
	if l.Ranks > layers {
		wrong("--pp", fmt.Sprint(l.Ranks), fmt.Sprintf("at most the %d layers", layers), "")
	}
	if size := max(1, l.Tensor) * max(1, l.Ranks) * max(1, l.Copies); n%size != 0 {
		wrong("--cluster", fmt.Sprintf("%d devices, which tp, pp and dp of %d in all do not divide", n, size), "a multiple", fmt.Sprintf("the nearest is %d", max(1, (n+size/2)/size)*size))
	}
	if dp := l.Copies; dp > 0 && t.Model.Batch%dp != 0 {
		wrong("--batch", fmt.Sprintf("%d samples for %d copies of the model (dp)", t.Model.Batch, dp), "a multiple of the copies", fmt.Sprintf("the nearest is %d", max(1, (t.Model.Batch+dp/2)/dp)*dp))
	} else if least := (n + inNode*layers - 1) / (inNode * layers); t.Model.Batch < least {
		wrong("--batch", fmt.Sprint(t.Model.Batch), fmt.Sprintf("at least %d: %d devices hold as many copies of %d layers, each over the %d of a node at most", least, n, layers, inNode), "")
	}
	all = append(all, checkExperts(x, l)...)
	if why := holds(x, inNode); why != nil {
		all = append(all, *why)
	}
	return all
}

// checkExperts says over which copies experts cannot be spread.
func checkExperts(x *parallel.Simulator, l *parallel.Limits) (all []objection.Objection) {
	if l.Experts <= 1 {
		return nil
	}
	found, count := fmt.Sprint(l.Experts), x.Experts(max(1, l.Tensor))
	if count == 0 {
		return []objection.Objection{{Field: "--ep", Found: found, Expected: "1, as the layers have no experts"}}
	}
	if count%l.Experts != 0 {
		all = append(all, objection.Objection{Field: "--ep", Found: fmt.Sprintf("%s, which does not divide the %d experts of a layer", found, count),
			Expected: "a divisor", Do: fmt.Sprintf("the nearest is %d", shape.Nearest(l.Experts, count))})
	}
	// Where the copies are not asked for there are at most as many as devices.
	if copies := cmp.Or(l.Copies, x.On.Len()/max(1, l.Tensor)/max(1, l.Ranks)); copies > 0 && (l.Copies > 0 && copies%l.Experts != 0 || copies < l.Experts) {
		all = append(all, objection.Objection{Field: "--ep", Found: fmt.Sprintf("%s for %d copies of the model (dp)", found, copies),
			Expected: "a divisor of the copies", Do: fmt.Sprintf("the nearest is %d", shape.Nearest(l.Experts, copies))})
	}
	return all
}

// holds says which layer no device holds, split over all of a node.
func holds(x *parallel.Simulator, inNode int) *objection.Objection {
	most, roomy, at := int64(0), unit.MiB(0), 0
	for _, kind := range x.On.Kinds {
		if kind.Memory == 0 {
			return nil
		}
		roomy = max(roomy, kind.Room())
	}
	state := &x.Model.State
	for layer := range x.Model.Profile.Layers() {
		least := int64(-1)
		for tensor := 1; tensor <= inNode; tensor++ {
			ways, why := x.Ways(layer, 0, tensor, 1)
			if why != "" {
				continue
			}
			lean := ways[len(ways)-1]
			times := state.Weights + state.Gradients
			if !state.Sharded {
				times += state.Optimizer
			}
			if e := &lean.Mixture; e.Count > 0 { // at best a device has one of them
				lean.ParamKiB -= e.ParamKiB - e.ParamKiB/int64(min(e.Count, x.On.Len()))
			}
			if kib := int64(times*float64(lean.ParamKiB)) + lean.ActivationKiB; least < 0 || kib < least {
				least = kib
			}
		}
		if least > most {
			most, at = least, layer
		}
	}
	needs := unit.MiB((most + 1023) >> 10)
	if needs <= roomy {
		return nil
	}
	name := fmt.Sprintf("layer %d", at)
	if p, shaped := x.Model.Profile.(*shape.Profile); shaped {
		name += " (" + p.Kind(at) + ")"
	}
	return &objection.Objection{Field: "--cluster", Found: fmt.Sprintf("devices of %v", roomy),
		Expected: fmt.Sprintf("%v at least: %s needs as much for its weights and one sample, however it is split", needs, name), Do: roomier(needs)}
}

// roomier names the smallest known device with so much memory.
func roomier(needs unit.MiB) string {
	var fit []parallel.Device
	for _, name := range shape.Devices() {
		if d, why := shape.Device(name, shape.Half); why == "" && d.Room() >= needs {
			fit = append(fit, d)
		}
	}
	if len(fit) == 0 {
		return "no known device has as much: put more devices into a node"
	}
	return "the nearest that has is " + slices.MinFunc(fit, func(a, b parallel.Device) int { return int(a.Memory - b.Memory) }).Name
}
