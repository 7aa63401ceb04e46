package forecast

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/musterdl/muster/model/unit"
)

// Verdict is how a promise turned out.
type Verdict uint8

// The verdicts. What is pending or censored is neither a hit nor a miss.
const (
	Pending  Verdict = iota // nothing happened yet, and it is not late
	Hit                     // it happened inside the range
	Early                   // it happened before
	Late                    // it happened after, or has not happened although the range is over
	Censored                // the job was withdrawn before one could tell
)

// Tally counts how promises turned out.
type Tally struct {
	Promises int `json:"promises"`
	Hits     int `json:"hits"`
	Early    int `json:"early"`
	Late     int `json:"late"`
	Censored int `json:"censored"`
	Pending  int `json:"pending"`
}

// Judged is the number of promises of which one can tell.
func (t Tally) Judged() int { return t.Hits + t.Early + t.Late }

// HitRate is the part of the judged promises that held, between 0 and 1; NaN
// without any.
func (t Tally) HitRate() float64 { return float64(t.Hits) / float64(t.Judged()) }

func (t *Tally) add(v Verdict) {
	t.Promises++
	switch v {
	case Hit:
		t.Hits++
	case Early:
		t.Early++
	case Late:
		t.Late++
	case Censored:
		t.Censored++
	case Pending:
		t.Pending++
	}
}

// Score is how good the promises of one queue were.
type Score struct {
	Queue string `json:"queue"`
	Start Tally  `json:"start"`
	End   Tally  `json:"end"`
	// What follows speaks of the jobs that started after their promise was made.
	Started int `json:"started"`
	// PinballSec is the mean pinball loss of the three levels of the start, in
	// seconds; BaselinePinballSec that of what past waits alone would have said.
	PinballSec         float64 `json:"pinball_s"`
	BaselinePinballSec float64 `json:"baseline_pinball_s"`
	// MedianErrorSec is the median distance of the start from the promised median, and
	// MedianError the median of that distance over the wait since submission.
	MedianErrorSec float64 `json:"median_error_s"`
	MedianError    float64 `json:"median_error"`
	// MedianWidthSec is the median width of the ranges, where they have an end.
	MedianWidthSec float64 `json:"median_width_s"`
}

// Judge says how a promised range turned out: happened is Never while it has not, and
// withdrawn is when the job was taken away, Never otherwise.
func Judge(r Range, happened, withdrawn, now unit.Time) Verdict {
	switch {
	case happened != unit.Never && happened < r.Low:
		return Early
	case happened != unit.Never && happened > r.High:
		return Late
	case happened != unit.Never:
		return Hit
	case min(now, withdrawn) > r.High:
		return Late
	case withdrawn != unit.Never:
		return Censored
	}
	return Pending
}

// Pinball is the mean loss of a range's three levels in seconds: below a level what
// is missed by counts as much as the level, above as much as its complement, so
// that nothing but the true quantiles is best. What is Never counts as the end of
// the scale that corrections are made on.
func Pinball(r Range, made, happened unit.Time) float64 {
	sum := 0.
	y := min(until(made, happened), most).Seconds()
	for _, l := range [...]struct {
		at    unit.Time
		level float64
	}{{r.Low, LowLevel}, {r.Median, MedianLevel}, {r.High, HighLevel}} {
		off := y - min(until(made, l.at), most).Seconds()
		sum += max(l.level*off, (l.level-1)*off)
	}
	return sum / 3
}

// fate is what the log knows of a job.
type fate struct{ started, ended, withdrawn unit.Time }

// Scores folds a log into the scores of its queues, by name, of the present version
// of promises. An entry with an empty name in front is all queues together.
func Scores(log []Entry, now unit.Time) []Score {
	fates := map[int32]fate{}
	for _, e := range log {
		if e.Outcome != nil {
			keepFate(fates, *e.Outcome)
		}
	}
	queues := map[string]*gathered{"": {}}
	for _, e := range log {
		p := e.Promise
		if p == nil || p.Version != PromiseVersion {
			continue
		}
		f, ok := fates[p.Job]
		if !ok {
			f = fate{unit.Never, unit.Never, unit.Never}
		}
		if queues[p.Queue] == nil {
			queues[p.Queue] = &gathered{}
		}
		queues[""].add(p, f, now)
		if p.Queue != "" {
			queues[p.Queue].add(p, f, now)
		}
	}
	var all []Score
	for _, name := range slices.Sorted(maps.Keys(queues)) {
		all = append(all, queues[name].score(name))
	}
	return all
}

// keepFate keeps the first start, end and withdrawal of a job.
func keepFate(fates map[int32]fate, o Outcome) {
	f, ok := fates[o.Job]
	if !ok {
		f = fate{unit.Never, unit.Never, unit.Never}
	}
	switch o.What {
	case Started:
		f.started = min(f.started, o.At)
	case Ended:
		f.ended = min(f.ended, o.At)
	case Withdrawn:
		f.withdrawn = min(f.withdrawn, o.At)
	}
	fates[o.Job] = f
}

// gathered is what is counted of a queue.
type gathered struct {
	start, end        Tally
	pinball, baseline float64
	off, part, width  []float64
}

func (g *gathered) add(p *Promise, f fate, now unit.Time) {
	g.end.add(Judge(p.End, f.ended, f.withdrawn, now))
	if p.Running {
		return // of a job that runs only the end is promised
	}
	g.start.add(Judge(p.Start, f.started, f.withdrawn, now))
	if p.Start.High != unit.Never {
		g.width = append(g.width, p.Start.High.Sub(p.Start.Low).Seconds())
	}
	if f.started == unit.Never {
		return
	}
	g.pinball += Pinball(p.Start, p.Made, f.started)
	g.baseline += Pinball(p.Baseline, p.Made, f.started)
	off := math.Abs(min(until(p.Made, p.Start.Median), most).Seconds() - f.started.Sub(p.Made).Seconds())
	g.off = append(g.off, off)
	if wait := f.started.Sub(p.Submitted).Seconds(); wait > 0 {
		g.part = append(g.part, off/wait)
	}
}

func (g *gathered) score(name string) Score {
	n := len(g.off)
	s := Score{Queue: name, Start: g.start, End: g.end, Started: n,
		MedianErrorSec: middle(g.off), MedianError: middle(g.part), MedianWidthSec: middle(g.width)}
	if n > 0 {
		s.PinballSec, s.BaselinePinballSec = g.pinball/float64(n), g.baseline/float64(n)
	}
	return s
}

// middle is the median; 0 of nothing.
func middle(of []float64) float64 {
	if len(of) == 0 {
		return 0
	}
	slices.SortFunc(of, cmp.Compare)
	return (of[(len(of)-1)/2] + of[len(of)/2]) / 2
}
