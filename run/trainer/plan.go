package trainer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Plan is a pipeline-parallel plan as step 4 writes it: where the model is cut, and
// in which order each stage works. The trainer executes exactly this.
type Plan struct {
	Stages       int `json:"stages"`
	Microbatches int `json:"microbatches"`
	// Cuts are the first layers of the second and later stages. Layer 0 is the
	// embedding, then come the blocks, the last is the head.
	Cuts []int `json:"cuts"`
	// Orders hold, per stage, "F3" for the forward pass of microbatch 3 and "B3" for
	// its backward pass.
	Orders [][]string `json:"orders"`
}

// op is one entry of an order.
type op struct {
	backward   bool
	microbatch int
}

// ParsePlan reads a plan from JSON.
func ParsePlan(data []byte) (*Plan, error) {
	p := &Plan{}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(p); err != nil {
		return nil, fmt.Errorf("not a plan: %w", err)
	}
	return p, nil
}

// planLimit bounds stages and microbatches.
const planLimit = 1 << 14

// Validate checks the plan against a job: cuts that leave no stage empty, every pass
// of every microbatch once per stage, and orders that do not wait for each other.
func (p *Plan) Validate(c Config) error {
	if p.Stages < 1 || p.Stages > c.depth() {
		return fmt.Errorf("stages is %d: expected 1 to %d, the number of layers", p.Stages, c.depth())
	}
	if p.Microbatches < 1 || p.Microbatches > min(c.Batch, planLimit) {
		return fmt.Errorf("microbatches is %d: expected 1 to %d, the batch", p.Microbatches, min(c.Batch, planLimit))
	}
	if len(p.Cuts) != p.Stages-1 {
		return fmt.Errorf("cuts has %d entries: %d stages need %d", len(p.Cuts), p.Stages, p.Stages-1)
	}
	for i, before := 0, 0; i < len(p.Cuts); i++ {
		if p.Cuts[i] <= before || p.Cuts[i] >= c.depth() {
			return fmt.Errorf("cuts[%d] is %d: expected %d to %d", i, p.Cuts[i], before+1, c.depth()-1)
		}
		before = p.Cuts[i]
	}
	if len(p.Orders) != p.Stages {
		return fmt.Errorf("orders has %d entries: expected one per stage, %d", len(p.Orders), p.Stages)
	}
	orders := make([][]op, p.Stages)
	for s := range orders {
		order, err := p.order(s)
		if err != nil {
			return err
		}
		orders[s] = order
	}
	return p.rehearse(orders)
}

// layers returns the range of layers of a stage of a model with this depth.
func (p *Plan) layers(stage, depth int) (from, to int) {
	to = depth
	if stage > 0 {
		from = p.Cuts[stage-1]
	}
	if stage < p.Stages-1 {
		to = p.Cuts[stage]
	}
	return from, to
}

// order parses a stage's order and checks that it is complete.
func (p *Plan) order(stage int) ([]op, error) {
	names := p.Orders[stage]
	if len(names) != 2*p.Microbatches {
		return nil, fmt.Errorf("orders[%d] has %d entries: %d microbatches need %d", stage, len(names), p.Microbatches, 2*p.Microbatches)
	}
	order := make([]op, len(names))
	seen := map[op]bool{}
	for i, name := range names {
		digits, isBackward := strings.CutPrefix(name, "B")
		digits, isForward := strings.CutPrefix(digits, "F")
		n, err := strconv.Atoi(digits)
		o := op{backward: isBackward, microbatch: n}
		switch {
		case err != nil || isBackward == isForward || n < 0 || n >= p.Microbatches:
			return nil, fmt.Errorf("orders[%d][%d] is %q: expected F0 to F%d or B0 to B%[4]d", stage, i, name, p.Microbatches-1)
		case seen[o]:
			return nil, fmt.Errorf("orders[%d][%d]: %s is there twice", stage, i, name)
		}
		seen[o], order[i] = true, o
	}
	return order, nil
}

// rehearse runs the orders without work and reports where they wait forever.
func (p *Plan) rehearse(orders [][]op) error {
	next := make([]int, p.Stages)
	done := make([]map[op]bool, p.Stages)
	for s := range done {
		done[s] = map[op]bool{}
	}
	ready := func(s int, o op) bool {
		switch {
		case !o.backward:
			return s == 0 || done[s-1][o]
		case !done[s][op{microbatch: o.microbatch}]:
			return false
		}
		return s == p.Stages-1 || done[s+1][o]
	}
	for moved := true; moved; {
		moved = false
		for s, order := range orders {
			for next[s] < len(order) && ready(s, order[next[s]]) {
				done[s][order[next[s]]] = true
				next[s]++
				moved = true
			}
		}
	}
	for s, order := range orders {
		if next[s] < len(order) {
			return fmt.Errorf("orders[%d][%d]: %s waits for what comes after it", s, next[s], p.Orders[s][next[s]])
		}
	}
	return nil
}
