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
	shapes, jobs, err := shapesOf(ref, c)
	if err != nil {
		return err
	}
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
		placer, err := placerOf(x.Strategies[label], catalogue.Env{Seed: seed, Break: x.broken()})
		if err != nil {
			return fmt.Errorf("%s: %w", label, err)
		}
		list := arrivals(shapes, jobs, x.Arrivals*1000*float64(len(c.Devices)), seed)
		figures, err := fill(shuffled(c, seed), shapes, expected, list, placer)
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

// placerOf is what a strategy places with.
func placerOf(strategy string, env catalogue.Env) (allocate.Placer, error) {
	composed, err := catalogue.Resolve(strategy)
	if err != nil {
		return nil, err
	}
	parts, err := composed.Parts(env)
	return parts.Placer, err
}

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

// shapesOf reads a trace as different shapes, and each job as the index of its shape.
func shapesOf(ref string, c *cluster.Cluster) (shapes []plan.Shape, jobs []int32, err error) {
	r, err := trace.Open(ref, trace.Options{Seed: 1, Devices: len(c.Devices)})
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	known := map[plan.Shape]int32{}
	for {
		w, _, err := r.Next()
		if errors.Is(err, io.EOF) {
			return shapes, jobs, nil
		}
		if err != nil {
			return nil, nil, err
		}
		s := shapeOf(&w, c)
		id, ok := known[s]
		if !ok {
			id = int32(len(shapes))
			known[s], shapes = id, append(shapes, s)
		}
		jobs = append(jobs, id)
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
func fill(c *cluster.Cluster, shapes []plan.Shape, expected []int64, jobs []int32, p allocate.Placer) (map[string]float64, error) {
	s := plan.NewState(c)
	s.Shapes = slices.Clone(shapes)
	all := float64(len(c.Devices)) * 1000
	arrived, taken, placed, at100, fragment := int64(0), int64(0), 0, 0.0, -1.0
	var found []allocate.Candidate
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
		id := s.Admit("job", plan.Asked{Shape: job})
		found = p.Place(s.View(), allocate.Need{Job: id, Workers: shape.Gang, Shape: shape}, 1, found[:0])
		if len(found) == 0 {
			continue
		}
		d := s.Edit()
		if run, why := d.Start(id, found[0].Slots, plan.DefaultTerms(), plan.Reason{}); run == plan.None {
			return nil, fmt.Errorf("job %d of shape %+v cannot start on %+v: %v", id, *shape, found[0].Slots, why)
		}
		d.Commit()
		taken += shape.Milli(shape.Gang)
		placed++
	}
	took := time.Since(began)
	return map[string]float64{"allocated_pct": float64(taken) / all * 100, "allocated_at_100_pct": at100, "fragment_at_90_pct": max(0, fragment),
		"placed_pct": float64(placed) / float64(len(jobs)) * 100, "place_ms": took.Seconds() * 1000 / float64(len(jobs))}, s.Check()
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
