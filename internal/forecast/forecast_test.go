package forecast_test

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/costtest"
	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/internal/forecast"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/strategies/schedule/fifo"
)

const s = unit.Second

func gang(n int32, submit unit.Duration, user string) workload.Job {
	return workload.Job{Name: strconv.Itoa(int(submit)), User: user, Tenant: "q", Submit: unit.Time(submit), Resources: workload.Resources{Gang: n, Devices: 1, Share: 1000}}
}

// TestFleet holds the fast stand-in to the engine: the same jobs start at the same
// instants.
func TestFleet(t *testing.T) {
	if costtest.Slowed {
		t.Skip("one goroutine, and a minute of it: the race detector has nothing to find there")
	}
	draws.Check(t, func(t *rapid.T) {
		var jobs scheduletest.Jobs
		at := unit.Duration(0)
		for i := range rapid.IntRange(1, 40).Draw(t, "jobs") {
			at += unit.Duration(rapid.IntRange(0, 30).Draw(t, "gap")) * s
			j := gang(int32(rapid.IntRange(1, 16).Draw(t, "size")), at, "")
			j.Name = strconv.Itoa(i)
			jobs = append(jobs, scheduletest.Job{Job: j, Truth: workload.Truth{Duration: unit.Duration(rapid.IntRange(1, 300).Draw(t, "length")) * s}})
		}
		o, err := scheduletest.Run(scheduletest.Config(scheduletest.Nodes(2, 8, 0), jobs, scheduletest.With(fifo.New(fifo.Default()))))
		if err != nil {
			t.Fatal(err)
		}
		// The job asked about is told from the others by being there from the start.
		asked := rapid.IntRange(0, len(jobs)-1).Draw(t, "asked")
		now := jobs[asked].Submit
		f := newFleet(now, 16)
		for id := range jobs[:asked+1] {
			size, length := int(jobs[id].Gang), jobs[id].Truth.Duration
			switch {
			case o.Jobs[id].End <= now:
			case o.Jobs[id].FirstStart < now:
				f.free -= size
				f.run(o.Jobs[id].End, size)
			case id == asked:
				f.wait(waiter{id, size, length, 0})
			default:
				f.wait(waiter{id, size, length, -1})
			}
		}
		fates := make([]forecast.Fate, 1)
		if err := f.forward(jobs[asked+1:].Source(), unit.Never-1, fates); err != nil {
			t.Fatal(err)
		}
		want := forecast.Fate{Start: o.Jobs[asked].FirstStart, End: o.Jobs[asked].End}
		if fates[0] != want {
			t.Fatalf("job %d: %v, the engine says %v", asked, fates[0], want)
		}
	})
}

// TestRemaining: with many jobs of one kind, what is drawn for one that has run for so
// long is distributed as those that ran longer are.
func TestRemaining(t *testing.T) {
	h := forecast.NewHistory(forecast.DefaultArrivals(), forecast.DefaultDurations())
	chance := rand.New(rand.NewPCG(1, 1))
	const n = 900
	for i := range n {
		j := gang(1, unit.Duration(i)*unit.Hour, "")
		h.Submitted(&j)
		h.Finished(i, unit.Seconds(1000*chance.ExpFloat64())+1)
	}
	j := gang(1, n*unit.Hour, "")
	h.Submitted(&j)
	m := h.Moment(j.Submit, []forecast.Live{{ID: n, Ran: 500 * s}})
	sum, draws := 0., 4000
	for seed := range draws {
		lasts := m.Future(j.Submit, uint64(seed)).Lasts(n)
		if lasts <= 500*s {
			t.Fatalf("drew %v for a job that has run 500s", lasts)
		}
		sum += (lasts - 500*s).Seconds()
	}
	// The exponential forgets: 1000 s remain on average, here within four standard
	// errors of the mean of the 540 that are longer.
	if mean := sum / float64(draws); math.Abs(mean-1000) > 4*1000/math.Sqrt(540) {
		t.Errorf("%.0f s remain on average: expected about 1000", mean)
	}
}

// TestStillRunning: half of a sweep ended after a minute, and the other half has run
// for an hour. Those that run count: a fresh job runs for longer than a minute about
// half of the time, and not hardly ever as the ended ones alone would say.
func TestStillRunning(t *testing.T) {
	h := forecast.NewHistory(forecast.DefaultArrivals(), forecast.DefaultDurations())
	var live []forecast.Live
	const n = 100
	for i := range n {
		j := gang(1, unit.Duration(i)*2*unit.Hour, "")
		h.Submitted(&j)
		if i%2 == 0 {
			h.Finished(i, unit.Minute)
		} else {
			live = append(live, forecast.Live{ID: i, Ran: unit.Hour})
		}
	}
	j := gang(1, 2*n*unit.Hour, "")
	h.Submitted(&j)
	m := h.Moment(j.Submit, append(live, forecast.Live{ID: n}))
	long := 0
	for seed := range uint64(1000) {
		if m.Future(j.Submit, seed).Lasts(n) > unit.Hour {
			long++
		}
	}
	if long < 400 || long > 600 {
		t.Errorf("%d of 1000 run for more than an hour: expected about 500", long)
	}
}

// TestTwins: where sweeps of equal jobs are the rule, the jobs of a sweep that has not
// begun are drawn alike, and one whose twin is known is drawn like it.
func TestTwins(t *testing.T) {
	h := forecast.NewHistory(forecast.DefaultArrivals(), forecast.DefaultDurations())
	chance := rand.New(rand.NewPCG(2, 2))
	n, at := 0, unit.Duration(0)
	for range 200 {
		at += 3 * unit.Hour
		length := unit.Seconds(math.Exp(4 + 6*chance.Float64()))
		for k := range unit.Duration(4) {
			j := gang(1, at+k*s, "")
			h.Submitted(&j)
			h.Finished(n, length)
			n++
		}
	}
	at += 3 * unit.Hour
	for k := range unit.Duration(3) {
		j := gang(1, at+k*s, "")
		h.Submitted(&j)
	}
	h.Finished(n, 777*s)
	m := h.Moment(unit.Time(at).Add(unit.Hour), []forecast.Live{{ID: n + 1}, {ID: n + 2}})
	near := 0
	for seed := range uint64(500) {
		f := m.Future(unit.Time(at).Add(unit.Hour), seed)
		if got := f.Lasts(n + 2).Seconds(); got > 500 && got < 1200 {
			near++
		}
	}
	if near < 350 {
		t.Errorf("%d of 500 draws are like the twin: expected most", near)
	}
}

// TestFutureArrivals: made-up jobs come in order, within the time asked for, at the
// hours that jobs came before, as many a day as before, and the same for a seed.
func TestFutureArrivals(t *testing.T) {
	h := forecast.NewHistory(forecast.DefaultArrivals(), forecast.DefaultDurations())
	n := 0
	for day := range unit.Duration(20) {
		for k := range unit.Duration(30) { // only from nine to ten in the morning
			j := gang(1, day*unit.Day+9*unit.Hour+k*2*unit.Minute, "")
			h.Submitted(&j)
			h.Finished(n, unit.Hour)
			n++
		}
	}
	now := unit.Time(20*unit.Day + 5*unit.Hour)
	until := now.Add(3 * unit.Day)
	draw := func(seed uint64) (all []workload.Job) {
		f := h.Moment(now, nil).Future(until, seed)
		for {
			j, truth, err := f.Next()
			if errors.Is(err, io.EOF) {
				return all
			}
			if truth.Duration != unit.Hour {
				t.Fatalf("%s runs %v: expected an hour", j.Name, truth.Duration)
			}
			all = append(all, j)
		}
	}
	jobs := draw(1)
	if len(jobs) != 90 {
		t.Errorf("%d jobs in three days: expected 90", len(jobs))
	}
	for i, j := range jobs {
		if hour := int64(j.Submit) / int64(unit.Hour) % 24; hour != 9 {
			t.Errorf("%s comes at %d o'clock: expected 9", j.Name, hour)
		}
		if j.Submit < now || j.Submit >= until || i > 0 && j.Submit < jobs[i-1].Submit {
			t.Errorf("%s comes at %d: out of order or out of time", j.Name, j.Submit)
		}
	}
	if !slices.EqualFunc(jobs, draw(1), func(a, b workload.Job) bool { return a.Name == b.Name && a.Submit == b.Submit }) {
		t.Error("the same seed makes other jobs")
	}
	if (forecast.NewHistory(forecast.DefaultArrivals(), forecast.DefaultDurations())).Moment(now, nil).Future(until, 1) == nil {
		t.Error("no future without a past")
	}
}

// TestFutureShort: also a history of less than a day makes a future, and an empty one
// an empty one.
func TestFutureShort(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		h := forecast.NewHistory(forecast.DefaultArrivals(), forecast.DefaultDurations())
		at := unit.Duration(0)
		n := rapid.IntRange(0, 20).Draw(t, "jobs")
		for i := range n {
			at += unit.Duration(rapid.Int64Range(0, int64(5*unit.Hour)).Draw(t, "gap"))
			j := gang(1, at, "")
			h.Submitted(&j)
			h.Finished(i, s)
		}
		now := unit.Time(at + unit.Duration(rapid.Int64Range(0, int64(unit.Day)).Draw(t, "pause")))
		until := now.Add(unit.Duration(rapid.Int64Range(1, int64(3*unit.Day)).Draw(t, "ahead")))
		f := h.Moment(now, nil).Future(until, 5)
		last := now
		for range 100_000 {
			j, _, err := f.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			if j.Submit < last || j.Submit >= until {
				t.Fatalf("a job comes at %d: expected %d to %d", j.Submit, last, until)
			}
			last = j.Submit
		}
		t.Fatal("the future does not end")
	})
}

// TestRangeJSON: a range comes back as it was, Never among them.
func TestRangeJSON(t *testing.T) {
	for _, r := range []forecast.Range{{Low: 1, Median: 2, High: 3}, {Low: 0, Median: 5, High: unit.Never}, forecast.Unknown()} {
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var back forecast.Range
		if err := json.Unmarshal(data, &back); err != nil || back != r {
			t.Errorf("%s came back as %v (%v), was %v", data, back, err, r)
		}
	}
}
