package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/internal/planning"
	"github.com/musterdl/muster/internal/spec"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/overlap"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/shape"
	"github.com/musterdl/muster/run"
)

// task reads what is to be planned, and says all that is wrong with it.
func (p *planner) task(args []string) (*planning.Task, error) {
	t := &planning.Task{Limits: p.limits, Outlook: p.outlook}
	model, stages, err := p.readModel(args)
	options := spec.ResolveOptions{Sites: &spec.Sites{}}
	if model == nil || isShape(model) {
		options.Knows, options.Known = planning.Known, shape.Devices()
	}
	switch {
	case p.cluster != "":
		c, also := spec.Resolve(p.cluster, options)
		if err = errors.Join(err, also); err != nil {
			return nil, err
		}
		on, hosts, wrong := planning.DevicesOf(c, options.Sites, model)
		if wrong != nil {
			return nil, usage{wrong}
		}
		t.On, t.Sites = on, options.Sites
		for _, n := range hosts {
			t.Hosts, t.PerHour = append(t.Hosts, n.Name), append(t.PerHour, n.MilliPerHour)
		}
	case err != nil:
		return nil, err
	case stages == 0:
		return nil, misused("--cluster: found nothing, expected nodes and devices of each, such as a100:384x8, or a file")
	default: // the job's own pipeline, a device for each of its ranks
		if p.limits.Ranks > 0 {
			stages = p.limits.Ranks
		}
		t.On, t.Limits.Stages, t.Limits.Ranks = parallel.Ranks(stages, nil), true, 0
	}
	// Without a choice gradients and tokens go all at once, which is what the nulls do: nobody has to be asked.
	if t.Gradients, err = beside[overlap.Merger](overlap.GradientsPart, "--gradients", p.gradients); err != nil {
		return nil, err
	}
	if t.Tokens, err = beside[overlap.Chunker](overlap.ExpertsPart, "--experts", p.tokens); err != nil {
		return nil, err
	}
	planning.Override(t.On, p.bandwidth, p.latency, p.memory, p.reserve)
	model.Waits = model.Waits && !p.overlap
	if t.Model = model; p.batch > 0 {
		t.Model.Batch = p.batch
	} else if t.Model.Batch == 0 {
		t.Model.Batch = t.On.Len()
	}
	return t, p.checkNumbers()
}

// checkNumbers says which number is outside of what it may be.
func (p *planner) checkNumbers() error {
	if least := min(p.batch, p.limits.Tensor, p.limits.Ranks, p.limits.Copies, p.limits.Experts, p.outlook.Spares); least < 0 {
		return misused("--batch, --tp, --pp, --dp, --ep or --spares %d: expected 0 or more", least)
	}
	if s := p.outlook.Sooner; !(s >= 0 && s <= 1) {
		return misused("--sooner %g: expected 0, for cost alone, to 1, for time alone", s)
	}
	if p.outlook.Spares > mostSpares {
		return misused("--spares %d: expected %d at most", p.outlook.Spares, mostSpares)
	}
	return nil
}

// mostSpares is more than anybody keeps idle.
const mostSpares = 1000

// beside is the strategy for what is sent beside the passes that a flag names; none is the part's null.
func beside[T any](part *strategy.Part, flag, name string) (none T, err error) {
	names := catalogue.Names(part)
	switch {
	case name == part.Null:
		return none, nil
	case !slices.Contains(names, name):
		return none, misused("%s %s: expected one of %s", flag, name, strings.Join(names, ", "))
	}
	f, err := catalogue.Composition{Choices: catalogue.Choices{part: name}}.Fill(catalogue.Env{})
	if err != nil {
		return none, err
	}
	return strategy.In[T](f, part), nil
}

func isShape(m *parallel.Model) bool {
	_, shaped := m.Profile.(*shape.Profile)
	return shaped
}

// readModel is the model, and the stages that a job asks for.
func (p *planner) readModel(args []string) (m *parallel.Model, stages int, err error) {
	switch {
	case (len(args) == 0) == (p.model == ""):
		return nil, 0, misused("found %d job files and --model %q: expected one of the two", len(args), p.model)
	case len(args) == 1:
		return modelOfJob(args[0])
	}
	data, err := spec.ReadFile(p.model)
	if err == nil {
		m, err = spec.Model(p.model, data)
		return m, 0, err
	}
	if strings.ContainsAny(p.model, "./") {
		return nil, 0, fmt.Errorf("reading a model: %w", err)
	}
	m, err = published(p.model, "", 0)
	return m, 0, err
}

func published(name, own string, batch int) (*parallel.Model, error) {
	s, why := shape.Of(name, own)
	if why != "" {
		return nil, misused("--model: %s, or a file", why)
	}
	profile, wrong := shape.New(s, shape.Half)
	if len(wrong) > 0 {
		return nil, wrong[0]
	}
	return profile.Model(name, batch, parallel.ShardedAdam), nil
}

func modelOfJob(file string) (m *parallel.Model, stages int, err error) {
	data, err := spec.ReadFile(file)
	if err != nil {
		return nil, 0, fmt.Errorf("reading a job: %w", err)
	}
	jobs, err := spec.Jobs(file, data)
	if err != nil {
		return nil, 0, err
	}
	i := slices.IndexFunc(jobs, func(j workload.Job) bool { return j.Pipeline.Stages > 0 || j.Pipeline.Model != "" })
	if i < 0 {
		return nil, 0, misused("%s: no job has a pipeline: expected a model, or stages, microbatches and layers with their measured times", file)
	}
	job := &jobs[i].Pipeline
	if job.Model != "" {
		if err := ownModel(job); err != nil {
			return nil, 0, err
		}
		m, err = published(job.Model, job.Shape, int(job.Batch))
		return m, 0, err
	}
	m = parallel.Of(*job)
	m.Name = jobs[i].Name
	return m, int(job.Stages), nil
}

// planners are those that --strategy names, with the sequences of which they may choose, which
// also go into the limits of the task.
func (p *planner) planners(t *planning.Task) (all []planning.Named, err error) {
	planners, cuts, sequences, err := named(p.strategy)
	if err != nil || t == nil {
		return nil, err
	}
	t.SimulatedOnly = map[string]string{}
	for _, name := range sequences {
		c, f, err := chosen("sequence: " + name + "\n")
		if err != nil {
			return nil, err
		}
		order := strategy.In[pipeline.Ordering](f, pipeline.SequencePart)
		if len(sequences) > 1 && stale(order) {
			continue
		}
		if err := c.Refuse(run.Slots); err != nil {
			t.SimulatedOnly[name] = err.Error()
		}
		t.Limits.Sequences = append(t.Limits.Sequences, parallel.Sequence{Name: name, Order: order})
	}
	for _, name := range planners {
		_, f, err := chosen("planner: " + name + "\n")
		if err != nil {
			return nil, err
		}
		all = append(all, planning.Named{Name: name, Auto: p.strategy == "auto" && name != "ptd-p" && !(len(t.On.Sites) > 1 && name == "dt-fm"), Planner: strategy.In[parallel.Planner](f, parallel.PlannerPart)})
	}
	if p.strategy == "auto" && !t.Limits.Stages {
		return all, nil // a cut alone chooses among fewer plans
	}
	for _, cut := range cuts {
		_, f, err := chosen("cut: " + cut + "\n")
		if err != nil {
			return nil, err
		}
		cutter := planning.Cutting{Cut: strategy.In[pipeline.Partitioner](f, pipeline.CutPart)}
		one := planning.Named{Name: cut, Planner: cutter}
		if !t.Limits.Stages {
			t.Cut = cutter.Cut
			all = append(all, one)
			continue
		}
		for _, q := range t.Limits.Sequences {
			one.Name, one.Sequences = cut+"+"+q.Name, []parallel.Sequence{q}
			all = append(all, one)
		}
	}
	return all, nil
}

// stale reports whether passes of a sequence use weights that are not the newest. That is faster
// and trains otherwise, so who wants it names it.
func stale(order pipeline.Ordering) bool {
	s, why := order.Schedule(2, 4, nil)
	return why == "" && s.Wave > 0
}

func chosen(text string) (c catalogue.Composition, f strategy.Filled, err error) {
	if c, err = catalogue.Parse("--strategy", text); err == nil {
		f, err = c.Fill(catalogue.Env{})
	}
	return c, f, err
}

// named are the planners, cuts and sequences that a text names; what it does not name is every
// one there is, but for planners where it names a cut and cuts where it names a planner.
func named(text string) (planners, cuts, sequences []string, err error) {
	planners, cuts, sequences = catalogue.Names(parallel.PlannerPart), catalogue.Names(pipeline.CutPart), catalogue.Names(pipeline.SequencePart)
	if text == "auto" {
		return planners, cuts, sequences, nil
	}
	expected := fmt.Sprintf("expected a planner (%s) or a cut (%s), a sequence (%s), both joined by +, or auto",
		strings.Join(planners, ", "), strings.Join(cuts, ", "), strings.Join(sequences, ", "))
	for name := range strings.SplitSeq(text, "+") {
		switch {
		case slices.Contains(planners, name):
			planners, cuts = []string{name}, nil
		case slices.Contains(cuts, name):
			planners, cuts = nil, []string{name}
		case slices.Contains(sequences, name):
			sequences = []string{name}
		default:
			return nil, nil, nil, misused("--strategy %s: %s", text, expected)
		}
	}
	return planners, cuts, sequences, nil
}
