package report

import (
	"fmt"
	"slices"

	"github.com/musterdl/muster/model/unit"
)

// Limits bound what a Collector keeps for its views. The metrics of the Result are
// exact whatever the limits.
type Limits struct {
	Points int // of each series, at least 2; 0 is 2,000
	Spans  int // the longest, for a Gantt chart; 0 keeps none
	Jobs   int // the first to end, for the table of jobs; 0 is 5,000
}

// ChartSpans are as many bars as a Gantt chart can show.
const ChartSpans = 5000

// cdfPoints bounds the points of a JCT distribution in a view.
const cdfPoints = 500

// Collector is fed while a run goes on, cheaply: sixteen bytes per finished job,
// and views of bounded size. Instants may be those of a trace or of the Unix
// epoch; they never go back within one series.
type Collector struct {
	limits Limits

	counts      [len(outcomeNames)]int64
	jcts        []unit.Duration // of finished jobs
	jct         mean
	wait        mean
	slowdown    mean
	slowdowns   []float64 // of finished jobs of which it is known
	gangWait    mean      // of finished gangs of LargeGang devices and more
	gangLongest unit.Duration
	preemptions int64
	restarts    int64
	firstSubmit unit.Time
	lastEnd     unit.Time
	latest      unit.Time // the last instant that anything was said about

	queue             series
	share             series // granted over capacity
	granted, capacity level

	jobs  []JobRecord
	spans longest
}

// mean is a running mean; over nothing it is 0.
type mean struct {
	sum float64
	n   int64
}

func (m *mean) add(x float64) { m.sum, m.n = m.sum+x, m.n+1 }

func (m *mean) value() float64 {
	if m.n == 0 {
		return 0
	}
	return m.sum / float64(m.n)
}

// NewCollector returns an empty collector.
func NewCollector(limits Limits) *Collector {
	for _, l := range []struct {
		limit    *int
		standard int
	}{{&limits.Points, 2000}, {&limits.Jobs, 5000}} {
		if *l.limit <= 0 {
			*l.limit = l.standard
		}
	}
	c := &Collector{limits: limits, firstSubmit: unit.Never}
	c.queue.limit, c.share.limit = max(2, limits.Points), max(2, limits.Points)
	c.spans.limit = limits.Spans
	return c
}

// Job adds a job: once, when it ended or when the history stops.
func (c *Collector) Job(j JobRecord) {
	if int(j.Outcome) >= len(c.counts) {
		panic(fmt.Sprintf("report: job %s has no such outcome: %v", j.Name, j.Outcome))
	}
	c.counts[j.Outcome]++
	c.preemptions += int64(j.Preemptions)
	c.restarts += int64(j.Restarts)
	c.firstSubmit = min(c.firstSubmit, j.Submit)
	c.latest = max(c.latest, j.End)
	if j.Outcome != Unfinished && j.Outcome != Refused {
		c.lastEnd = max(c.lastEnd, j.End)
	}
	if j.Outcome == Finished {
		c.jcts = append(c.jcts, j.JCT())
		c.jct.add(j.JCT().Seconds())
		c.wait.add(j.Waited.Seconds())
		if j.Alone > 0 {
			slowdown := j.JCT().Seconds() / j.Alone.Seconds()
			c.slowdown.add(slowdown)
			c.slowdowns = append(c.slowdowns, slowdown)
		}
		if j.Devices >= LargeGang {
			c.gangWait.add(j.Waited.Seconds())
			c.gangLongest = max(c.gangLongest, j.Waited)
		}
	}
	if len(c.jobs) < c.limits.Jobs {
		c.jobs = append(c.jobs, j)
	}
}

// Queue says that from this instant on so many jobs wait for devices.
func (c *Collector) Queue(at unit.Time, waiting int) {
	c.latest = max(c.latest, at)
	c.queue.observe(at, float64(waiting))
}

// Busy says how much is granted to jobs from this instant on, and out of how much.
func (c *Collector) Busy(at unit.Time, granted, capacity unit.Milli) {
	c.latest = max(c.latest, at)
	c.granted.observe(at, float64(granted)/float64(unit.Whole))
	c.capacity.observe(at, float64(capacity)/float64(unit.Whole))
	part := 0.0
	if capacity > 0 {
		part = float64(granted) / float64(capacity)
	}
	c.share.observe(at, part)
}

// Draws reports whether a Gantt chart is wanted; else nobody need make up its bars.
func (c *Collector) Draws() bool { return c.limits.Spans > 0 }

// Span adds a bar of the Gantt chart. Of more bars than the limit the longest are kept.
func (c *Collector) Span(s Span) { c.spans.add(s) }

// Result completes what the caller knows (the setting, the bounds, the ledger,
// the effort) with what the collector was told up to the last instant it was
// told anything about.
func (c *Collector) Result(known Result) Result {
	c.close()
	r := known
	r.Jobs = 0
	for _, n := range c.counts {
		r.Jobs += n
	}
	r.Finished, r.Failed = c.counts[Finished], c.counts[Failed]+c.counts[TimeLimit]
	r.Cancelled, r.Refused, r.Censored = c.counts[Cancelled], c.counts[Refused], c.counts[Unfinished]
	r.AvgJCTSec, r.AvgWaitSec, r.AvgSlowdown = c.jct.value(), c.wait.value(), c.slowdown.value()
	r.P50JCTSec = Quantile(c.jcts, 500).Seconds()
	r.P95JCTSec = Quantile(c.jcts, 950).Seconds()
	r.P99JCTSec = Quantile(c.jcts, 990).Seconds()
	r.P99Slowdown = Quantile(c.slowdowns, 990)
	r.Gangs = Gangs{c.gangWait.n, c.gangWait.value(), c.gangLongest.Seconds()}
	if c.lastEnd > c.firstSubmit {
		r.MakespanSec = c.lastEnd.Sub(c.firstSubmit).Seconds()
	}
	// All bound the average from below, so the largest one says most.
	r.JCTBoundSec = max(r.JCTBoundSec, r.IsolatedSec, r.SquashedSRPTSec, r.QueueingSec)
	r.LongestQueue = int64(c.queue.peak)
	if c.capacity.area > 0 {
		r.Utilization = c.granted.area / c.capacity.area
	}
	r.Preemptions, r.Restarts = c.preemptions, c.restarts
	return r
}

// close extends the series to the last known instant and sorts what quantiles are taken of.
func (c *Collector) close() {
	slices.Sort(c.jcts)
	slices.Sort(c.slowdowns)
	if c.queue.begun {
		c.queue.observe(c.latest, c.queue.value)
	}
	if c.share.begun {
		c.share.observe(c.latest, c.share.value)
		c.granted.observe(c.latest, c.granted.value)
		c.capacity.observe(c.latest, c.capacity.value)
	}
}

// Quantile is the nearest-rank quantile of sorted values: the least of them that
// at least permille thousandths of them do not exceed. Of no values it is 0.
func Quantile[T unit.Duration | float64](sorted []T, permille int) T {
	if len(sorted) == 0 {
		return 0
	}
	rank := (len(sorted)*permille + 999) / 1000
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// View is what the pictures of a run are drawn from.
type View struct {
	// CDF are quantiles of the JCT of finished jobs, ascending.
	CDF []CDFPoint
	// Queue is the number of waiting jobs, Share the granted part of the devices.
	Queue, Share []Point
	// Spans are the longest bars of the Gantt chart, in the order in which they were told;
	// LeftOut are the shorter ones.
	Spans   []Span
	LeftOut LeftOut
	// Jobs are the first jobs that ended; the count is of the others.
	Jobs        []JobRecord
	JobsLeftOut int64
}

// CDFPoint says that this part of the jobs, 0..1, took at most so many seconds.
type CDFPoint struct {
	Sec  float64
	Part float64
}

// View returns what was collected so far, downsampled.
func (c *Collector) View() View {
	c.close()
	v := View{Queue: c.queue.points(), Share: c.share.points(), Jobs: slices.Clone(c.jobs)}
	v.Spans, v.LeftOut = c.spans.view()
	for _, n := range c.counts {
		v.JobsLeftOut += n
	}
	v.JobsLeftOut -= int64(len(c.jobs))
	n := len(c.jcts)
	for i := range min(n, cdfPoints) {
		rank := i + 1
		if n > cdfPoints {
			rank = 1 + i*(n-1)/(cdfPoints-1)
		}
		v.CDF = append(v.CDF, CDFPoint{c.jcts[rank-1].Seconds(), float64(rank) / float64(n)})
	}
	return v
}
