package lead

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
)

// world is a server, its records and all terms there were.
type world struct {
	t      *testing.T
	server *server
	mu     sync.Mutex
	record Fence // the newest fence that a leader wrote
	terms  []Term
}

func newWorld(t *testing.T) *world { return &world{t: t, server: newServer()} }

func (w *world) newest(context.Context) (Fence, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.record, nil
}

// lead is the work: it puts its fence into the record at once, and asks before each
// write whether it may.
func (w *world) lead(ctx context.Context, term Term) error {
	w.mu.Lock()
	if !term.Fence.Newer(w.record) {
		w.t.Errorf("term %v began after %v", term.Fence, w.record)
	}
	w.record = term.Fence
	w.terms = append(w.terms, term)
	w.mu.Unlock()
	<-ctx.Done()
	if term.Valid(time.Now()) && !errors.Is(context.Cause(ctx), context.Canceled) {
		w.t.Errorf("term %v is valid though its work was stopped: %v", term.Fence, context.Cause(ctx))
	}
	return nil
}

// valid are the terms that are valid now; more than one is what must never be.
func (w *world) valid() []Term {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []Term
	for _, term := range w.terms {
		if term.Valid(time.Now()) {
			all = append(all, term)
		}
	}
	if len(all) > 1 {
		w.t.Fatalf("at %s these are all valid: %v", time.Now(), all)
	}
	return all
}

// leader waits until somebody leads, looking often, and says how long that took.
func (w *world) leader(limit time.Duration) (Term, time.Duration) {
	w.t.Helper()
	start := time.Now()
	for time.Since(start) <= limit {
		if all := w.valid(); len(all) == 1 {
			return all[0], time.Since(start)
		}
		time.Sleep(10 * time.Millisecond)
	}
	w.t.Fatalf("nobody leads after %s", limit)
	return Term{}, 0
}

// candidate is one process.
type candidate struct {
	line *line
	stop context.CancelFunc
	done chan error
}

func (w *world) start(holder string) *candidate {
	ctx, stop := context.WithCancel(context.Background())
	c := &candidate{line: &line{server: w.server}, stop: stop, done: make(chan error, 1)}
	go func() {
		c.done <- Run(ctx, Options{Leases: c.line, Namespace: namespace, Name: name, Holder: holder, Newest: w.newest,
			Timing: DefaultTiming(), Log: slog.New(slog.DiscardHandler)}, w.lead)
	}()
	return c
}

// end stops the process in the regular way.
func (c *candidate) end(t *testing.T) {
	t.Helper()
	c.stop()
	if err := <-c.done; err != nil {
		t.Errorf("regular end: %v", err)
	}
}

func leads(term Term, holder string) bool { return strings.HasPrefix(term.Fence.Holder, holder+"_") }

func TestHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.start("a")
		first, took := w.leader(time.Minute)
		if took > time.Second || first.Fence.Number != 1 || !leads(first, "a") {
			t.Errorf("the first leader is %v, after %s", first.Fence, took)
		}
		b := w.start("b")
		time.Sleep(time.Minute)
		if all := w.valid(); len(all) != 1 || all[0] != first {
			t.Errorf("after a minute in peace: %v", all)
		}
		if w.server.writes > 35 {
			t.Errorf("%d writes in a minute of renewals every 2s", w.server.writes)
		}
		a.end(t)
		next, took := w.leader(time.Minute)
		if took > time.Second || next.Fence.Number != 2 || !leads(next, "b") {
			t.Errorf("the next leader is %v, after %s", next.Fence, took)
		}
		if !next.Fence.Newer(first.Fence) || first.Fence.Newer(next.Fence) {
			t.Errorf("%v and %v are out of order", first.Fence, next.Fence)
		}
		b.end(t)
	})
}

// TestLost cuts the leader off, in every way a line can break.
func TestLost(t *testing.T) {
	for _, broken := range []how{refused, hung} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			a := w.start("a")
			first, _ := w.leader(time.Minute)
			b := w.start("b")
			time.Sleep(10 * time.Second)
			a.line.set(broken)
			cut := time.Now()
			err := <-a.done
			if took := time.Since(cut); !errors.Is(err, ErrLost) || took < 7*time.Second || took > 11*time.Second {
				t.Errorf("cut off, it ended after %s: %v", took, err)
			}
			if first.Valid(time.Now()) {
				t.Error("valid after Run has returned")
			}
			if all := w.valid(); len(all) != 0 {
				t.Errorf("%v leads already: where is the margin?", all)
			}
			next, took := w.leader(time.Minute)
			if took < 3*time.Second || took > 8*time.Second || !leads(next, "b") {
				t.Errorf("%v leads after %s more", next.Fence, took)
			}
			b.end(t)
		})
	}
}

// TestOutage: an API server that is away for less than a term is valid costs nobody
// the lead, and one that is away for all does not give it to two.
func TestOutage(t *testing.T) {
	for away, ms := range map[how]int{refused: 7000, hung: 3500} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			a := w.start("a")
			first, _ := w.leader(time.Minute)
			b := w.start("b")
			for range 20 {
				time.Sleep(7100 * time.Millisecond) // long enough for requests that still hang
				a.line.set(away)
				b.line.set(away)
				for range ms / 10 {
					time.Sleep(10 * time.Millisecond)
					if all := w.valid(); len(all) != 1 || all[0] != first {
						t.Fatalf("in an outage of %dms: %v", ms, all)
					}
				}
				a.line.set(well)
				b.line.set(well)
			}
			a.line.set(away)
			b.line.set(away)
			time.Sleep(time.Minute)
			if err := <-a.done; !errors.Is(err, ErrLost) {
				t.Errorf("in an outage of a minute the leader ended with %v", err)
			}
			if all := w.valid(); len(all) != 0 {
				t.Errorf("in an outage of a minute: %v", all)
			}
			b.line.set(well)
			if next, _ := w.leader(5 * time.Second); !leads(next, "b") {
				t.Errorf("%v leads after the outage", next.Fence)
			}
			b.end(t)
		})
	}
}

// TestLateAnswer: the term counts from when the renewal was sent, for others may have
// seen it long before the answer came.
func TestLateAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hold{since: time.Now(), valid: 10 * time.Second}
		sent := time.Now()
		time.Sleep(3 * time.Second)
		h.extend(sent, time.Now())
		if left := h.left(time.Now()); left != 7*time.Second {
			t.Errorf("left after an answer that took 3s: %s", left)
		}
		time.Sleep(7 * time.Second)
		h.extend(time.Now(), time.Now())
		if left := h.left(time.Now()); left != 0 {
			t.Errorf("a term that was over has %s left", left)
		}
	})
}

// TestSleep: where a machine slept, the monotonic clock did not go on and the wall
// clock did. A time without a monotonic reading stands for it.
func TestSleep(t *testing.T) {
	term := Term{hold: &hold{since: time.Now(), valid: 10 * time.Second}}
	now := time.Now()
	if !term.Valid(now) || !term.Valid(now.Add(9*time.Second)) || term.Valid(now.Add(11*time.Second)) {
		t.Error("awake, the term is not valid for 10s")
	}
	if !term.Valid(now.Round(0)) || term.Valid(now.Round(0).Add(11*time.Second)) {
		t.Error("by the wall clock, the term is not valid for 10s")
	}
}

// TestDeleted: a lease that somebody deletes ends the term, and the next begins when
// the old leader cannot be at work any more, under a newer fence.
func TestDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.start("a")
		first, _ := w.leader(time.Minute)
		b := w.start("b")
		a.line.set(refused) // it does not hear of it
		time.Sleep(time.Second)
		if err := w.server.delete(); err != nil {
			t.Fatal(err)
		}
		if err := <-a.done; !errors.Is(err, ErrLost) {
			t.Errorf("the leader ended with %v", err)
		}
		next, _ := w.leader(time.Minute)
		if !next.Fence.Newer(first.Fence) {
			t.Errorf("%v follows %v", next.Fence, first.Fence)
		}
		time.Sleep(time.Second)
		if err := w.server.delete(); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if err := <-b.done; !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "deleted") || time.Since(start) > 3*time.Second {
			t.Errorf("the leader ended with %v after %s", err, time.Since(start))
		}
	})
}

// TestTaken: a lease that is found in other hands ends the term at once; the elector
// alone would take it again and go on with an old memory.
func TestTaken(t *testing.T) {
	for _, holder := range []string{"somebody", ""} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			a := w.start("a")
			first, _ := w.leader(time.Minute)
			lease, err := w.server.get()
			if err != nil {
				t.Fatal(err)
			}
			lease.Spec.HolderIdentity = &holder
			if _, err := w.server.update(lease); err != nil {
				t.Fatal(err)
			}
			if err := <-a.done; !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), fmt.Sprintf("held by %q", holder)) {
				t.Errorf("held by %q, it ended with %v", holder, err)
			}
			if first.Valid(time.Now()) {
				t.Error("still valid")
			}
		})
	}
}

// TestNumberFromRecords: fences go on from the records where the lease is behind them.
func TestNumberFromRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.start("a")
		w.leader(time.Minute)
		a.end(t)
		w.mu.Lock()
		w.record = Fence{Number: 41, Holder: "one who ran alone"}
		w.mu.Unlock()
		b := w.start("b")
		if term, took := w.leader(time.Minute); term.Fence.Number != 42 || took > 2*time.Second {
			t.Errorf("%v after %s", term.Fence, took)
		}
		b.end(t)
	})
}

// TestWork: the work's own end is Run's; work that does not stop does not hold up the
// end of the process past the margin.
func TestWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		o := Options{Leases: &line{server: w.server}, Namespace: namespace, Name: name, Holder: "a", Newest: w.newest,
			Timing: DefaultTiming(), Log: slog.New(slog.DiscardHandler)}
		broken := errors.New("broken")
		var term Term
		err := Run(t.Context(), o, func(_ context.Context, got Term) error { term = got; return broken })
		if !errors.Is(err, broken) || term.Valid(time.Now()) {
			t.Errorf("ended with %v, term valid: %t", err, term.Valid(time.Now()))
		}
		lease, err := w.server.get()
		if err != nil || *lease.Spec.HolderIdentity != "" {
			t.Errorf("after the work the lease is held: %v, %v", lease, err)
		}
		cut := &line{server: w.server}
		o.Leases = cut
		never := make(chan struct{})
		start := time.Now()
		err = Run(t.Context(), o, func(context.Context, Term) error { cut.set(refused); <-never; return nil })
		if took := time.Since(start); !errors.Is(err, ErrLost) || took > o.Timing.Lease+time.Second {
			t.Errorf("ended after %s with %v", took, err)
		}
		close(never)
	})
}

// TestShutdownOrder: the lease is held until the work has returned.
func TestShutdownOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, stop := context.WithCancel(t.Context())
		o := Options{Leases: &line{server: w.server}, Namespace: namespace, Name: name, Holder: "a", Newest: w.newest,
			Timing: DefaultTiming(), Log: slog.New(slog.DiscardHandler)}
		b := w.start("b")
		defer b.end(t)
		b.line.set(refused)
		var ended time.Time
		go func() { time.Sleep(5 * time.Second); b.line.set(well); stop() }()
		err := Run(ctx, o, func(ctx context.Context, term Term) error {
			<-ctx.Done()
			time.Sleep(40 * time.Second) // longer than the lease
			if !term.Valid(time.Now()) || len(w.valid()) != 0 {
				t.Error("the lease was not kept for the work")
			}
			ended = time.Now()
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		if _, took := w.leader(time.Minute); took > time.Second || time.Since(ended) > 2*time.Second {
			t.Errorf("handed over %s after the end", took)
		}
	})
}

// TestChaos: whatever happens to the lines, to the processes and to the lease, no two
// terms are valid at one moment, fences grow, and when it is over somebody leads.
func TestChaos(t *testing.T) {
	for seed := range uint64(seeds()) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { chaos(t, rand.New(rand.NewPCG(seed, 4))) })
		})
	}
}

func chaos(t *testing.T, r *rand.Rand) {
	w := newWorld(t)
	all := make([]*candidate, 3)
	for i := range all {
		all[i] = w.start(fmt.Sprint("p", i))
	}
	watch := func(d time.Duration) {
		for range d / (20 * time.Millisecond) {
			time.Sleep(20 * time.Millisecond)
			w.valid()
			for i, c := range all {
				select {
				case err := <-c.done:
					if err != nil && !errors.Is(err, ErrLost) {
						t.Fatalf("p%d ended with %v", i, err)
					}
					all[i] = w.start(fmt.Sprint("p", i)) // as a kubelet does
				default:
				}
			}
		}
	}
	for range 40 {
		switch c := all[r.IntN(len(all))]; r.IntN(10) {
		case 0:
			c.stop()
		case 1:
			_ = w.server.delete() // there may be none
		case 2, 3:
			for _, c := range all {
				c.line.set(well)
			}
		default:
			c.line.set(how(r.IntN(howCount)))
		}
		watch(time.Duration(r.IntN(12_000)) * time.Millisecond)
	}
	for _, c := range all {
		c.line.set(well)
	}
	watch(45 * time.Second)
	if len(w.valid()) != 1 {
		t.Error("nobody leads in the end")
	}
	for _, c := range all {
		c.stop()
		<-c.done
	}
}

func TestFenceText(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		f := Fence{Number: int64(rapid.Int32Min(1).Draw(t, "number")), Holder: rapid.String().Draw(t, "holder")}
		if got, err := ParseFence(f.String()); err != nil || got != f {
			t.Errorf("%v became %v, %v", f, got, err)
		}
	})
	if f, err := ParseFence(""); err != nil || f != (Fence{}) || !(Fence{Number: 1}).Newer(f) {
		t.Errorf("no fence is %v, %v", f, err)
	}
	for _, bad := range []string{"7", "x/a", "/a", "0/a", "-1/a", "9999999999/a"} {
		if f, err := ParseFence(bad); err == nil {
			t.Errorf("%q was read as %v", bad, f)
		}
	}
}

func TestBadOptions(t *testing.T) {
	good := DefaultTiming()
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for _, change := range []func(*Timing){
		func(g *Timing) { g.Lease = 15500 * time.Millisecond },
		func(g *Timing) { g.Lease = 0 },
		func(g *Timing) { g.Valid = 14 * time.Second },
		func(g *Timing) { g.Renew = 5 * time.Second },
		func(g *Timing) { g.Retry = 0 },
		func(g *Timing) { g.Retry = 3 * time.Second },
	} {
		bad := good
		change(&bad)
		if bad.Validate() == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
	if err := Run(t.Context(), Options{Timing: good}, nil); err == nil {
		t.Error("runs without a client")
	}
	if alone := Alone(Fence{Number: 3}); !alone.Valid(time.Now()) {
		t.Error("who runs alone does not lead")
	}
}

// seeds is how many seeds a test of chance has time for.
func seeds() int {
	if os.Getenv("MUSTER_LONG") == "1" {
		return 400
	}
	return 15
}
