// Package whatif answers what would become of a cluster if something were different:
// its state, of this moment or of a past one, is run forward twice by package ahead,
// once as it is and once with a change, and the two futures are compared.
//
// A future of this moment has the jobs there are and those the change submits, with the
// running times that the engine believes; nobody knows who comes later. A past one has
// the jobs that came, with the running times that were observed.
package whatif

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/ahead"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/snapshot"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/report"
	"github.com/musterdl/muster/schedule"
)

// Bounds of one question.
const (
	DefaultHorizon = 7 * unit.Day
	MostHorizon    = 92 * unit.Day
	// mostSteps bounds the work of each future: the engine takes thousands a second.
	mostSteps = 2_000_000
	mostJobs  = 2000 // in an answer
	points    = 250  // of a series
)

// Base is what a change is made to.
type Base struct {
	plane.Fork
	// Past is what came after the fork, where the request goes back.
	Past *snapshot.Window
	// Jobs are submitted in the alternative.
	Jobs []workload.Job
	// MostAdded bounds the devices that may be added, and MostPairs the jobs times the nodes
	// of who decides for all jobs at once: one decision about them is not cut short. 0 is as
	// many as anybody may ask about.
	MostAdded, MostPairs int
}

// Of is a base of a history's last part.
func Of(w *snapshot.Window) (Base, error) {
	strategy, err := catalogue.Parse("the recorded strategy", w.Setting.Strategy)
	if err != nil {
		return Base{}, err
	}
	if strategy, err = strategy.Live(); err != nil {
		return Base{}, err
	}
	return Base{Fork: plane.Fork{State: w.State, Strategy: strategy, Seed: w.Setting.Seed, Policy: w.Setting.Policy}, Past: w}, nil
}

// Answer is two futures of one fork.
type Answer struct {
	FromUs      unit.Time `json:"from_us"`
	HorizonS    float64   `json:"horizon_s"`
	Base        Side      `json:"base"`
	Alternative Side      `json:"alternative"`
	// Compared are the jobs that finish in both, which the means are of.
	Compared int `json:"compared"`
	// Jobs are those whose start or end is another, or that are in one future alone,
	// those that the change matters most to first.
	Jobs        []Job       `json:"jobs"`
	JobsLeftOut int         `json:"jobs_left_out,omitempty"`
	Submitted   []Submitted `json:"submitted,omitempty"`
	Words       string      `json:"words"`
	// Now is what the alternative decides at the fork, before anything has happened.
	Now Decision `json:"now"`
}

// Side is one future in figures.
type Side struct {
	Strategy    string  `json:"strategy"`
	Devices     int     `json:"devices"`
	MeanWaitS   float64 `json:"mean_wait_s"`
	MeanJCTS    float64 `json:"mean_jct_s"`
	Utilisation float64 `json:"utilisation"`
	Preemptions int     `json:"preemptions"`
	Finished    int64   `json:"finished"`
	Unfinished  int64   `json:"unfinished"`
	Series      []Point `json:"series"`
}

// Point is how things stand, on average, from an instant to the next point.
type Point struct {
	AtUs        unit.Time `json:"at_us"`
	BusyDevices float64   `json:"busy_devices"`
	WaitingJobs float64   `json:"waiting_jobs"`
}

// Job is what becomes of a job in both futures; -1 is not in this time.
type Job struct {
	Job                string    `json:"job"`
	BaseStartUs        unit.Time `json:"base_start_us"`
	AlternativeStartUs unit.Time `json:"alternative_start_us"`
	BaseEndUs          unit.Time `json:"base_end_us"`
	AlternativeEndUs   unit.Time `json:"alternative_end_us"`
}

// Submitted is what becomes of a job that the change submits.
type Submitted struct {
	Job string `json:"job"`
	// Fits says that it starts within the horizon; StartUs and EndUs are -1 where it
	// does not.
	Fits     bool      `json:"fits"`
	StartUs  unit.Time `json:"start_us"`
	EndUs    unit.Time `json:"end_us"`
	Preempts []string  `json:"preempts"`
	Words    string    `json:"words"`
}

// Decision is one step of an engine, in names of jobs.
type Decision struct {
	Starts  []string `json:"starts"`
	Stops   []string `json:"stops"`
	Waiting int      `json:"waiting"` // jobs afterwards
}

// Ask answers a question.
func Ask(ctx context.Context, base Base, q Request) (Answer, error) {
	config := ahead.Config{State: base.State, Now: base.State.Now, Scheduler: scheduler(base.Strategy, base.Seed), Policy: base.Policy,
		Horizon: q.horizon(&base), Steps: mostSteps, Limits: report.Limits{Points: points, Jobs: 1}, Later: ahead.Returns(base.State.View())}
	if w := base.Past; q.LastS > 0 {
		config.Beliefs, config.Arrivals, config.Later, config.Start = w.Beliefs, ahead.Arriving(w.Arrivals), w.Later, w.Start
		config.Switched = w.Switched
	}
	change, strategy, err := q.change(&base)
	if err != nil {
		return Answer{}, err
	}
	if err := base.tooDear(&change, strategy); err != nil {
		return Answer{}, err
	}
	other, err := config.With(change)
	if err != nil {
		return Answer{}, wrong{err.Error()}
	}
	sides := [2]side{{config: config, strategy: base.Strategy.Name}, {config: other, strategy: strategy.Name}}
	if err := run(ctx, sides[:]); err != nil {
		return Answer{}, err
	}
	a := compare(&sides[0], &sides[1], base.Jobs)
	a.HorizonS = config.Horizon.Seconds()
	a.Words = words(&a, &q, sides[:])
	return a, nil
}

// tooDear says that a single decision may take longer than who asks may have it take.
func (b *Base) tooDear(c *ahead.Change, other catalogue.Composition) error {
	jobs, nodes := len(c.Submit), len(b.State.Cluster.Nodes)+len(c.Add)
	for i := range b.State.Jobs {
		if !b.State.Jobs[i].Phase.Over() {
			jobs++
		}
	}
	for _, s := range []catalogue.Composition{b.Strategy, other} {
		if b.MostPairs > 0 && s.Choices[allocate.JointPart] != "" && jobs*nodes > b.MostPairs {
			return wrong{fmt.Sprintf("%s decides for all jobs at once, here about %d jobs on %d nodes, which may take long: ask about fewer, or have an operator ask", s.Name, jobs, nodes)}
		}
	}
	return nil
}

// scheduler makes a composition's schedulers, one for each future.
func scheduler(c catalogue.Composition, seed uint64) func() (schedule.Scheduler, error) {
	return func() (schedule.Scheduler, error) {
		built, err := c.Build(catalogue.Env{Seed: seed}, false)
		return built.Scheduler, err
	}
}

// side is one future as it is looked at.
type side struct {
	config   ahead.Config
	strategy string
	future   ahead.Future
	view     plan.View // at its end
	first    Decision
	begun    bool
	capacity []capacity
}

// capacity is how many devices there are from an instant on.
type capacity struct {
	at      unit.Time
	devices int
}

// run looks at futures beside each other.
func run(ctx context.Context, sides []side) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(sides))
	var all sync.WaitGroup
	for i := range sides {
		all.Go(func() {
			s := &sides[i]
			s.config.Step = s.step
			if s.future, errs[i] = ahead.Run(ctx, s.config); errs[i] != nil {
				cancel()
			}
		})
	}
	all.Wait()
	// Of a cancelled neighbour the cause is told, not the cancellation.
	slices.SortStableFunc(errs, func(a, b error) int { return cmp.Compare(rank(a), rank(b)) })
	return errs[0]
}

// step notes what the figures at the end do not hold.
func (s *side) step(at unit.Time, events []engine.Event, out *engine.Out, v plan.View) {
	changed := !s.begun
	for i := range events {
		switch events[i].Kind {
		case engine.NodeDown, engine.NodeUp, engine.DeviceDown, engine.DeviceUp:
			changed = true
		}
	}
	if changed {
		s.capacity = append(s.capacity, capacity{at, healthy(v)})
	}
	s.view = v
	if s.begun {
		return
	}
	s.begun = true
	s.first = Decision{Starts: []string{}, Stops: []string{}}
	if out.Commit != nil {
		for _, c := range out.Commit.Changes {
			switch c.Verb {
			case plan.Start, plan.Resume:
				s.first.Starts = append(s.first.Starts, v.Name(c.Job))
			case plan.Stop, plan.Suspend:
				s.first.Stops = append(s.first.Stops, v.Name(c.Job))
			}
		}
	}
	for id := range plan.JobID(v.Jobs()) {
		if v.Job(id).Phase == plan.Waiting {
			s.first.Waiting++
		}
	}
}

func healthy(v plan.View) (n int) {
	for id := range plan.DeviceID(v.Devices()) {
		if d := v.Device(id); !d.Status.Out() && v.Node(d.Node).Status != plan.Down {
			n++
		}
	}
	return n
}

// compare makes the answer of two futures.
func compare(base, other *side, submitted []workload.Job) Answer {
	d := ahead.Compare(&base.future, &other.future)
	a := Answer{FromUs: base.future.From, Base: base.figures(&d.Base), Alternative: other.figures(&d.Alternative), Compared: d.Base.Both,
		Jobs: []Job{}, Now: other.first}
	for _, m := range d.Moved {
		a.Jobs = append(a.Jobs, Job{m.Name, base.began(&m.Base), other.began(&m.Alternative), ended(&m.Base), ended(&m.Alternative)})
	}
	for _, name := range d.Gone {
		f, _ := base.future.Find(name)
		a.Jobs = append(a.Jobs, Job{name, base.began(&f), -1, ended(&f), -1})
	}
	for _, name := range d.Come {
		f, _ := other.future.Find(name)
		a.Jobs = append(a.Jobs, Job{name, -1, other.began(&f), -1, ended(&f)})
	}
	for i := range submitted {
		a.Submitted = append(a.Submitted, other.submitted(submitted[i].Name))
	}
	slices.SortStableFunc(a.Jobs, func(x, y Job) int { return cmp.Compare(y.moves(), x.moves()) })
	return a
}

// Keep leaves out the names of jobs that are not shown, and of the others those that
// the change matters least to, where there are very many.
func (a *Answer) Keep(shown func(job string) bool) {
	all := len(a.Jobs)
	a.Jobs = slices.DeleteFunc(a.Jobs, func(j Job) bool { return !shown(j.Job) })
	a.Jobs = a.Jobs[:min(len(a.Jobs), mostJobs)]
	a.JobsLeftOut = all - len(a.Jobs)
	for _, names := range []*[]string{&a.Now.Starts, &a.Now.Stops} {
		*names = slices.DeleteFunc(*names, func(name string) bool { return !shown(name) })
	}
}

// moves is by how much the change matters to a job: most where it ends in one future
// alone.
func (j *Job) moves() unit.Duration {
	if j.BaseEndUs < 0 || j.AlternativeEndUs < 0 {
		return unit.Duration(unit.Never)
	}
	d := j.AlternativeEndUs.Sub(j.BaseEndUs)
	return max(d, -d)
}

// began is when a job's run begins to compute: the one it has, or the first.
func (s *side) began(f *ahead.Fate) unit.Time {
	if f.Active && f.Start == unit.Never {
		v := s.config.State.View()
		return v.Run(v.Job(f.Job).Run).Began
	}
	return known(f.Start)
}

func ended(f *ahead.Fate) unit.Time { return known(f.End) }

func known(at unit.Time) unit.Time {
	if at == unit.Never {
		return -1
	}
	return at
}

// submitted says what becomes of a job that is not there yet.
func (s *side) submitted(name string) Submitted {
	f, _ := s.future.Find(name)
	out := Submitted{Job: name, StartUs: known(f.Start), EndUs: known(f.End), Preempts: []string{}}
	for _, victim := range s.future.Victims(f.Job) {
		out.Preempts = append(out.Preempts, victim.Name)
	}
	switch out.Fits = f.Start != unit.Never; {
	case !out.Fits:
		out.Words = fmt.Sprintf("%s does not start in this time: %s", name, f.Reason.Words(s.view))
	case f.Start.Sub(s.future.From) < unit.Minute && len(out.Preempts) == 0:
		out.Words = name + " fits now"
	case len(out.Preempts) == 0:
		out.Words = fmt.Sprintf("%s starts in %s and displaces nobody", name, span(f.Start.Sub(s.future.From)))
	default:
		out.Words = fmt.Sprintf("%s starts in %s and displaces %s", name, span(f.Start.Sub(s.future.From)), count(len(out.Preempts), "job"))
	}
	return out
}

// figures are what is shown of a future.
func (s *side) figures(sum *ahead.Summary) Side {
	out := Side{Strategy: s.strategy, MeanWaitS: sum.MeanWait.Seconds(), MeanJCTS: sum.MeanJCT.Seconds(), Utilisation: sum.Utilization,
		Preemptions: sum.Displacements, Finished: sum.Finished, Unfinished: sum.Unfinished, Series: []Point{}}
	if len(s.capacity) > 0 {
		out.Devices = s.capacity[len(s.capacity)-1].devices
	}
	var at []unit.Time
	for _, list := range [][]report.Point{sum.Queue, sum.Share} {
		for _, p := range list {
			at = append(at, p.At)
		}
	}
	slices.Sort(at)
	queue, share := walker{sum.Queue}, walker{sum.Share}
	for _, t := range append(slices.Compact(at), sum.To) {
		out.Series = append(out.Series, Point{t, share.at(t) * float64(s.there(t)), queue.at(t)})
	}
	return out
}

// there is how many devices there are at an instant.
func (s *side) there(at unit.Time) (n int) {
	for _, c := range s.capacity {
		if c.at <= at || n == 0 {
			n = c.devices
		}
	}
	return n
}

// walker goes along a series.
type walker struct{ left []report.Point }

func (w *walker) at(t unit.Time) float64 {
	for len(w.left) > 1 && w.left[1].At <= t {
		w.left = w.left[1:]
	}
	if len(w.left) == 0 {
		return 0
	}
	return w.left[0].Mean
}
