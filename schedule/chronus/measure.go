package chronus

import (
	"fmt"
	"io"
	"math"

	"github.com/musterdl/muster/unit"
)

// The reference workload RW-D: a sixteenth of the published trace on 60 devices.
const (
	traceFile = "chronus/trace_job_Philly_MIX1.csv.gz"
	devices   = 60
	oneIn     = 16
)

// Measure is the experiment at the scale of ticks: the published trace under leases,
// with exact and with wrong estimates, and under what one would do without them. A
// switch costs nothing here, but leases are reserved as if it did.
func Measure(open func(path string) (io.ReadCloser, error), seed uint64) (map[string]float64, error) {
	f, err := open(traceFile)
	if err != nil {
		return nil, fmt.Errorf("opening the trace: %w", err)
	}
	defer f.Close()
	tasks, err := sample(f, oneIn, seed)
	if err != nil {
		return nil, err
	}
	return compare(tasks, seed, contenders()), nil
}

// contender is a policy in the comparison; estimates are wrong by up to a part.
type contender struct {
	name   string
	wrong  float64
	decide func() policy
}

func contenders() []contender {
	once, greedy, exact, tight := Default(), Default(), Default(), Default()
	once.Repack, exact.ExactJobs = false, 40
	tight.Margin, tight.Switch = 1, 0
	under := func(c Config) func() policy { return func() policy { return leased(c, devices) } }
	by := func(preempt bool, rank func(*task) [2]int64) func() policy {
		return func() policy { return ranked(devices, preempt, rank) }
	}
	return []contender{
		{"fifo", 0, by(false, bySubmit)}, {"edf", 0, by(true, byDeadline)}, {"srtf", 0, by(true, byLeft)},
		{"once", 0, under(once)}, {"leases", 0, under(greedy)}, {"wrong", 0.2, under(greedy)},
		{"tight", 0, under(tight)}, {"exact", 0, under(exact)},
	}
}

// compare runs every contender on the same tasks.
func compare(tasks []task, seed uint64, contenders []contender) map[string]float64 {
	figures := map[string]float64{"jobs": float64(len(tasks)), "load": load(tasks)}
	for _, c := range contenders {
		run := believing(tasks, c.wrong, seed)
		simulate(run, Default().Fill, c.decide())
		o := count(run)
		figures["miss-"+c.name] = o.missed
		figures["best-effort-jct-min-"+c.name] = o.bestEffortMin
		if o.admitted > 0 {
			figures["admitted-"+c.name] = o.admitted
			figures["admitted-miss-"+c.name] = o.missedAdmitted
		}
	}
	return figures
}

func load(tasks []task) float64 {
	work, last := 0.0, unit.Time(1)
	for i := range tasks {
		work += float64(tasks[i].size) * tasks[i].runs.Seconds()
		last = max(last, tasks[i].submit)
	}
	return work / devices / last.Seconds()
}

func bySubmit(t *task) [2]int64 { return [2]int64{int64(t.submit)} }

func byLeft(t *task) [2]int64 { return [2]int64{int64(t.left())} }

func byDeadline(t *task) [2]int64 {
	if t.due == unit.Never {
		return [2]int64{math.MaxInt64, int64(t.submit)}
	}
	return [2]int64{int64(t.due)}
}
