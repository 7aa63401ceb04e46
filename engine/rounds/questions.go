package rounds

import (
	"fmt"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/plan"
)

// Questions are those that a slow decider puts outside, one at a time.
type Questions struct {
	slow  allocate.Slow // nil where it asks nothing
	asked []byte        // the question that is out, nil for none
	asks  []strategy.Ask
}

// pose puts the decider's question about the jobs in its line.
func (q *Questions) pose(v plan.View, line []plan.JobID) {
	if q.slow == nil || q.asked != nil {
		return
	}
	if question := q.slow.Question(v, line); question != nil {
		q.asked = question
		q.asks = append(q.asks, strategy.Ask{Question: question})
	}
}

// learn has the decider learn from what was answered.
func (q *Questions) learn(answers []strategy.Answer) {
	if q.slow == nil {
		return
	}
	for _, a := range answers {
		if q.asked = nil; len(a.Reply) > 0 {
			q.slow.Learn(a.Reply)
		}
	}
}

// Asks hands over the questions of the last decision.
func (q *Questions) Asks() (asks []strategy.Ask) {
	asks, q.asks = q.asks, nil
	return asks
}

// Answer solves a question that the decider put.
func (q *Questions) Answer(question []byte) ([]byte, error) {
	if q.slow == nil {
		return nil, fmt.Errorf("this strategy asks nothing")
	}
	return q.slow.Solve(question)
}
