package forecast_test

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/musterdl/muster/experiment/trace"
	"github.com/musterdl/muster/internal/costtest"
	"github.com/musterdl/muster/internal/forecast"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run/report"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/strategies/schedule/fifo"
)

const data = "../../../shared/data/"

// past is what happened on a cluster: its jobs in order, and when each of them
// started and ended.
type past struct {
	jobs    scheduletest.Jobs
	starts  []unit.Time
	ends    []unit.Time
	devices int
	day     unit.Duration // of the clock of the trace, squeezed as its times are
}

// venus runs Venus at a load under first come, first served with backfill, and draws
// the virtual cluster of each job, which the trace has not, in proportion to size.
func venus(t testing.TB, load float64, seed uint64) past {
	t.Helper()
	p := past{devices: 133 * 8}
	r, err := trace.Open("helios:"+data+"helios", trace.Options{Load: load, Devices: p.devices})
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("the Venus trace is not at " + data)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	saved := trace.WithSaving(r, trace.Saving{}, seed)
	names, upTo := clusters(t)
	chance := rand.New(rand.NewPCG(seed, 0))
	for {
		job, truth, err := saved.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		drawn := chance.IntN(upTo[len(upTo)-1])
		at, _ := slices.BinarySearch(upTo, drawn+1)
		job.Tenant = names[at]
		p.jobs = append(p.jobs, scheduletest.Job{Job: job, Truth: truth})
	}
	const days = 166.83
	p.day = unit.Duration(float64(p.jobs[len(p.jobs)-1].Submit) / days)
	config := scheduletest.Config(scheduletest.Nodes(133, 8, 0), p.jobs, scheduletest.With(fifo.New(fifo.Default())))
	config.Check = false
	o, err := scheduletest.Run(config)
	if err != nil {
		t.Fatal(err)
	}
	p.record(o.Jobs)
	return p
}

func (p *past) record(jobs []report.JobRecord) {
	for _, j := range jobs {
		p.starts, p.ends = append(p.starts, j.FirstStart), append(p.ends, j.End)
	}
}

// clusters are the names of the virtual clusters and the nodes up to each.
func clusters(t testing.TB) (names []string, upTo []int) {
	t.Helper()
	f, err := os.Open(data + "helios/venus_vc_config.csv")
	if err != nil {
		t.Skip("the virtual clusters of Venus are not at " + data)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, row := range rows[1:] {
		n, err := strconv.Atoi(row[1])
		if err != nil {
			t.Fatal(err)
		}
		sum += n
		names, upTo = append(names, row[0]), append(upTo, sum)
	}
	return names, upTo
}

// patience is how long a job has waited when it is promised a start: those that
// start sooner are never asked about.
const patience = unit.Minute

// happening is one thing in the life of a job.
type happening struct {
	at   unit.Time
	what int
	id   int
}

// What happens, in the order of one instant.
const (
	ended = iota
	submitted
	started
	asked
)

// happenings are those of all jobs in order; only the jobs of ask are asked about.
func (p *past) happenings(ask func(id int) bool) []happening {
	var all []happening
	for id, j := range p.jobs {
		all = append(all, happening{j.Submit, submitted, id}, happening{p.starts[id], started, id}, happening{p.ends[id], ended, id})
		if at := j.Submit.Add(patience); ask(id) && at < p.starts[id] {
			all = append(all, happening{at, asked, id})
		}
	}
	slices.SortFunc(all, func(a, b happening) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.what, b.what), cmp.Compare(a.id, b.id))
	})
	return all
}

// setting is how promises are made.
type setting struct {
	futures int
	horizon unit.Duration
	arrive  forecast.ArrivalConfig
}

// asVenus looks five days ahead with the days of the squeezed clock.
func (p *past) asVenus(futures int) setting {
	return setting{futures: futures, horizon: 5 * p.day, arrive: forecast.ArrivalConfig{Days: 14, Day: p.day, Block: p.day / 6}}
}

// prophet walks through a past, knows at each instant what was known then, and
// makes promises.
type prophet struct {
	*past
	setting
	history  *forecast.History
	book     *forecast.Book
	running  map[int]bool
	waiting  []int
	promised map[int]bool
	log      []forecast.Entry
}

// promise makes promises about the jobs of ask and returns the log of them.
func (p *past) promise(t testing.TB, s setting, ask func(id int) bool) []forecast.Entry {
	t.Helper()
	o := &prophet{past: p, setting: s, history: forecast.NewHistory(s.arrive, forecast.DefaultDurations()),
		book: forecast.NewBook(forecast.DefaultConformal()), running: map[int]bool{}, promised: map[int]bool{}}
	for _, h := range p.happenings(ask) {
		if err := o.happen(h); err != nil {
			t.Fatal(err)
		}
	}
	return o.log
}

func (o *prophet) enter(e forecast.Entry) {
	o.book.Take(e)
	o.log = append(o.log, e)
}

func (o *prophet) happen(h happening) error {
	j := &o.jobs[h.id]
	outcome := func(what forecast.What) {
		if o.promised[h.id] {
			o.enter(forecast.Entry{Outcome: &forecast.Outcome{Job: int32(h.id), What: what, At: h.at}})
		}
	}
	switch h.what {
	case submitted:
		o.history.Submitted(&j.Job)
		o.waiting = append(o.waiting, h.id)
	case started:
		o.running[h.id] = true
		o.waiting = slices.DeleteFunc(o.waiting, func(id int) bool { return id == h.id })
		o.book.Waited(j.Tenant, int64(j.Workers()), h.at.Sub(j.Submit))
		outcome(forecast.Started)
	case ended:
		delete(o.running, h.id)
		o.history.Finished(h.id, h.at.Sub(o.starts[h.id]))
		outcome(forecast.Ended)
	case asked:
		return o.ask(h.at, h.id)
	}
	return nil
}

// ask promises a job a start.
func (o *prophet) ask(now unit.Time, id int) error {
	live := make([]forecast.Live, 0, len(o.running)+len(o.waiting))
	for id := range o.running {
		live = append(live, forecast.Live{ID: id, Ran: now.Sub(o.starts[id])})
	}
	for _, id := range o.waiting {
		live = append(live, forecast.Live{ID: id})
	}
	slices.SortFunc(live, func(a, b forecast.Live) int { return a.ID - b.ID })
	looked := now.Add(o.horizon)
	moment := o.history.Moment(now, live)
	spread, err := forecast.Sample(func(seed uint64) ([]forecast.Fate, error) {
		return o.future(moment.Future(looked, seed), now, live, id)
	}, o.futures, uint64(id)<<16)
	if err != nil {
		return err
	}
	j := &o.jobs[id]
	p := o.book.Promise(forecast.Asked{Job: int32(id), Name: j.Name, Queue: j.Tenant, Milli: int64(j.Workers()), Submitted: j.Submit},
		now, spread[0], looked)
	o.promised[id] = true
	o.enter(forecast.Entry{Promise: &p})
	return nil
}

// future runs the fleet through one.
func (o *prophet) future(future *forecast.Future, now unit.Time, live []forecast.Live, id int) ([]forecast.Fate, error) {
	f := newFleet(now, o.devices)
	for _, l := range live {
		size, lasts, place := int(o.jobs[l.ID].Workers()/unit.Whole), future.Lasts(l.ID), -1
		if l.ID == id {
			place = 0
		}
		if o.running[l.ID] {
			f.free -= size
			f.run(now.Add(lasts-l.Ran), size)
			continue
		}
		f.wait(waiter{l.ID, size, lasts, place})
	}
	looked := now.Add(o.horizon)
	fates := make([]forecast.Fate, 1)
	err := f.forward(future, looked, fates)
	fates[0] = forecast.Fate{Start: min(fates[0].Start, looked), End: min(fates[0].End, looked)}
	return fates, err
}

// judged is the part of a log that speaks of the jobs from first on; raw takes the
// ranges as they were before they were corrected.
func judged(log []forecast.Entry, first int) (given, raw []forecast.Entry) {
	for _, e := range log {
		if e.Promise == nil {
			given, raw = append(given, e), append(raw, e)
			continue
		}
		if int(e.Promise.Job) < first {
			continue
		}
		uncorrected := *e.Promise
		uncorrected.Start, uncorrected.End = uncorrected.RawStart, uncorrected.RawEnd
		given, raw = append(given, e), append(raw, forecast.Entry{Promise: &uncorrected})
	}
	return given, raw
}

func show(t testing.TB, title string, scores []forecast.Score) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%-8s %6s %8s %6s %6s %10s %10s %9s %7s %8s %8s\n", title, "queue", "jobs", "coverage", "early", "late",
		"pinball s", "baseline s", "error s", "error", "width s", "end cov")
	for _, s := range scores {
		name := s.Queue
		if name == "" {
			name = "all"
		}
		fmt.Fprintf(&b, "%-8s %6d %8.3f %6d %6d %10.0f %10.0f %9.0f %7.2f %8.0f %8.3f\n", name, s.Started, s.Start.HitRate(), s.Start.Early, s.Start.Late,
			s.PinballSec, s.BaselinePinballSec, s.MedianErrorSec, s.MedianError, s.MedianWidthSec, s.End.HitRate())
	}
	t.Log(b.String())
}

// TestVenus promises starts on Venus and checks that the ranges hold as often as they
// say and say more than past waits do. Judged are the jobs of the last fifth that
// waited more than a minute, promised when the minute is over; corrections are
// learned from the promises before. A quarter of them are, with MUSTER_FULL=1 all (ten
// minutes of one core).
func TestVenus(t *testing.T) {
	if costtest.Slowed {
		t.Skip("one goroutine, and a minute of it: the race detector has nothing to find there")
	}
	if os.Getenv("MUSTER_LONG") != "1" {
		t.Skip("a minute; set MUSTER_LONG=1")
	}
	const load, futures, least, first = 0.8, 30, 200, 0.5
	part := 0.25
	if os.Getenv("MUSTER_FULL") == "1" {
		part = 1
	}
	p := venus(t, load, 20)
	chance := rand.New(rand.NewPCG(20, 1))
	picked := make([]bool, len(p.jobs))
	for i := range picked {
		picked[i] = float64(i) > first*float64(len(p.jobs)) && chance.Float64() < part
	}
	log := p.promise(t, p.asVenus(futures), func(id int) bool { return picked[id] })
	given, raw := judged(log, len(p.jobs)*4/5)
	show(t, "as sampled", forecast.Scores(raw, unit.Never))
	scores := forecast.Scores(given, unit.Never)
	show(t, fmt.Sprintf("Venus at load %g, first come, first served with backfill, corrected by past promises", load), scores)
	for _, s := range scores {
		switch hit := s.Start.HitRate(); {
		case s.Started < least:
		case hit < 0.72 || hit > 0.88:
			t.Errorf("queue %q: %.3f of the ranges hold: expected 0.72 to 0.88", s.Queue, hit)
		case s.PinballSec >= s.BaselinePinballSec:
			t.Errorf("queue %q: pinball loss %.0f s: expected less than the %.0f s of past waits", s.Queue, s.PinballSec, s.BaselinePinballSec)
		}
	}
}
