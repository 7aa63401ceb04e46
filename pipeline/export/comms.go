package export

import (
	"fmt"
	"slices"
	"strings"

	"github.com/musterdl/muster/pipeline"
)

// Comms writes the same with what ranks send and receive (format compute_comms). Sends follow
// the pass whose output they carry; a rank receives where its turn would be if ranks worked
// step by step, in the order in which the others send, so that both sides of each pair of ranks
// have one order.
//
// Reduced, a stage's last backward pass is followed by a cell that has its gradients scaled and
// summed over replicas: PyTorch since 2.10 does neither without one, and others know none.
func Comms(s *pipeline.Schedule, reduced bool) (string, error) {
	if err := expressible(s); err != nil {
		return "", err
	}
	l := lowering{s: s, arrived: map[string]bool{}, reduced: reduced, done: make([]int32, s.Stages()), cells: make([][]string, len(s.Orders)), left: make([][]action, len(s.Orders))}
	for r := range s.Orders {
		l.left[r] = actions(s, r)
	}
	for l.step() {
	}
	var b strings.Builder
	for r := range s.Orders {
		if len(l.left[r]) > 0 {
			return "", fmt.Errorf("rank %d never comes to %s: the orders wait for each other in a circle", r, l.left[r][0].cell())
		}
		b.WriteString(strings.Join(l.cells[r], ",") + "\n")
	}
	return b.String(), nil
}

// lowering adds sends and receives to passes.
type lowering struct {
	s       *pipeline.Schedule
	arrived map[string]bool // by the cell that receives it
	reduced bool
	done    []int32 // backward passes by stage
	cells   [][]string
	left    [][]action
}

// step has each rank do what it does next, if it can, and reports whether any could.
func (l *lowering) step() (moved bool) {
	for r := range l.left {
		if len(l.left[r]) == 0 || !l.ready(l.left[r][0]) {
			continue
		}
		a := l.left[r][0]
		l.left[r] = l.left[r][1:]
		l.cells[r] = append(l.cells[r], a.cell())
		for _, op := range a {
			l.hand(r, op)
		}
		for _, op := range a {
			l.reduce(r, op)
		}
		moved = true
	}
	return moved
}

// ready reports whether what a rank needs for its next passes is there.
func (l *lowering) ready(a action) bool {
	return !slices.ContainsFunc(a, func(op pipeline.Op) bool {
		need := l.needs(op)
		return need != "" && !l.arrived[need]
	})
}

// needs is the cell that brings what a pass waits for from another stage; empty where it waits
// for none.
func (l *lowering) needs(op pipeline.Op) string {
	switch {
	case op.Kind == pipeline.Forward && op.Stage > 0:
		return fmt.Sprintf("%dRECV_F%d", op.Stage, op.Micro)
	case (op.Kind == pipeline.Backward || op.Kind == pipeline.Input) && int(op.Stage) < l.s.Stages()-1:
		return fmt.Sprintf("%dRECV_B%d", op.Stage, op.Micro)
	}
	return ""
}

// hand gives what a pass has made to the stage that waits for it: within a rank at once.
func (l *lowering) hand(rank int, op pipeline.Op) {
	to, letter := op.Stage+1, "F"
	switch op.Kind {
	case pipeline.Weight:
		return
	case pipeline.Backward, pipeline.Input:
		to, letter = op.Stage-1, "B"
	}
	if to < 0 || int(to) >= l.s.Stages() {
		return
	}
	recv := fmt.Sprintf("%dRECV_%s%d", to, letter, op.Micro)
	l.arrived[recv] = true
	if peer := l.s.Rank(to, op.Micro); int(peer) != rank {
		l.cells[rank] = append(l.cells[rank], fmt.Sprintf("%dSEND_%s%d", op.Stage, letter, op.Micro))
		l.cells[peer] = append(l.cells[peer], recv)
	}
}

// reduce has the gradients of a stage reduced after the last pass that adds to them.
func (l *lowering) reduce(rank int, op pipeline.Op) {
	if !l.reduced || op.Kind != pipeline.Backward && op.Kind != pipeline.Weight {
		return
	}
	if l.done[op.Stage]++; l.done[op.Stage] == l.s.Microbatches {
		l.cells[rank] = append(l.cells[rank], fmt.Sprintf("%dREDUCE_GRAD", op.Stage))
	}
}
