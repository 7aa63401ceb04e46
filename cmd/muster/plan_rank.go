package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/run"
)

// planned is one plan, or why there is none.
type planned struct {
	Plan string `json:"plan"` // its cut and its sequence
	// StepSec is one iteration, IdlePct the part of the ranks' time in which they do nothing,
	// PeakMiB what the fullest rank holds.
	StepSec float64 `json:"step_s,omitempty"`
	IdlePct float64 `json:"idle_pct"`
	PeakMiB float64 `json:"peak_mib,omitempty"`
	// SimulatedOnly says why no process here goes by it; empty where some do.
	SimulatedOnly string `json:"simulated_only_because,omitempty"`
	Lost          string `json:"lost_because,omitempty"`

	made pipeline.Plan
}

// ranking is all of them, the best first.
type ranking struct {
	Job          string    `json:"job"`
	Ranks        int32     `json:"ranks"`
	Microbatches int32     `json:"microbatches"`
	Layers       int       `json:"layers"`
	Plans        []planned `json:"plans"`
	// HalfBandwidthSec is a step of the best plan over links of half the bandwidth.
	HalfBandwidthSec float64 `json:"half_bandwidth_step_s,omitempty"`
}

// build makes one plan.
func build(c catalogue.Composition, request workload.Pipeline, params pipeline.Params) (planned, error) {
	one := planned{Plan: c.Name}
	filled, err := c.Fill(catalogue.Env{})
	if err != nil {
		return one, err
	}
	if err := c.Refuse(run.Slots); err != nil {
		one.SimulatedOnly = err.Error()
	}
	cut, _ := strategy.Can[pipeline.Partitioner](filled[pipeline.CutPart].Strategy)
	sequence, _ := strategy.Can[pipeline.Ordering](filled[pipeline.SequencePart].Strategy)
	made, why := pipeline.Build(cut, sequence, request, params)
	if why != "" {
		one.Lost = string(why)
		return one, nil
	}
	one.made, one.StepSec, one.IdlePct, one.PeakMiB = made, made.Iteration.Seconds(), 100*made.Bubble, float64(slices.Max(made.PeakKiB))/1024
	return one, nil
}

// rank puts the best first and says of each other why it lost.
func (r *ranking) rank() {
	slices.SortStableFunc(r.Plans, func(a, b planned) int {
		if (a.Lost == "") != (b.Lost == "") {
			return cmp.Compare(len(a.Lost), len(b.Lost))
		}
		return cmp.Or(cmp.Compare(a.StepSec, b.StepSec), cmp.Compare(a.PeakMiB, b.PeakMiB), cmp.Compare(a.SimulatedOnly, b.SimulatedOnly), cmp.Compare(a.Plan, b.Plan))
	})
	best := r.Plans[0]
	for i := range r.Plans[1:] {
		switch one := &r.Plans[i+1]; {
		case one.Lost != "":
		case one.StepSec > best.StepSec:
			one.Lost = fmt.Sprintf("%+.1f %% time, %+.1f points idle", 100*(one.StepSec/best.StepSec-1), one.IdlePct-best.IdlePct)
		case one.PeakMiB > best.PeakMiB:
			one.Lost = fmt.Sprintf("as fast, %+.1f %% memory", 100*(one.PeakMiB/best.PeakMiB-1))
		default:
			one.Lost = "as good"
		}
	}
}

// write shows the ranking as a table.
func (r *ranking) write(w io.Writer) error {
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s: %d layers on %d devices, %d microbatches\n", cmp.Or(r.Job, "the job"), r.Layers, r.Ranks, r.Microbatches)
	t := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "PLAN\tSTEP S\tIDLE %\tPEAK GIB\tLIVE\tLOST BECAUSE")
	for _, one := range r.Plans {
		step, idle, peak, live := "-", "-", "-", "yes"
		if one.StepSec > 0 {
			step, idle, peak = fmt.Sprintf("%.4g", one.StepSec), fmt.Sprintf("%.1f", one.IdlePct), fmt.Sprintf("%.2f", one.PeakMiB/1024)
		}
		if one.SimulatedOnly != "" {
			live = "simulated"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", one.Plan, step, idle, peak, live, cmp.Or(one.Lost, "-"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if r.HalfBandwidthSec > 0 {
		fmt.Fprintf(&text, "half the bandwidth: %.4g s\n", r.HalfBandwidthSec)
	}
	_, err := w.Write(text.Bytes())
	return err
}
