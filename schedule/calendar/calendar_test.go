package calendar_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/calendar"
)

// each runs so many random cases, more if asked for, and prints the seed of the
// first that fails.
func each(t *testing.T, f func(r *rand.Rand) error) {
	t.Helper()
	cases := uint64(500)
	if os.Getenv("MUSTER_LONG") != "" {
		cases = 10000
	}
	for seed := range cases {
		if err := f(rand.New(rand.NewPCG(seed, 3))); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// Where estimates are upper bounds, whatever is filled in, no job starts later than
// its first claim: with one claim (EASY) and with one for every job (conservative).
func TestBackfillDelaysNobody(t *testing.T) {
	for _, depth := range []int{1, 2, 100} {
		t.Run(fmt.Sprint(depth), func(t *testing.T) {
			claims, filled := 0, 0
			each(t, func(r *rand.Rand) error {
				c, works, placer := draw(r, upper)
				l := newLoop(c, works, placer, depth)
				l.sure = true
				if r.IntN(3) == 0 {
					l.cal.SetWindows(drawWindows(r, len(c.Nodes)))
				}
				l.look = inWindow
				if err := l.run(); err != nil {
					return err
				}
				for i, f := range l.fates {
					if f.claimed == unit.Never {
						continue
					}
					claims++
					if f.started > f.claimed {
						return fmt.Errorf("job %d started at %d, its first claim was for %d", i, f.started, f.claimed)
					}
					for _, o := range l.fates[i+1:] {
						if o.started < f.started {
							filled++
						}
					}
				}
				return nil
			})
			if claims == 0 || filled == 0 {
				t.Errorf("%d claims and %d jobs filled in: nothing was tested", claims, filled)
			}
			t.Logf("%d claims, overtaken %d times", claims, filled)
		})
	}
}

func drawWindows(r *rand.Rand, nodes int) (w []calendar.Window) {
	for range 1 + r.IntN(2) {
		from := unit.Time(r.IntN(60))
		w = append(w, calendar.Window{Node: plan.NodeID(r.IntN(nodes)), From: from, To: from + unit.Time(1+r.IntN(20))})
	}
	return w
}

// inWindow finds a node that is not empty in a window.
func inWindow(l *loop) error {
	for run := range l.running {
		var err error
		l.s.View().GrantsOf(run, func(g plan.Grant) {
			for _, w := range l.cal.Windows() {
				if w.Node == g.Node && w.From <= l.s.Now && l.s.Now < w.To {
					err = fmt.Errorf("run %d is on node %d in the window %+v", run, g.Node, w)
				}
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Where estimates are exact, the first job that had to wait never starts later than
// if nothing had been filled in at all. (With early ends it may: what is filled in
// elsewhere can sit where an early end would have let it in before its claim.)
func TestNoLaterThanStrict(t *testing.T) {
	compared := 0
	each(t, func(r *rand.Rand) error {
		c, works, placer := draw(r, exact)
		filled, strict := newLoop(c, works, placer, 1), newLoop(c, works, placer, 0)
		if err := filled.run(); err != nil {
			return err
		}
		first := -1
		for i, f := range filled.fates {
			if f.hopeless {
				return nil // nothing behind it would start in strict order
			}
			if first < 0 && f.claimed != unit.Never {
				first = i
			}
		}
		if first < 0 {
			return nil
		}
		if err := strict.run(); err != nil {
			return err
		}
		compared++
		if a, b := filled.fates[first].started, strict.fates[first].started; a > b {
			return fmt.Errorf("job %d starts at %d, without backfilling at %d", first, a, b)
		}
		return nil
	})
	if compared == 0 {
		t.Error("no case was compared")
	}
}

// Whatever the estimates, once a claim has come due its job starts at the latest when
// what ran on its nodes at that moment has ended, though more work keeps coming.
func TestStarvationIsBounded(t *testing.T) {
	for _, belief := range []wanted{wrong, missing} {
		for _, depth := range []int{1, 3} {
			t.Run(fmt.Sprint(belief, "/", depth), func(t *testing.T) {
				bound, late := 0, 0
				each(t, func(r *rand.Rand) error {
					c, works, placer := draw(r, belief)
					for range 40 {
						w := works[r.IntN(len(works))]
						w.arrive = works[len(works)-1].arrive + unit.Time(r.IntN(3))
						works = append(works, w)
					}
					l := newLoop(c, works, placer, depth)
					l.unknown = belief == missing
					if err := l.run(); err != nil {
						return err
					}
					for i, f := range l.fates {
						if f.bound == unit.Never {
							continue
						}
						bound++
						if f.started > f.claimed {
							late++
						}
						if f.started > f.bound {
							return fmt.Errorf("job %d started at %d, was due by %d", i, f.started, f.bound)
						}
					}
					return nil
				})
				if bound == 0 {
					t.Error("no claim came due")
				}
				t.Logf("%d claims came due, %d started later than first claimed", bound, late)
			})
		}
	}
}

// What is held is exactly what the claims need, by counting microsecond by
// microsecond.
func TestHoldsAreExact(t *testing.T) {
	checked := 0
	each(t, func(r *rand.Rand) error {
		c, works, placer := draw(r, upper)
		l := newLoop(c, works, placer, 1+r.IntN(4))
		if r.IntN(3) == 0 {
			l.cal.SetWindows(drawWindows(r, len(c.Nodes)))
		}
		l.look = func(l *loop) error {
			l.cal.Look(l.s.View(), func(run plan.RunID) (unit.Time, bool) { return calendar.Ends(l.s.View(), run), false })
			for _, i := range l.waiting {
				f := &l.fates[i]
				if s := l.s.View().Shape(f.id); s.Share < 1000 {
					continue
				}
				until := l.s.Now + unit.Time(1+r.IntN(40))
				holds := l.cal.Holds(f.id, until, nil)
				if checked += len(holds); l.s.Now < unit.Time(r.IntN(200)) {
					if err := l.checkHolds(f.id, until, holds); err != nil {
						return err
					}
				}
			}
			return nil
		}
		return l.run()
	})
	if checked == 0 {
		t.Error("nothing was held")
	}
}

// A calendar that is shown only what changed, and asked as if some claims were not there,
// says what one says that never saw them and reads everything anew.
func TestHoldsWithoutSomeClaims(t *testing.T) {
	compared, differ := 0, 0
	each(t, func(r *rand.Rand) error {
		c, works, placer := draw(r, wrong)
		l := newLoop(c, works, placer, 1+r.IntN(4))
		l.look = func(l *loop) error {
			ends := func(run plan.RunID) (unit.Time, bool) { return calendar.Ends(l.s.View(), run), false }
			l.cal.Look(l.s.View(), ends)
			var without []int
			fresh := calendar.Calendar{Slack: l.cal.Slack}
			for rank, claim := range l.cal.Claims() {
				if r.IntN(2) == 0 {
					without = append(without, rank)
				} else {
					fresh.Insert(len(fresh.Claims()), claim)
				}
			}
			fresh.Look(l.s.View(), ends)
			for _, i := range l.waiting {
				until := l.s.Now + unit.Time(1+r.IntN(60))
				if rank := l.cal.Find(l.fates[i].id); rank >= 0 && slices.Contains(without, rank) {
					continue // whose own claim counts
				}
				got, want := l.cal.HoldsWithout(without, l.fates[i].id, until, nil), fresh.Holds(l.fates[i].id, until, nil)
				if !slices.Equal(got, want) {
					return fmt.Errorf("job %d without the claims %v of %+v is held %v, want %v", i, without, l.cal.Claims(), got, want)
				}
				compared++
				if !slices.Equal(got, l.cal.Holds(l.fates[i].id, until, nil)) {
					differ++
				}
			}
			return nil
		}
		return l.run()
	})
	if compared == 0 || differ == 0 {
		t.Errorf("%d compared, %d of them with something left out: nothing was tested", compared, differ)
	}
}

// A calendar that remembers what it found out, and asks again only for the ends of runs that
// something happened to, revises its claims and places others as one does that remembers nothing.
func TestReviseRemembersNothingWrong(t *testing.T) {
	revised, moved, stayed := 0, 0, 0
	each(t, func(r *rand.Rand) error {
		c, works, placer := draw(r, wrong)
		l := newLoop(c, works, placer, 1+r.IntN(6))
		if r.IntN(3) == 0 {
			l.cal.SetWindows(drawWindows(r, len(c.Nodes)))
		}
		l.open = func(v plan.View) error {
			ends := func(run plan.RunID) (unit.Time, bool) { return calendar.Expected(v, run) }
			fresh := calendar.Calendar{Slack: l.cal.Slack}
			fresh.SetWindows(l.cal.Windows())
			for rank, claim := range l.cal.Claims() {
				claim.Parts = slices.Clone(claim.Parts)
				fresh.Insert(rank, claim)
			}
			if got, want := l.cal.Look(v, ends), fresh.Look(v, ends); got != want {
				return fmt.Errorf("the next end is at %d, want %d", got, want)
			}
			before := slices.Clone(l.cal.Claims())
			for range 3 {
				lost, want := l.cal.Revise(nil), fresh.Revise(nil)
				if !slices.Equal(lost, want) || !slices.EqualFunc(l.cal.Claims(), fresh.Claims(), calendar.Claim.Equal) {
					return fmt.Errorf("the claims are %+v without %v, want %+v without %v", l.cal.Claims(), lost, fresh.Claims(), want)
				}
			}
			if revised += len(before); !slices.EqualFunc(before, fresh.Claims(), calendar.Claim.Equal) {
				moved++
			} else if len(before) > 0 {
				stayed++
			}
			for _, i := range l.waiting {
				id, gang, length := l.fates[i].id, l.works[i].shape.Gang, unit.Duration(1+i*7%50)
				got, ok := l.cal.Earliest(id, gang, length)
				want, fits := fresh.Earliest(id, gang, length)
				if ok != fits || !got.Equal(want) {
					return fmt.Errorf("the earliest place of %d is %+v, want %+v", i, got, want)
				}
			}
			return nil
		}
		return l.run()
	})
	if t.Logf("%d revised, moved %d times, stayed %d times", revised, moved, stayed); moved == 0 || stayed == 0 {
		t.Error("nothing was tested")
	}
}
