// Package external lets a script decide: a child process that is asked one line of JSON
// and answers one (docs/external.md is the protocol). It may rank what waits, or say
// what every job is to have. Its decisions are replies to questions, which are events:
// a history that was recorded is decided again without the script.
//
// A script may hang, exit or print rubbish. Then what it wished or ranked last goes
// first, nobody is stopped, and all other jobs follow by id; with nothing ever said that
// is first in, first out. What is new waits for the answer to the question that names
// it, so that a script is not overtaken by its own absence.
//
// The process is somebody else's: this package is handed an Exchange. Left out: a script
// in the place of a placer, a sizer or an estimator, which are asked too often for a
// process; exact places and the terms of runs, which a script cannot know the state of.
package external

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/figures"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/strategies/schedule/external/protocol"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "external", Step: "schedule", Part: allocate.JointPart, Status: "after",
	Source:      "ours; the protocol is docs/external.md",
	Idea:        "a script beside Muster ranks the jobs, or says what each is to have, over its standard streams",
	Granularity: "job", Goal: "latency",
	Needs: "whatever the script uses of what it is told: sizes, estimates, service, room",
	Live:  "the process is kept, limited in time and started anew when it fails; while it fails, jobs go by id",
}

// Config says which script decides.
type Config struct {
	// Command is the program and its arguments.
	Command []string `yaml:"command"`
	// LimitSec is how long the script may take for an answer.
	LimitSec float64 `yaml:"limit-s" above:"0" most:"600"`
}

// Default returns the configuration used where none is given: no script yet.
func Default() Config { return Config{LimitSec: 5} }

// Exchange is the conversation with the process of a script, whoever keeps it.
type Exchange interface {
	// Ask writes a line and returns the one that comes back, and the first one that the
	// process wrote when it was started.
	Ask(line []byte) (hello, reply []byte, err error)
	// End ends the process, of which nothing sensible came; the next Ask starts another.
	End(why error)
}

// Script is the decider.
type Script struct {
	exchange Exchange // nil where no process may be started
	memory
	posed uint64 // the situation of the question that is out; 0 is none
	bytes []byte // of the memory; nil where it changed
	rank  []int32
}

// memory is what must outlive a restart.
type memory struct {
	Said    protocol.Reply `json:"said"`    // the last reply that could be used
	Asked   plan.JobID     `json:"asked"`   // smaller ids were there at a question that came back
	Settled uint64         `json:"settled"` // the situation of the last question that came back
	Again   unit.Time      `json:"again"`   // when the script wants to be asked though nothing happened
	Failed  bool           `json:"failed"`  // the last question, if any, has no reply that could be used
}

var (
	_ allocate.Joint = (*Script)(nil)
	_ allocate.Slow  = (*Script)(nil)
)

// New returns the decider that talks to a script.
func New(e Exchange) *Script {
	return &Script{exchange: e, memory: memory{Again: unit.Never, Failed: true}}
}

// Question is put when jobs came, ended, failed or changed, when nodes did, and when the
// script said it wants to be asked again.
func (s *Script) Question(v plan.View, jobs []plan.JobID) []byte {
	if s.posed != 0 { // it came back, and there was nothing to learn
		s.Settled, s.Failed, s.posed, s.bytes = s.posed, true, 0, nil
		s.Asked = max(s.Asked, plan.JobID(v.Jobs()))
	}
	if len(jobs) == 0 {
		s.Again, s.bytes = unit.Never, nil
		return nil
	}
	now := situation(v, jobs)
	if now == s.Settled && v.Now() < s.Again {
		return nil
	}
	s.posed, s.Again, s.bytes = now, unit.Never, nil
	b, err := json.Marshal(protocol.Ask(v, jobs))
	if err != nil {
		panic("external: " + err.Error()) // plain figures always encode
	}
	return b
}

// situation digests what a question is put anew for. Time passing is not among it, nor
// is what this decider's own wishes cause.
func situation(v plan.View, jobs []plan.JobID) uint64 {
	h, b := fnv.New64a(), make([]byte, 0, 64)
	for _, id := range jobs {
		j := v.Job(id)
		b = figures.Put(b[:0], int64(id), int64(j.Failures), int64(j.Restarts), int64(j.Priority), int64(j.Estimate))
		h.Write(b)
	}
	for id := range plan.NodeID(v.Nodes()) {
		h.Write([]byte{byte(v.Node(id).Status)})
	}
	return max(1, h.Sum64())
}

// Solve asks the script. What is wrong with its reply is itself a reply, and journaled.
func (s *Script) Solve(asked []byte) ([]byte, error) {
	var q protocol.Question
	if err := json.Unmarshal(asked, &q); err != nil {
		return nil, fmt.Errorf("the question to the script: %w", err)
	}
	if s.exchange == nil {
		return nil, errors.New("no script is started here: muster simulate, compare and up do, for the one that --strategy names")
	}
	var r protocol.Reply
	hello, line, err := s.exchange.Ask(asked)
	if err == nil {
		if err = protocol.Greeted(hello); err == nil {
			r, err = q.Read(line)
		}
		if err != nil {
			s.exchange.End(err)
		}
	}
	if err != nil {
		r = protocol.Reply{Failed: err.Error()}
	}
	r.Asked = q.Before
	return json.Marshal(r)
}

// Learn takes the reply to the question that was out.
func (s *Script) Learn(line []byte) {
	var r protocol.Reply
	if json.Unmarshal(line, &r) != nil || r.Asked == 0 {
		return // it answers what another strategy asked
	}
	s.Settled, s.posed, s.bytes = s.posed, 0, nil
	s.Asked = max(s.Asked, r.Asked)
	if s.Failed = r.Failed != ""; !s.Failed {
		s.Said = r
	}
}

// Wishes says of every job what the script last said of it.
func (s *Script) Wishes(v plan.View, jobs []plan.JobID, into []allocate.Wish) ([]allocate.Wish, unit.Time) {
	if s.Said.AgainSec > 0 && s.Again == unit.Never && s.posed == 0 && len(jobs) > 0 {
		s.Again, s.bytes = v.Now().Add(unit.Seconds(s.Said.AgainSec)), nil
	}
	for len(s.rank) < v.Jobs() {
		s.rank = append(s.rank, 0)
	}
	for i, id := range jobs {
		s.rank[id] = int32(i) + 1 // it is alive, and nothing was wished for it yet
	}
	wish := func(w allocate.Wish) {
		if int(w.Job) < len(s.rank) && s.rank[w.Job] != 0 {
			s.rank[w.Job], w.Reason = 0, plan.Reason{Code: plan.RoundPlan}
			into = append(into, w)
		}
	}
	for _, w := range s.Said.Wishes {
		models := uint64(0)
		for _, name := range w.Models {
			if m, ok := v.Cluster().ModelID(name); ok {
				models |= 1 << m
			}
		}
		wish(allocate.Wish{Job: w.Job, Workers: w.Workers, Models: models})
	}
	all := s.Said.Ranks || s.Failed // then nobody is stopped, and nobody left out
	for _, id := range jobs {
		if run := v.Job(id).Run; run != plan.None && all {
			wish(allocate.Wish{Job: id, Workers: v.Run(run).Workers})
		}
	}
	for _, id := range s.Said.Order {
		if int(id) < v.Jobs() {
			wish(allocate.Wish{Job: id, Workers: v.Shape(id).Gang})
		}
	}
	for _, id := range jobs {
		if all && id < s.Asked { // one that no question named yet waits for it to come back
			wish(allocate.Wish{Job: id, Workers: v.Shape(id).Gang})
		}
		s.rank[id] = 0
	}
	if s.posed != 0 {
		return into, unit.Never // the answer is the next that happens
	}
	return into, s.Again
}

// Remember encodes what was said and heard.
func (s *Script) Remember() []byte {
	if s.bytes == nil {
		b, err := json.Marshal(s.memory)
		if err != nil {
			panic("external: " + err.Error()) // plain figures always encode
		}
		s.bytes = b
	}
	return s.bytes
}

// Recall reads what Remember wrote. A question that was out is put again.
func (s *Script) Recall(b []byte) error {
	m := memory{Again: unit.Never}
	if err := json.Unmarshal(b, &m); err != nil {
		return fmt.Errorf("the memory of an external decider: %w", err)
	}
	s.memory, s.posed, s.bytes = m, 0, nil
	return nil
}
