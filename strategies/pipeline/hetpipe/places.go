package hetpipe

import (
	"fmt"
	"slices"

	"github.com/musterdl/muster/pipeline/parallel"
)

// worker is a virtual worker whose stages are to be placed.
type worker struct {
	on              *parallel.Devices
	layers, devices int
	spots           []spot
	states          []state
	before          [][]int32
}

// spot is devices of a worker that are alike and in one node. Spots of one class are as good as
// each other.
type spot struct {
	class   int
	devices []int32
	sums    *parallel.Sums
}

// state is which devices are taken, how many of each spot, and where the last stage stands: the
// place of that stage. stays says that the one before stands in the same spot.
type state struct {
	used  []int
	last  int
	stays bool
}

// taken is how many stages stand so far.
func (s *state) taken() (n int) {
	for _, used := range s.used {
		n += used
	}
	return n
}

// newWorker sorts devices into spots. What layers cost is summed up once for each class.
func newWorker(x *parallel.Simulator, devices []int32, samples, workers int) (*worker, parallel.Why) {
	w := &worker{on: x.On, layers: x.Model.Profile.Layers(), devices: len(devices)}
	for _, d := range devices {
		at := slices.IndexFunc(w.spots, func(s spot) bool {
			return w.on.NodeOf(s.devices[0]) == w.on.NodeOf(d) && w.on.Alike(s.devices[:1], []int32{d})
		})
		if at < 0 {
			at = len(w.spots)
			w.spots = append(w.spots, spot{})
		}
		w.spots[at].devices = append(w.spots[at].devices, d)
	}
	for i := range w.spots {
		s := &w.spots[i]
		like := slices.IndexFunc(w.spots, func(other spot) bool { return w.alike(s, &other) })
		if s.class = like; like < i {
			s.sums = w.spots[like].sums
			continue
		}
		var why parallel.Why
		if s.sums, why = x.Sums(&parallel.Rank{Tensor: 1, Replicas: 1, Devices: s.devices[:1]}, samples, workers, nil); why != "" {
			return nil, why
		}
	}
	return w, ""
}

// alike says whether two spots are as good as each other: as many like devices, in nodes that are
// alike and have no other spot.
func (w *worker) alike(a, b *spot) bool {
	here, there := w.on.NodeOf(a.devices[0]), w.on.NodeOf(b.devices[0])
	alone := func(node int32) bool {
		n := 0
		for _, s := range w.spots {
			if w.on.NodeOf(s.devices[0]) == node {
				n++
			}
		}
		return n == 1
	}
	return a.devices[0] == b.devices[0] ||
		w.on.Alike(a.devices[:1], b.devices[:1]) && len(a.devices) == len(b.devices) && w.on.Nodes[here] == w.on.Nodes[there] && alone(here) && alone(there)
}

// other is a device of a spot or, where it is the second one, of one like it in another node:
// spots of one class are told apart in no place.
func (w *worker) other(of, than *spot) []int32 {
	if of != than {
		return of.devices[:1]
	}
	for i := range w.spots {
		if s := &w.spots[i]; s != than && s.class == than.class {
			return s.devices[:1]
		}
	}
	return of.devices[:1]
}

// mostPlaces bounds the search: unlike devices of many unlike nodes stand in too many orders.
const mostPlaces = 2048

// places lists the states, stage by stage, and which may come after which.
func (w *worker) places() parallel.Why {
	// Stage by stage, so that a place has a higher number than all those that it may come after,
	// as the dynamic program wants it.
	known, level, none := map[string]int{}, []int{-1}, w.none()
	for range w.devices {
		var next []int
		for _, from := range level {
			for spot := range w.spots {
				behind := &none
				if from >= 0 {
					behind = &w.states[from]
				}
				s, free := w.after(behind, spot)
				if !free {
					continue
				}
				key := w.key(&s)
				at, seen := known[key]
				if !seen {
					if at = len(w.states); at == mostPlaces {
						return whyf("%d unlike devices stand in too many orders: expected fewer in a worker, or more that are alike", w.devices)
					}
					known[key] = at
					w.states, w.before, next = append(w.states, s), append(w.before, nil), append(next, at)
				}
				if from >= 0 && !slices.Contains(w.before[at], int32(from)) {
					w.before[at] = append(w.before[at], int32(from))
				}
			}
		}
		level = next
	}
	return ""
}

// none is the state before the first stage.
func (w *worker) none() state { return state{used: make([]int, len(w.spots)), last: -1} }

// after is the state behind another if the next stage takes a device of a spot, where one is free.
func (w *worker) after(s *state, spot int) (next state, free bool) {
	next = state{used: slices.Clone(s.used), last: spot, stays: s.last == spot}
	next.used[spot]++
	return next, next.used[spot] <= len(w.spots[spot].devices)
}

// key is the same for states that differ by spots of one class alone: sixteen like nodes are
// seventeen numbers of taken devices, not 65,536 sets of them. Whether the last two stages share a
// spot is in it, because what passes between them then stays within a node.
func (w *worker) key(s *state) string {
	parts := make([]string, len(w.spots))
	for i, used := range s.used {
		parts[i] = fmt.Sprint(w.spots[i].class, " ", used, " ", i == s.last)
	}
	slices.Sort(parts)
	return fmt.Sprint(s.stays, parts)
}

// follow takes devices for the stages that stand in some places. A place stands for all states of
// its key, so that the first devices that lead to that key are as good as any: like devices are
// taken in the order of their numbers.
func (w *worker) follow(places []int32) (devices []int32) {
	now := w.none()
	for _, place := range places {
		key := w.key(&w.states[place])
		for spot := range w.spots {
			if next, free := w.after(&now, spot); free && w.key(&next) == key {
				devices, now = append(devices, w.spots[spot].devices[next.used[spot]-1]), next
				break
			}
		}
	}
	return devices
}
