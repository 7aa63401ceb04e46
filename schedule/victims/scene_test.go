package victims_test

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/schedule/victims"
	"github.com/musterdl/muster/strategies/allocate/bestfit"
	"github.com/musterdl/muster/strategies/allocate/firstfit"
	"github.com/musterdl/muster/strategies/schedule/tiresias"
)

// scene is a real state with running jobs, a placer and a job that waits.
type scene struct {
	state  *plan.State
	placer allocate.Placer
	input  victims.Input
	tries  int
	found  []allocate.Candidate
}

// placers are the nulls of step 2, and one that wants skewed gangs close together:
// it refuses room that the other two would use.
func placers() []allocate.Placer {
	return []allocate.Placer{firstfit.Placer{}, bestfit.New(bestfit.Default()), tiresias.NewPlacer(tiresias.Default())}
}

// try stops the chosen in a draft, asks the placer and rolls back.
func (s *scene) try(chosen []int) bool {
	s.tries++
	d := s.state.Edit()
	defer d.Discard()
	for _, i := range chosen {
		if !d.Stop(s.input.Candidates[i].Run, plan.Reason{}, 0) {
			return false
		}
	}
	s.found = s.placer.Place(d.View, s.input.Need, 1, s.found[:0])
	if len(s.found) == 0 {
		return false
	}
	run, _ := d.Start(s.input.Need.Job, s.found[0].Slots, plan.DefaultTerms(), plan.Reason{})
	return run != plan.None
}

// start promises a job of the shape room where first fit finds it.
func (s *scene) start(shape plan.Shape) plan.RunID {
	s.state.Shapes = append(s.state.Shapes, shape)
	job := s.state.Admit("job", plan.Asked{Shape: int32(len(s.state.Shapes) - 1)})
	d := s.state.Edit()
	defer d.Commit()
	found := firstfit.Placer{}.Place(d.View, allocate.Need{Job: job, Workers: shape.Gang, Shape: &shape}, 1, nil)
	if len(found) == 0 {
		return plan.None
	}
	run, _ := d.Start(job, found[0].Slots, plan.DefaultTerms(), plan.Reason{})
	return run
}

func (s *scene) wants(shape plan.Shape) {
	s.state.Shapes = append(s.state.Shapes, shape)
	job := s.state.Admit("preemptor", plan.Asked{Shape: int32(len(s.state.Shapes) - 1)})
	s.input.View = s.state.View()
	s.input.Need = allocate.Need{Job: job, Workers: shape.Gang, Shape: s.state.View().Shape(job)}
}

// draw makes a scene of dice: a few small nodes of two models filled with gangs,
// single jobs and shares, some of them stopping or not dispatched yet, a node
// cordoned now and then, and prices that tie often.
func draw(dice func(lo, hi int) int, candidates int) *scene {
	c := &cluster.Cluster{}
	c.AddRack(cluster.Rack{})
	for m := range 2 {
		c.AddModel(cluster.Model{Name: string(rune('a' + m)), Memory: 16 << 10})
	}
	count := 5 - dice(1, 3)
	for range 1 + candidates/2 - dice(0, candidates/4) {
		c.AddNode(cluster.Node{Model: int32(max(0, dice(-2, 1))), CPU: unit.Milli(count) * 4000, Memory: 64 << 10}, count)
	}
	s := &scene{state: plan.NewState(c), placer: placers()[dice(0, 2)]}
	var runs []plan.RunID
	for range 3 * candidates {
		if run := s.start(shape(dice, 3)); run != plan.None {
			if dice(0, 4) < 4 {
				s.state.Dispatch(run)
				s.state.Began(run)
			}
			runs = append(runs, run)
		}
		s.state.Now += unit.Time(dice(0, 1))
	}
	s.stopSome(&runs, dice)
	if dice(0, 5) == 5 {
		s.state.SetNode(0, plan.Cordoned)
	}
	need := shape(dice, 2)
	need.Gang += int32(dice(0, 2+candidates/3))
	s.wants(need)
	for len(runs) > 0 && len(s.input.Candidates) < candidates {
		i := len(runs) - 1 - dice(0, len(runs)-1)
		s.input.Candidates = append(s.input.Candidates, victims.Candidate{Job: s.state.Runs[runs[i]].Job, Run: runs[i],
			Price: int64(max(0, dice(-3, 6))), Key: schedule.Key{int64(dice(0, 3))}})
		runs = slices.Delete(runs, i, i+1)
	}
	return s
}

// stopSome tells some runs to stop: what they hold is free to be promised.
func (s *scene) stopSome(runs *[]plan.RunID, dice func(lo, hi int) int) {
	d := s.state.Edit()
	*runs = slices.DeleteFunc(*runs, func(run plan.RunID) bool {
		return dice(0, 9) == 9 && d.Stop(run, plan.Reason{}, 0)
	})
	d.Commit()
}

func shape(dice func(lo, hi int) int, most int) plan.Shape {
	s := plan.Shape{Gang: int32(dice(1, most)), Devices: 1, Share: 1000, Models: uint64(dice(1, 3)), CPU: int32(dice(0, 3)) * 1000}
	switch dice(0, 3) {
	case 0:
		s.Devices = 2
	case 1:
		s.Share, s.Memory = int32(dice(1, 3))*250, int32(dice(0, 3))*2<<10
	case 2:
		s.Host, s.Skew = int32(dice(0, 3))*16<<10, int32(dice(0, 1))*900
	}
	return s
}

// brute is the best set by trying all, cheapest first: the definition.
func (s *scene) brute() (price int64, set []int, ok bool) {
	type sum struct {
		price int64
		mask  uint32
	}
	sums := make([]sum, 1<<len(s.input.Candidates))
	for mask := range sums {
		sums[mask].mask = uint32(mask)
		for i, c := range s.input.Candidates {
			if mask>>i&1 == 1 {
				sums[mask].price += c.Price
			}
		}
	}
	latest := func(mask uint32) (jobs []plan.JobID) {
		for i, c := range s.input.Candidates {
			if mask>>i&1 == 1 {
				jobs = append(jobs, -c.Job)
			}
		}
		slices.Sort(jobs)
		return jobs
	}
	slices.SortFunc(sums, func(a, b sum) int {
		if x := cmp.Or(cmp.Compare(a.price, b.price), bits.OnesCount32(a.mask)-bits.OnesCount32(b.mask)); x != 0 {
			return x
		}
		return slices.Compare(latest(a.mask), latest(b.mask))
	})
	for _, x := range sums {
		set = set[:0]
		for i := range s.input.Candidates {
			if x.mask>>i&1 == 1 {
				set = append(set, i)
			}
		}
		if s.try(set) {
			return x.price, set, true
		}
	}
	return math.MaxInt64, nil, false
}

func (s *scene) price(set []int) (sum int64) {
	for _, i := range set {
		sum += s.input.Candidates[i].Price
	}
	return sum
}

// full is a cluster of nodes of 8 devices, full of running jobs of the given gangs.
func full(nodes int, gangs ...int32) *scene {
	s := &scene{state: plan.NewState(cluster.Uniform("full", nodes, 8, cluster.Model{Name: "gpu", Memory: 16 << 10}, 16)), placer: firstfit.Placer{}}
	for i := 0; s.state.View().Room().Free(1) > 0; i++ {
		run := s.start(plan.Shape{Gang: gangs[i%len(gangs)], Devices: 1, Share: 1000, Models: 1, CPU: 4000})
		if run == plan.None {
			continue // the next may be smaller
		}
		s.state.Dispatch(run)
		s.state.Began(run)
		s.input.Candidates = append(s.input.Candidates, victims.Candidate{Job: s.state.Runs[run].Job, Run: run})
	}
	return s
}
