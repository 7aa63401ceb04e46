package server

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/access"
	"github.com/musterdl/muster/internal/server/door"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/plan"
)

// Who sees which queue: those whose jobs it sees, those that its tenants' jobs are
// in, and, since what they deserve comes from there, all queues above them.

// queuesSeen says of each queue of the tree whether an identity sees it. The root is
// everybody's.
func queuesSeen(t *queue.Tree, who *access.Identity) []bool {
	seen := make([]bool, max(1, len(t.Queues)))
	seen[0] = true
	show := func(q int32) {
		for ; q > 0 && !seen[q]; q = t.Queues[q].Parent {
			seen[q] = true
		}
	}
	for i := range t.Queues {
		if who.Sees(t.Queues[i].Name, "") {
			show(int32(i))
		}
	}
	for _, tenant := range slices.Concat(who.Tenants, who.Queues) {
		show(t.Find(tenant))
	}
	return seen
}

// keep returns the elements of a list that are chosen.
func keep[T any](list []T, chosen []bool) []T {
	out := make([]T, 0, len(list))
	for i, c := range chosen {
		if c && i < len(list) {
			out = append(out, list[i])
		}
	}
	return out
}

// getQueues tells the tree of queues as it was set.
func (rd *reader) getQueues(w http.ResponseWriter, r *http.Request) error {
	return tell(rd, w, r, func(v plan.View) queue.Tree { return prune(v.Queues(), access.From(r.Context())) })
}

// prune takes the queues that an identity does not see out of a copy of the tree.
func prune(t *queue.Tree, who *access.Identity) queue.Tree {
	seen, out := queuesSeen(t, who), *t
	now, kept := make([]int32, len(t.Queues)), int32(0)
	for i := range t.Queues {
		now[i] = kept
		if seen[i] {
			kept++
		}
	}
	out.Queues = keep(t.Queues, seen)
	for i := range out.Queues {
		if p := out.Queues[i].Parent; p >= 0 {
			out.Queues[i].Parent = now[p] // which is seen, as all above it are
		}
	}
	return out
}

// setQueues gives the cluster another tree of queues.
func (c *changes) setQueues(w http.ResponseWriter, r *http.Request) error {
	var tree queue.Tree
	if err := door.Receive(w, r, &tree); err != nil {
		return err
	}
	access.CallOf(r.Context()).Note = fmt.Sprintf("%d queues", len(tree.Queues))
	if err := c.request(r, engine.Event{Kind: engine.Shares, Queues: &tree, By: access.From(r.Context()).String()}, ""); err != nil {
		return err
	}
	return c.reader.getQueues(w, r)
}

func (rd *reader) getShares(w http.ResponseWriter, r *http.Request) error {
	return tell(rd, w, r, func(v plan.View) view.Shares {
		shares := view.SharesOf(v, slices.Values(rd.live(v)))
		shares.Queues = keep(shares.Queues, queuesSeen(v.Queues(), access.From(r.Context())))
		return shares
	})
}

func (o *observer) getShareHistory(w http.ResponseWriter, r *http.Request) error {
	var h shareHistory
	var seen []bool
	err := o.reader.ask(r.Context(), func(v plan.View) {
		o.shares.note(v) // the last look may be a while ago
		h, seen = o.shares.copy(), queuesSeen(v.Queues(), access.From(r.Context()))
	})
	if err != nil {
		return err
	}
	return door.Answer(w, h.show(seen))
}

// getAccounts tells the books of those whose jobs the caller sees, and whether all
// books balance, which is proven anew each time.
func (rd *reader) getAccounts(w http.ResponseWriter, r *http.Request) error {
	var books view.Accounts
	err := rd.ask(r.Context(), func(v plan.View) {
		who := access.From(r.Context())
		books = view.AccountsOf(v, who.Sees)
		wrong := rd.plane.Balance()
		books.Balanced = wrong == nil
		switch {
		case wrong == nil:
			books.Balance = fmt.Sprintf("books balance: every device-hour of %d jobs is in %d accounts once", v.Jobs(), v.Accounts())
		case who.SeesAll():
			books.Balance = "books do not balance: " + wrong.Error()
		default:
			books.Balance = "books do not balance: tell an operator"
		}
	})
	if err != nil {
		return err
	}
	if !books.Balanced {
		rd.log.Error(books.Balance)
	}
	return door.Answer(w, books)
}

func (rd *reader) getCalendar(w http.ResponseWriter, r *http.Request) error {
	return tell(rd, w, r, func(v plan.View) view.Calendar { return rd.veil(access.From(r.Context())).calendar(view.CalendarOf(v)) })
}

// calendar leaves the place and time of every entry, and says whose it is only where
// the identity sees the job.
func (x veil) calendar(c view.Calendar) view.Calendar {
	for i := range c.Entries {
		e := &c.Entries[i]
		if name := x.name(e.Job); name != e.Job {
			e.Job, e.Queue = name, ""
		}
	}
	return c
}
