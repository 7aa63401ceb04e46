package inventory

import (
	"slices"
	"strings"

	"github.com/musterdl/muster/model/unit"

	corev1 "k8s.io/api/core/v1"
)

// asksFractions reports whether a container names HAMi's resources.
func asksFractions(pod *corev1.Pod) bool {
	return slices.ContainsFunc(containers(pod), func(c member) bool {
		return slices.ContainsFunc(IgnoredResources(), func(name string) bool {
			_, ok := asked(c.Container, name)
			return ok
		})
	})
}

// fractions reads a pod's wish where HAMi gives out nvidia.com/gpu. Each container
// asks for itself, of different devices if of several; init containers use what the
// others have, and count where they ask for more.
func (r *Reader) fractions(pod *corev1.Pod) ([]wish, Problem) {
	var together, before []slice
	whole := true
	for _, c := range containers(pod) {
		s, p := r.rules.container(c.Container)
		if !p.None() {
			return nil, p
		}
		if s.count == 0 {
			continue
		}
		whole = whole && s.whole()
		if c.alongside {
			together = append(together, s)
		} else {
			before = append(before, s)
		}
	}
	f, p := r.sharers(pod, whole, append(slices.Clone(together), before...))
	if !p.None() {
		return nil, p
	}
	var need Need
	if p := need.add(f.wishes(together)); !p.None() {
		return nil, p
	}
	w := wish{what: nvidiaGPU, count: int64(need.Devices), share: need.Share, memory: need.Memory, models: f.models,
		apart: true, by: payer{resource: nvidiaGPU}}
	if w.count == 0 {
		w.share = 0
	}
	for _, s := range before {
		// One init container runs at a time, before the others: the most of each counts.
		i := f.wishes([]slice{s})[0]
		w.count, w.share, w.memory = max(w.count, i.count), max(w.share, i.share), max(w.memory, i.memory)
	}
	return []wish{w}, Problem{}
}

// sharers are the models that may serve fractions of a pod.
type sharers struct {
	models []string
	memory unit.MiB   // of their devices
	least  unit.Milli // share that no more may have than a device has slots
}

// sharers chooses the models: those that the pod's annotations allow, with fractions
// unless whole devices are asked. A percentage of the memory is an amount only among
// devices of one size: where there are several, that of most devices, then the
// larger, is taken.
func (r *Reader) sharers(pod *corev1.Pod, whole bool, asks []slice) (f sharers, p Problem) {
	sizes := map[unit.MiB]int{}
	var fit []*Machine
	for i := range r.machines {
		m := &r.machines[i]
		if m.Resource == nvidiaGPU && (m.Fractions || whole) && allowed(pod, m.Model.Name) {
			fit = append(fit, m)
			sizes[m.Model.Memory] += m.Count
		}
	}
	if len(fit) == 0 {
		return f, later("no node gives out fractions of %s that the pod may use", nvidiaGPU)
	}
	bySize := slices.ContainsFunc(asks, func(s slice) bool { return !s.whole() && s.memory == 0 })
	for size, count := range sizes {
		if had := sizes[f.memory]; count > had || count == had && size > f.memory {
			f.memory = size
		}
	}
	for _, m := range fit {
		if bySize && m.Model.Memory != f.memory {
			continue
		}
		f.models = append(f.models, m.Model.Name)
		for _, d := range m.Devices {
			if d.Slots > 0 {
				f.least = max(f.least, (unit.Whole+unit.Milli(d.Slots)-1)/unit.Milli(d.Slots))
			}
		}
	}
	f.models = unique(f.models)
	return f, Problem{}
}

// allowed reports whether the pod's annotations allow a model: each a list of parts
// of names, in any case.
func allowed(pod *corev1.Pod, model string) bool {
	match := func(list string) bool {
		return slices.ContainsFunc(strings.Split(list, ","), func(part string) bool {
			part = strings.Join(strings.Fields(part), "-")
			return part != "" && strings.Contains(strings.ToUpper(model), strings.ToUpper(part))
		})
	}
	use, not := pod.Annotations[useType], pod.Annotations[noUseType]
	return (strings.TrimSpace(use) == "" || match(use)) && !match(not)
}

// wishes are slices as shares: the compute that is asked, and at least the part of
// the memory if that is asked as a part, so that tasks that fit by share fit by both.
func (f *sharers) wishes(all []slice) []wish {
	var ws []wish
	for _, s := range all {
		w := wish{what: nvidiaGPU, count: s.count, share: unit.Whole, models: f.models, apart: true, by: payer{resource: nvidiaGPU}}
		if !s.whole() {
			w.share = max(f.least, unit.Milli(s.cores)*10, 1)
			w.memory = s.memory
			if s.memory == 0 {
				w.share = max(w.share, unit.Milli(s.percent)*10)
				w.memory = (f.memory*unit.MiB(s.percent) + 99) / 100
			}
		}
		ws = append(ws, w)
	}
	return ws
}
