package reproduce

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/experiment/trace"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/report"
)

// smallMix is a small cluster and the jobs that come to it.
type smallMix struct {
	cluster string
	jobs    []workload.Job
	truths  []workload.Truth
	next    int // that is read
}

func (m *smallMix) add(name, user string, atSec, takesSec float64, gang int32) {
	m.jobs = append(m.jobs, workload.Job{Name: name, Tenant: user, User: user, Submit: unit.Time(unit.Seconds(atSec)), Resources: workload.Resources{Gang: gang, Devices: 1, Share: unit.Whole}})
	m.truths = append(m.truths, workload.Truth{Duration: unit.Seconds(takesSec)})
}

func (m *smallMix) Next() (workload.Job, workload.Truth, error) {
	if m.next == len(m.jobs) {
		return workload.Job{}, workload.Truth{}, io.EOF
	}
	m.next++
	return m.jobs[m.next-1], m.truths[m.next-1], nil
}

func (*smallMix) Close() error { return nil }

// drawMix draws a cluster of 4 to 32 devices and 4 to 60 jobs of a few kinds, each of one user and
// name and of like or unlike lengths, gangs of the whole cluster among them. Nobody declares a time.
func drawMix(seed uint64) *smallMix {
	dice := rand.New(rand.NewPCG(seed, 24))
	between := func(least, most int) int { return least + dice.IntN(most-least+1) }
	shape := [...][2]int{{1, 4}, {1, 8}, {2, 2}, {2, 4}, {2, 8}, {4, 4}, {4, 8}}[dice.IntN(7)]
	devices := shape[0] * shape[1]
	m := &smallMix{cluster: fmt.Sprintf("gpus:%dx%d", shape[0], shape[1])}
	type kind struct {
		gang                 int32
		mean, spread, weight float64
		user, name           string
	}
	var kinds []kind
	total := 0.
	for i := range between(1, 5) {
		gangs := [...]int{1, 1, 2, 4, max(1, devices/2), devices}
		k := kind{gang: int32(min(devices, gangs[dice.IntN(len(gangs))])), mean: 120 * math.Pow(240, dice.Float64()),
			spread: [...]float64{0, .1, .5, 1.2}[dice.IntN(4)], weight: .1 + dice.Float64(), user: fmt.Sprint("user", dice.IntN(3)), name: fmt.Sprintf("kind%c", 'a'+i)}
		kinds, total = append(kinds, k), total+k.weight
	}
	n, load, even := between(4, 60), [...]float64{.6, .9, 1.1, 1.5, 3}[dice.IntN(5)], dice.IntN(2) == 0
	at := 0.
	for i := range n {
		pick, k := dice.Float64()*total, kinds[0]
		for _, k = range kinds {
			if pick -= k.weight; pick < 0 {
				break
			}
		}
		takes := max(10, k.mean*math.Exp(k.spread*dice.NormFloat64()-k.spread*k.spread/2))
		m.add(fmt.Sprintf("%s-%d", k.name, i), k.user, at, takes, k.gang)
		wait := 1.
		if !even {
			wait = dice.ExpFloat64()
		}
		at += wait * takes * float64(k.gang) / float64(devices) / load
	}
	return m
}

// play simulates a mix under a strategy, where a part of the jobs never saves.
func (m *smallMix) play(t testing.TB, strategy string, never float64, commit func(v plan.View, c *plan.Commit)) report.Result {
	s := Defaults()
	s.Cluster, s.Strategy, s.NoBounds, s.Limits, s.Saving.Never, s.Commit = m.cluster, strategy, true, report.Limits{Points: 2}, never, commit
	s.Jobs = func(uint64) (trace.Reader, error) {
		again := *m
		return &again, nil
	}
	o, err := Simulate(s)
	if err != nil {
		t.Error(err)
		return report.Result{}
	}
	return o.Result
}

// TestSmallClusters: on small clusters, where a few jobs decide, the house order is no worse in the middle than the
// better of FIFO and LAS, which nobody knows beforehand, and not much worse at the ends; whoever is stopped
// is stopped for an arrival or an end.
func TestSmallClusters(t *testing.T) {
	mixes := 200
	if os.Getenv("MUSTER_LONG") != "" {
		mixes = 2000
	}
	for name, never := range map[string]float64{"all save": 0, "one in three never saves": 1. / 3} {
		t.Run(name, func(t *testing.T) {
			over, stops := make([]float64, mixes), make([]float64, mixes)
			next := make(chan int)
			var workers sync.WaitGroup
			for range runtime.GOMAXPROCS(0) {
				workers.Go(func() {
					for i := range next {
						m := drawMix(uint64(i))
						best := min(m.play(t, "fifo", never, nil).AvgJCTSec, m.play(t, "las", never, nil).AvgJCTSec)
						r := m.play(t, catalogue.House, never, nil)
						over[i], stops[i] = r.AvgJCTSec/best, float64(r.Preemptions)/float64(2*2*len(m.jobs))
					}
				})
			}
			for i := range mixes {
				next <- i
			}
			close(next)
			workers.Wait()
			worst := slices.Index(over, slices.Max(over))
			slices.Sort(over)
			at := func(part float64) float64 { return over[int(part*float64(mixes-1))] }
			t.Logf("mean JCT over the better of fifo and las: median %.3f, p95 %.3f, worst %.3f (mix %d); preemptions at most %.2f of twice the arrivals and ends", at(.5), at(.95), at(1), worst, slices.Max(stops))
			// Wished for are 1.00, 1.12 and 1.3: who does not know a kind of job yet must try it.
			if at(.5) > 1.0005 || at(.95) > 1.25 || at(1) > 2.1 || slices.Max(stops) > 1 {
				t.Error("that is more than before")
			}
		})
	}
}

// TestGangAmongSmall: one gang of the whole machine and a stream of small jobs that are alike, of which nothing is
// declared. The house order learns from the first few, and stops hardly anybody.
func TestGangAmongSmall(t *testing.T) {
	gang16 := &smallMix{cluster: "gpus:2x8"}
	gang16.add("gang", "", 0, 3600, 16)
	for i := range 50 {
		gang16.add(fmt.Sprint("small-", i), "", float64(i)*600, 2400, 4)
	}
	gang4 := &smallMix{cluster: "gpus:1x4"}
	gang4.add("gang", "", 0, 7200, 4)
	for i := range 60 {
		gang4.add(fmt.Sprint("small-", i), "", float64(i)*300, 1200, 1)
	}
	for name, m := range map[string]*smallMix{"of 16, small ones of 4": gang16, "of 4, small ones of 1": gang4} {
		for _, strategy := range []string{"muster", "muster+easy"} {
			t.Run(name+"/"+strategy, func(t *testing.T) {
				starts := 0
				r := m.play(t, strategy, 0, func(_ plan.View, c *plan.Commit) {
					for _, x := range c.Changes {
						if x.Verb == plan.Start && x.Job == 0 {
							starts++
						}
					}
				})
				fifo := m.play(t, "fifo", 0, nil)
				t.Logf("mean JCT %.0f s, of fifo %.0f s; %d preemptions, the gang is started %d times", r.AvgJCTSec, fifo.AvgJCTSec, r.Preemptions, starts)
				if r.AvgJCTSec > fifo.AvgJCTSec || r.Preemptions > 10 || starts > 2 {
					t.Error("that is worse than fifo, or thrashes")
				}
			})
		}
	}
}
