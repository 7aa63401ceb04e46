package reproduce

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/experiment/trace"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// pack is the experiment of packing papers: the jobs of a trace come in a random order,
// go on with draws from them until they have asked for so many times the devices, and
// never leave. What does not fit is turned away. The nodes are in a random order too: it
// decides between those that a policy finds equally good.
func (x *experiment) pack(trace, ref string, labels []string) error {
	c, err := resolveCluster(x.Cluster, x.Data)
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	asked, err := shapesOf(ref, c)
	if err != nil {
		return err
	}
	shapes, jobs := asked.shapes, asked.jobs
	expected := make([]int64, len(shapes))
	for _, shape := range jobs {
		expected[shape]++
	}
	var tell sync.Mutex
	done := 0
	runs := make([][]map[string]float64, len(labels))
	for i := range runs {
		runs[i] = make([]map[string]float64, x.seeds)
	}
	err = each(x.seeds*len(labels), func(n int) error {
		label, seed := labels[n%len(labels)], uint64(n/len(labels))+1
		by, err := x.packer(shuffled(c, seed), &asked, x.Strategies[label], catalogue.Env{Seed: seed, Break: x.broken()})
		if err != nil {
			return fmt.Errorf("%s: %w", label, err)
		}
		list := arrivals(shapes, jobs, x.Arrivals*1000*float64(len(c.Devices)), seed)
		figures, err := fill(by, shapes, expected, list)
		if err != nil {
			return fmt.Errorf("%s: %w", label, err)
		}
		runs[n%len(labels)][seed-1] = figures
		tell.Lock()
		defer tell.Unlock()
		if done++; x.Progress != nil {
			x.Progress(x.Name+" "+trace, done, x.seeds*len(labels))
		}
		return nil
	})
	for i, label := range labels {
		x.runs[term{trace: trace, label: label}] = runs[i]
	}
	return err
}

// packer is who has a cluster and lets jobs of a shape in for which it finds room.
type packer interface {
	state() *plan.State
	// lets has a job of a shape start, and reports whether it does.
	lets(shape int32) (bool, error)
	// figures adds what it knows besides; taken is what was let in, in thousandths of devices.
	figures(into map[string]float64, taken int64)
}

// packer is who packs under a strategy: its placer, or the engine where it moves runs too.
func (x *experiment) packer(c *cluster.Cluster, asked *asked, strategy string, env catalogue.Env) (packer, error) {
	composed, err := catalogue.Resolve(strategy)
	if err != nil {
		return nil, err
	}
	parts, err := composed.Parts(env)
	if err != nil || parts.Moves.Most == 0 {
		s := plan.NewState(c)
		s.Shapes = slices.Clone(asked.shapes)
		return &placing{s: s, placer: parts.Placer}, err
	}
	return newMoving(c, asked, composed, env, unit.Seconds(x.RestartSec))
}

// placing is a placer alone.
type placing struct {
	s      *plan.State
	placer allocate.Placer
	found  []allocate.Candidate
}

func (p *placing) state() *plan.State { return p.s }

func (p *placing) lets(at int32) (bool, error) {
	shape := &p.s.Shapes[at]
	id := p.s.Admit("job", plan.Asked{Shape: at})
	p.found = p.placer.Place(p.s.View(), allocate.Need{Job: id, Workers: shape.Gang, Shape: shape}, 1, p.found[:0])
	if len(p.found) == 0 {
		return false, nil
	}
	d := p.s.Edit()
	if run, why := d.Start(id, p.found[0].Slots, plan.DefaultTerms(), plan.Reason{}); run == plan.None {
		return false, fmt.Errorf("job %d of shape %+v cannot start on %+v: %v", id, *shape, p.found[0].Slots, why)
	}
	d.Commit()
	return true, nil
}

func (p *placing) figures(map[string]float64, int64) {}

// each calls f for 0 to n-1, as many at once as there are cores, and returns the first
// mistake, after which nothing more begins.
func each(n int, f func(int) error) error {
	var next atomic.Int64
	var all sync.WaitGroup
	errs := make([]error, n)
	for range min(n, runtime.GOMAXPROCS(0)) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if errs[i] = f(i); errs[i] != nil {
					next.Store(int64(n))
				}
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// asked is what the jobs of a trace ask for.
type asked struct {
	shapes []plan.Shape
	jobs   []int32 // each as the index of its shape
	// hours is for how long a device that is asked for is used in the mean; 0 is not known.
	hours float64
}

// shapesOf reads a trace as different shapes.
func shapesOf(ref string, c *cluster.Cluster) (a asked, err error) {
	r, err := trace.Open(ref, trace.Options{Seed: 1, Devices: len(c.Devices)})
	if err != nil {
		return a, err
	}
	defer r.Close()
	milli := 0.0
	known := map[plan.Shape]int32{}
	for {
		w, truth, err := r.Next()
		if errors.Is(err, io.EOF) {
			a.hours /= milli
			return a, nil
		}
		if err != nil {
			return a, err
		}
		s := shapeOf(&w, c)
		id, ok := known[s]
		if !ok {
			id = int32(len(a.shapes))
			known[s], a.shapes = id, append(a.shapes, s)
		}
		a.jobs = append(a.jobs, id)
		if milli += float64(s.Milli(s.Gang)); truth.Duration != trace.NoDuration {
			a.hours += float64(s.Milli(s.Gang)) * truth.Duration.Seconds() / 3600
		}
	}
}

// shapeOf is what a job asks for. A model that the cluster does not have is no model.
func shapeOf(w *workload.Job, c *cluster.Cluster) plan.Shape {
	s := plan.Shape{Gang: w.Gang, Devices: w.Devices, Share: int32(w.Share), CPU: int32(w.CPU), Host: int32(w.HostMemory), Models: 1<<len(c.Models) - 1}
	if len(w.Models) > 0 {
		s.Models = 0
		for _, name := range w.Models {
			if id, ok := c.ModelID(name); ok {
				s.Models |= 1 << id
			}
		}
	}
	return s
}

// arrivals shuffles the jobs and goes on with draws from them until the next would
// bring what they ask for above so many thousandths of a device.
func arrivals(shapes []plan.Shape, jobs []int32, milli float64, seed uint64) []int32 {
	dice := rand.New(rand.NewPCG(seed, 0))
	list := append([]int32(nil), jobs...)
	dice.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	asked := int64(0)
	for i, p := range list {
		if asked += shapes[p].Milli(shapes[p].Gang); float64(asked) > milli {
			return list[:i]
		}
	}
	for {
		p := jobs[dice.IntN(len(jobs))]
		if asked += shapes[p].Milli(shapes[p].Gang); float64(asked) > milli {
			return list
		}
		list = append(list, p)
	}
}

// shuffled is the cluster with its nodes in another order.
func shuffled(c *cluster.Cluster, seed uint64) *cluster.Cluster {
	other := &cluster.Cluster{Name: c.Name, Models: c.Models, Racks: c.Racks}
	for _, i := range rand.New(rand.NewPCG(seed, 1)).Perm(len(c.Nodes)) {
		other.AddNode(c.Nodes[i], int(c.Nodes[i].Count))
	}
	return other
}

// fill lets jobs come and never go, and returns in percent how much of the devices is
// taken in the end and was when jobs for all of them had come; and how much was free but
// of no use to the jobs expected, so many of each shape, when jobs for 90 % had.
func fill(by packer, shapes []plan.Shape, expected []int64, jobs []int32) (map[string]float64, error) {
	s := by.state()
	all := float64(len(s.Devices)) * 1000
	arrived, taken, placed, at100, fragment := int64(0), int64(0), 0, 0.0, -1.0
	began := time.Now()
	for _, job := range jobs {
		shape := &shapes[job]
		if arrived += shape.Milli(shape.Gang); at100 == 0 && float64(arrived) >= all {
			at100 = float64(taken) / all * 100
		}
		if fragment < 0 && float64(arrived) >= .9*all {
			stop := time.Now()
			fragment = fragmented(s, shapes, expected) / all * 100
			began = began.Add(time.Since(stop))
		}
		in, err := by.lets(job)
		if err != nil {
			return nil, err
		}
		if in {
			taken += shape.Milli(shape.Gang)
			placed++
		}
	}
	took := time.Since(began)
	figures := map[string]float64{"allocated_pct": float64(taken) / all * 100, "allocated_at_100_pct": at100, "fragment_at_90_pct": max(0, fragment),
		"placed_pct": float64(placed) / float64(len(jobs)) * 100, "place_ms": took.Seconds() * 1000 / float64(len(jobs))}
	by.figures(figures, taken)
	return figures, s.Check()
}

// fragmented is what FGD (Weng et al., ATC 2023) calls the fragment of a cluster: the
// free thousandths of devices that a job cannot use, on the mean of those expected. Where
// a job does not fit, that is all a node has free, else its devices too full for the job.
func fragmented(s *plan.State, shapes []plan.Shape, expected []int64) float64 {
	sum, jobs := 0.0, int64(0)
	for i := range shapes {
		shape := &shapes[i]
		jobs += expected[i]
		for n := range s.Nodes {
			sum += float64(expected[i] * unusable(s, &s.Nodes[n], shape))
		}
	}
	return sum / float64(jobs)
}

func unusable(s *plan.State, node *plan.Node, shape *plan.Shape) int64 {
	free, usable, devices := int64(0), int64(0), int32(0)
	for _, d := range s.Devices[node.First : node.First+plan.DeviceID(node.Count)] {
		if free += int64(d.Free); d.Free >= shape.Share {
			usable, devices = usable+int64(d.Free), devices+1
		}
	}
	if shape.Devices == 0 || devices < shape.Devices || node.FreeCPU < shape.CPU || shape.Models&(1<<node.Model) == 0 {
		return free
	}
	return free - usable
}
