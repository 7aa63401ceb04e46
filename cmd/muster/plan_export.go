package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/musterdl/muster/internal/planning"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/export"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/shape"
	"github.com/musterdl/muster/run/report"
)

// writer writes the best plan to a file in some format.
type writer struct {
	to, file string
	write    func(*planning.Comparison) (string, error)
}

// kinds are the formats of --export.
var kinds = map[string]func(*planning.Comparison) (string, error){
	"plan":      trainerPlan,
	"csv":       func(c *planning.Comparison) (string, error) { return export.CSV(schedule(c)) },
	"comms":     func(c *planning.Comparison) (string, error) { return export.Comms(schedule(c), true) },
	"comms-2.9": func(c *planning.Comparison) (string, error) { return export.Comms(schedule(c), false) },
	"perfetto":  traceOf,
	"megatron":  func(c *planning.Comparison) (string, error) { return export.Megatron(made(c)) },
	"deepspeed": func(c *planning.Comparison) (string, error) { return export.DeepSpeed(made(c)) },
	"ranks":     func(c *planning.Comparison) (string, error) { return export.Ranks(made(c)), nil },
	"nccl":      func(c *planning.Comparison) (string, error) { return export.NCCL(made(c)), nil },
	"json":      wholePlan,
	"svg":       func(c *planning.Comparison) (string, error) { return pictured(c, (*report.Timeline).SVG) },
	"png":       func(c *planning.Comparison) (string, error) { return pictured(c, (*report.Timeline).PNG) },
}

func kindsText() string { return strings.Join(slices.Sorted(maps.Keys(kinds)), ", ") }

// writers are what --export asks for, or what is wrong with it.
func (p *planner) writers() (all []writer, err error) {
	for _, to := range p.exports {
		kind, file, found := strings.Cut(to, ":")
		write, known := kinds[kind]
		if !found || file == "" || !known {
			err = errors.Join(err, misused("--export %s: expected KIND:FILE with one of the kinds %s", to, kindsText()))
			continue
		}
		all = append(all, writer{to, file, write})
	}
	return all, err
}

// write writes the best plan to the files that were asked for.
func write(c *planning.Comparison, all []writer) error {
	for _, one := range all {
		if c.Best() == nil {
			return fmt.Errorf("--export %s: there is no plan: %s", one.to, c.Rows[0].Lost)
		}
		text, err := one.write(c)
		if err == nil {
			err = os.WriteFile(one.file, []byte(text), 0o644)
		}
		if err != nil {
			return fmt.Errorf("--export %s, of %s: %w%s", one.to, c.Rows[0].Plan, err, nearest(c, err))
		}
	}
	return nil
}

// nearest names the best plan of a sequence that a target can express.
func nearest(c *planning.Comparison, err error) string {
	var unable *export.Unable
	if !errors.As(err, &unable) {
		return ""
	}
	for i := range c.Rows {
		if one := c.Rows[i].Candidate(); one != nil && slices.Contains(unable.Sequences, one.Plan.Sequence.Name) {
			return fmt.Sprintf("; the nearest that it can is %s, %.4g s a step: add --strategy %s", c.Rows[i].Plan, c.Rows[i].StepSec, one.Plan.Sequence.Name)
		}
	}
	if len(unable.Sequences) > 0 {
		return fmt.Sprintf("; add --strategy %s for a plan that it can", unable.Sequences[0])
	}
	return ""
}

func made(c *planning.Comparison) *export.Made {
	t := c.Task()
	return &export.Made{Model: t.Model, On: t.On, Hosts: t.Hosts, Candidate: c.Best()}
}

// schedule is that of the first pipeline.
func schedule(c *planning.Comparison) *pipeline.Schedule { return &c.Best().Result.Parts[0].Schedule }

// trainerPlan is a plan as MUSTER_PLAN names it.
func trainerPlan(c *planning.Comparison) (string, error) {
	staged, why := c.Best().Staged()
	if why != "" {
		return "", fmt.Errorf("no trainer here goes by that plan: %s; json:FILE holds any plan", why)
	}
	told := shape.Told{Plan: staged}
	if p, shaped := c.Task().Model.Profile.(*shape.Profile); shaped {
		sizes, _ := c.Best().Plan.Shape()
		told.Model, told.Batch, told.Shape = p.Shape(), c.Batch, &sizes
	}
	text, err := json.Marshal(told)
	return string(text) + "\n", err
}

// wholePlan is the plan with all its devices, and what it takes.
func wholePlan(c *planning.Comparison) (string, error) {
	text, err := json.MarshalIndent(struct {
		Model   string         `json:"model"`
		Cluster string         `json:"cluster,omitempty"`
		Row     planning.Row   `json:"takes"`
		Plan    *parallel.Plan `json:"plan"`
	}{c.Model, c.Cluster, c.Rows[0], &c.Best().Plan}, "", " ")
	return string(text) + "\n", err
}

func pictured(c *planning.Comparison, as func(*report.Timeline, io.Writer) error) (string, error) {
	var b bytes.Buffer
	err := as(timelineOf(c), &b)
	return b.String(), err
}

// passKinds are what a picture tells apart; the last is two passes at once.
var passKinds = []struct{ letter, name string }{
	{"F", "forward"}, {"G", "forward, first half"}, {"H", "forward, second half"}, {"B", "backward"}, {"I", "gradients of inputs"}, {"W", "gradients of weights"}, {"R", "forward again"}, {"&", "two at once"},
}

// timelineOf draws what the ranks of the first pipeline do in a step.
func timelineOf(c *planning.Comparison) *report.Timeline {
	t := &report.Timeline{Title: "A step of " + c.Rows[0].Plan}
	for _, k := range passKinds {
		t.Kinds = append(t.Kinds, k.name)
	}
	eachPass(c, func(rank int, name string, kind int, s pipeline.Span) {
		for len(t.Rows) <= rank {
			t.Rows = append(t.Rows, report.TimelineRow{Name: fmt.Sprint("rank ", len(t.Rows))})
		}
		t.Rows[rank].Stretches = append(t.Rows[rank].Stretches, report.Stretch{From: s.Start, To: s.End, Kind: kind})
	})
	return t
}

// eachPass goes through what the ranks of the first pipeline do, two passes at once as one.
func eachPass(c *planning.Comparison, see func(rank int, name string, kind int, s pipeline.Span)) {
	part := c.Best().Result.Parts[0]
	for r, order := range part.Schedule.Orders {
		for i, op := range order {
			if i > 0 && order[i-1].Paired {
				continue // it is seen with the one before
			}
			name, letter := op.String(), string(op.Kind)
			if op.Paired {
				name, letter = name+order[i+1].String(), "&"
			}
			kind := 0
			for k := range passKinds {
				if passKinds[k].letter == letter {
					kind = k
				}
			}
			see(r, name, kind, part.Timing.Spans[r][i])
		}
	}
}

// traceOf is what each rank of the first pipeline does when, as a trace.
func traceOf(c *planning.Comparison) (string, error) {
	var b bytes.Buffer
	trace := report.NewPerfetto(&b)
	var lanes []report.Lane
	for r := range schedule(c).Orders {
		lanes = append(lanes, report.Lane{Node: "pipeline", Name: fmt.Sprint("rank ", r)})
	}
	trace.Begin(lanes)
	eachPass(c, func(rank int, name string, _ int, s pipeline.Span) {
		trace.Span(report.Span{Job: name, Lane: int32(rank), From: s.Start, To: s.End})
	})
	err := trace.Close()
	return b.String(), err
}

// page writes the comparison as a page.
func (p *planner) page(c *planning.Comparison) error {
	if p.html == "" {
		return nil
	}
	page := report.PlanPage{Title: "Plans of " + cmp.Or(c.Model, "a model"),
		Facts: []string{fmt.Sprintf("%d layers", c.Layers), fmt.Sprintf("%d devices", c.Devices), fmt.Sprintf("batch %d", c.Batch)}}
	if c.Cluster != "" {
		page.Facts = append(page.Facts, c.Cluster)
	}
	plans := report.Table{Name: "Plans", Text: strings.Join(append([]string{"The best first. A step is simulated; the bubble is the part of the devices' time in which they do nothing"}, notes(c)...), "; ") + ".",
		Head: []string{"plan", "step s", "MFU %", "bubble %", "peak GiB", "lost because"}}
	if c.Sites != nil {
		plans.Head = slices.Insert(plans.Head, len(plans.Head)-1, "crosses sites")
	}
	for i := range c.Rows {
		row := append(cells(&c.Rows[i]), cmp.Or(c.Rows[i].Lost, "–"))
		if c.Sites != nil {
			row = slices.Insert(row, len(row)-1, cmp.Or(c.Rows[i].Crosses, "–"))
		}
		plans.Rows = append(plans.Rows, row)
	}
	page.Tables = append(page.Tables, plans)
	if c.Best() != nil {
		best := &c.Rows[0]
		page.Tiles = []report.Tile{{Name: "step", Value: fmt.Sprintf("%.4g s", best.StepSec), Below: best.Plan},
			{Name: "bubble", Value: fmt.Sprintf("%.1f %%", best.BubblePct), Below: "of the devices' time"},
			{Name: "peak memory", Value: peakText(best) + " GiB", Below: "of the fullest device"}}
		if o := best.Overlap; o != nil {
			page.Tiles = append(page.Tiles, report.Tile{Name: "at once", Value: fmt.Sprintf("%.3g s", o.ComputeTransferSec), Below: "a rank computes while something is sent"})
		}
		if best.MFUPct > 0 {
			page.Tiles = append(page.Tiles, report.Tile{Name: "MFU", Value: fmt.Sprintf("%.1f %%", best.MFUPct), Below: "of what the devices could compute"})
		}
		if c.HalfSitesSec > 0 {
			page.Tiles = append(page.Tiles, report.Tile{Name: "half between sites", Value: fmt.Sprintf("%.4g s", c.HalfSitesSec), Below: "a step; the best sends " + best.Crosses})
		}
		if c.HalfBandwidthSec > 0 {
			page.Tiles = append(page.Tiles, report.Tile{Name: "half the bandwidth", Value: fmt.Sprintf("%.4g s", c.HalfBandwidthSec), Below: "a step, between nodes"})
		}
		page.Tables = append(page.Tables, memoryTable(c))
		if p := c.Sites; p != nil && p.Chosen != nil {
			page.Tables = append(page.Tables, report.Table{Name: "Sites", Text: "Where one pipeline could be trained: places of which none is better in both, with " + placesText(p) + ".",
				Head: []string{"stages", "time", p.CostIn, "chosen"}, Rows: placeRows(p, "–")})
		}
		if c.Lost != nil {
			page.Tables = append(page.Tables, lossTable(c.Lost))
		}
		page.Step = timelineOf(c)
	}
	return toFile(p.html, func(w io.Writer) error { return report.HTMLPlan(w, page) })
}

func memoryTable(c *planning.Comparison) report.Table {
	t := report.Table{Name: "Memory", Text: "What a device of each rank of the first pipeline holds when it holds most, in GiB.",
		Head: []string{"rank", "weights and state", "older weights", "activations", "waiting for gradients of weights", "all"}}
	for _, h := range c.Memory {
		row := []string{fmt.Sprint(h.Rank)}
		for _, mib := range []float64{h.ParamsMiB, h.VersionsMiB, h.ActivationsMiB, h.WaitingMiB, h.ParamsMiB + h.VersionsMiB + h.ActivationsMiB + h.WaitingMiB} {
			row = append(row, fmt.Sprintf("%.2f", mib/1024))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// lossTable is the ways to go on without a node.
func lossTable(l *planning.Loss) report.Table {
	t := report.Table{Name: "A lost node", Text: "Ways to go on without the first node of the plan, the cheapest first, with " + lossText(l) + ".",
		Head: []string{"way", "pause s", "done again s", "then a step s", "device-seconds lost", "plan", "cannot because"}}
	for i := range l.Reactions {
		t.Rows = append(t.Rows, reactionCells(&l.Reactions[i], "–"))
	}
	return t
}
