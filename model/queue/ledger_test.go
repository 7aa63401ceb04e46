package queue_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
)

// models and capacity are the cluster: so many thousandths of each.
var models = []string{"V100", "P100"}

const capacity = 10_000

// drawTree makes a tree with claims of all kinds, over one model and over all, at
// every height.
func drawTree(t *rapid.T) queue.Tree {
	amount := func(what string) (list []queue.Amount) {
		for _, model := range []string{"", "V100", "P100"} {
			if rapid.IntRange(0, 5).Draw(t, what+model+"?") == 0 {
				list = append(list, queue.Amount{Model: model, Milli: int64(rapid.IntRange(0, 20).Draw(t, what+model)) * 500})
			}
		}
		return list
	}
	tree := queue.Tree{HalfLife: unit.Duration(rapid.IntRange(0, 2).Draw(t, "half-life")) * unit.Day}
	for i := range rapid.IntRange(1, 5).Draw(t, "queues") {
		q := queue.Root()
		if i > 0 {
			q.Name, q.Parent = fmt.Sprint("q", i), int32(rapid.IntRange(0, i-1).Draw(t, "parent"))
			if q.Parent > 0 {
				q.Name = tree.Queues[q.Parent].Name + "/" + q.Name
			}
		}
		q.Weight = int32(rapid.IntRange(1, 4).Draw(t, "weight")) * 500
		q.Guarantee, q.Limit, q.Keep, q.Borrow, q.UserLimit = amount("guarantee"), amount("limit"), amount("keep"), amount("borrow"), amount("user")
		q.Preempt = rapid.IntRange(0, 3).Draw(t, "preempt") == 0
		tree.Queues = append(tree.Queues, q)
	}
	return tree
}

// use is one thing that is held.
type use struct {
	queue, user, model int32
	milli              int64
}

// site is a tree with what is held in it, told as a list: the oracle adds up and looks
// amounts up anew for every question.
type site struct {
	tree queue.Tree
	held []use
	free [2]int64
}

func (s *site) FreeMilli(of uint64) (milli int64) {
	for m, f := range s.free {
		if of&(1<<m) != 0 {
			milli += f
		}
	}
	return milli
}

func (s *site) below(queue, of int32) bool {
	for ; queue >= 0; queue = s.tree.Queues[queue].Parent {
		if queue == of {
			return true
		}
	}
	return false
}

// used is what a queue holds with those below it, of one user or, with -1, of all; of
// a model or, with 2, of all.
func (s *site) used(queue, user, model int32) (milli int64) {
	for _, u := range s.held {
		if s.below(u.queue, queue) && (user < 0 || u.user == user) && (model == 2 || u.model == model) {
			milli += u.milli
		}
	}
	return milli
}

func said(list []queue.Amount, model int32) (int64, bool) {
	for _, a := range list {
		if model == 2 && a.Model == "" || model < 2 && a.Model == models[model] {
			return a.Milli, true
		}
	}
	return 0, false
}

// may reports whether a job may take milli of a model, by the words of queue.Queue.
func (s *site) may(queue, user, model int32, milli int64) bool {
	for at := range int32(len(s.tree.Queues)) {
		q := &s.tree.Queues[at]
		if !s.below(queue, at) {
			keep, of := int64(0), model
			if keep, _ = said(q.Keep, model); keep == 0 {
				of = 2
				keep, _ = said(q.Keep, 2)
			}
			if idle := keep - s.used(at, -1, of); idle > 0 && s.free[model]-idle < milli {
				return false
			}
			continue
		}
		for _, m := range [...]int32{model, 2} {
			guarantee, _ := said(q.Guarantee, m)
			limit, limited := said(q.Limit, m)
			borrow, bounded := said(q.Borrow, m)
			most, of := said(q.UserLimit, m)
			if limited && s.used(at, -1, m)+milli > limit || bounded && s.used(at, -1, m)+milli > guarantee+borrow || of && s.used(at, user, m)+milli > most {
				return false
			}
		}
	}
	return true
}

// ever checks what a job may ever have: what it may take of an empty cluster, and at most that at any moment.
func (s *site) ever(t *rapid.T, l *queue.Ledger, u use) {
	ever, bar := l.Ever(l.Leaf(u.queue), 3, u.milli)
	now := site{tree: s.tree, held: s.held}
	for m := range now.free {
		now.free[m] = min(s.free[m], max(0, capacity-s.used(0, -1, int32(m))))
	}
	empty := site{tree: s.tree, free: [2]int64{capacity, capacity}}
	for m := range int32(2) {
		may := ever&(1<<m) != 0
		if !may && now.may(u.queue, u.user, m, u.milli) || may != empty.may(u.queue, u.user, m, u.milli) && !(may && s.keepsOfAll()) {
			t.Fatalf("%+v of %+v with %+v held and %v free: ever %b (%+v)", u, s.tree.Queues, s.held, now.free, ever, bar)
		}
	}
	if ever == 0 && (bar.Kind == queue.NoBar || bar.Kind != queue.KeptByOne && bar.Left() >= u.milli) {
		t.Fatalf("%+v of %+v: barred for ever by %+v", u, s.tree.Queues, bar)
	}
}

// keepsOfAll reports whether a queue keeps devices of whichever model: what it keeps of one depends on what it
// holds of others.
func (s *site) keepsOfAll() bool {
	return slices.ContainsFunc(s.tree.Queues, func(q queue.Queue) bool { _, all := said(q.Keep, 2); return all })
}

// TestAllow: through random use the ledger lets a job take exactly what the words of
// its queues say, a tree of one queue included, and names a bar that bars; and what it could
// ever have is what it may take of an empty cluster.
func TestAllow(t *testing.T) {
	barred := 0
	draws.Check(t, func(t *rapid.T) {
		s := site{tree: drawTree(t)}
		l := queue.NewLedger(&s.tree, models, []int64{capacity, capacity})
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			u := use{int32(rapid.IntRange(0, len(s.tree.Queues)-1).Draw(t, "queue")), int32(rapid.IntRange(0, 1).Draw(t, "user")), int32(rapid.IntRange(0, 1).Draw(t, "model")),
				int64(rapid.IntRange(1, 8).Draw(t, "milli")) * 250}
			s.free = [2]int64{int64(rapid.IntRange(0, 40).Draw(t, "free")) * 250, int64(rapid.IntRange(0, 40).Draw(t, "free")) * 250}
			got, bar := l.Allow(l.Leaf(u.queue), u.user, 3, u.milli, &s)
			for m := range int32(2) {
				if want := s.may(u.queue, u.user, m, u.milli); want != (got&(1<<m) != 0) {
					t.Fatalf("%+v of %+v with %+v held and %v free: allowed %b (%+v)", u, s.tree.Queues, s.held, s.free, got, bar)
				}
			}
			s.ever(t, &l, u)
			if got == 0 {
				barred++
				if bar.Kind == queue.NoBar || bar.Kind != queue.KeptByOne && bar.Left() >= u.milli {
					t.Fatalf("%+v of %+v with %+v held: barred by %+v", u, s.tree.Queues, s.held, bar)
				}
			}
			if i := len(s.held) - 1; i >= 0 && rapid.Bool().Draw(t, "back") {
				b := s.held[i]
				s.held = s.held[:i]
				l.Use(l.Leaf(b.queue), b.user, b.model, -b.milli)
			}
			s.held = append(s.held, u)
			l.Use(l.Leaf(u.queue), u.user, u.model, u.milli)
			s.lends(t, &l)
			s.guarantees(t, &l, u.queue, u.milli)
			turns := l.Turns()
			for a := range s.tree.Queues {
				for b := range s.tree.Queues {
					if before, _ := l.Before(int32(a), int32(b), 3, 3); a != b && before && s.tree.Queues[a].Parent == s.tree.Queues[b].Parent && turns[a] >= turns[b] {
						t.Fatalf("queue %d is served before %d and has turn %d, the other %d", a, b, turns[a], turns[b])
					}
				}
			}
		}
	})
	if barred == 0 {
		t.Error("nothing was barred: nothing was tested")
	}
}

// guarantees checks what is within a guarantee of a queue or one above it, and the most that is.
func (s *site) guarantees(t *rapid.T, l *queue.Ledger, of int32, milli int64) {
	within := func(model int32, milli int64) bool {
		for at := of; at >= 0 && len(s.tree.Queues) > 1; at = s.tree.Queues[at].Parent {
			m := model
			g, _ := said(s.tree.Queues[at].Guarantee, m)
			if g == 0 {
				m = 2
				g, _ = said(s.tree.Queues[at].Guarantee, m)
			}
			if g > 0 && s.used(at, -1, m)+milli <= g {
				return true
			}
		}
		return false
	}
	leaf := l.Leaf(of)
	most := l.MostGuaranteed(leaf)
	for m := range int32(2) {
		if got, want := l.Guaranteed(leaf, 1<<m, milli), within(m, milli); got != want || want && milli > most {
			t.Fatalf("%d of model %d in queue %d of %+v with %+v held: within a guarantee %v, which is to be %v; the most is %d", milli, m, of, s.tree.Queues, s.held, got, want, most)
		}
	}
	if most > 0 && len(s.tree.Queues) > 1 && !within(0, most) && !within(1, most) {
		t.Fatalf("%d in queue %d of %+v with %+v held is more than any guarantee has left", most, of, s.tree.Queues, s.held)
	}
}

// lends checks what might be taken back: what is in a queue that is above its guarantee
// or below one, or where priority preempts.
func (s *site) lends(t *rapid.T, l *queue.Ledger) {
	var want [2]int64
	for _, u := range s.held {
		for at := u.queue; at >= 0; at = s.tree.Queues[at].Parent {
			if q := &s.tree.Queues[at]; q.Preempt || s.over(at, 0) || s.over(at, 1) || s.aside(at) && s.used(at, -1, 2) > 0 && at == u.queue {
				want[u.model] += u.milli
				break
			}
		}
	}
	if got := l.Lent(); len(s.tree.Queues) > 1 && (got[0] != want[0] || got[1] != want[1]) {
		t.Fatalf("%+v with %+v held: lent %v, want %v", s.tree.Queues, s.held, got, want)
	}
}

// aside reports whether a queue's own jobs stand beside queues below it, where they
// have no guarantee.
func (s *site) aside(queue int32) bool {
	for i := range s.tree.Queues {
		if s.tree.Queues[i].Parent == queue {
			return true
		}
	}
	return false
}

// over reports whether a queue holds more of a model than it is guaranteed.
func (s *site) over(queue, model int32) bool {
	q := &s.tree.Queues[queue]
	if g, _ := said(q.Guarantee, model); g > 0 {
		return s.used(queue, -1, model) > g
	}
	g, _ := said(q.Guarantee, 2)
	return s.used(queue, -1, model) > 0 && s.used(queue, -1, 2) > g
}
