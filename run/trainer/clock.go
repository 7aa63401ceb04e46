package trainer

import (
	"math"
	"strings"
	"time"

	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/run/trainer/progress"
)

// clock is what a worker measures of the passes of its plan. Its figures have room for those
// of the whole pipeline, zero where they are another worker's, so that a sum gathers them.
type clock struct {
	plan  *pipeline.Plan
	mesh  *mesh
	every int // steps between two reports; 0 reports nothing
	steps int // of this attempt
	probe *probe
	// By stage and kind of pass: how many there were and how long they took together, one behind
	// the other, and how long the longest took. All times are in microseconds.
	sums, most []float32
	spans      []float32 // of the last step, in the order of the plan: start and end
}

func newClock(plan *pipeline.Plan, m *mesh, every int) *clock {
	n := len(pipeline.Kinds) * int(plan.Stages)
	c := &clock{plan: plan, mesh: m, every: every, sums: make([]float32, 2*n), most: make([]float32, n),
		spans: make([]float32, 2*len(plan.Orders[m.pipe.rank]))}
	if every > 0 {
		c.probe = newProbe()
	}
	return c
}

// due reports whether the step that is now made is reported: the second of an attempt, whose
// first one is slow, and then one in so many. It is the same on all workers.
func (c *clock) due() bool { return c.every > 0 && (c.steps == 2 || c.steps%c.every == 0) }

// took notes that the i-th pass of the step took from start to end.
func (c *clock) took(i int, op pipeline.Op, start, end time.Duration) {
	us := func(d time.Duration) float32 { return float32(d.Seconds() * 1e6) }
	c.spans[2*i], c.spans[2*i+1] = us(start), us(end)
	at := int(op.Stage)*len(pipeline.Kinds) + strings.IndexByte(pipeline.Kinds, byte(op.Kind))
	c.sums[2*at]++
	c.sums[2*at+1] += us(end - start)
	c.most[at] = max(c.most[at], us(end-start))
}

// shown is how many passes of a worker the timeline has.
func (c *clock) shown(rank int) int {
	return progress.Shown(len(c.plan.Orders[rank]), len(c.plan.Orders))
}

// report gathers what all workers measured, and begins anew. The timeline is that of the first
// pipeline, and of the first slice of its layers.
func (c *clock) report(step int) (progress.Timings, error) {
	n, pipelines := len(c.most), c.mesh.data.world*c.mesh.tensor.world
	own := c.mesh.data.rank*c.mesh.tensor.world + c.mesh.tensor.rank
	all := make([]float32, (2+pipelines)*n)
	copy(all, c.sums)
	copy(all[(2+own)*n:], c.most)
	for r := range c.plan.Orders {
		line := make([]float32, 2*c.shown(r))
		if own == 0 && r == c.mesh.pipe.rank {
			copy(line, c.spans)
		}
		all = append(all, line...)
	}
	devices := len(all)
	all = append(all, make([]float32, probeFloats*c.mesh.world())...)
	c.probe.tell(all[devices+probeFloats*c.mesh.rank():])
	clear(c.sums)
	clear(c.most)
	if err := c.mesh.sum(all); err != nil {
		return progress.Timings{}, err
	}
	t := progress.Timings{Step: int64(step), Devices: c.probe.heard(all[devices:])}
	for i := range n {
		p := progress.PassTimes{Stage: i / len(pipeline.Kinds), Kind: pipeline.Kinds[i%len(pipeline.Kinds):][:1], Count: int(all[2*i]), MeanUs: tenths(all[2*i+1] / all[2*i])}
		for k := range pipelines {
			p.MostUs = max(p.MostUs, tenths(all[(2+k)*n+i]))
		}
		if p.Count > 0 {
			t.Passes = append(t.Passes, p)
		}
	}
	spans := all[(2+pipelines)*n:]
	for r, order := range c.plan.Orders {
		var line []progress.Span
		for _, op := range order[:c.shown(r)] {
			line = append(line, progress.Span{Op: op.String(), StartUs: tenths(spans[0]), EndUs: tenths(spans[1])})
			spans = spans[2:]
		}
		t.Timeline = append(t.Timeline, line)
	}
	c.align(t.Timeline)
	return t, nil
}

// align moves the lines of a timeline later by as little as has no pass begin before the one it
// waits for is over. Their clocks begin with a barrier, and workers do not leave one at once.
func (c *clock) align(lines [][]progress.Span) {
	over := map[pipeline.Op]float64{}
	handed := func(rank, i int) pipeline.Op { // of both backward passes that hand on it knows one
		op := c.plan.Orders[rank][i]
		if op.Kind == pipeline.Input {
			op.Kind = pipeline.Backward
		}
		return op
	}
	for range lines { // news goes from one worker to the next in a round
		for rank, line := range lines {
			late := 0.0
			for i, span := range line {
				op := handed(rank, i)
				over[op] = span.EndUs
				switch op.Kind {
				case pipeline.Forward, pipeline.FirstHalf, pipeline.SecondHalf:
					op.Stage--
				case pipeline.Backward:
					op.Stage++
				default:
					continue
				}
				late = max(late, over[op]-span.StartUs)
			}
			for i := range line {
				line[i].StartUs, line[i].EndUs = tenths(line[i].StartUs+late), tenths(line[i].EndUs+late)
				over[handed(rank, i)] = line[i].EndUs
			}
		}
	}
}

// tenths leaves out digits that a float32 does not have.
func tenths[F float32 | float64](us F) float64 { return math.Round(float64(us)*10) / 10 }

// thousandths does so for numbers around 1.
func thousandths(times float32) float64 { return math.Round(float64(times)*1000) / 1000 }
