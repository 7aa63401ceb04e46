package apitest

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Starved are the gangs that lack pods on nodes although all of these would fit at
// once into what is free there, node after node. Selectors and affinities are not
// asked.
func (w *World) Starved() (names []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range w.waiting() {
		if w.fits(w.missing(w.gangs[name])) {
			names = append(names, name)
		}
	}
	return names
}

// missing is what the pods take that a gang lacks.
func (w *World) missing(g *gangState) (all []needs) {
	unbound := map[types.UID]int64{} // pods that are there, by owner
	for _, uid := range slices.Sorted(maps.Keys(g.members)) {
		p := w.byUID[uid].(*corev1.Pod)
		ref, _ := controller(p)
		if active(p) {
			unbound[ref.UID]++
		}
		if active(p) && p.Spec.NodeName == "" {
			all = append(all, w.pods[uid].needs)
		}
	}
	for _, uid := range g.jobs {
		job := w.byUID[uid].(*unstructured.Unstructured)
		n := needsOf(&corev1.Pod{Spec: w.jobs[uid].pods(job).Spec})
		for range w.wantedOf(job, suspended) - unbound[uid] {
			all = append(all, n)
		}
	}
	return all
}

// fits puts pods into free rooms, the largest first.
func (w *World) fits(all []needs) bool {
	size := func(n needs) (most int64) {
		for name, amount := range n {
			if name != corev1.ResourceCPU && name != corev1.ResourceMemory && name != corev1.ResourcePods {
				most = max(most, amount)
			}
		}
		return most
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b needs) int { return cmp.Compare(size(b), size(a)) })
	var rooms []*room
	for _, name := range slices.Sorted(maps.Keys(w.rooms)) {
		n, ok := get[*corev1.Node](w, id{kindNode, "", name})
		if ok && !n.Spec.Unschedulable && !w.lost[name] && len(n.Spec.Taints) == 0 {
			rooms = append(rooms, &room{has: w.rooms[name].has, used: maps.Clone(w.rooms[name].used)})
		}
	}
	for _, n := range all {
		i := slices.IndexFunc(rooms, func(r *room) bool { return r.lacks(n) == "" })
		if i < 0 {
			return false
		}
		rooms[i].take(n, 1)
	}
	return true
}
