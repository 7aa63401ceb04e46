package forecast

import "github.com/musterdl/muster/model/unit"

// Book is what the log of promises teaches about new ones. It follows from the
// entries, in their order, and from the waits of all jobs, promised or not.
type Book struct {
	starts, ends *Conformal
	marginal     *Marginal
	open         map[int32][]*Promise // by job, those it has not learned from
	begun        map[int32]bool       // whose start was learned
}

// NewBook returns an empty one.
func NewBook(c ConformalConfig) *Book {
	return &Book{starts: NewConformal(c), ends: NewConformal(c), marginal: NewMarginal(), open: map[int32][]*Promise{}, begun: map[int32]bool{}}
}

// Waited takes in how long a job waited that started.
func (b *Book) Waited(queue string, milli int64, waited unit.Duration) {
	b.marginal.Learn(queue, milli, waited)
}

// Take takes in the next entry of the log. Promises of another version, or that rest on
// past waits, teach nothing about sampled futures.
func (b *Book) Take(e Entry) {
	if p := e.Promise; p != nil && p.Version == PromiseVersion && p.Basis == FromFutures {
		b.open[p.Job] = append(b.open[p.Job], p)
	}
	if e.Outcome == nil {
		return
	}
	o := e.Outcome
	for _, p := range b.open[o.Job] {
		switch {
		case o.What == Started && !p.Running && !b.begun[o.Job]:
			b.starts.Learn(p.Queue, p.Made, p.RawStart, p.Start, o.At)
		case o.What == Ended:
			b.ends.Learn(p.Queue, p.Made, p.RawEnd, p.End, o.At)
		}
	}
	if o.What == Started {
		b.begun[o.Job] = true
		return
	}
	delete(b.open, o.Job)
	delete(b.begun, o.Job)
}

// Asked is a job that a promise is made about.
type Asked struct {
	Job       int32
	Name      string
	Queue     string
	Milli     int64
	Submitted unit.Time
	Running   bool
}

// Promise makes one from what happened in futures that were looked at until an
// instant; where there are none, from the waits of others.
func (b *Book) Promise(a Asked, now unit.Time, s Spread, looked unit.Time) Promise {
	p := Promise{Version: PromiseVersion, Job: a.Job, Name: a.Name, Queue: a.Queue, Milli: a.Milli, Submitted: a.Submitted, Made: now,
		Running: a.Running, Basis: FromFutures, Samples: len(s.Starts), Looked: looked, RawStart: s.Start(), RawEnd: s.End(),
		Baseline: b.marginal.Start(a.Queue, a.Milli, a.Submitted, now.Sub(a.Submitted))}
	if p.Samples == 0 {
		p.Basis, p.Start, p.End = FromPast, p.Baseline, Unknown()
		return p
	}
	p.Start, p.End = p.RawStart, b.ends.Correct(a.Queue, now, p.RawEnd)
	if !a.Running {
		p.Start = b.starts.Correct(a.Queue, now, p.RawStart)
	}
	return p
}
