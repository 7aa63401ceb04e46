package reproduce

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/musterdl/muster/engine/law"
	"github.com/musterdl/muster/internal/spec"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// lookEvery is how often the waiting jobs are looked at for a claim not honoured.
const lookEvery = 5 * unit.Minute

// operator watches a simulation with queues: who is displaced, what matters more, and
// whether a queue gets what it is guaranteed.
type operator struct {
	guaranteed []int64 // thousandths of a device by queue; 0 is none
	held       []int64 // by queue, reused

	displaced, devices int64 // runs for a guarantee or a priority, and devices they held
	high               map[plan.JobID]bool
	seen               int // jobs
	alive              []plan.JobID
	next               unit.Time
	since              map[plan.JobID]unit.Time // since when it waits though it is within a guarantee
	claims             int                      // looks at a job that did
	// The longest that one was seen to wait so: of one device, and of more, whose room
	// has to come together.
	single, several unit.Duration
}

func newOperator(tree *queue.Tree) *operator {
	w := &operator{high: map[plan.JobID]bool{}, since: map[plan.JobID]unit.Time{}, held: make([]int64, len(tree.Queues))}
	for i := range tree.Queues {
		sum := int64(0)
		for _, a := range tree.Queues[i].Guarantee {
			sum += a.Milli
		}
		w.guaranteed = append(w.guaranteed, sum)
	}
	return w
}

func (w *operator) commit(v plan.View, c *plan.Commit) {
	for i := range c.Changes {
		if ch := &c.Changes[i]; ch.Verb == plan.Stop && (ch.Reason.Code == plan.Reclaimed || ch.Reason.Code == plan.Outranked) {
			w.displaced++
			v.GrantsOf(ch.Run, func(g plan.Grant) {
				if g.Device != plan.None {
					w.devices += int64(g.Reserve) / 1000
				}
			})
		}
	}
	for ; w.seen < v.Jobs(); w.seen++ {
		id := plan.JobID(w.seen)
		w.alive = append(w.alive, id)
		if v.Priority(id) > 0 {
			w.high[id] = true
		}
	}
	if v.Now() >= w.next {
		w.next = v.Now().Add(lookEvery)
		w.look(v)
	}
}

// look finds the jobs that wait though their queue would stay within its guarantee.
func (w *operator) look(v plan.View) {
	clear(w.held)
	for id := range v.Accounts() {
		a := v.Account(id)
		w.held[v.QueueOf(a.Tenant)] += a.Held
	}
	alive := w.alive[:0]
	for _, id := range w.alive {
		j := v.Job(id)
		if j.Phase.Over() {
			delete(w.since, id)
			continue
		}
		alive = append(alive, id)
		shape := v.Shape(id)
		milli, q := shape.Milli(shape.Gang), v.QueueOf(j.Tenant)
		if j.Phase != plan.Waiting || w.held[q]+milli > w.guaranteed[q] {
			delete(w.since, id)
			continue
		}
		if _, known := w.since[id]; !known {
			w.since[id] = v.Now()
		}
		w.claims++
		waited := v.Now().Sub(w.since[id])
		if milli <= 1000 {
			w.single = max(w.single, waited)
		} else {
			w.several = max(w.several, waited)
		}
	}
	w.alive = alive
}

// preempting writes the queues of Venus, each guaranteed its part of the cluster, with
// priority counting everywhere.
func preempting(t *testing.T) (file string, tree queue.Tree) {
	t.Helper()
	tree, ok := spec.QueuePreset("venus", venusDevices)
	if !ok {
		t.Fatal("there is no preset of queues venus")
	}
	tree.Queues[0].Preempt = true
	file = filepath.Join(t.TempDir(), "queues.yaml")
	if err := os.WriteFile(file, spec.FormatQueues(tree), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, tree
}

// TestVictimsOnVenus: with the queues of Venus and a tenth of the jobs of high priority,
// all drawn, the cheapest victims cost a fifth less than the newest. An evicted
// device-hour is one that a displaced run had computed and has to compute again, or
// that its devices spend on loading when it goes on: since nothing fails here and
// starts are free, that is all of the ledger's lost and overhead time.
//
// Where jobs save when asked no work is ever lost, and what remains is loading. There
// the cheapest are only held to be no dearer: three draws of tenants and priorities gave
// 20, 24 and 14 % less, which is a fifth on the mean and not in each.
func TestVictimsOnVenus(t *testing.T) {
	if os.Getenv("MUSTER_LONG") != "1" {
		t.Skip("four runs of the trace; set MUSTER_LONG=1")
	}
	for _, saves := range []struct {
		name, restart string
		bound         float64 // the most that the cheapest may cost, of what the newest do
	}{
		{"every 30 minutes", "last-checkpoint", 0.8},
		{"when asked", "on-request", 1},
	} {
		t.Run(saves.name, func(t *testing.T) {
			cheapest, newest := evicted(t, "cheapest", saves.restart), evicted(t, "newest", saves.restart)
			if ratio := cheapest / newest; ratio > saves.bound {
				t.Errorf("the cheapest victims cost %.0f device-hours, the newest %.0f: %.2f of it, expected at most %.2f", cheapest, newest, ratio, saves.bound)
			} else {
				t.Logf("the cheapest victims cost %.2f of what the newest do", ratio)
			}
		})
	}
}

// evicted returns the device-hours that displacements cost.
func evicted(t *testing.T, chooser, restart string) (hours float64) {
	t.Helper()
	s := venus(t, "order: fifo\nplace: first-fit\nvictims: "+chooser+"\nrestart: "+restart+"\n")
	if os.Getenv("MUSTER_FULL") != "1" {
		s.Limit = 12_000
	}
	s.Saving.Every, s.Tenants = 30*unit.Minute, "venus"
	var tree queue.Tree
	s.Queues, tree = preempting(t)
	w := newOperator(&tree)
	s.Commit = w.commit
	o := simulateWhole(t, s)
	r := &o.Result
	hours = (r.LostDeviceSec + r.OverheadDeviceSec) / 3600
	var high, normal got
	for _, j := range o.Collector.View().Jobs {
		if w.high[plan.JobID(j.ID)] {
			high.add(&j)
		} else {
			normal.add(&j)
		}
	}
	t.Logf("%-8s evicted %.0f device-hours (%.0f of them lost) in %d runs on %d devices; utilisation %.4f, JCT %.0f s; high priority %s; normal %s",
		chooser, hours, r.LostDeviceSec/3600, w.displaced, w.devices, r.Utilization, r.AvgJCTSec, &high, &normal)
	t.Logf("%-8s %d times a job was seen to wait within its queue's guarantee, at most %v on one device and %v on more",
		chooser, w.claims, w.single, w.several)
	if w.displaced == 0 || r.Preemptions != w.displaced {
		t.Errorf("%d runs were displaced for a guarantee or a priority, %d preemptions are reported", w.displaced, r.Preemptions)
	}
	if high.jobs == 0 || high.waitSec > normal.waitSec {
		t.Errorf("jobs of high priority: %v; of none: %v", &high, &normal)
	}
	// A run is left alone until it has saved, and then gives way at once; for a gang many
	// runs may have to, some of which it displaced not long ago.
	soon := 2*lookEvery + max(s.Saving.Every, tree.Protect)
	if w.single > soon || w.several > soon+law.DefaultLimits().Window {
		t.Errorf("jobs waited %v on one device and %v on more within their queue's guarantee, expected at most %v and %v",
			w.single, w.several, soon, soon+law.DefaultLimits().Window)
	}
	return hours
}
