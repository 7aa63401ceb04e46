package law_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/engine/law"
	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

var small = law.Limits{Window: 10, Most: 1000}

type displacement struct {
	preemptor, victim plan.JobID
	at                unit.Time
}

func TestLoops(t *testing.T) {
	for _, test := range []struct {
		name            string
		made            []displacement
		next            displacement
		closes, repeats bool
	}{
		{"nothing before", nil, displacement{1, 2, 0}, false, false},
		{"the same again", []displacement{{1, 2, 0}}, displacement{1, 2, 1}, false, false},
		{"back", []displacement{{1, 2, 0}}, displacement{2, 1, 1}, true, false},
		{"the second round", []displacement{{1, 2, 0}, {2, 1, 1}}, displacement{1, 2, 2}, true, true},
		{"three close a circle", []displacement{{1, 2, 0}, {2, 3, 1}}, displacement{3, 1, 2}, true, false},
		{"three go round again", []displacement{{1, 2, 0}, {2, 3, 1}, {3, 1, 2}}, displacement{1, 2, 3}, true, true},
		{"a branch is no circle", []displacement{{1, 2, 0}, {1, 3, 1}, {3, 4, 2}}, displacement{2, 4, 3}, false, false},
		{"too long ago", []displacement{{1, 2, 0}}, displacement{2, 1, 10}, false, false},
		{"just not too long ago", []displacement{{1, 2, 0}}, displacement{2, 1, 9}, true, false},
		{"the way back is too old", []displacement{{2, 1, 0}, {1, 2, 5}}, displacement{1, 2, 10}, false, false},
		{"made again, it counts from then", []displacement{{1, 2, 0}, {1, 2, 5}}, displacement{2, 1, 12}, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := law.NewLoops(small)
			for _, x := range test.made {
				l.Note(x.preemptor, x.victim, x.at)
			}
			n := test.next
			if got := l.Closes(n.preemptor, n.victim, n.at); got != test.closes {
				t.Errorf("closes: %v, want %v", got, test.closes)
			}
			if got := l.Repeats(n.preemptor, n.victim, n.at); got != test.repeats {
				t.Errorf("repeats: %v, want %v", got, test.repeats)
			}
		})
	}
}

// Against all displacements ever made, looked at one by one; and what is remembered
// is recalled, to the byte.
func TestLoopsBrute(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		l, now := law.NewLoops(small), unit.Time(0)
		var made []displacement
		job := func() plan.JobID { return plan.JobID(rapid.IntRange(0, 5).Draw(t, "job")) }
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			now += unit.Time(rapid.IntRange(0, 3).Draw(t, "pass"))
			p, v := job(), job()
			if p == v {
				l.Forget(p)
				made = slices.DeleteFunc(made, func(x displacement) bool { return x.preemptor == p || x.victim == p })
				continue
			}
			recent := slices.DeleteFunc(slices.Clone(made), func(x displacement) bool { return now.Sub(x.at) >= small.Window })
			reach := map[plan.JobID]bool{v: true}
			for range 6 {
				for _, x := range recent {
					reach[x.victim] = reach[x.victim] || reach[x.preemptor]
				}
			}
			before := slices.ContainsFunc(recent, func(x displacement) bool { return x.preemptor == p && x.victim == v })
			if got := l.Closes(p, v, now); got != reach[p] {
				t.Fatalf("at %d, %d displacing %d closes a circle: %v; made %v", now, p, v, got, made)
			}
			if got := l.Repeats(p, v, now); got != (reach[p] && before) {
				t.Fatalf("at %d, %d displacing %d repeats: %v; made %v", now, p, v, got, made)
			}
			l.Note(p, v, now)
			made = append(made, displacement{p, v, now})
			again := law.NewLoops(small)
			if err := again.Recall(l.Remember()); err != nil || !bytes.Equal(again.Remember(), l.Remember()) {
				t.Fatalf("%v is not what was remembered (%v)", again.Remember(), err)
			}
			if rapid.Bool().Draw(t, "restart") {
				l = again
			}
		}
	})
}

// Jobs that displace each other at will, but never where it repeats, come to an end.
func TestLoopsEnd(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	dice := func(lo, hi int) int { return lo + random.IntN(hi-lo+1) }
	l, steps := law.NewLoops(law.Limits{Window: unit.Forever, Most: math.MaxInt}), 0
	up := []bool{true, true, true, false, false, false}
	for at := unit.Time(0); ; at++ {
		var may []displacement
		for p := range up {
			for v := range up {
				if !up[p] && up[v] && !l.Repeats(plan.JobID(p), plan.JobID(v), at) {
					may = append(may, displacement{plan.JobID(p), plan.JobID(v), at})
				}
			}
		}
		if len(may) == 0 {
			break
		}
		x := may[dice(0, len(may)-1)]
		l.Note(x.preemptor, x.victim, at)
		up[x.preemptor], up[x.victim] = true, false
		if steps++; steps > 1000 {
			t.Fatal("the jobs displace each other without end")
		}
	}
	t.Logf("%d displacements among %d jobs", steps, len(up))
}

func TestLoopsForgetTheOldest(t *testing.T) {
	l := law.NewLoops(law.Limits{Window: 100, Most: 3})
	for i, p := range []plan.JobID{9, 1, 5, 7} {
		l.Note(p, p+10, unit.Time(i))
	}
	for p, want := range map[plan.JobID]bool{9: false, 1: true, 5: true, 7: true} {
		if got := l.Closes(p+10, p, 4); got != want {
			t.Errorf("that %d displaced %d is remembered: %v, want %v", p, p+10, got, want)
		}
	}
}

func TestRecallRefuses(t *testing.T) {
	l := law.NewLoops(small)
	l.Note(1, 2, 3)
	l.Note(2, 1, 4)
	whole := l.Remember()
	for i := 1; i < len(whole); i++ {
		if err := law.NewLoops(small).Recall(whole[:i]); err == nil {
			t.Errorf("the first %d of %d bytes are recalled", i, len(whole))
		}
	}
	for name, memory := range map[string][]byte{"left over": append(slices.Clone(whole), 0), "no number": {0x80}, "twice the same": {2, 2, 4, 6, 0, 4, 0}} {
		if err := l.Recall(memory); err == nil {
			t.Errorf("%s: recalled", name)
		}
	}
	if !bytes.Equal(l.Remember(), whole) {
		t.Error("a memory that is refused replaces what was remembered")
	}
	if err := l.Recall(nil); err != nil || l.Remember() != nil {
		t.Errorf("an empty memory leaves %v (%v)", l.Remember(), err)
	}
}
