package server

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/unit"
)

// However long it goes on, the past is bounded, in order, reaches back to its beginning
// and says of every point what was last seen before the next.
func TestShareHistory(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		var h shareHistory
		type seen struct {
			at   unit.Time
			used int64
		}
		var all []seen
		at := unit.Time(1_700_000_000_000_000)
		longest := rapid.SampledFrom([]unit.Duration{2 * unit.Second, 20 * unit.Second, unit.Hour}).Draw(t, "longest")
		for i := range rapid.IntRange(1, 3000).Draw(t, "looks") {
			at = at.Add(unit.Duration(uint64(i)*2654435761) % longest)
			used := int64(i % 8 * 1000)
			h.add(at, []string{"", "a"}, []int64{used, used})
			all = append(all, seen{at, used})
		}
		if len(h.points) > keptShares || h.points[0].from != all[0].at {
			t.Fatalf("%d points since %d, want at most %d since %d", len(h.points), h.points[0].from, keptShares, all[0].at)
		}
		k := 0
		for i, p := range h.points {
			if i > 0 && p.from < h.points[i-1].from.Add(shareEvery) {
				t.Fatalf("point %d is %s after the one before", i, p.from.Sub(h.points[i-1].from))
			}
			if most := h.every / shareEvery * (shareEvery + longest); i > 0 && p.from.Sub(h.points[i-1].from) > most {
				t.Fatalf("point %d is %s after the one before, points stand for %s", i, p.from.Sub(h.points[i-1].from), h.every)
			}
			for k+1 < len(all) && (i+1 == len(h.points) || all[k+1].at < h.points[i+1].from) {
				k++
			}
			if p.used[0] != all[k].used {
				t.Fatalf("point %d says %d, last seen before the next was %d", i, p.used[0], all[k].used)
			}
		}
	})
}

// A queue keeps its past under another tree.
func TestShareHistoryRenamed(t *testing.T) {
	var h shareHistory
	h.add(0, []string{"", "a", "b"}, []int64{3000, 1000, 2000})
	h.add(unit.Time(unit.Minute), []string{"", "b", "c"}, []int64{2500, 500, 2000})
	got := h.show([]bool{true, true, true})
	want := [][]float64{{3, 2, 0}, {2.5, .5, 2}}
	for i, p := range got.Points {
		for k := range p.Used {
			if p.Used[k] != want[i][k] {
				t.Errorf("point %d is %v, want %v", i, p.Used, want[i])
			}
		}
	}
	if some := h.show([]bool{true, false, true}); len(some.Queues) != 2 || some.Queues[1] != "c" || some.Points[1].Used[1] != 2 {
		t.Errorf("of some queues: %+v", some)
	}
}
