package server

import (
	"slices"

	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// How much of the past of shares is kept.
const (
	keptShares = 1000
	shareEvery = 10 * unit.Second
)

// shareHistory is what queues used, one point for each stretch of time of which
// anything was seen: the last of what was seen in it. When there are too many points,
// stretches become twice as long. It begins with the server and, but for copies, is
// touched inside queries only, so by one goroutine.
type shareHistory struct {
	queues []string
	points []sharePoint
	every  unit.Duration // 0 is shareEvery
}

type sharePoint struct {
	from unit.Time
	used []int64 // thousandths of devices, by queue
}

func (h *shareHistory) note(v plan.View) {
	queues, used := view.UsedOf(v)
	h.add(v.Now(), queues, used)
}

func (h *shareHistory) add(at unit.Time, queues []string, used []int64) {
	h.every = max(h.every, shareEvery)
	if !slices.Equal(h.queues, queues) {
		h.rename(queues)
	}
	if n := len(h.points); n > 0 && at < h.points[n-1].from.Add(h.every) {
		h.points[n-1].used = used
		return
	}
	if len(h.points) == keptShares {
		h.thin()
	}
	h.points = append(h.points, sharePoint{at, used})
}

// thin puts each two neighbours together.
func (h *shareHistory) thin() {
	for i := 0; i+1 < len(h.points); i += 2 {
		h.points[i/2] = sharePoint{h.points[i].from, h.points[i+1].used}
	}
	h.points = h.points[:len(h.points)/2]
	h.every *= 2
}

// rename goes over to another tree: a queue of the same name keeps its past, a new
// one has none.
func (h *shareHistory) rename(queues []string) {
	was := make(map[string]int, len(h.queues))
	for i, name := range h.queues {
		was[name] = i
	}
	for i := range h.points {
		used := make([]int64, len(queues))
		for k, name := range queues {
			if old, there := was[name]; there {
				used[k] = h.points[i].used[old]
			}
		}
		h.points[i].used = used
	}
	h.queues = queues
}

// copy is for use outside queries. Names and numbers are replaced and never written
// into, so that both may have them.
func (h *shareHistory) copy() shareHistory {
	return shareHistory{queues: h.queues, points: slices.Clone(h.points), every: h.every}
}

// show is the past of the chosen queues.
func (h *shareHistory) show(chosen []bool) view.ShareHistory {
	out := view.ShareHistory{Queues: keep(h.queues, chosen), Points: make([]view.SharePoint, len(h.points))}
	for i := range h.points {
		p := view.SharePoint{AtUs: int64(h.points[i].from), Used: make([]float64, 0, len(out.Queues))}
		for _, milli := range keep(h.points[i].used, chosen) {
			p.Used = append(p.Used, float64(milli)/1000)
		}
		out.Points[i] = p
	}
	return out
}
