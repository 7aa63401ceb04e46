// Package cassini interleaves the communication of training jobs on the links they
// share (Rajasekaran et al., CASSINI: Network-Aware Job Scheduling in Machine Learning
// Clusters, NSDI 2024). Of the places that the placer would give a job it takes the one
// whose links have the best mean score and whose affinity graph of jobs and links has
// no cycle; then it shifts the iterations of the jobs so that some compute while others
// communicate. The geometry is in flow/circle.
//
// Recalled: no full text was at hand; scores, graph and shifts are the paper's. Ours:
// the mean is over the links connected with the new job, since the others are the same
// in all places; where every place has a cycle, the best score decides, and jobs are
// turned until no turn of one helps. Left out: measuring the profiles (a job declares
// its two phases), and agents that correct a drift above 5 %.
package cassini

import (
	"cmp"
	_ "embed" // the claim
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/flow"
	"github.com/musterdl/muster/flow/circle"
	"github.com/musterdl/muster/flow/fluid"
	"github.com/musterdl/muster/mechanism/maxmin"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/plan"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "cassini", System: "CASSINI", Part: allocate.RatePart, Status: "recalled",
	Source: "Rajasekaran et al., NSDI 2024", Challenges: []string{"C6"},
	Idea: "jobs go where they can take turns on the links, and are shifted so that one sends while others compute",
	Acts: []strategy.Act{strategy.Shift},
	Goal: "throughput", Needs: "the two phases of an iteration and the traffic of a worker",
	Live:  "cannot, because no driver delays what a run sends",
	Inner: "compatibility: how little demand is left above the capacity of a link when its jobs take turns",
}

// Claim is the experiment that checks it.
//
//go:embed claim.yaml
var Claim []byte

// Strategy chooses among places, and shifts. All it remembers is how well the jobs of links went together.
type Strategy struct{ arranger circle.Arranger }

var (
	_ allocate.Rater = (*Strategy)(nil)
	_ flow.Shaper    = (*Strategy)(nil)
)

// New returns the strategy.
func New() *Strategy { return &Strategy{} }

// Rate returns the candidate with the best mean score of those without a cycle, of
// equals the placer's better one; the best mean score where all have one.
func (s *Strategy) Rate(v plan.View, need allocate.Need, found []allocate.Candidate) int {
	job, known := periodic(v, need.Job)
	if !known {
		return 0
	}
	var jobs []circle.Periodic
	for run := range plan.RunID(v.RunSlots()) {
		if r := v.Run(run); r.Status.Computes() {
			if other, ok := periodic(v, r.Job); ok {
				other.Uses = fluid.OfRun(v, run)
				jobs = append(jobs, other)
			}
		}
	}
	var places [][]maxmin.Use
	for i := range found {
		places = append(places, fluid.OfSlots(v, need.Job, found[i].Slots))
	}
	return choose(&s.arranger, jobs, job, places, fluid.Capacities(v.Cluster()))
}

// choose returns the index of the place whose links a job should use beside others.
func choose(arranger *circle.Arranger, others []circle.Periodic, job circle.Periodic, places [][]maxmin.Use, capacities []float64) int {
	best, bestScore, bestCyclic := -1, 0.0, true
	jobs := append(slices.Clip(others), job)
	for i, uses := range places {
		jobs[len(others)].Uses = uses
		a := arranger.Arrange(jobs, capacities)
		score, cyclic := a.Score(len(others))
		if best < 0 || !cyclic && bestCyclic || cyclic == bestCyclic && score > bestScore+1e-9 {
			best, bestScore, bestCyclic = i, score, cyclic
		}
	}
	return best
}

// periodic is what a job does over and over, without the links; not known of one that
// does not say, or that sends nothing.
func periodic(v plan.View, id plan.JobID) (circle.Periodic, bool) {
	p := v.ProfileOf(id)
	return circle.Periodic{Compute: p.Compute, Communicate: p.Communicate},
		p.Communicate > 0 && v.Job(id).Traffic > 0
}

// Shape gives the runs that meet others on a full link their shifts. A shift is where
// the iteration begins on a clock that all share, above 0 and up to one iteration: 0
// is a run that begins where its start has put it. The oldest run of those that are
// connected keeps the shift it has, so that a newcomer comes to the others.
func (s *Strategy) Shape(v plan.View, runs []plan.RunID, into []flow.Setting) []flow.Setting {
	var sending []plan.RunID
	for _, run := range runs {
		if _, ok := periodic(v, v.Run(run).Job); ok {
			sending = append(sending, run)
		}
	}
	slices.SortFunc(sending, func(a, b plan.RunID) int { return cmp.Compare(v.Run(a).Start, v.Run(b).Start) })
	jobs := make([]circle.Periodic, len(sending))
	for i, run := range sending {
		jobs[i], _ = periodic(v, v.Run(run).Job)
		jobs[i].Uses = fluid.OfRun(v, run)
	}
	a := s.arranger.Arrange(jobs, fluid.Capacities(v.Cluster()))
	connected := make([]bool, len(jobs))
	for i, root := range a.Root {
		if int(root) != i {
			connected[root], connected[i] = true, true
		}
	}
	for i, run := range sending {
		if !connected[i] {
			continue
		}
		traffic := v.Run(run).Terms.Traffic
		shift := circle.Within(a.Shifts[i]+v.Run(sending[a.Root[i]]).Terms.Traffic.Shift, jobs[i].Iteration())
		if shift == 0 {
			shift = jobs[i].Iteration()
		}
		if traffic.Shift != shift {
			traffic.Shift = shift
			into = append(into, flow.Setting{Run: run, Traffic: traffic})
		}
	}
	return into
}
