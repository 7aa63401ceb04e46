package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/export"
	"github.com/musterdl/muster/run/report"
)

// export writes the best plan to the files that were asked for.
func (p *planner) export(best *planned, layers []workload.Layer) error {
	for _, to := range p.exports {
		kind, file, found := strings.Cut(to, ":")
		if !found || file == "" || !slices.Contains([]string{"plan", "csv", "comms", "perfetto"}, kind) {
			return misused("--export %s: expected plan:FILE, csv:FILE, comms:FILE or perfetto:FILE", to)
		}
		if best.StepSec == 0 {
			return fmt.Errorf("--export %s: there is no plan: %s", to, best.Lost)
		}
		schedule := best.made.Schedule()
		var text string
		var err error
		switch kind {
		case "csv":
			text, err = export.CSV(&schedule)
		case "comms":
			text, err = export.Comms(&schedule)
		case "perfetto":
			text, err = traceOf(&best.made, layers, p.params)
		default:
			var plan []byte
			plan, err = json.Marshal(best.made)
			text = string(plan) + "\n"
		}
		if err == nil {
			err = os.WriteFile(file, []byte(text), 0o644)
		}
		if err != nil {
			return fmt.Errorf("--export %s, of %s: %w", to, best.Plan, err)
		}
	}
	return nil
}

// traceOf is what each rank does when, as a trace.
func traceOf(made *pipeline.Plan, layers []workload.Layer, on pipeline.Params) (string, error) {
	t, why := made.Timing(layers, on)
	if why != "" {
		return "", errors.New(string(why))
	}
	var b bytes.Buffer
	trace := report.NewPerfetto(&b)
	var lanes []report.Lane
	for r := range made.Orders {
		lanes = append(lanes, report.Lane{Node: "pipeline", Name: fmt.Sprint("rank ", r)})
	}
	trace.Begin(lanes)
	for r, order := range made.Orders {
		for i, op := range order {
			if i > 0 && order[i-1].Paired {
				continue // it is drawn with the one before
			}
			name := op.String()
			if op.Paired {
				name += order[i+1].String()
			}
			trace.Span(report.Span{Job: name, Lane: int32(r), From: t.Spans[r][i].Start, To: t.Spans[r][i].End})
		}
	}
	err := trace.Close()
	return b.String(), err
}
