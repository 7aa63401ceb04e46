// Package straggler reads what each worker of a training job did when, and tells what slow
// workers cost: the steps are run again as task graphs, with every operation as long as it took
// and with every operation as long as others of its kind (the what-if analysis of ByteDance,
// OSDI 2025).
package straggler

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/musterdl/muster/model/figures"
)

// op names an operation of each step and copy of the model.
type op struct {
	kind       string
	seq, stage int32 // seq counts those of a kind on a stage
}

// seen is one time that an operation ran, in seconds from the start of its step.
type seen struct {
	start, duration float32
	line            int
}

func (s *seen) end() float32 { return s.start + s.duration }

// Trace is some steps of a job.
type Trace struct {
	ops    []op // of a copy, in the order in which the first copy began them in the first step
	id     map[op]int32
	copies int      // of the model (data parallel)
	stages int32    // of each copy
	steps  []int    // ascending; traced ones need not follow each other
	seen   [][]seen // by step; copy by copy, as ops
}

// columns are those that are read. Where a worker ran, and which microbatch and chunk of the
// whole model a pass was of, follows from the others.
var columns = []string{"dp_rank", "stage", "step", "optype", "start_ts", "duration", "seq_id", "mc"}

// row is one line of a trace.
type row struct {
	op
	seen
	copy, step int
}

// Read reads a trace as the authors published theirs, as CSV. Errors name the file and line.
func Read(open figures.Open, file string) (*Trace, error) {
	var rows []row
	if err := figures.FromTable(open, file, columns, func(fields []string) error { return parse(fields, &rows) }); err != nil {
		return nil, err
	}
	t := &Trace{id: map[op]int32{}}
	if err := t.arrange(rows); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return t, nil
}

// parse adds a row.
func parse(fields []string, rows *[]row) error {
	var numbers [8]float64
	for i, text := range fields {
		if columns[i] == "optype" {
			continue
		}
		n, err := strconv.ParseFloat(text, 32) // as precise as the authors keep it
		if err != nil || !(n >= -1 && n <= 1e6) {
			return fmt.Errorf("%s is %q: expected a number from -1 to a million", columns[i], text)
		}
		numbers[i] = n
	}
	x := row{op: op{fields[3], int32(numbers[6]), int32(numbers[1])}, copy: int(numbers[0]), step: int(numbers[2]),
		seen: seen{start: float32(numbers[4]), duration: float32(numbers[5]), line: len(*rows) + 2}}
	if *rows = append(*rows, x); !known[x.kind].listed {
		return fmt.Errorf("optype is %q: expected one of %v", x.kind, slices.Sorted(maps.Keys(known)))
	}
	if x.copy < 0 || x.stage < 0 || x.step < 0 || x.seq < 0 || x.duration < 0 {
		return fmt.Errorf("dp_rank %d, stage %d, step %d, seq_id %d, duration %g: expected nothing negative", x.copy, x.stage, x.step, x.seq, x.duration)
	}
	if numbers[7] > 0 {
		return fmt.Errorf("mc is %g: expected one chunk of the model on each stage", numbers[7])
	}
	return nil
}

// arrange finds the operations of a copy in the first copy and step; all others must have the same.
func (t *Trace) arrange(rows []row) error {
	if len(rows) == 0 {
		return errors.New("there are no operations")
	}
	for i := range rows {
		x := &rows[i]
		t.copies, t.stages = max(t.copies, x.copy+1), max(t.stages, x.stage+1)
		if s, found := slices.BinarySearch(t.steps, x.step); !found {
			t.steps = slices.Insert(t.steps, s, x.step)
		}
	}
	var model []row
	for _, x := range rows {
		if x.copy == 0 && x.step == t.steps[0] {
			model = append(model, x)
		}
	}
	// Clocks are coarse: of what began at once the first by number counts.
	slices.SortStableFunc(model, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.seq, b.seq), cmp.Compare(a.kind, b.kind))
	})
	for _, x := range model {
		t.id[x.op] = int32(len(t.ops))
		t.ops = append(t.ops, x.op)
	}
	t.seen = make([][]seen, len(t.steps))
	for s := range t.seen {
		t.seen[s] = make([]seen, t.copies*len(t.ops))
	}
	for i := range rows {
		x := &rows[i]
		id, there := t.id[x.op]
		if !there {
			return fmt.Errorf("line %d: %s %d of stage %d: the first copy has none in the first step", x.line, x.kind, x.seq, x.stage)
		}
		s, _ := slices.BinarySearch(t.steps, x.step)
		if at := &t.seen[s][x.copy*len(t.ops)+int(id)]; at.line == 0 {
			*at = x.seen
		} else {
			return fmt.Errorf("line %d: %s %d of stage %d: line %d has it too", x.line, x.kind, x.seq, x.stage, at.line)
		}
	}
	// A hole would be an operation that takes no time, and nobody would notice.
	for s := range t.seen {
		for i := range t.seen[s] {
			if o := t.ops[i%len(t.ops)]; t.seen[s][i].line == 0 {
				return fmt.Errorf("step %d, dp_rank %d: there is no %s %d of stage %d", t.steps[s], i/len(t.ops), o.kind, o.seq, o.stage)
			}
		}
	}
	return nil
}
