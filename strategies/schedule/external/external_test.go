package external

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/strategies/profile/oracle"
	"github.com/musterdl/muster/strategies/schedule/external/protocol"
	"github.com/musterdl/muster/strategies/schedule/fifo"
)

// played is a script that is played by a function of the question.
type played struct {
	hello string
	say   func(q protocol.Question) (string, error)
	ended []string // why
}

func (p *played) Ask(line []byte) (hello, reply []byte, err error) {
	var q protocol.Question
	if err := json.Unmarshal(line, &q); err != nil {
		return nil, nil, err
	}
	r, err := p.say(q)
	hello = []byte(`{"hello": "played", "protocol": 1}`)
	if p.hello != "" {
		hello = []byte(p.hello)
	}
	return hello, []byte(r), err
}

func (p *played) End(why error) { p.ended = append(p.ended, why.Error()) }

func said(r any) string {
	b, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// shortest orders by what is left.
func shortest(q protocol.Question) (string, error) {
	jobs := slices.Clone(q.Jobs)
	slices.SortStableFunc(jobs, func(a, b protocol.Job) int { return int(*a.LeftSec - *b.LeftSec) })
	ids := []plan.JobID{}
	for _, j := range jobs {
		ids = append(ids, j.ID)
	}
	return said(map[string]any{"order": ids}), nil
}

// newest lets the last job that came run, and nobody else: everyone else is stopped.
func newest(q protocol.Question) (string, error) {
	last := q.Jobs[len(q.Jobs)-1]
	return said(map[string]any{"wishes": []protocol.Wish{{Job: last.ID, Workers: last.Workers}}, "again_s": 60}), nil
}

// TestConformance: whatever a script decides, or fails to, the contract is kept.
func TestConformance(t *testing.T) {
	for name, say := range map[string]func(protocol.Question) (string, error){
		"order":  func(q protocol.Question) (string, error) { return said(map[string]any{"order": ids(q, -1)}), nil },
		"wishes": newest,
		"broken": func(protocol.Question) (string, error) { return "", errors.New("it ended") },
		"mixed": func(q protocol.Question) (string, error) { // fails for every other question, and mixes what it says
			switch q.Before % 4 {
			case 0:
				return newest(q)
			case 1:
				return said(map[string]any{"order": ids(q, 1)}), nil
			}
			return "rubbish", nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			scheduletest.ConformJoint(t, func() allocate.Joint { return New(&played{say: say}) })
		})
	}
}

// ids are those of a question, ascending or descending.
func ids(q protocol.Question, sign int) []plan.JobID {
	list := []plan.JobID{}
	for i := range q.Jobs {
		list = append(list, q.Jobs[i].ID)
	}
	slices.SortFunc(list, func(a, b plan.JobID) int { return sign * int(a-b) })
	return list
}

// three jobs of an hour, half an hour and a quarter come at once to one device.
func three() scheduletest.Jobs {
	var jobs scheduletest.Jobs
	for i, d := range []unit.Duration{unit.Hour, unit.Hour / 2, unit.Hour / 4} {
		jobs = append(jobs, scheduletest.Job{Job: workload.Job{Name: string(rune('a' + i)),
			Resources: workload.Resources{Gang: 1, Devices: 1, Share: unit.Whole}}, Truth: workload.Truth{Duration: d}})
	}
	return jobs
}

func simulate(t *testing.T, p *played, jobs scheduletest.Jobs) scheduletest.Outcome {
	t.Helper()
	o, err := scheduletest.Run(scheduletest.JointConfig(scheduletest.Nodes(1, 1, 0), jobs, New(p), oracle.Estimator{}))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestOrder: jobs that come together all wait for the script, and start as it says.
func TestOrder(t *testing.T) {
	o := simulate(t, &played{say: shortest}, three())
	for i, want := range []unit.Duration{105 * unit.Minute, 45 * unit.Minute, 15 * unit.Minute} {
		if j := o.Jobs[i]; j.End != unit.Time(want) {
			t.Errorf("job %s ended after %s, want %s", j.Name, unit.Duration(j.End), want)
		}
	}
}

// TestFallBack: a script that fails from the start leaves first in, first out; one that
// fails later leaves what it said last, and new jobs after it.
func TestFallBack(t *testing.T) {
	for _, reply := range []string{"", "rubbish", `{"order": [99]}`} {
		p := &played{say: func(protocol.Question) (string, error) { return reply, nil }}
		o := simulate(t, p, three())
		want, err := scheduletest.Run(scheduletest.Config(scheduletest.Nodes(1, 1, 0), three(), scheduletest.With(fifo.New(fifo.Default()))))
		if err != nil {
			t.Fatal(err)
		}
		for i := range want.Jobs {
			if o.Jobs[i].End != want.Jobs[i].End {
				t.Errorf("%q: job %d ended at %d, first in, first out at %d", reply, i, o.Jobs[i].End, want.Jobs[i].End)
			}
		}
		if len(p.ended) == 0 {
			t.Errorf("%q: nobody ended the process", reply)
		}
	}
	asked := 0
	p := &played{say: func(q protocol.Question) (string, error) {
		if asked++; asked == 1 {
			return shortest(q)
		}
		return "", errors.New("it ended")
	}}
	late := append(three(), scheduletest.Job{Job: workload.Job{Name: "late", Submit: unit.Time(unit.Minute),
		Resources: workload.Resources{Gang: 1, Devices: 1, Share: unit.Whole}}, Truth: workload.Truth{Duration: unit.Minute}})
	o := simulate(t, p, late)
	for i, want := range []unit.Duration{105, 45, 15, 106} {
		if end := o.Jobs[i].End; end != unit.Time(want*unit.Minute) {
			t.Errorf("job %s ended after %s, want %s", o.Jobs[i].Name, unit.Duration(end), want*unit.Minute)
		}
	}
}

// TestWishes: a script stops who it leaves out, and is asked again when it said so.
func TestWishes(t *testing.T) {
	var asked []float64
	p := &played{say: func(q protocol.Question) (string, error) { asked = append(asked, q.NowSec); return newest(q) }}
	jobs := three()
	jobs[1].Submit, jobs[2].Submit = unit.Time(unit.Minute), unit.Time(2*unit.Minute)
	for i := range jobs {
		jobs[i].Checkpoint.OnRequest = true
	}
	o := simulate(t, p, jobs)
	// The last has the device from minute 2 to 17, then the second for its other 29.
	for i, want := range []unit.Duration{105, 46, 17} {
		if end := o.Jobs[i].End; end != unit.Time(want*unit.Minute) {
			t.Errorf("job %s ended after %s, want %s", o.Jobs[i].Name, unit.Duration(end), want*unit.Minute)
		}
	}
	if len(asked) < 105 || !slices.Contains(asked, 180) {
		t.Errorf("it was asked at %v: it wanted to be every minute", asked)
	}
}

// TestMemory: what was said outlives a restart, and a reply to somebody else's question
// teaches nothing.
func TestMemory(t *testing.T) {
	s := New(nil)
	s.Learn([]byte(`{"order": [3, 1], "ranks": true, "again_s": 9, "asked": 4}`))
	s.Learn([]byte(`{"failed": "it ended", "asked": 6}`))
	s.Learn([]byte(`{"x": [[1, 0]], "room": [1000]}`))
	fresh := New(nil)
	if err := fresh.Recall(s.Remember()); err != nil || string(fresh.Remember()) != string(s.Remember()) {
		t.Errorf("%s, then %s, %v", s.Remember(), fresh.Remember(), err)
	}
	if m := fresh.memory; m.Asked != 6 || !m.Failed || len(m.Said.Order) != 2 {
		t.Errorf("%+v", m)
	}
	if err := fresh.Recall([]byte("no")); err == nil {
		t.Error("a memory of another kind was recalled")
	}
}

// TestNobodyThere: without an exchange a simulation ends, with what to do about it.
func TestNobodyThere(t *testing.T) {
	_, err := scheduletest.Run(scheduletest.JointConfig(scheduletest.Nodes(1, 1, 0), three(), New(nil), oracle.Estimator{}))
	if err == nil || !strings.Contains(err.Error(), "--strategy names") {
		t.Errorf("%v", err)
	}
	for _, c := range []Config{{}, {LimitSec: -1}, {LimitSec: 601}} {
		if strategy.Check(c) == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}
