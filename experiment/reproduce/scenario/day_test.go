package scenario

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/run/simulated/world"
)

const published = "../../../../shared/data"

// The generated day has to run where nothing is published, and again alike.
func TestGeneratedDay(t *testing.T) {
	w, err := NewWarm(Setup{Data: filepath.Join(t.TempDir(), "absent"), Seed: 1, Prices: simulated.DefaultPrices()})
	if err != nil {
		t.Fatal(err)
	}
	nulls := catalogue.Steps
	a, err := w.Run(nulls, "throughput")
	if err != nil {
		t.Fatal(err)
	}
	if a.Real || !strings.HasPrefix(a.Trace, "generated") || !strings.HasPrefix(a.Requests, "generated") || a.Window != nil {
		t.Errorf("a day of generated work says %+v", a)
	}
	if math.Abs(a.Load-Load) > 0.01 || a.BusyShare <= 0 || a.BusyShare >= 1 || a.CostUSD <= 0 || a.EnergyAllMJ <= a.EnergyMJ {
		t.Errorf("the day is %+v", a)
	}
	confirmed(t, &a)
	if _, err := w.Run(nil, "fame"); err == nil {
		t.Error("there is a goal fame")
	}
	if os.Getenv("MUSTER_LONG") != "1" {
		return // the engine's tests have the same history twice
	}
	b, err := w.Run(nulls, "throughput")
	if err != nil {
		t.Fatal(err)
	}
	a.WallSec = b.WallSec
	if x, y := text(t, a), text(t, b); x != y {
		t.Errorf("the same day twice:\n%s\n%s", x, y)
	}
}

// confirmed: a second count, from the devices' side and the work that is getting done,
// finds what the world books as busy, and the work at hand allows it.
func confirmed(t *testing.T, d *Day) {
	for _, x := range []struct {
		of           string
		books, check float64
	}{{"busy", d.BusyShare, d.BusyCheck}, {"the day's energy", d.EnergyMJ, d.EnergyCheck}, {"all energy", d.EnergyAllMJ, d.EnergyAllCheck}} {
		if math.Abs(x.books/x.check-1) > 1e-6 {
			t.Errorf("%v left out: %s is booked as %.9g, and counted again as %.9g", d.Null, x.of, x.books, x.check)
		}
	}
	if d.BusyShare > d.BusyBound+d.Lost || d.OwnBusyShare > d.OwnBusyBound+d.Lost || d.OwnBusyShare > d.BusyShare || d.OwnBusyBound > d.BusyBound {
		t.Errorf("%v left out: busy for %.3f where %.3f is possible, with the day's own jobs for %.3f where %.3f is", d.Null, d.BusyShare, d.BusyBound, d.OwnBusyShare, d.OwnBusyBound)
	}
	if d.GrantedShare <= 0 || d.GrantedShare > 1 || d.WorkDuty <= 0 || d.WorkDuty > 1 || d.OwnDuty <= 0 || d.OwnDuty > 1 {
		t.Errorf("%v left out: granted %.3f, duty of the work %.3f and %.3f", d.Null, d.GrantedShare, d.WorkDuty, d.OwnDuty)
	}
}

func text(t *testing.T, x any) string {
	b, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestMix(t *testing.T) {
	if _, err := os.Stat(filepath.Join(published, "helios")); err != nil {
		t.Skip("the published trace is absent: ", err)
	}
	c := Cluster()
	for seed := uint64(1); seed <= 2; seed++ {
		m, err := newMix(Setup{Data: published, Seed: seed}, c, Load)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(m.load-Load) > 0.01 || !m.real {
			t.Errorf("seed %d: the mix asks for %.3f of the cluster by factor %.3f, want %.2f; published %v", seed, m.load, m.factor, Load, m.real)
		}
		kinds, deadlines, traced := map[kind]int{}, 0, 0
		for i := range m.day {
			if kinds[m.day[i].kind]++; m.day[i].kind == batch {
				traced++
			}
			if m.day[i].job.Deadline > 0 {
				deadlines++
			}
		}
		if kinds[large] != len(larges) || kinds[trial] != 128 || kinds[debug] != debugs || len(m.streams) != services {
			t.Errorf("the day has %v and %d services", kinds, len(m.streams))
		}
		if part := float64(deadlines) / float64(traced); math.Abs(part-deadlinePart) > 0.08 {
			t.Errorf("%.2f of the trace's jobs have a deadline", part)
		}
		bad := m.day[0]
		bad.job.Gang = 2000
		m.day[0] = bad
		if m.check(c) == nil {
			t.Error("a job that can run nowhere is let in")
		}
	}
	if _, err := newMix(Setup{Data: published, Seed: 1}, c, 0.5); err == nil {
		t.Error("a load of .5 is let in")
	}
}

// Every composition can be built with every step at its null.
func TestGoals(t *testing.T) {
	w := &Warm{setup: Setup{Data: published}}
	for _, g := range Goals() {
		for _, null := range append([]string{""}, catalogue.Steps...) {
			list := strings.Fields(null)
			if _, _, err := w.build(list, g); err != nil {
				t.Errorf("%s without %v: %v", g, list, err)
			}
		}
	}
}

// A replica that answers one request at a time in 10 ms, regular requests every 20 ms:
// each takes its own 10 ms; with a batch of 2 the first of each pair waits.
func TestRequests(t *testing.T) {
	one := world.Answers{Keeps: []float64{0, .01}, Takes: []float64{0, .01}}
	two := world.Answers{Keeps: []float64{0, .01, .012}, Takes: []float64{0, .01, .012}}
	for _, c := range []struct {
		seen     []answered
		gap      float64
		wait     float64
		mean     float64
		answered int
	}{
		{[]answered{{0, 1, one}}, .02, .5, .01, 100},
		{[]answered{{0, 1, two}}, .02, .5, .022, 100}, // 20+12 and 12
		{[]answered{{0, 1, two}}, .02, .005, .015, 100},
		{[]answered{{0, 1, one}}, .005, .5, .01 + .0025*99/2*2, 100}, // each waits 5 ms more than the one before
		{[]answered{{0, 1, one}, {1, 1, world.Answers{}}}, .02, .5, .01, 50},
		{[]answered{{0, 1, one}, {0, 2, one}, {1, 2, world.Answers{}}}, .01, .5, .01, 100}, // half each, then all by one
		{nil, .02, .5, 0, 0},
	} {
		q := requests{seen: c.seen, waitSec: c.wait, lines: map[plan.JobID]*world.Line{}, of: &Window{}}
		for i := range 100 {
			q.arrive(float64(i) * c.gap)
		}
		took := q.end()
		if got := mean(took); len(took) != c.answered || math.Abs(got-c.mean) > 1e-9 {
			t.Errorf("%d answered in %.4f s on average, want %d in %.4f", len(took), got, c.answered, c.mean)
		}
	}
}

// made are rows whose figures are known: JCT is 10, 3 h less with schedule at work, 2 h
// less still with profile too, plus the number of the seed.
func made(rows []Row) *Study {
	s := &Study{Seeds: 3, Rows: rows}
	for i := range s.Rows {
		r := &s.Rows[i]
		at := func(step string) float64 {
			for _, n := range r.Null {
				if n == step {
					return 0
				}
			}
			return 1
		}
		for seed := range 3 {
			hours := 10 + float64(seed) - 3*at("schedule") - 2*at("schedule")*at("profile")
			r.Days = append(r.Days, Day{Goal: r.Goal, JCTSec: hours * 3600, Busy: Busy{BusyShare: .4}, LLMJCTSec: 3600, Lost: .1, Missed: .1, Mix: Mix{Load: .95, Trace: "made"}})
		}
	}
	return s
}

func TestVerdicts(t *testing.T) {
	rows := []Row{Full("throughput"), Nulls("throughput")}
	for _, step := range catalogue.Steps {
		rows = append(rows, Without("throughput", step))
	}
	s := made(rows)
	if err := s.judge(); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"profile jct_s": hurts, "schedule jct_s": hurts}
	for _, v := range s.Verdicts {
		says := want[v.Step+" "+v.Metric]
		if says == "" {
			says = nothing
		}
		if !strings.HasPrefix(v.Says, says) {
			t.Errorf("%s, %s: %+v, want %s", v.Step, v.Metric, v, says)
		}
	}
	var out, svg bytes.Buffer
	if err := s.Write(&out, false); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"offered load of the whole mix 0.950", "survey records 25 to below 50 %: within it", "no effect larger than 0.0 h"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("the text lacks %q:\n%s", line, out.String())
		}
	}
	if err := s.Plot(&svg); err != nil || !strings.Contains(svg.String(), "<svg") || !strings.Contains(svg.String(), "pipeline: LLM JCT h") {
		t.Errorf("plot: %v, %d bytes", err, svg.Len())
	}
}

// A verdict says what its interval says, and of one seed none is made.
func TestVerdictsDoNotContradict(t *testing.T) {
	for _, c := range []struct {
		full, without []float64 // hours
		says          string
	}{
		{[]float64{1, 1.1, .9}, []float64{3, 3.2, 2.9}, hurts},
		{[]float64{3, 3.2, 2.9}, []float64{1, 1.1, .9}, helps},
		{[]float64{1, 2, 3}, []float64{1.5, 1.7, 3.2}, nothing + " 1.14 h"},
		{[]float64{1}, []float64{3}, unknown},
	} {
		var full, without Row
		for i := range c.full {
			full.Days, without.Days = append(full.Days, Day{JCTSec: 3600 * c.full[i]}), append(without.Days, Day{JCTSec: 3600 * c.without[i]})
		}
		v, err := verdict("flow", metric("jct_s"), &full, &without)
		if err != nil || v.Says != c.says {
			t.Errorf("%v without, %v with: %+v, %v; want %q", c.without, c.full, v, err, c.says)
		}
		said, err := json.Marshal(v.Worse)
		if low, high := strings.Contains(string(said), `"low":null`), strings.Contains(string(said), `"high":null`); err != nil || low != high || low != (len(c.full) == 1) {
			t.Errorf("%v without, %v with, in JSON: %s, %v", c.without, c.full, said, err)
		}
	}
}

// The design finds the effects that were put in: -3 for schedule, and half of -2 for
// either step of the pair and for the pair itself.
func TestFactorial(t *testing.T) {
	s := made(Factorial("throughput"))
	if err := s.judge(); err != nil {
		t.Fatal(err)
	}
	groups := 0
	for _, e := range s.Effects {
		if e.Metric != "jct_s" {
			continue
		}
		want := 0.
		switch e.Of[0] {
		case "schedule":
			want = -4
		case "profile", "profile x schedule":
			want = -1
		}
		if got := e.Effect.Point / 3600; math.Abs(got-want) > 1e-9 {
			t.Errorf("%v: %.3f h, want %g", e.Of, got, want)
		}
		if strings.Contains(e.Of[0], " x ") {
			groups++
		}
	}
	if groups != 7 {
		t.Errorf("%d groups of two steps: resolution IV has 7", groups)
	}
	var svg bytes.Buffer
	if err := s.Plot(&svg); err != nil {
		t.Error(err)
	}
}

// The default study with one seed, and with MUSTER_FULL=1 with three. With every step at work there are
// guests, services on parts of devices, elastic jobs and pipelines, which the two counts see each in its way.
func TestDay(t *testing.T) {
	if os.Getenv("MUSTER_LONG") != "1" {
		t.Skip("long; set MUSTER_LONG=1")
	}
	if _, err := os.Stat(filepath.Join(published, "helios")); err != nil {
		t.Skip("the published trace is absent: ", err)
	}
	rows := []Row{Full("throughput"), Nulls("throughput")}
	for _, step := range catalogue.Steps {
		rows = append(rows, Without("throughput", step))
	}
	seeds := 1
	if os.Getenv("MUSTER_FULL") == "1" {
		seeds = 3
	}
	s, before := &Study{Data: published, Seeds: seeds, Rows: rows, Workers: 1, Prices: simulated.DefaultPrices()}, processor(t)
	s.Progress = func(done, _ int) { // the week before is in the first of each seed
		now := processor(t)
		if took := now - before; took > 30 {
			t.Errorf("run %d took %.1f s of processor time", done, took)
		}
		before = now
	}
	if err := s.Run(); err != nil { // also where a ledger does not balance
		t.Fatal(err)
	}
	for _, r := range s.Rows {
		for _, d := range r.Days {
			confirmed(t, &d)
			if d.Load < leastLoad || !d.Real {
				t.Errorf("%s, seed %d: offered load %.3f, published %v", r.Name, d.Seed, d.Load, d.Real)
			}
			if d.Window == nil || d.Window.Requests < 1000*int(unit.Minute/unit.Second) {
				t.Errorf("%s, seed %d: the window at request scale is %+v", r.Name, d.Seed, d.Window)
			}
		}
	}
	w, err := NewWarm(Setup{Data: published, Seed: 1, Prices: simulated.DefaultPrices()})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := w.Run(nil, "throughput"); err != nil || again.Hash != s.Rows[0].Days[0].Hash {
		t.Errorf("the same seed decides otherwise: %v", err)
	}
	var out bytes.Buffer
	if err := s.Write(&out, false); err != nil || !strings.Contains(out.String(), "the survey records 25 to below 50 %") {
		t.Errorf("the nulls' share is not reported: %v", err)
	}
	t.Log("\n" + out.String())
}

// processor is the seconds of processor time that this process had.
func processor(t *testing.T) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
