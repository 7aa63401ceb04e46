package proof

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// step is one call of the engine, with all that a journal would keep of it.
type step struct {
	at     unit.Time
	events []engine.Event
	to     string // the strategy switched to before it
	line   []byte // the commit's
	asides []byte
	state  []byte // after it
}

// history is a scenario as it went.
type history struct {
	steps []step
	final *plan.State
	lines []string // for people
}

// live runs a scenario under the checker and records it.
func live(s scenario) (*history, error) {
	e := engine.New(s.cluster, strategies[s.strategy](), engine.DefaultPolicy())
	n := newNature(&s, func() plan.View { return e.View() })
	h := &history{}
	wake, switches := unit.Never, s.switches
	for {
		at := min(wake, n.next())
		if len(switches) > 0 {
			at = min(at, max(switches[0].at, n.now))
		}
		if at > s.until || at == unit.Never || settled(&s, e.View(), n) {
			h.final = e.State()
			return h, nil
		}
		st := step{at: at, events: n.until(at)}
		if len(switches) > 0 && switches[0].at <= at {
			st.to, switches = switches[0].to, switches[1:]
			e.Switch(strategies[st.to]())
			st.events = append(st.events, engine.Event{Kind: engine.Switched})
		}
		out := e.Step(at, st.events)
		if err := st.record(e, &out); err != nil {
			return nil, err
		}
		h.steps = append(h.steps, st)
		h.print(e.View(), &st, &out)
		for i := range out.Ready {
			n.carryOut(&out.Ready[i])
		}
		n.rerate()
		for _, ask := range out.Asks {
			n.after(answerTakes, engine.Event{Kind: engine.Answered, Answer: strategy.Answer{Asker: ask.Asker, Reply: s.answer(ask.Question)}})
		}
		if err := check(e, n, &out); err != nil {
			return nil, fmt.Errorf("at %s: %w", unit.Duration(at), err)
		}
		wake = out.Wake
	}
}

// settled reports whether everything that will happen has.
func settled(s *scenario, v plan.View, n *nature) bool {
	if v.Jobs() < len(s.jobs) || len(n.bodies) > 0 {
		return false
	}
	for id := range plan.JobID(v.Jobs()) {
		if !v.Job(id).Phase.Over() {
			return false
		}
	}
	return true
}

// record keeps what a journal and a snapshot would.
func (st *step) record(e *engine.Engine, out *engine.Out) (err error) {
	if out.Commit != nil {
		st.line = out.Commit.AppendJSON(nil, e.View())
	}
	if st.asides, err = json.Marshal(out.Asides); err != nil {
		return err
	}
	st.state, err = save(e)
	return err
}

func save(e *engine.Engine) ([]byte, error) {
	var b bytes.Buffer
	err := e.State().Save(&b)
	return b.Bytes(), err
}

// check proves the state legal, nature unharmed and the jobs all there.
func check(e *engine.Engine, n *nature, out *engine.Out) error {
	if err := e.State().Check(); err != nil {
		return err
	}
	if n.wrong != nil {
		return n.wrong
	}
	if out.Forgot != nil {
		return out.Forgot
	}
	v := e.View()
	alive := map[plan.JobID]bool{}
	for _, b := range n.bodies {
		if run := e.State().RunOf(b.job, b.attempt); run != b.run {
			return fmt.Errorf("%s.%d lives and the engine does not know it", v.Name(b.job), b.attempt)
		}
		alive[b.job] = true
	}
	for id := range plan.JobID(v.Jobs()) {
		j := v.Job(id)
		if j.Phase == plan.Active && v.Run(j.Run).Status != plan.Promised && !alive[id] {
			return fmt.Errorf("%s is %s and nothing of it lives", v.Name(id), v.Run(j.Run).Status)
		}
	}
	return nil
}

// conserve counts the jobs: in = finished + failed + refused + alive.
func (h *history) conserve(s *scenario) (finished int, err error) {
	counts := map[plan.Phase]int{}
	for id := range h.final.Jobs {
		counts[h.final.Jobs[id].Phase]++
	}
	alive := 0
	for p := plan.Waiting; p <= plan.Active; p++ {
		alive += counts[p]
	}
	if in := len(h.final.Jobs); in != counts[plan.Finished]+counts[plan.Failed]+counts[plan.Refused]+counts[plan.Cancelled]+alive {
		return 0, fmt.Errorf("%d jobs in, %v", in, counts)
	}
	if alive > 0 || len(h.final.Jobs) < len(s.jobs) {
		return 0, fmt.Errorf("by %s not all jobs have ended: %s", unit.Duration(s.until), table(h.final.View()))
	}
	return counts[plan.Finished], nil
}

// restarted lets a new engine take over from a snapshot after every so many events,
// and reports the first commit that differs from the one of the history.
func (h *history) restarted(s *scenario, every int) error {
	name := s.strategy
	e := engine.New(s.cluster, strategies[name](), engine.DefaultPolicy())
	for i, st := range h.steps {
		if st.to != "" {
			name = st.to
			e.Switch(strategies[name]())
		}
		out := e.Step(st.at, st.events)
		var line []byte
		if out.Commit != nil {
			line = out.Commit.AppendJSON(nil, e.View())
		}
		if !bytes.Equal(line, st.line) {
			return fmt.Errorf("step %d at %s: the history has\n%swith restarts it is\n%s", i, unit.Duration(st.at), st.line, line)
		}
		if i%every != 0 {
			continue
		}
		state, err := save(e)
		if err != nil {
			return err
		}
		if !alike(state, st.state) {
			return fmt.Errorf("step %d at %s: the same commits led to another state: %s", i, unit.Duration(st.at), firstDifference(st.state, state))
		}
		back, err := plan.Load(state)
		if err != nil {
			return err
		}
		e = engine.Restore(back, strategies[name](), engine.DefaultPolicy())
		if out := e.Step(st.at, []engine.Event{{Kind: engine.Rebuilt}}); out.Commit != nil {
			return fmt.Errorf("step %d at %s: a restart alone led to the commit %s", i, unit.Duration(st.at), out.Commit.AppendJSON(nil, e.View()))
		}
	}
	return nil
}

// folded rebuilds the state from what a journal keeps, asking no strategy.
func (h *history) folded(s *scenario) error {
	e := engine.New(s.cluster, idle{}, engine.DefaultPolicy())
	for i, st := range h.steps {
		var asides []plan.Aside
		if err := json.Unmarshal(st.asides, &asides); err != nil {
			return err
		}
		if _, err := e.Fold(st.at, st.events, st.line, asides); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
		if i%8 != 0 && i < len(h.steps)-1 {
			continue
		}
		state, err := save(e)
		if err != nil {
			return err
		}
		if !bytes.Equal(state, st.state) {
			return fmt.Errorf("step %d at %s: folding the journal leads to another state: %s", i, unit.Duration(st.at), firstDifference(st.state, state))
		}
	}
	return nil
}

// idle decides nothing.
type idle struct{}

func (idle) Decide(*plan.Draft, schedule.Trigger) unit.Time { return unit.Never }

// alike reports whether two saved states are equal but for the reasons why jobs still
// wait: a strategy that was restarted looks at all of them again, and explains them
// anew.
func alike(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var unexplained [2]bytes.Buffer
	for i, state := range [][]byte{a, b} {
		s, err := plan.Load(state)
		if err != nil {
			return false
		}
		for id := range s.Jobs {
			if s.Jobs[id].Phase == plan.Waiting {
				s.Jobs[id].Reason = plan.Reason{}
			}
		}
		if err := s.Save(&unexplained[i]); err != nil {
			return false
		}
	}
	return bytes.Equal(unexplained[0].Bytes(), unexplained[1].Bytes())
}

// firstDifference says in which record two saved states differ.
func firstDifference(want, got []byte) string {
	a, errA := plan.Load(want)
	b, errB := plan.Load(got)
	if errA != nil || errB != nil {
		return fmt.Sprint(errA, errB)
	}
	for _, part := range []struct{ a, b any }{{a.Jobs, b.Jobs}, {a.Runs, b.Runs}, {a.Grants, b.Grants}, {a.Devices, b.Devices},
		{a.Nodes, b.Nodes}, {a.Pending, b.Pending}, {a.Plans, b.Plans}, {a.Memory, b.Memory}, {a.NextChange, b.NextChange}, {a.Commits, b.Commits}} {
		if x, y := fmt.Sprintf("%+v", part.a), fmt.Sprintf("%+v", part.b); x != y {
			return fmt.Sprintf("%T\nwant %s\ngot  %s", part.a, x, y)
		}
	}
	return "in what is not compared here"
}
