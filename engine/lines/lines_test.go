package lines_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/engine/lines"
	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// tree is a root with two branches, of which the first has two leaves.
type tree struct{}

func (tree) Branches() int        { return 5 }
func (tree) Parent(b int32) int32 { return [5]int32{-1, 0, 0, 1, 1}[b] }
func (tree) Below(b int32) []int32 {
	return [5][]int32{{1, 2}, {3, 4}, nil, nil, nil}[b]
}

// model is lines as a list that is searched: who waits where, and who was found stuck.
type model struct {
	*lines.Lines
	rules   lines.Rules
	waiting map[plan.JobID]lines.Item
	kind    map[plan.JobID]lines.Kind
	blocked map[lines.Kind]bool
}

// bestOf is the best of the jobs of a kind.
func (m *model) bestOf(k lines.Kind) (best lines.Item, any bool) {
	for job, it := range m.waiting {
		if m.kind[job] == k && (!any || it.Before(&best)) {
			best, any = it, true
		}
	}
	return best, any
}

// first is who is tried first of a leaf, None if nobody is.
func (m *model) first(leaf int32) plan.JobID {
	var best lines.Item
	of := lines.Kind{Shape: -1}
	for _, k := range m.kind {
		it, any := m.bestOf(k)
		if !any || k.Leaf != leaf || m.blocked[k] && !m.rules.Strict {
			continue
		}
		short := m.rules.Short && k.Step != of.Step
		if of.Shape < 0 || short && k.Step < of.Step || !short && it.Before(&best) {
			best, of = it, k
		}
	}
	if of.Shape < 0 || m.blocked[of] {
		return plan.None
	}
	return best.Job
}

// block blocks every kind that has jobs, of those that are asked for, or opens it.
func (m *model) block(blocked bool, of func(k lines.Kind, best plan.JobID) bool) {
	for _, k := range m.kind {
		if it, any := m.bestOf(k); any && of(k, it.Job) {
			m.blocked[k] = blocked
		}
	}
}

// check compares the lines with the model.
func (m *model) check(t *rapid.T) {
	if err := m.Check(); err != nil {
		t.Fatal(err)
	}
	open := [5]bool{}
	for leaf := int32(2); leaf < 5; leaf++ {
		m.block(false, func(k lines.Kind, _ plan.JobID) bool { // only to look
			open[leaf] = open[leaf] || k.Leaf == leaf && !m.blocked[k]
			return false
		})
		got := plan.JobID(plan.None)
		if c := m.First(leaf); c != nil {
			got = c.Best().Job
		}
		if want := m.first(leaf); got != want {
			t.Fatalf("job %d is tried first of leaf %d, %d was expected", got, leaf, want)
		}
	}
	m.checkFill(t)
	open[1] = open[3] || open[4]
	open[0] = open[1] || open[2]
	for b := range int32(5) {
		if m.Available(b) != open[b] {
			t.Fatalf("branch %d is available %v", b, m.Available(b))
		}
	}
}

// checkFill compares who fits first in so much room with a walk through all who wait, by the best of their kinds.
func (m *model) checkFill(t *rapid.T) {
	size := func(shape int32) int { return int(shape) + 1 }
	before := func(a, b lines.Item) int { return a.Key.Compare(a.Job, b.Key, b.Job) }
	all := slices.SortedFunc(maps.Values(m.waiting), func(a, b lines.Item) int {
		x, _ := m.bestOf(m.kind[a.Job])
		y, _ := m.bestOf(m.kind[b.Job])
		return cmp.Or(before(x, y), before(a, b))
	})
	var want, got []plan.JobID
	left := 7
	for _, it := range all {
		if each := size(m.kind[it.Job].Shape); each <= left {
			want, left = append(want, it.Job), left-each
		}
	}
	left = 7
	m.BestFirst(func(shape int32) bool { return size(shape) <= left }, func(it *lines.Item) {
		got, left = append(got, it.Job), left-size(m.kind[it.Job].Shape)
	})
	if !slices.Equal(got, want) {
		t.Fatalf("%v fit first, %v were expected", got, want)
	}
}

// TestLinesAreAsSearched: whatever is filed, dropped, blocked and opened, one by one or together,
// whoever is tried first is whom a search of all would find, and every mark and count is as the
// classes are.
func TestLinesAreAsSearched(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		rules := lines.Rules{Strict: rapid.Bool().Draw(t, "strict")}
		rules.Short = !rules.Strict && rapid.Bool().Draw(t, "short")
		m := &model{lines.New(rules, tree{}), rules, map[plan.JobID]lines.Item{}, map[plan.JobID]lines.Kind{}, map[lines.Kind]bool{}}
		m.Grow(30)
		turn := int64(0)
		t.Repeat(map[string]func(*rapid.T){
			"": m.check,
			"file": func(t *rapid.T) {
				job := plan.JobID(rapid.IntRange(0, 29).Draw(t, "job"))
				if m.Filed(job) {
					t.Skip()
				}
				k := lines.Kind{Owner: lines.Owner{Leaf: rapid.Int32Range(2, 4).Draw(t, "leaf")}, Shape: rapid.Int32Range(0, 1).Draw(t, "shape"), Step: rapid.Int32Range(0, 2).Draw(t, "step")}
				it := lines.Item{Key: schedule.Key{rapid.Int64Range(0, 3).Draw(t, "key")}, Job: job}
				c := m.File(k, it, unit.Never)
				if _, any := m.bestOf(k); !any {
					m.blocked[k] = false // a class that was empty
				}
				if m.waiting[job], m.kind[job] = it, k; c.Best().Job == job {
					m.Unblock(c)
					m.blocked[k] = false
				}
			},
			"drop": func(t *rapid.T) {
				job, mayFit := plan.JobID(rapid.IntRange(0, 29).Draw(t, "job")), rapid.Bool().Draw(t, "may fit")
				if k, waits := m.kind[job]; waits && m.Filed(job) {
					if best, _ := m.bestOf(k); mayFit && best.Job == job {
						m.blocked[k] = false
					}
				}
				m.Drop(job, mayFit)
				delete(m.waiting, job)
				delete(m.kind, job)
			},
			"block the first": func(t *rapid.T) {
				if c := m.First(rapid.Int32Range(2, 4).Draw(t, "leaf")); c != nil {
					m.Block(c)
					m.blocked[c.Kind] = true
				}
			},
			"crowd": func(t *rapid.T) {
				shape, leaf := rapid.Int32Range(0, 1).Draw(t, "shape"), rapid.Int32Range(2, 5).Draw(t, "leaf")
				if len(m.of(shape)) == 0 {
					t.Skip()
				}
				turn++
				m.Crowd(shape, turn, taker{turn, leaf})
				m.block(true, func(k lines.Kind, _ plan.JobID) bool { return k.Shape == shape && k.Leaf != leaf })
			},
			"keep out, and let in": func(t *rapid.T) {
				c := m.First(rapid.Int32Range(2, 4).Draw(t, "leaf"))
				if c == nil {
					t.Skip()
				}
				job, steps := c.Best().Job, rapid.Bool().Draw(t, "steps")
				shorter := func(other plan.JobID) bool { return other <= job }
				claimant := plan.JobID(rapid.IntRange(0, 29).Draw(t, "claimant"))
				turn++
				before := map[lines.Kind]bool{}
				m.block(true, func(k lines.Kind, best plan.JobID) bool {
					kept := k.Shape == c.Shape && best != claimant && (steps && k.Step > c.Step || (!steps || k.Step == c.Step) && !shorter(best))
					before[k] = before[k] || kept && !m.blocked[k]
					return kept
				})
				m.KeepOut(lines.Beside{Class: c, Steps: steps, Shorter: shorter, Claims: []plan.Claim{{Job: claimant}}, Takers: taker{turn, 5}})
				m.check(t)
				if rapid.Bool().Draw(t, "let in") {
					m.LetIn()
					m.block(false, func(k lines.Kind, _ plan.JobID) bool { return before[k] })
				} else {
					m.ForgetKeptOut()
				}
			},
			"open": func(t *rapid.T) {
				shape, leaf := rapid.Int32Range(0, 1).Draw(t, "shape"), rapid.Int32Range(2, 5).Draw(t, "leaf")
				switch {
				case rapid.Bool().Draw(t, "all"):
					m.ReopenAll()
					m.block(false, func(lines.Kind, plan.JobID) bool { return true })
				case len(m.of(shape)) > 0 && leaf < 5:
					turn++
					m.ReopenTakers(shape, taker{turn, leaf})
					m.block(false, func(k lines.Kind, _ plan.JobID) bool { return k.Shape == shape && k.Leaf == leaf })
				case len(m.of(shape)) > 0:
					m.ReopenShape(shape)
					m.block(false, func(k lines.Kind, _ plan.JobID) bool { return k.Shape == shape })
				}
			},
		})
	})
}

// of are the classes of a shape that there ever were.
func (m *model) of(shape int32) (of []*lines.Class) {
	for _, c := range m.Classes() {
		if c.Shape == shape {
			of = append(of, c)
		}
	}
	return of
}

// taker is that one leaf may take room back, and no other.
type taker struct {
	turn int64
	leaf int32
}

func (t taker) Turn() int64          { return t.turn }
func (t taker) Leaf(leaf int32) bool { return leaf == t.leaf }
func (taker) Best(*lines.Class) bool { return true }

// TestPassedCountAsAhead: who was passed over, or laid aside, is in no class; it is active and ahead
// of those that pass it all the same, until it is recalled.
func TestPassedCountAsAhead(t *testing.T) {
	l := lines.New(lines.Rules{}, tree{})
	l.Grow(3)
	k := lines.Kind{Owner: lines.Owner{Leaf: 2}}
	for job := range plan.JobID(3) {
		l.File(k, lines.Item{Key: schedule.Key{int64(job)}, Job: job}, unit.Never)
	}
	c := l.ClassOf(0)
	l.PassOver(c, false)
	if got := l.Ahead(2, *c.Best()); got != 0 || c.Best().Job != 1 || l.Active() != 3 {
		t.Errorf("job %d is ahead of job %d, and %d are active", got, c.Best().Job, l.Active())
	}
	l.LayAside(1, false)
	passed, aside := l.RecallPassed(), l.RecallAside()
	if len(passed) != 1 || passed[0].Job != 0 || !slices.Equal(aside, []plan.JobID{1}) || l.Active() != 1 || l.ClassOf(0) != nil {
		t.Errorf("%v and %v are recalled, and %d are active", passed, aside, l.Active())
	}
}

// TestRanksRunOut: a timer that was set again, or dropped with its job, is not heard.
func TestRanksRunOut(t *testing.T) {
	l := lines.New(lines.Rules{}, tree{})
	l.Grow(3)
	for job := range plan.JobID(3) {
		l.FileRunning(job)
		l.Rank(lines.Item{Key: schedule.Key{int64(job)}, Job: job})
		l.Until(unit.Time(10*(job+1)), job)
	}
	l.Until(50, 0)
	l.Drop(1, false)
	said := ""
	for now := unit.Time(0); now <= 60; now += 10 {
		for {
			job, any := l.TakeExpired(now)
			if !any {
				break
			}
			said += fmt.Sprintf("%d at %d;", job, now)
		}
	}
	if low, _ := l.Lowest(); said != "2 at 30;0 at 50;" || low.Job != 2 || l.Expires() != unit.Never {
		t.Errorf("ranks ran out: %s the lowest is job %d", said, low.Job)
	}
}
