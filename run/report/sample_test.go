package report

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/musterdl/muster/model/unit"
)

// toy is a small cluster that runs gangs without preemption, only to have
// histories to show: order says which waiting job is tried first.
type toy struct {
	nodes, perNode int
	jobs           int
	seed           uint64
	order          func(a, b *JobRecord) int
}

func fifo(a, b *JobRecord) int { return int(a.ID - b.ID) }

func shortest(a, b *JobRecord) int {
	if a.Alone != b.Alone {
		return int(max(-1, min(1, a.Alone-b.Alone)))
	}
	return fifo(a, b)
}

func (y toy) lanes() []Lane {
	var out []Lane
	for n := range y.nodes {
		for d := range y.perNode {
			out = append(out, Lane{fmt.Sprintf("node%d", n), fmt.Sprintf("gpu%d", d)})
		}
	}
	return out
}

func (y toy) draw() []*JobRecord {
	rng := rand.New(rand.NewPCG(y.seed, 1))
	var jobs []*JobRecord
	at := unit.Time(0)
	for i := range y.jobs {
		gang := int32(1 << rng.IntN(3))
		length := unit.Seconds(120 + rng.ExpFloat64()*5400)
		jobs = append(jobs, &JobRecord{ID: int32(i), Name: fmt.Sprintf("train-%d", i), Tenant: []string{"vision", "speech"}[i%2],
			Submit: at, FirstStart: unit.Never, Gang: gang, Devices: unit.Milli(gang) * unit.Whole, Alone: length,
			FirstLoss: 4.5, LastLoss: float32(1 + rng.Float64())})
		at = at.Add(unit.Seconds(rng.ExpFloat64() * 700))
	}
	return jobs
}

// run plays the history into a collector and returns what it holds.
func (y toy) run(c *Collector) {
	pending, free := y.draw(), make([]unit.Time, y.nodes*y.perNode)
	var waiting, running []*JobRecord
	now := unit.Time(0)
	for len(pending)+len(waiting)+len(running) > 0 {
		for len(pending) > 0 && pending[0].Submit <= now {
			waiting, pending = append(waiting, pending[0]), pending[1:]
		}
		running = slices.DeleteFunc(running, func(j *JobRecord) bool {
			if j.End <= now {
				c.Job(*j)
			}
			return j.End <= now
		})
		slices.SortFunc(waiting, y.order)
		for len(waiting) > 0 && y.start(c, waiting[0], free, now) {
			running, waiting = append(running, waiting[0]), waiting[1:]
		}
		granted := unit.Milli(0)
		next := unit.Never
		for _, j := range running {
			granted, next = granted+j.Devices, min(next, j.End)
		}
		if len(pending) > 0 {
			next = min(next, pending[0].Submit)
		}
		c.Queue(now, len(waiting))
		c.Busy(now, granted, unit.Milli(len(free))*unit.Whole)
		now = next
	}
}

func (y toy) start(c *Collector, j *JobRecord, free []unit.Time, now unit.Time) bool {
	var got []int
	for d := range free {
		if free[d] <= now && len(got) < int(j.Gang) {
			got = append(got, d)
		}
	}
	if len(got) < int(j.Gang) {
		return false
	}
	const load = 90 * unit.Second
	j.FirstStart, j.Waited, j.Run = now, now.Sub(j.Submit), j.Alone+load
	j.End, j.Outcome = now.Add(j.Run), Finished
	for _, d := range got {
		free[d] = j.End
		c.Span(Span{Job: j.Name, Lane: int32(d), From: now, To: now.Add(load), Kind: SpanOverhead, Reason: "started: first in line and the devices are free"})
		c.Span(Span{Job: j.Name, Lane: int32(d), From: now.Add(load), To: j.End, Kind: SpanRun, Reason: "finished"})
	}
	return true
}

// sampleRuns are the same jobs under two orders.
func sampleRuns(jobs int) ([]Run, []Lane) {
	var runs []Run
	var lanes []Lane
	for _, s := range []struct {
		name  string
		order func(a, b *JobRecord) int
	}{{"fifo", fifo}, {"shortest first", shortest}} {
		y := toy{nodes: 4, perNode: 4, jobs: jobs, seed: 7, order: s.order}
		c := NewCollector(Limits{Spans: ChartSpans})
		y.run(c)
		lanes = y.lanes()
		r := c.Result(sampleKnown(s.name))
		runs = append(runs, Run{Row{Result: r}, c.View()})
	}
	runs[1].Ratio = &Interval{Point: runs[1].Result.AvgJCTSec / runs[0].Result.AvgJCTSec, Low: 0.41, High: 0.73, N: 10}
	return runs, lanes
}

func sampleKnown(strategy string) Result {
	return Result{
		Setting:    Setting{Strategy: strategy, Trace: "toy", Seed: 7, Load: 1, OfferedLoad: 0.93, MeanDurationSec: 5520},
		Completion: Completion{IsolatedSec: 5520, SquashedSRPTSec: 4100},
		Activity:   Activity{Commits: 240, Events: 480, DecisionHash: "9f2c61d0a7b3e845"},
		Ledger:     Ledger{DeviceSec: 36000, UsefulDeviceSec: 27000, OverheadDeviceSec: 900, LostDeviceSec: 0, IdleDeviceSec: 8100, Balanced: true},
		Effort:     Effort{WallSec: 0.012, CPUSec: 0.011, PeakRSSBytes: 23 << 20},
		Notes:      []string{"Durations are drawn from an exponential distribution, so there are fewer very long jobs than on a real cluster."},
	}
}
