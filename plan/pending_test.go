package plan

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/cluster"
)

// TestConfirm: whatever is put off, withdrawn, told to wait for something else and rolled back, a change is
// ready when all that it waits for were confirmed, as going through all of them says.
func TestConfirm(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		s := NewState(cluster.Uniform("one", 1, 1, cluster.Model{Name: "gpu", Speed: 1}, 1))
		var want []Pending // that wait
		pick := func(name string) int64 { return rapid.Int64Range(1, 12).Draw(t, name) }
		next := int64(100)
		for range 40 {
			if rapid.Bool().Draw(t, "confirm") {
				change := pick("change")
				var ready []Change
				var still []Pending
				for _, p := range want {
					p.Left = slices.DeleteFunc(slices.Clone(p.Left), func(c int64) bool { return c == change })
					if len(p.Left) == 0 {
						ready = append(ready, p.Change)
					} else {
						still = append(still, p)
					}
				}
				want = still
				got := s.Confirm(change)
				if !slices.EqualFunc(got, ready, func(a, b Change) bool { return a.ID == b.ID }) {
					t.Fatalf("when %d is confirmed %v are ready, want %v", change, got, ready)
				}
				continue
			}
			d := s.Edit()
			mark, before := d.Mark(), slices.Clone(want)
			for range rapid.IntRange(1, 4).Draw(t, "edits") {
				switch rapid.IntRange(0, 3).Draw(t, "edit") {
				case 0, 1:
					left := []int64{pick("waits for")}
					if more := pick("and for"); more != left[0] {
						left = append(left, more)
					}
					p := Pending{Change: Change{ID: next}, Left: left}
					s.pend(p)
					want = append(want, p)
					next++
				case 2:
					if len(want) > 0 {
						i := rapid.IntRange(0, len(want)-1).Draw(t, "which")
						s.drop(want[i].Change.ID)
						want = slices.Delete(slices.Clone(want), i, i+1)
					}
				case 3:
					old, change := pick("old"), pick("new")
					s.supersede(old, change)
					want = slices.Clone(want)
					for i := range want {
						if slices.Contains(want[i].Left, old) {
							left := slices.DeleteFunc(slices.Clone(want[i].Left), func(c int64) bool { return c == old || c == change })
							want[i].Left = append(left, change)
						}
					}
				}
			}
			if rapid.IntRange(0, 2).Draw(t, "rolled back") == 0 {
				d.Rollback(mark)
				want = before
			}
			d.Commit()
		}
	})
}
