// Package engine is the pure core: events in, decisions out. It applies what
// happened to the state, calls the one Scheduler when something it could act on
// changed, and hands back the commit and the changes that are ready to be carried
// out. It reads no clock, opens nothing, starts no goroutine and draws no chance,
// so the same events give the same bytes in every driver.
package engine

import (
	"fmt"
	"slices"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// Policy is what the engine does about failures, the same under every strategy.
type Policy struct {
	// BackOff is the wait after a job's first failure; it doubles with each further
	// one up to BackOffMost.
	BackOff, BackOffMost unit.Duration
	// CrashLoop holds a job after so many failures in a row that were its own making
	// and forgiven.
	CrashLoop int32
	// SickNode quarantines a node after so many starts in a row failed on it. SickPause
	// later one start is tried there: if that fails too, the next is tried after twice as
	// long, up to BackOffMost. 0 leaves the node closed until a person opens it.
	SickNode  int32
	SickPause unit.Duration `json:",omitempty"`
}

// DefaultPolicy returns the policy used where none is configured.
func DefaultPolicy() Policy {
	return Policy{BackOff: 10 * unit.Second, BackOffMost: 10 * unit.Minute, CrashLoop: 5, SickNode: 3, SickPause: 10 * unit.Second}
}

// Engine turns events into commits. It is not safe for concurrent use.
type Engine struct {
	state  *plan.State
	sched  decider
	policy Policy

	why      schedule.Trigger
	touched  []bool // by job: is in why.Jobs
	wake     unit.Time
	backoff  timers
	sick     quarantines
	ready    []plan.Change // to be carried out
	forced   []plan.Change // stops that people and failures asked for in this step
	asks     []strategy.Ask
	over     []plan.JobID // ended in this step
	changed  []plan.JobID // in this step
	confirms []int64      // changes confirmed in this step, or that never will be
	asides   []plan.Aside
	refolded []plan.Change // made by Fold
	forgot   error         // why the strategy's memory could not be recalled

	tables
}

// tables find the ids of what a State keeps in tables.
type tables struct {
	shapes  map[plan.Shape]int32
	names   map[string]plan.JobID // latest job of each name
	tenants map[string]int32
	users   map[string]int32
	classes map[string]int32
	// What jobs run, counted from 0.
	commands map[string]int32
}

// tablesOf makes the tables of a State.
func tablesOf(s *plan.State) tables {
	t := tables{shapes: map[plan.Shape]int32{}, names: map[string]plan.JobID{}, tenants: map[string]int32{}, users: map[string]int32{}, classes: map[string]int32{}, commands: map[string]int32{}}
	for i, shape := range s.Shapes {
		t.shapes[shape] = int32(i)
	}
	for i, name := range s.Names {
		t.names[name] = plan.JobID(i)
	}
	for i, name := range s.Tenants {
		t.tenants[name] = int32(i)
	}
	for i, name := range s.Users {
		t.users[name] = int32(i)
	}
	for i, name := range s.Classes {
		t.classes[name] = int32(i)
	}
	for i, name := range s.Commands {
		t.commands[name] = int32(i)
	}
	return t
}

// Out is what one step yields: at most one commit, and the changes, of this and
// earlier commits, that are now ready to be carried out. It is valid until the
// next step.
type Out struct {
	Commit *plan.Commit
	Ready  []plan.Change
	Asks   []strategy.Ask
	// Asides are this step's edits of the state that are nobody's to carry out.
	Asides []plan.Aside
	// Over are the jobs that ended in this step, whatever their end.
	Over []plan.JobID
	// Touched are the jobs of which the state may say something else now, in no
	// particular order; one may come twice.
	Touched []plan.JobID
	// Closed are the nodes that were quarantined in this step, Opened those that a start
	// has succeeded on after a quarantine.
	Closed, Opened []plan.NodeID
	// Forgot says why the strategy starts afresh although it had something to
	// remember; nil where it does not.
	Forgot error
	// Wake is when Step wants to be called even if nothing happens.
	Wake unit.Time
}

// decider is a Scheduler with what else it can do, nil where it cannot.
type decider struct {
	scheduler schedule.Scheduler
	rebuilder schedule.Rebuilder
	memory    strategy.Remembering
	asker     strategy.Asker
}

func deciderOf(s schedule.Scheduler) decider {
	d := decider{scheduler: s}
	d.rebuilder, _ = strategy.Can[schedule.Rebuilder](s)
	d.memory, _ = strategy.Can[strategy.Remembering](s)
	d.asker, _ = strategy.Can[strategy.Asker](s)
	return d
}

// New returns an engine over an idle cluster.
func New(c *cluster.Cluster, sched schedule.Scheduler, policy Policy) *Engine {
	return Restore(plan.NewState(c), sched, policy)
}

// Restore returns an engine that goes on from a state.
func Restore(s *plan.State, sched schedule.Scheduler, policy Policy) *Engine {
	e := &Engine{state: s, sched: deciderOf(sched), policy: policy, wake: unit.Never, backoff: newTimers(), touched: make([]bool, len(s.Jobs)), tables: tablesOf(s)}
	for i := range s.Jobs {
		if s.Jobs[i].Phase == plan.Backoff {
			e.backoff.add(s.Jobs[i].NotBefore, plan.JobID(i))
		}
	}
	e.sick.findNext(s, &e.policy)
	e.rebuild()
	return e
}

// Govern lets another policy hold from the next Step on.
func (e *Engine) Govern(policy Policy) {
	e.policy = policy
	e.sick.findNext(e.state, &e.policy)
}

// Switch gives the decisions to another Scheduler. The next Step must carry the
// event Switched, which takes back what only the old one understood.
func (e *Engine) Switch(sched schedule.Scheduler) { e.sched = deciderOf(sched) }

// switched takes back what the strategy before has left in the State: its memos,
// its memory, its leases, and the runs that it alone would have resumed. No job is
// lost: those runs are stopped and their jobs queue.
func (e *Engine) switched() {
	for i := range e.state.Jobs {
		e.state.Jobs[i].Memo = [2]int64{}
	}
	e.state.Memory = nil
	for i := range e.state.Runs {
		r := &e.state.Runs[i]
		r.Until = unit.Never
		if r.Status == plan.Suspended || r.Status == plan.Resuming {
			e.stop(r.Job, plan.Reason{Code: plan.Switched})
		}
	}
	e.rebuild()
}

// rebuild lets the Scheduler build its caches anew and recall what it remembers. All
// live jobs are in the next trigger.
func (e *Engine) rebuild() {
	if r := e.sched.rebuilder; r != nil {
		r.Rebuild(e.state.View())
	}
	if r := e.sched.memory; r != nil && len(e.state.Memory) > 0 {
		if err := r.Recall(e.state.Memory); err != nil {
			e.forgot = fmt.Errorf("recalling what the strategy remembers: %w", err)
			e.state.Memory = nil
		}
	}
	for i := range e.state.Jobs {
		if !e.state.Jobs[i].Phase.Over() {
			e.touch(plan.JobID(i))
		}
	}
	e.why.Room, e.why.Rebuilt = true, true
}

// Answerer is who answers what the Scheduler asks; nil where it does not say.
func (e *Engine) Answerer() strategy.Answerer {
	a, _ := strategy.Can[strategy.Answerer](e.sched.scheduler)
	return a
}

// Known is what the strategy says that it ranks a job by; nil where it does not say.
func (e *Engine) Known(job plan.JobID) []string {
	if k, ok := strategy.Can[schedule.Knower](e.sched.scheduler); ok {
		return k.Known(e.View(), job)
	}
	return nil
}

// View returns the read-only state.
func (e *Engine) View() plan.View { return e.state.View() }

// State returns the state itself, for snapshots and checks; nobody else edits it.
func (e *Engine) State() *plan.State { return e.state }

// Due reports whether an instant that the engine asked to be woken at has come.
func (e *Engine) Due(now unit.Time) bool {
	return min(e.backoff.next(), e.nextWindow(), e.sick.next) <= now || !e.state.Paused && e.wake <= now
}

// Find returns the latest job of a name.
func (e *Engine) Find(name string) (plan.JobID, bool) {
	id, ok := e.names[name]
	return id, ok
}

// Expect makes room in the tables for so many jobs more.
func (e *Engine) Expect(jobs int) {
	e.state.Expect(jobs)
	e.touched = slices.Grow(e.touched, jobs)
	if len(e.names) == 0 {
		e.names = make(map[string]plan.JobID, jobs)
	}
}

// Step applies the events of one instant and decides. An event that makes no sense
// (a report of an old attempt, a request about an ended job) is ignored; requests
// are checked by Accept before they are journaled.
func (e *Engine) Step(now unit.Time, events []Event) Out {
	if now < e.state.Now {
		now = e.state.Now // a clock that went back: time stands still until it catches up
	}
	e.happen(now, events)
	out := Out{Commit: e.decide()}
	e.prune()
	out.Ready, out.Asks, out.Over, out.Asides = e.ready, e.asks, e.over, e.asides
	out.Touched = e.touchedBy(&out, events)
	out.Forgot, e.forgot = e.forgot, nil
	out.Closed, out.Opened = e.sick.closed, e.sick.opened
	out.Wake = min(e.wake, e.backoff.next(), e.nextWindow(), e.sick.next)
	if e.state.Paused {
		out.Wake = unit.Never
	}
	return out
}

// happen applies the events of one instant. What they confirm is let go only when
// all are in: a start must not be handed over to a node that is lost in the same
// instant.
func (e *Engine) happen(now unit.Time, events []Event) {
	e.state.Age(now)
	e.state.Now = now
	e.ready, e.asks, e.over, e.confirms, e.changed = e.ready[:0], nil, e.over[:0], e.confirms[:0], e.changed[:0]
	e.sick.closed, e.sick.opened = e.sick.closed[:0], e.sick.opened[:0]
	due := e.Due(now)
	for i := range events {
		e.apply(&events[i])
	}
	if due || slices.ContainsFunc(events, func(ev Event) bool { return ev.Kind != Rebuilt }) {
		e.why.Rebuilt = false
	}
	e.endBackoffs()
	e.turnWindows()
	e.sick.tryNodes(e.state, &e.policy, &e.why)
	for _, change := range e.confirms {
		for _, c := range e.state.Confirm(change) {
			if e.dispatch(c); c.Verb == plan.Start {
				e.touch(c.Job) // what was a promise may be asked to give way from now on
			}
		}
	}
}

// prune leaves out what was to be handed over and was overtaken in the same step.
func (e *Engine) prune() {
	e.ready = slices.DeleteFunc(e.ready, func(c plan.Change) bool {
		return c.Verb.OfRun() && e.state.RunOf(c.Job, c.Attempt) != c.Run
	})
}

// decide calls the Scheduler if there is anything to decide about, and returns its
// changes behind those that people and failures forced.
func (e *Engine) decide() *plan.Commit {
	if e.wake <= e.state.Now {
		e.why.Wake = true
	}
	commit := plan.Commit{At: e.state.Now, Changes: e.forced}
	if !e.state.Paused && (len(e.why.Jobs) > 0 || e.why.Room || e.why.Wake || len(e.why.Answers)+len(e.why.Observed) > 0) {
		e.ask(&commit)
	}
	e.forced, e.asides = nil, commit.Asides
	if len(commit.Changes) == 0 {
		return nil
	}
	e.state.Commits++
	commit.Seq = e.state.Commits
	made := commit // most decisions come to none
	return &made
}

// ask lets the Scheduler decide and hands over what is ready.
func (e *Engine) ask(commit *plan.Commit) {
	d := e.state.Edit()
	e.wake = e.sched.scheduler.Decide(d, e.why)
	if e.wake <= e.state.Now {
		panic(fmt.Sprintf("engine: the scheduler wants to be woken at %d, which is not after %d", e.wake, e.state.Now))
	}
	if r := e.sched.memory; r != nil {
		d.Remember(r.Remember())
	}
	e.saw()
	if a := e.sched.asker; a != nil {
		e.asks = a.Asks()
	}
	changes, notes := d.Commit()
	commit.Notes, commit.Asides = notes, d.Asides()
	if commit.Changes == nil {
		commit.Changes = changes
	} else {
		commit.Changes = append(commit.Changes, changes...)
	}
	for i := range changes {
		e.send(&changes[i])
	}
}

// saw empties the trigger: those in it were seen, and not refused.
func (e *Engine) saw() {
	e.changed = append(e.changed, e.why.Jobs...)
	for _, j := range e.why.Jobs {
		e.touched[j] = false
		e.state.Jobs[j].Admitted = true
	}
	e.why = schedule.Trigger{Jobs: e.why.Jobs[:0], Answers: e.why.Answers[:0], Observed: e.why.Observed[:0]}
}

// touchedBy are the jobs whose rows a step may have changed: those that were in the
// trigger or are to be in the next, and those of its changes, asides and reports.
func (e *Engine) touchedBy(out *Out, events []Event) []plan.JobID {
	e.changed = append(append(e.changed, e.why.Jobs...), out.Over...)
	for i := range events {
		if ev := &events[i]; ev.Kind != Submit && ev.Kind >= Cancel && e.valid(ev.Job) {
			e.changed = append(e.changed, ev.Job)
		}
	}
	if out.Commit != nil {
		for i := range out.Commit.Changes {
			if job := out.Commit.Changes[i].Job; job != plan.None {
				e.changed = append(e.changed, job)
			}
		}
	}
	for i := range out.Ready {
		if out.Ready[i].Job != plan.None {
			e.changed = append(e.changed, out.Ready[i].Job)
		}
	}
	for i := range out.Asides {
		switch a := &out.Asides[i]; a.Kind {
		case "lease":
			if run := plan.RunID(a.Job); int(run) < len(e.state.Runs) && e.state.Runs[run].Status != plan.Gone {
				e.changed = append(e.changed, e.state.Runs[run].Job)
			}
		case "estimate", "memo", "why":
			e.changed = append(e.changed, a.Job)
		}
	}
	return e.changed
}

// send hands a change of this commit to the driver, unless it has to wait.
func (e *Engine) send(c *plan.Change) {
	switch {
	case c.Verb == plan.Refuse:
		e.ended(c.Job)
	case c.Verb == plan.Finish:
		if e.state.Jobs[c.Job].Leaving == plan.None {
			e.ended(c.Job)
		} // else once its run is gone
	case c.Verb == plan.Withdraw:
	case len(c.After) == 0:
		e.dispatch(*c)
	}
}

// dispatch hands over a change whose time has come; a start occupies its room.
func (e *Engine) dispatch(c plan.Change) {
	if c.Verb == plan.Start {
		if e.state.RunOf(c.Job, c.Attempt) != c.Run {
			return // withdrawn meanwhile
		}
		e.state.Dispatch(c.Run)
	}
	e.ready = append(e.ready, c)
}

// confirm lets go, at the end of the instant's events, of what waited for a change.
func (e *Engine) confirm(change int64) {
	if change != 0 {
		e.confirms = append(e.confirms, change)
	}
}

// touch puts a job in the trigger of the next decision.
func (e *Engine) touch(job plan.JobID) {
	for int(job) >= len(e.touched) {
		e.touched = append(e.touched, false)
	}
	if !e.touched[job] {
		e.touched[job] = true
		e.why.Jobs = append(e.why.Jobs, job)
	}
}
