package fluid

import (
	"math"

	"github.com/musterdl/muster/mechanism/maxmin"
)

// Transfer is one flow of a coflow: megabytes from one port of the switch to
// another.
type Transfer struct {
	From, To int32
	MB       float64
}

// Chain is a job on the network: coflows that follow each other, each beginning when
// the one before has ended. Coflows may share their transfers.
type Chain struct {
	ArriveSec float64
	Coflows   [][]Transfer
}

// Live is a coflow under way; its flows are Flows[First:End] of the moment.
type Live struct {
	Job, Coflow int
	BeganSec    float64
	SentMB      float64
	BeforeMB    float64 // what the job's earlier coflows have sent
	First, End  int
}

// Moment is what a Sharer decides about: what is under way between two events, by
// job. Link p is the sending side of port p, Ports+p the receiving side.
type Moment struct {
	NowSec     float64
	Capacities []float64 // MB per second, by link
	Live       []Live
	Flows      []maxmin.Flow
}

// Sharer sets the rates of the flows of a moment, in MB per second; they hold until
// the next event, forSec at the longest.
type Sharer interface {
	Share(m *Moment, rates []float64) (forSec float64)
}

// Switch is one big switch without a bottleneck inside.
type Switch struct {
	Ports    int
	MBPerSec float64 // of each port and direction
}

// sending is a coflow under way with what its transfers still have to send.
type sending struct {
	Live
	left []Transfer
}

// Run lets the jobs send under a sharer and returns when each of them ended.
func (s Switch) Run(jobs []Chain, sharer Sharer) (endSec []float64) {
	r := running{jobs: jobs, end: make([]float64, len(jobs)), began: make([]bool, len(jobs))}
	r.moment.Capacities = make([]float64, 2*s.Ports)
	for i := range r.moment.Capacities {
		r.moment.Capacities[i] = s.MBPerSec
	}
	for next := r.arrive(); len(r.live) > 0 || !math.IsInf(next, 1); next = r.arrive() {
		if len(r.live) == 0 {
			r.moment.NowSec = next
			continue
		}
		rates := r.describe(s.Ports)
		r.advance(min(next-r.moment.NowSec, sharer.Share(&r.moment, rates)), rates)
	}
	return r.end
}

// running is the state of the event loop.
type running struct {
	jobs   []Chain
	began  []bool
	end    []float64
	live   []sending // by job
	moment Moment
	uses   []maxmin.Use
	rates  []float64
}

// arrive begins the jobs that are due and returns when the next one will be.
func (r *running) arrive() (nextSec float64) {
	nextSec = math.Inf(1)
	for i := range r.jobs {
		switch {
		case r.began[i]:
		case r.jobs[i].ArriveSec <= r.moment.NowSec:
			r.began[i] = true
			r.begin(i, 0, 0)
		default:
			nextSec = min(nextSec, r.jobs[i].ArriveSec)
		}
	}
	return nextSec
}

// begin sends a job's coflow, in the place of jobs in order; after the last coflow
// the job has ended.
func (r *running) begin(job, coflow int, beforeMB float64) {
	for ; coflow < len(r.jobs[job].Coflows); coflow++ {
		var left []Transfer
		for _, t := range r.jobs[job].Coflows[coflow] {
			if t.MB > 0 {
				left = append(left, t)
			}
		}
		if len(left) == 0 {
			continue
		}
		at := len(r.live)
		for at > 0 && r.live[at-1].Job > job {
			at--
		}
		r.live = append(r.live, sending{})
		copy(r.live[at+1:], r.live[at:])
		r.live[at] = sending{Live: Live{Job: job, Coflow: coflow, BeganSec: r.moment.NowSec, BeforeMB: beforeMB}, left: left}
		return
	}
	r.end[job] = r.moment.NowSec
}

// describe writes down who is live and which flows they have, and returns room for the rates.
func (r *running) describe(ports int) []float64 {
	m := &r.moment
	m.Live, m.Flows, r.uses, r.rates = m.Live[:0], m.Flows[:0], r.uses[:0], r.rates[:0]
	for i := range r.live {
		x := &r.live[i]
		x.First = len(m.Flows)
		for _, t := range x.left {
			r.uses = append(r.uses, maxmin.Use{Link: t.From, Per: 1}, maxmin.Use{Link: int32(ports) + t.To, Per: 1})
			m.Flows = append(m.Flows, maxmin.Flow{})
			r.rates = append(r.rates, 0)
		}
		x.End = len(m.Flows)
		m.Live = append(m.Live, x.Live)
	}
	for i := range m.Flows { // now that uses no longer moves
		m.Flows[i].Uses = r.uses[2*i : 2*i+2]
	}
	return r.rates
}

// done is how little of a megabyte counts as sent: a byte in a thousand.
const done = 1e-9

// advance sends until the first transfer ends, for so long at most.
func (r *running) advance(step float64, rates []float64) {
	i := 0
	for l := range r.live {
		for _, t := range r.live[l].left {
			if rates[i] > 0 {
				step = min(step, t.MB/rates[i])
			}
			i++
		}
	}
	if math.IsInf(step, 1) {
		panic("fluid: nothing moves and nothing will happen")
	}
	r.moment.NowSec += step
	i = 0
	var ended []Live
	kept := r.live[:0]
	for l := range r.live {
		x, n := r.live[l], 0
		for _, t := range x.left {
			moved := min(rates[i]*step, t.MB)
			x.SentMB += moved
			t.MB -= moved
			if i++; t.MB > done {
				x.left[n] = t
				n++
			}
		}
		if x.left = x.left[:n]; n > 0 {
			kept = append(kept, x)
		} else {
			ended = append(ended, x.Live)
		}
	}
	r.live = kept
	for _, x := range ended {
		r.begin(x.Job, x.Coflow+1, x.BeforeMB+x.SentMB)
	}
}
