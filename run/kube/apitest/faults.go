package apitest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Window is a stretch of time since the World began; To is outside.
type Window struct{ From, To time.Duration }

// within returns when the stretches that hold at an instant are over.
func within(windows []Window, at time.Duration) (end time.Duration, in bool) {
	for again := true; again; {
		again = false
		for _, w := range windows {
			if w.From <= at && at < w.To {
				at, in, again = w.To, true, true
			}
		}
	}
	return at, in
}

// Faults are what goes wrong. Chances are drawn from the seed, three for each call, in
// the order of the calls.
type Faults struct {
	Seed uint64
	// ConflictRate is how often somebody else writes first: a record is touched, another
	// object has changed.
	ConflictRate float64
	// TransientRate is how often a call fails and does nothing.
	TransientRate float64
	// LostReplyRate is how often a call is done and the caller is told that it timed out.
	LostReplyRate float64
	// SlowCall is what every call takes; the World goes on meanwhile.
	SlowCall time.Duration
	// WatchGaps are times in which nothing is told; afterwards what is different is.
	WatchGaps []Window
	// Outages are times in which the API server is out: calls fail, nothing is told, no
	// controller and no kubelet can write. Afterwards all is told one by one.
	Outages []Window
	// NodeLoss is which nodes go dark.
	NodeLoss []NodeLoss
	// StaleLeader is when another leader takes over that this one does not know of.
	StaleLeader []time.Duration
}

// NodeLoss is the loss of a node.
type NodeLoss struct {
	Node   string
	At     time.Duration // since the World began
	Back   time.Duration // when it starts again; 0: never
	Delete time.Duration // when it is taken out of the cluster; 0: never
}

// Inject has things go wrong from now on, instead of those before.
func (w *World) Inject(f Faults) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.troubles.Faults, w.troubles.chance = f, rand.New(rand.NewPCG(f.Seed, 1))
	w.clock.outages = f.Outages
	for _, c := range w.feed.clients {
		c.gaps, _ = f.overGaps(w.clock.since())
	}
	at := func(d time.Duration, do func()) { w.clock.after(w.clock.start.Add(d).Sub(w.clock.now), do) }
	for _, n := range f.NodeLoss {
		at(n.At, func() { w.kubelets.lose(n.Node) })
		if n.Back > 0 {
			at(n.Back, func() { w.kubelets.comeBack(n.Node) })
		}
		if n.Delete > 0 {
			at(n.Delete, func() { w.kubelets.deleteNode(n.Node) })
		}
	}
	for _, g := range slices.Concat(f.WatchGaps, f.Outages) {
		at(g.To, nothing) // what is due: there is something to tell
	}
	for _, d := range f.StaleLeader {
		at(d, func() { w.records.depose() })
	}
}

// Chaos draws faults of all kinds but stale leaders from a seed, for a run of some
// length on nodes of these names; they are over at three quarters of it.
func Chaos(seed uint64, length time.Duration, nodes []string) Faults {
	r := rand.New(rand.NewPCG(seed, 2))
	f := Faults{Seed: seed, ConflictRate: r.Float64() * .1, TransientRate: r.Float64() * .1, LostReplyRate: r.Float64() * .1, SlowCall: time.Duration(r.IntN(20)) * time.Millisecond}
	last := int64(length) * 3 / 4
	window := func(most time.Duration) Window {
		long := min(time.Duration(r.Int64N(int64(most))), time.Duration(last))
		from := time.Duration(r.Int64N(last - int64(long) + 1))
		return Window{from, from + long}
	}
	for range 1 + r.IntN(3) {
		f.WatchGaps = append(f.WatchGaps, window(2*time.Minute))
	}
	f.Outages = []Window{window(time.Minute)}
	for _, i := range r.Perm(len(nodes))[:min(len(nodes), r.IntN(3))] {
		lost := window(10 * time.Minute)
		n := NodeLoss{Node: nodes[i], At: lost.From, Back: lost.To}
		if r.IntN(3) == 0 {
			n.Back, n.Delete = 0, lost.To
		}
		f.NodeLoss = append(f.NodeLoss, n)
	}
	return f
}

// troubles has things go wrong.
type troubles struct {
	Faults
	clock   *clock
	records *records
	chance  *rand.Rand
	recalls map[types.UID]string // pods whose binding was done but not answered: their node
}

// faulty makes a call, or lets it fail.
func (tr *troubles) faulty(made Call, do func() error, lost func()) error {
	f := &tr.Faults
	if f.SlowCall > 0 {
		tr.clock.advance(tr.clock.now.Add(f.SlowCall))
	}
	var draw [3]float64
	if tr.chance != nil {
		for i := range draw {
			draw[i] = tr.chance.Float64()
		}
	}
	if _, out := within(f.Outages, tr.clock.since()); out {
		return &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	if draw[0] < f.TransientRate {
		return apierrors.NewServiceUnavailable("the server is currently unable to handle the request")
	}
	if draw[1] < f.ConflictRate {
		switch made.Verb {
		case "put":
			tr.records.touch(made.Object)
		case "suspend", "set":
			return apierrors.NewConflict(schema.GroupResource{}, made.Object, errModified)
		}
	}
	err := do()
	if err == nil && draw[2] < f.LostReplyRate {
		lost()
		return fmt.Errorf("%s %s: %w", made.Verb, made.Object, context.DeadlineExceeded)
	}
	return err
}

// errModified is what the API server says to a write over an old version.
var errModified = errors.New("the object has been modified; please apply your changes to the latest version and try again")

// touch has somebody else write a record, who changes nothing that matters.
func (rs *records) touch(object string) {
	kind, name, _ := strings.Cut(object, " ")
	rs.store.version++
	version := strconv.FormatInt(rs.store.version, 10)
	if r := rs.ledgers[name]; r != nil && kind != "MusterJob" {
		next := r.value.DeepCopy()
		next.ResourceVersion = version
		r.value, r.writer = next, nil
		rs.feed.keep(step{ledger: next})
		return
	}
	namespace, name, _ := strings.Cut(name, "/")
	if r := rs.jobs[types.NamespacedName{Namespace: namespace, Name: name}]; r != nil {
		next := r.value.DeepCopy()
		next.ResourceVersion = version
		r.value, r.writer = next, nil
		rs.feed.keep(step{job: next})
	}
}

// overGaps counts the gaps that have ended at an instant, and tells whether one holds.
func (f *Faults) overGaps(at time.Duration) (over int, holds bool) {
	for _, g := range f.WatchGaps {
		if g.To <= at {
			over++
		}
	}
	_, holds = within(slices.Concat(f.WatchGaps, f.Outages), at)
	return over, holds
}
