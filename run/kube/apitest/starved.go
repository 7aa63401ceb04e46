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
	for _, name := range w.onlooker.waiting() {
		if w.onlooker.fits(w.onlooker.missing(w.onlooker.gangs[name])) {
			names = append(names, name)
		}
	}
	return names
}

// missing is what the pods take that a gang lacks.
func (ol *onlooker) missing(g *gangState) (all []needs) {
	unbound := map[types.UID]int64{} // pods that are there, by owner
	for _, uid := range slices.Sorted(maps.Keys(g.members)) {
		p := ol.store.byUID[uid].(*corev1.Pod)
		ref, _ := controller(p)
		if active(p) {
			unbound[ref.UID]++
		}
		if active(p) && p.Spec.NodeName == "" {
			all = append(all, ol.kubelets.pods[uid].needs)
		}
	}
	for _, uid := range g.jobs {
		job := ol.store.byUID[uid].(*unstructured.Unstructured)
		n := needsOf(&corev1.Pod{Spec: ol.controllers.jobs[uid].pods(job).Spec})
		for range ol.wantedOf(job, suspended) - unbound[uid] {
			all = append(all, n)
		}
	}
	return all
}

// fits puts pods into free rooms, the largest first.
func (ol *onlooker) fits(all []needs) bool {
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
	for _, name := range slices.Sorted(maps.Keys(ol.rooms)) {
		n, ok := get[*corev1.Node](ol.store, id{kindNode, "", name})
		if ok && !n.Spec.Unschedulable && !ol.kubelets.lost[name] && len(n.Spec.Taints) == 0 {
			rooms = append(rooms, &room{has: ol.rooms[name].has, used: maps.Clone(ol.rooms[name].used)})
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
