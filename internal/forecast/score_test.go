package forecast_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/musterdl/muster/internal/forecast"
	"github.com/musterdl/muster/model/unit"
)

// TestJudge is the honest counting, case by case.
func TestJudge(t *testing.T) {
	const never = unit.Never
	r := forecast.Range{Low: 10, Median: 20, High: 30}
	for _, c := range []struct {
		about                    string
		happened, withdrawn, now unit.Time
		want                     forecast.Verdict
	}{
		{"inside", 20, never, 100, forecast.Hit},
		{"on the low end", 10, never, 100, forecast.Hit},
		{"on the high end", 30, never, 100, forecast.Hit},
		{"before", 9, never, 100, forecast.Early},
		{"after", 31, never, 100, forecast.Late},
		{"not yet", never, never, 25, forecast.Pending},
		{"not yet at the very end", never, never, 30, forecast.Pending},
		{"overdue", never, never, 31, forecast.Late},
		{"withdrawn before one could tell", never, 25, 100, forecast.Censored},
		{"withdrawn when overdue", never, 31, 100, forecast.Late},
		{"withdrawn after it started", 20, 40, 100, forecast.Hit},
	} {
		if got := forecast.Judge(r, c.happened, c.withdrawn, c.now); got != c.want {
			t.Errorf("%s: verdict %d, expected %d", c.about, got, c.want)
		}
	}
}

// TestPinball: the true quantiles lose least.
func TestPinball(t *testing.T) {
	loss := func(r forecast.Range) (sum float64) {
		for y := range unit.Time(1000) {
			sum += forecast.Pinball(r, 0, (y+1)*unit.Time(s))
		}
		return sum
	}
	best := loss(forecast.Range{Low: 100 * unit.Time(s), Median: 500 * unit.Time(s), High: 900 * unit.Time(s)})
	for _, off := range []forecast.Range{{Low: 200, Median: 500, High: 900}, {Low: 100, Median: 400, High: 900}, {Low: 100, Median: 500, High: 960}, {Low: 10, Median: 500, High: 900}} {
		r := forecast.Range{Low: off.Low * unit.Time(s), Median: off.Median * unit.Time(s), High: off.High * unit.Time(s)}
		if got := loss(r); got <= best {
			t.Errorf("%v loses %.0f: expected more than the true quantiles' %.0f", off, got, best)
		}
	}
}

// TestScores adds up a log by hand.
func TestScores(t *testing.T) {
	at := func(x float64) unit.Time { return unit.Time(unit.Seconds(x)) }
	promise := func(job int32, queue string) forecast.Entry {
		r := forecast.Range{Low: at(10), Median: at(20), High: at(30)}
		return forecast.Entry{Promise: &forecast.Promise{Version: forecast.PromiseVersion, Job: job, Queue: queue, Start: r,
			End: forecast.Range{Low: at(40), Median: at(50), High: at(60)}, Baseline: forecast.Range{Low: at(0), Median: at(40), High: at(80)}}}
	}
	outcome := func(job int32, what forecast.What, x float64) forecast.Entry {
		return forecast.Entry{Outcome: &forecast.Outcome{Job: job, What: what, At: at(x)}}
	}
	old := promise(9, "a")
	old.Promise.Version--
	running := promise(5, "b")
	running.Promise.Running = true
	log := []forecast.Entry{promise(1, "a"), promise(2, "a"), promise(3, "a"), promise(4, "b"), running, old,
		outcome(1, forecast.Started, 25), outcome(1, forecast.Ended, 70), outcome(2, forecast.Withdrawn, 15), outcome(4, forecast.Started, 40),
		outcome(5, forecast.Ended, 55)}
	scores := forecast.Scores(log, at(28))
	if len(scores) != 3 || scores[0].Queue != "" || scores[1].Queue != "a" || scores[2].Queue != "b" {
		t.Fatalf("got %+v", scores)
	}
	if want := (forecast.Tally{Promises: 3, Hits: 1, Censored: 1, Pending: 1}); scores[1].Start != want {
		t.Errorf("starts of a: %+v, expected %+v", scores[1].Start, want)
	}
	if want := (forecast.Tally{Promises: 3, Late: 1, Censored: 1, Pending: 1}); scores[1].End != want {
		t.Errorf("ends of a: %+v, expected %+v", scores[1].End, want)
	}
	if want := (forecast.Tally{Promises: 1, Late: 1}); scores[2].Start != want {
		t.Errorf("starts of b: %+v, expected %+v", scores[2].Start, want)
	}
	if want := (forecast.Tally{Promises: 2, Hits: 1, Pending: 1}); scores[2].End != want {
		t.Errorf("ends of b: %+v, expected %+v", scores[2].End, want)
	}
	// Job 1 started at 25: (0.1*15 + 0.5*5 + 0.1*5)/3, and of the past (0.1*25 + 0.5*15 + 0.1*55)/3.
	a := scores[1]
	if math.Abs(a.PinballSec-1.5) > 1e-9 || math.Abs(a.BaselinePinballSec-15.5/3) > 1e-9 || a.MedianErrorSec != 5 || a.MedianError != 0.2 || a.MedianWidthSec != 20 {
		t.Errorf("scores of a: %+v", a)
	}
	if rate := scores[0].Start.HitRate(); rate != 0.5 {
		t.Errorf("hit rate %v, expected 0.5 of two judged", rate)
	}
}

// TestConformal: ranges that are a tenth as wide as they should be, too early, and of
// waits that double half-way, hold eight times in ten once they are corrected; and
// each side is missed as often as the other.
func TestConformal(t *testing.T) {
	c := forecast.NewConformal(forecast.DefaultConformal())
	chance := rand.New(rand.NewPCG(3, 3))
	var tally struct{ n, early, late int }
	for i := range 4000 {
		made := unit.Time(i) * unit.Time(unit.Hour)
		mean := 7.
		if i >= 2000 {
			mean += math.Ln2
		}
		at := func(z float64) unit.Time { return made.Add(unit.Seconds(math.Exp(z))) }
		raw := forecast.Range{Low: at(6.4), Median: at(6.5), High: at(6.6)}
		given := c.Correct("q", made, raw)
		happened := at(mean + chance.NormFloat64())
		if i > 200 {
			tally.n++
			if happened < given.Low {
				tally.early++
			}
			if happened > given.High {
				tally.late++
			}
		}
		if given.Low > given.Median || given.Median > given.High || given.Low < made {
			t.Fatalf("range %v made at %d is out of order", given, made)
		}
		c.Learn("q", made, raw, given, happened)
	}
	for side, misses := range map[string]int{"early": tally.early, "late": tally.late} {
		if part := float64(misses) / float64(tally.n); part < 0.08 || part > 0.12 {
			t.Errorf("%.3f are too %s: expected about 0.1", part, side)
		}
	}
	if r := (forecast.Range{Low: 1, Median: 2, High: 3}); forecast.NewConformal(forecast.DefaultConformal()).Correct("q", 0, r) != r {
		t.Error("a range was corrected by nothing")
	}
}

// TestMarginal: the quantiles of the waits that were longer, of the finest group.
func TestMarginal(t *testing.T) {
	m := forecast.NewMarginal()
	if r := m.Start("q", 1000, 7, 0); r != forecast.Unknown() && r.High != unit.Never {
		t.Errorf("range %v of nothing", r)
	}
	for i := range unit.Duration(99) {
		m.Learn("q", 1000, (i+1)*s)
		m.Learn("other", 1000, unit.Hour)
	}
	if got, want := m.Start("q", 1000, unit.Time(s), 0), (forecast.Range{Low: unit.Time(11 * s), Median: unit.Time(51 * s), High: unit.Time(91 * s)}); got != want {
		t.Errorf("got %v, expected %v", got, want)
	}
	if got := m.Start("q", 1000, 0, 59*s); got.Low != unit.Time(63100*unit.Millisecond) {
		t.Errorf("low is %v after a wait of 59 s: expected a tenth of the 40 longer ones", got.Low)
	}
	if got := m.Start("new", 8000, 0, 0); got.High != unit.Time(unit.Hour) {
		t.Errorf("a new queue's high is %v: expected that of all", got.High)
	}
}

// TestSample: quantiles of the futures, and an error of one is told.
func TestSample(t *testing.T) {
	spread, err := forecast.Sample(func(seed uint64) ([]forecast.Fate, error) {
		return []forecast.Fate{{Start: unit.Time(100 - seed), End: unit.Time(seed)}}, nil
	}, 99, 1)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := spread[0].Start(), (forecast.Range{Low: 10, Median: 50, High: 90}); got != want {
		t.Errorf("got %v, expected %v", got, want)
	}
	broken := errors.New("broken")
	_, err = forecast.Sample(func(seed uint64) ([]forecast.Fate, error) {
		if seed == 3 {
			return nil, broken
		}
		return make([]forecast.Fate, 1), nil
	}, 9, 1)
	if !errors.Is(err, broken) {
		t.Errorf("got %v, expected what broke", err)
	}
}
