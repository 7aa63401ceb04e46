// Package calendar is the mechanism of reservation and backfill: which nodes a gang
// that does not fit yet will get and when, and how much of every node has to be kept
// free of other work so that it does. Smaller work fills in around the claims.
//
// With one claim this is EASY backfilling (Lifka, "The ANL/IBM SP scheduling
// system", JSSPP 1995), with a claim for every job ahead conservative backfilling
// (Mu'alem and Feitelson, TPDS 12(6), 2001); maintenance windows are entries of the
// same calendar. What running work is expected to end at is said by the caller;
// predictions that were outlived are corrected (Tsafrir, Etsion and Feitelson, TPDS
// 18(6), 2007), and Ends does so by doubling them.
//
// What holds where expected ends are upper bounds: no claim is ever put off, however
// much work is filled in. Where they are wrong a claim may be put off, but only until
// the instant that it was first made for: from then on its room is closed for all
// other work, and the gang starts at the latest when what runs on its nodes at that
// moment has really ended.
//
// Devices are counted per node and not named: whole devices of a node are alike.
package calendar

import (
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// A claim, its parts and a window are facts of the state.
type (
	Claim  = plan.Claim
	Part   = plan.Part
	Window = plan.Window
)

// Calendar is the claims, in order of rank, and the windows. Look shows it the
// running work before it is asked anything. It is used again from one decision to
// the next; the zero value is an empty one.
type Calendar struct {
	// Slack is how long a claim may be put off by work that takes longer than expected
	// before it is closed.
	Slack unit.Duration
	// Repair is how long a lost node is believed to be away before any came back; 0 is that nobody counts on it.
	Repair unit.Duration
	// May returns the models of devices, of a set, of which a job could ever have as many workers; nil is all of them.
	May func(v plan.View, job plan.JobID, models uint64, workers int32) uint64
	// Avoid has nobody run into a window, whatever he saves: who moves there would have moved for nothing.
	Avoid bool

	claims  []Claim
	windows []Window
	away    absences

	v       plan.View
	now     unit.Time
	turns   int64
	nodes   []node
	runs    []seen
	devoid  []plan.RunID // runs that hold cores and no devices
	entries []entry      // claims and windows by node, made when they are asked for
	before  []entry      // as they were listed last
	indexed bool
	// profiles are for those without a claim: beside all claims, and beside all but some; and both for those who run into windows.
	profiles [4]profile
	found    map[plan.JobID]*finding

	steps []step
	search
}

// absences are the lost nodes that are expected back.
type absences []absence

// absence is a lost node, and until when it is believed to be away.
type absence struct {
	node  plan.NodeID
	until unit.Time
}

// Claims are the claims in order of rank, to be read.
func (c *Calendar) Claims() []Claim { return c.claims }

// Windows are the maintenance windows, to be read.
func (c *Calendar) Windows() []Window { return c.windows }

// Empty reports whether nothing is to be kept free.
func (c *Calendar) Empty() bool { return len(c.claims) == 0 && len(c.windows) == 0 }

// Insert gives a claim a rank: 0 is the first, len(Claims()) the last.
func (c *Calendar) Insert(rank int, claim Claim) {
	c.claims = slices.Insert(c.claims, rank, claim)
	c.changed()
}

// changed forgets what was worked out of the claims and windows.
func (c *Calendar) changed() {
	c.indexed = false
	c.moved()
}

// moved forgets what was worked out of what runs.
func (c *Calendar) moved() {
	for i := range c.profiles {
		c.profiles[i].made = false
	}
	c.turns++
}

// Turns counts what happened to claims, windows and what runs: while it stays the same, so does every
// answer.
func (c *Calendar) Turns() int64 { return c.turns }

// Find returns the rank of a job's claim, or -1.
func (c *Calendar) Find(job plan.JobID) int {
	return slices.IndexFunc(c.claims, func(cl Claim) bool { return cl.Job == job })
}

// Drop takes a job's claim out, if it has one.
func (c *Calendar) Drop(job plan.JobID) {
	if i := c.Find(job); i >= 0 {
		c.claims = slices.Delete(c.claims, i, i+1)
		c.changed()
	}
}

// SetWindows replaces all windows.
func (c *Calendar) SetWindows(windows []Window) {
	c.windows = append(c.windows[:0], windows...)
	c.changed()
}

// Wake is the next instant at which the calendar wants a decision even if nothing
// else happens: a claim's time has come, a window is over, or a node that a claim may
// count on should be back. One that has come due waits for runs to end.
func (c *Calendar) Wake(now unit.Time) unit.Time {
	wake := unit.Never
	next := func(at unit.Time) {
		if at > now {
			wake = min(wake, at)
		}
	}
	for i := range c.claims {
		if next(c.claims[i].Due); c.claims[i].Due > now {
			next(c.claims[i].At)
		}
	}
	for i := range c.windows {
		next(c.windows[i].To)
	}
	for i := 0; i < len(c.away) && len(c.claims) > 0; i++ {
		next(c.away[i].until)
	}
	return wake
}

// entry is one claim's part of a node, or a window.
type entry struct {
	node               plan.NodeID
	rank               int32      // of the claim; window for a window
	job                plan.JobID // of the claim; None for a window
	from, to           unit.Time
	devices, cpu, host int64
	begun              bool // by the instant that the entries are listed at
}

// same reports whether two entries take the same of a node from now on.
func (e entry) same(o entry) bool {
	e.rank = o.rank // which may have changed for others that came or went
	if e.begun && o.begun {
		e.from = o.from
	}
	return e == o
}

// window is the rank of windows: before all claims, and not that of no claim (-1).
const window = -2

// all is what a window takes of a node: more than any has.
const all = 1 << 40

// index lists the entries by node, those of the better rank first.
func (c *Calendar) index() {
	if c.indexed {
		return
	}
	c.indexed = true
	c.before, c.entries = c.entries, c.before[:0]
	for _, w := range c.windows {
		if w.To > c.now && w.From < w.To {
			c.entries = append(c.entries, entry{w.Node, window, plan.None, max(w.From, c.now), w.To, all, all, all, w.From <= c.now})
		}
	}
	for _, a := range c.away { // it takes as little till then as in a window
		c.entries = append(c.entries, entry{a.node, window, plan.None, c.now, a.until, all, all, all, true})
	}
	for i := range c.claims {
		cl := &c.claims[i]
		from := max(cl.At, c.now)
		if cl.Closed(c.now) {
			from = c.now
		}
		for _, p := range cl.Parts {
			c.entries = append(c.entries, entry{p.Node, int32(i), cl.Job, from, max(cl.At, c.now).Add(cl.Length),
				int64(p.Devices), int64(p.CPU), int64(p.Host), from == c.now})
		}
	}
	slices.SortFunc(c.entries, func(a, b entry) int {
		if a.node != b.node {
			return int(a.node - b.node)
		}
		return int(a.rank - b.rank)
	})
	c.tell()
}

// tell notes where the entries of every node stand, and counts a new version of those on which
// there are others than when they were listed last, or the same in another order.
func (c *Calendar) tell() {
	old, at := c.before, 0
	of := func(list []entry, id plan.NodeID) (n int) {
		for n < len(list) && list[n].node == id {
			n++
		}
		return n
	}
	for len(old) > 0 || at < len(c.entries) {
		id := plan.NodeID(len(c.nodes))
		if len(old) > 0 {
			id = old[0].node
		}
		if at < len(c.entries) {
			id = min(id, c.entries[at].node)
		}
		was, is := of(old, id), of(c.entries[at:], id)
		n := &c.nodes[id]
		if !slices.EqualFunc(old[:was], c.entries[at:at+is], entry.same) {
			n.version++
		}
		if n.first, n.last = int32(at), int32(at+is); is == 0 {
			n.first, n.last = 0, 0
		}
		old, at = old[was:], at+is
	}
}

// on returns the entries of a node.
func (c *Calendar) on(id plan.NodeID) []entry { return c.entries[c.nodes[id].first:c.nodes[id].last] }
