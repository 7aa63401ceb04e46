package advise

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Advice is how both worlds stand. Figures of jobs are over those that ended in both,
// well or by their own fault, and the others are over the time from SinceUs to UntilUs;
// docs/metrics.md says what a wait, a quantile, a makespan and granted device time are.
type Advice struct {
	Scheduler string  `json:"scheduler"`
	Strategy  string  `json:"strategy"`
	SinceUs   int64   `json:"since_us"`
	UntilUs   int64   `json:"until_us"` // up to where the other world has been lived through
	NowUs     int64   `json:"now_us"`   // up to where reality is known
	BehindSec float64 `json:"behind_s"`
	// BehindFor is the job whose length has to be known before the other world goes on.
	BehindFor string `json:"behind_for,omitempty"`

	Jobs  Jobs    `json:"jobs"`
	Real  Figures `json:"real"`
	Ours  Figures `json:"ours"`
	Saved Saved   `json:"saved"`

	// PartialGangs is how often a gang had some of its pods bound, and others not, for
	// more than 10 s, and PartialDeviceHours what it held meanwhile.
	PartialGangs       int64   `json:"partial_gangs"`
	PartialDeviceHours float64 `json:"partial_device_h"`

	// Preemptions would have been ours; LostDeviceHours would have gone into starting
	// again and work that is done twice.
	Preemptions     int64   `json:"preemptions"`
	LostDeviceHours float64 `json:"lost_device_h"`
	// HeldOnDeviceHours are held here only because the end of a job was not known in time.
	HeldOnDeviceHours float64 `json:"held_on_device_h"`

	Decided   int64      `json:"decided"`
	Decisions []Decision `json:"decisions"` // the latest
	Notes     []string   `json:"notes"`
}

// Jobs are how many there are.
type Jobs struct {
	Arrived   int `json:"arrived"`
	Compared  int `json:"compared"`
	Withdrawn int `json:"withdrawn"` // before they ran, or while they did
	Refused   int `json:"refused"`   // by us
	Unplaced  int `json:"unplaced"`  // cannot be read, or are not complete
	// Waiting and Running, in either world, at UntilUs.
	RealWaiting int `json:"real_waiting"`
	RealRunning int `json:"real_running"`
	OursWaiting int `json:"ours_waiting"`
	OursRunning int `json:"ours_running"`
	// Ahead have started here and not there; Behind the other way round.
	Ahead  int `json:"ahead"`
	Behind int `json:"behind"`
}

// Figures are of one world.
type Figures struct {
	AvgWaitSec  float64 `json:"avg_wait_s"`
	P50WaitSec  float64 `json:"p50_wait_s"`
	P99WaitSec  float64 `json:"p99_wait_s"`
	AvgJCTSec   float64 `json:"avg_jct_s"`
	MakespanSec float64 `json:"makespan_s"`
	Utilization float64 `json:"utilization"`
	// IdleDeviceHours are of devices that nobody had while a job waited.
	IdleDeviceHours float64 `json:"idle_while_waiting_device_h"`
}

// Saved is what is less in the other world.
type Saved struct {
	Jobs        int     `json:"jobs"` // that this rests on
	WaitSec     float64 `json:"wait_s"`
	AvgWaitSec  float64 `json:"avg_wait_s"`
	AvgJCTSec   float64 `json:"avg_jct_s"`
	MakespanSec float64 `json:"makespan_s"`
	// UnusedDeviceHours are of devices that were idle while a job waited, or held by
	// partial gangs.
	UnusedDeviceHours float64 `json:"unused_device_h"`
}

// Advice tells how both worlds stand.
func (a *Adviser) Advice() Advice {
	r := Advice{Scheduler: a.options.Scheduler, Strategy: a.options.Strategy.Name, SinceUs: int64(a.since), UntilUs: int64(a.now), NowUs: int64(a.known),
		BehindSec: a.known.Sub(a.now).Seconds(), Preemptions: a.account.preemptions, LostDeviceHours: a.account.lost.Hours(),
		HeldOnDeviceHours: a.account.heldOn.Hours(), Decided: a.decided, Decisions: slices.Clone(a.decisions), Notes: a.notes()}
	if _, j := a.horizon(); j != nil {
		r.BehindFor = j.story.name
	}
	var partial unit.DeviceTime
	for _, j := range a.jobs {
		a.tally(&r.Jobs, j)
		seen, spent := j.wasted(a.now)
		r.PartialGangs, partial = r.PartialGangs+seen, partial.Plus(spent)
	}
	r.PartialDeviceHours = partial.Hours()
	r.Jobs.Compared = len(a.done)
	r.Real = figures(&a.account.real, a.done, func(o *outcome) (unit.Duration, unit.Time) { return o.realWait, o.realEnd })
	r.Ours = figures(&a.account.ours, a.done, func(o *outcome) (unit.Duration, unit.Time) { return o.ourWait, o.ourEnd })
	n := len(a.done)
	r.Saved = Saved{Jobs: n, AvgWaitSec: r.Real.AvgWaitSec - r.Ours.AvgWaitSec, AvgJCTSec: r.Real.AvgJCTSec - r.Ours.AvgJCTSec,
		MakespanSec: r.Real.MakespanSec - r.Ours.MakespanSec, UnusedDeviceHours: r.Real.IdleDeviceHours + r.PartialDeviceHours - r.Ours.IdleDeviceHours}
	r.Saved.WaitSec = r.Saved.AvgWaitSec * float64(n)
	return r
}

// tally counts a job where it belongs.
func (a *Adviser) tally(n *Jobs, j *job) {
	n.Arrived++
	over := j.over != unit.Never
	switch {
	case j.dropped && j.id == plan.None:
		n.Unplaced++
		return
	case j.dropped, j.real.over && j.story.ending == withdrawn:
		n.Withdrawn++
	case j.refused:
		n.Refused++
	}
	if j.id == plan.None {
		n.Unplaced++
		return
	}
	switch {
	case j.real.over:
	case j.real.whole:
		n.RealRunning++
	default:
		n.RealWaiting++
	}
	switch {
	case over:
	case j.holds:
		n.OursRunning++
	default:
		n.OursWaiting++
	}
	real := j.story.started <= a.now
	switch ours := j.first != unit.Never; {
	case ours && !real && !j.real.over:
		n.Ahead++
	case real && !ours && !over:
		n.Behind++
	}
}

// figures are those of one world; of tells a job's wait and end there.
func figures(s *sums, done []outcome, of func(*outcome) (unit.Duration, unit.Time)) Figures {
	f := Figures{IdleDeviceHours: s.idle.Hours()}
	if room := s.room.Hours(); room > 0 {
		f.Utilization = s.granted.Hours() / room
	}
	if len(done) == 0 {
		return f
	}
	waits, first, last := make([]unit.Duration, 0, len(done)), unit.Never, unit.Time(0)
	var wait, jct float64
	for i := range done {
		w, end := of(&done[i])
		waits = append(waits, w)
		wait, jct = wait+w.Seconds(), jct+end.Sub(done[i].submit).Seconds()
		first, last = min(first, done[i].submit), max(last, end)
	}
	slices.Sort(waits)
	n := len(waits)
	f.AvgWaitSec, f.AvgJCTSec, f.MakespanSec = wait/float64(n), jct/float64(n), last.Sub(first).Seconds()
	f.P50WaitSec, f.P99WaitSec = waits[(n+1)/2-1].Seconds(), waits[(99*n+99)/100-1].Seconds()
	return f
}

// notes are what figures rest on that nobody knows.
func (a *Adviser) notes() []string {
	return []string{
		"a job runs as long as it really ran, wherever it is placed and whoever its neighbours are",
		"the pods of a gang wait for one another, unless one of them succeeded before all had a node",
		"a job that is started again pays what it declares for its checkpoint, and " + a.options.Restart.String() + "; without a checkpoint it begins at the start",
		"what ran when this began, pods of other schedulers, and what people do in response to waiting are the same in both worlds",
		"gangs have the size that they really had: what they would gain by being elastic is not in it",
		"volumes and resource claims that were bound in reality bind pods here too",
		"we decide at once; the other scheduler's own latency is part of its waits",
		"the other world lies behind reality by " + a.options.Lag.String() + " at most; a job whose length is not known by then runs on until it is, which is to our disadvantage",
	}
}

// Line is the comparison on a line.
func (r *Advice) Line() string {
	return fmt.Sprintf("%d jobs compared: they waited %.0f s on average and would have waited %.0f s; %d partial gangs held %.2f device-hours; %.2f device-hours idle while jobs waited, %.2f with us",
		r.Saved.Jobs, r.Real.AvgWaitSec, r.Ours.AvgWaitSec, r.PartialGangs, r.PartialDeviceHours, r.Real.IdleDeviceHours, r.Ours.IdleDeviceHours)
}

// Table is the comparison for people.
func (r *Advice) Table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s as it is, and as it would have been with %s: %d jobs compared of %d, over %.0f s", r.Scheduler, r.Strategy,
		r.Saved.Jobs, r.Jobs.Arrived, float64(r.UntilUs-r.SinceUs)/1e6)
	if r.BehindSec > 0 {
		fmt.Fprintf(&b, ", up to %.0f s ago", r.BehindSec)
	}
	b.WriteString("\n\n")
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name, format string, real, ours float64) {
		fmt.Fprintf(w, "%s\t"+format+"\t"+format+"\t\n", name, real, ours)
	}
	fmt.Fprintf(w, "\t%s\tmuster\t\n", r.Scheduler)
	row("mean wait, s", "%.1f", r.Real.AvgWaitSec, r.Ours.AvgWaitSec)
	row("median wait, s", "%.1f", r.Real.P50WaitSec, r.Ours.P50WaitSec)
	row("99 % wait, s", "%.1f", r.Real.P99WaitSec, r.Ours.P99WaitSec)
	row("mean completion, s", "%.1f", r.Real.AvgJCTSec, r.Ours.AvgJCTSec)
	row("makespan, s", "%.1f", r.Real.MakespanSec, r.Ours.MakespanSec)
	row("utilisation, %", "%.1f", 100*r.Real.Utilization, 100*r.Ours.Utilization)
	row("idle while jobs waited, device-h", "%.3f", r.Real.IdleDeviceHours, r.Ours.IdleDeviceHours)
	row("partial gangs", "%.0f", float64(r.PartialGangs), 0)
	row("held by partial gangs, device-h", "%.3f", r.PartialDeviceHours, 0)
	row("jobs that wait", "%.0f", float64(r.Jobs.RealWaiting), float64(r.Jobs.OursWaiting))
	row("jobs that run", "%.0f", float64(r.Jobs.RealRunning), float64(r.Jobs.OursRunning))
	_ = w.Flush()
	fmt.Fprintf(&b, "\nWe would have preempted %d times, and lost %.3f device-hours by that.\n", r.Preemptions, r.LostDeviceHours)
	if r.HeldOnDeviceHours > 0 {
		fmt.Fprintf(&b, "%.3f device-hours are held on our side only because the end of a job was not known in time.\n", r.HeldOnDeviceHours)
	}
	b.WriteString("What this rests on:\n")
	for _, n := range r.Notes {
		b.WriteString("  - " + n + "\n")
	}
	return b.String()
}
