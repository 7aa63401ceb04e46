package view

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/trainer/progress"
)

// What a job runs by is told while it runs, the same in short and at length; and why there is
// nothing to tell.
func TestPlanOf(t *testing.T) {
	h := newHistory(t, "srtf+declared+zb-h1")
	layers := slices.Repeat([]workload.Layer{{Forward: 10 * unit.Millisecond, Backward: 20 * unit.Millisecond, ActivationKiB: 2048}}, 4)
	planned := workload.Job{Name: "planned", Estimate: unit.Hour, Resources: workload.Resources{Gang: 2, Devices: 1}}
	planned.Pipeline = workload.Pipeline{Stages: 2, Microbatches: 4, Layers: layers}
	menu := workload.Job{Name: "menu", Estimate: unit.Hour, Resources: workload.Resources{Gang: 4, Devices: 1}}
	menu.Menu = []workload.Offer{{Model: "gpu", Workers: 4, Nodes: 1, Rate: 1, Plan: workload.Spread{Name: "tp4 pp1", Shape: `{"tensor":4}`, Step: unit.Second}},
		{Model: "gpu", Workers: 4, Nodes: 2, Rate: .5, Plan: workload.Spread{Name: "tp2 pp2", Shape: `{"tensor":2}`, Step: 2 * unit.Second}}}
	waiting := planned
	waiting.Name, waiting.Gang, waiting.Estimate = "waiting", 8, 2*unit.Hour
	h.step(submit(planned), submit(menu), submit(workload.Job{Name: "plain", Estimate: unit.Hour, Resources: workload.Resources{Gang: 1, Devices: 1}}), submit(waiting))
	v := h.e.View()
	p := PlanOf(v, h.info[0], 0)
	if p.Schedule != "equal-layers+zb-h1" || p.IterationSec <= 0 || p.NullIterationSec <= p.IterationSec || len(p.Predicted) != 2 || p.Predicted[0][0].Op != "0F0" || !slices.Equal(p.KeptMiB, []float64{8, 8}) || p.Words != "" {
		t.Errorf("planned: %+v", p)
	}
	if end := p.Predicted[0][len(p.Predicted[0])-1].EndUs / 1e6; end > p.IterationSec {
		t.Errorf("its first rank is to end at %v of %v", end, p.IterationSec)
	}
	j := h.job(0)
	if j.Pipeline == nil || *j.Pipeline != p.Pipeline {
		t.Errorf("the job says %+v, the plan %+v", j.Pipeline, p.Pipeline)
	}
	j.Pipeline.Measure(&progress.Timings{Timeline: [][]progress.Span{{{Op: "0F0", EndUs: 90_000}}, {{Op: "1F0", StartUs: 100, EndUs: 260_500}}}})
	j.Pipeline.IterationSec, j.Pipeline.NullIterationSec = .21, .3
	var b bytes.Buffer
	if err := WriteJob(&b, &j, TextOptions{}); err != nil || !strings.Contains(b.String(), "\nplan        equal-layers+zb-h1, a step takes 210ms as predicted, its passes 260.5ms as measured (300ms with equal layers and GPipe)\n") {
		t.Errorf("show says (%v)\n%s", err, b.String())
	}
	j.Pipeline.Measure(&progress.Timings{Timeline: [][]progress.Span{make([]progress.Span, progress.SpansMost)}})
	if j.Pipeline.MeasuredSec != 0 {
		t.Errorf("a timeline that is cut tells of a step of %v s", j.Pipeline.MeasuredSec)
	}
	p = PlanOf(v, h.info[1], 1)
	if p.Schedule != "tp2 pp2" || p.IterationSec != 2 || p.NullIterationSec != 0 || p.Predicted != nil || len(p.Menu) != 2 || p.Menu[0] != (PlanOffer{Schedule: "tp4 pp1", Model: "gpu", Workers: 4, Nodes: 1, StepSec: 1}) || !p.Menu[1].Chosen {
		t.Errorf("menu: %+v", p)
	}
	for _, d := range StepsOf(v, h.info[1], 1).Decisions {
		if s := d.Steps[3]; s.Chose != "tp2 pp2" || s.Rejected != "nothing" || s.Because != "2s an iteration" {
			t.Errorf("the dossier says %+v", s)
		}
	}
	for id, want := range []string{2: "it has no plan: it asks for no pipeline", 3: "it has no plan yet: that is chosen with its devices"} {
		if want == "" {
			continue
		}
		if p := PlanOf(v, h.info[id], plan.JobID(id)); p.Words != want || p.Schedule != "" || p.Predicted != nil {
			t.Errorf("%s: %+v", p.Job, p)
		}
	}
}

// What an offer's plan says is made again from its shape, for the devices and workers that the run has; why it
// cannot be is said.
func TestPlanOffered(t *testing.T) {
	h := newHistory(t, "srtf+declared")
	j := workload.Job{Name: "tiny", Estimate: unit.Hour, Resources: workload.Resources{Gang: 2, Devices: 1}}
	j.Pipeline = workload.Pipeline{Model: "tiny", Batch: 8}
	j.Menu = []workload.Offer{{Model: "gpu", Workers: 2, Nodes: 1, Rate: 1, Plan: workload.Spread{Name: "tp1 pp2 dp1 1f1b m1", Shape: "kept", Step: unit.Second}}}
	h.step(submit(j))
	p := PlanOf(h.e.View(), h.info[0], 0)
	if p.Offered(nil); p.Predicted != nil || p.Schedule != "tp1 pp2 dp1 1f1b m1" {
		t.Errorf("without a reader: %+v", p)
	}
	part := &parallel.Part{Schedule: pipeline.Schedule{Microbatches: 1, Orders: [][]pipeline.Op{{{Kind: pipeline.Forward}, {Kind: pipeline.Backward}}}},
		Timing: pipeline.Timing{Makespan: unit.Millisecond, Spans: [][]pipeline.Span{{{Start: 0, End: 10}, {Start: 20, End: 40}}}, Peak: []pipeline.Memory{{ActivationKiB: 512}}}}
	p.Offered(func(job *workload.Job, kind, workers int32, shape string) (*parallel.Candidate, parallel.Why) {
		if job.Pipeline.Model != "tiny" || kind != 0 || workers != 2 || shape != "kept" {
			t.Errorf("asked for %s on %d of %d, %q", job.Pipeline.Model, workers, kind, shape)
		}
		return &parallel.Candidate{Plan: parallel.Plan{Pipelines: []parallel.Pipeline{{Cuts: []int32{3}}}}, Result: parallel.Result{Parts: []*parallel.Part{part}}}, ""
	})
	if want := []progress.Span{{Op: "0F0", EndUs: 10}, {Op: "0B0", StartUs: 20, EndUs: 40}}; len(p.Predicted) != 1 || !slices.Equal(p.Predicted[0], want) || p.PassesSec != .001 || p.KeptMiB[0] != .5 || !slices.Equal(p.Cuts, []int32{3}) {
		t.Errorf("%+v", p)
	}
	p = PlanOf(h.e.View(), h.info[0], 0)
	p.Offered(func(*workload.Job, int32, int32, string) (*parallel.Candidate, parallel.Why) {
		return nil, "it is lost"
	})
	if p.Words != "its passes are not told: it is lost" || p.Predicted != nil {
		t.Errorf("%+v", p)
	}
}

// A plan is drawn as predicted above as measured, over the same time; what a job wrote of itself is
// drawn as far as it makes sense.
func TestWritePlan(t *testing.T) {
	p := Plan{Job: "j", Pipeline: Pipeline{Schedule: "tp1 pp2 dp1 1f1b m1", IterationSec: .001}, Menu: []PlanOffer{{Schedule: "tp1 pp2 dp1 1f1b m1", Model: "slot", Workers: 2, StepSec: .001, Chosen: true}, {Schedule: "tp1 pp1 dp1 1f1b m1", Workers: 1, StepSec: .002}},
		Predicted: [][]progress.Span{{{Op: "0F0", EndUs: 100}, {Op: "0B0", StartUs: 300, EndUs: 400}}, {{Op: "1F0", StartUs: 100, EndUs: 200}, {Op: "1B0", StartUs: 200, EndUs: 300}}},
		Measured:  &progress.Timings{Timeline: [][]progress.Span{{{Op: "0F0", StartUs: 50, EndUs: 150}, {Op: "none", EndUs: 9}, {Op: "0B0", StartUs: -5, EndUs: 4}}, {{Op: "1F0", StartUs: 390, EndUs: 380}}}}}
	var b bytes.Buffer
	if err := WritePlan(&b, &p, TextOptions{Width: 50}); err != nil {
		t.Fatal(err)
	}
	want := `j: tp1 pp2 dp1 1f1b m1, a step takes 1ms as predicted
as predicted, a column is 10us
rank 0    FFFFFFFFFF....................BBBBBBBBBB
rank 1    ..........FFFFFFFFFFBBBBBBBBBB..........
as measured, a column is 10us
rank 0    .....FFFFFFFFFF.........................
rank 1    ........................................
F forward; B backward; . idle
offer       tp1 pp2 dp1 1f1b m1 on 2 workers of slot, a step 1ms, by which it runs
offer       tp1 pp1 dp1 1f1b m1 on 1 worker of any device, a step 2ms
`
	if b.String() != want {
		t.Errorf("drawn\n%swant\n%s", b.String(), want)
	}
	b.Reset()
	if err := WritePlan(&b, &Plan{Job: "k", Words: "it has no plan: it asks for no pipeline"}, TextOptions{}); err != nil || b.String() != "k: it has no plan: it asks for no pipeline\n" {
		t.Errorf("%v, %q", err, b.String())
	}
}

// The passes of a plan for unlike devices are predicted on those devices: they end with the step
// that was predicted when it was made.
func TestPlanOfUnlike(t *testing.T) {
	c := &cluster.Cluster{Name: "lab"}
	c.AddRack(cluster.Rack{Name: "rack"})
	for i, speed := range []float64{1, 3} {
		model := c.AddModel(cluster.Model{Name: fmt.Sprint("gpu", i), Memory: 32 << 10, Speed: speed})
		c.AddNode(cluster.Node{Name: fmt.Sprint("node", i), Model: model, CPU: 48 * unit.Whole, Memory: 256 << 10}, 4)
	}
	h := historyOn(t, "srtf+declared+zb-h1", c)
	j := workload.Job{Name: "unlike", Estimate: unit.Hour, Resources: workload.Resources{Gang: 4, Devices: 2}}
	j.Pipeline = workload.Pipeline{Stages: 4, Microbatches: 6, Layers: slices.Repeat([]workload.Layer{{Forward: 12 * unit.Millisecond, Backward: 24 * unit.Millisecond}}, 4)}
	h.step(submit(j))
	p := PlanOf(h.e.View(), h.info[0], 0)
	took, last := map[float64]int{}, 0.0
	for _, line := range p.Predicted {
		took[line[0].EndUs-line[0].StartUs]++
		for _, x := range line {
			last = max(last, x.EndUs)
		}
	}
	if took[12_000] != 2 || took[4_000] != 2 || last/1e6 != p.IterationSec {
		t.Errorf("ranks by the time of their first pass: %v; they end at %v us, and the step is %v s", took, last, p.IterationSec)
	}
}
