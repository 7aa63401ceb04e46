package pollux

import (
	"cmp"
	"slices"

	"github.com/musterdl/muster/allocate/search"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// question is the problem in a form that can travel: jobs by who has had least, nodes
// with the devices that jobs may have.
type question struct {
	Now    unit.Time
	Config Config
	Nodes  []node
	Jobs   []job
}

type node struct {
	Devices int
	Model   int32
}

// job is counted in devices, of which a worker has PerWorker.
type job struct {
	ID        plan.JobID
	PerWorker int
	Models    uint64
	// One and Several are the rates in millionths by number of workers, on one node
	// and on several; that of a number which is not legal is that of the next below.
	One     []int64
	Several []int64
	// Legal is the largest legal number of workers by number of workers.
	Legal  []int32
	Factor float64
	Base   []cell
}

type cell struct {
	Node    plan.NodeID
	Workers int32
}

// reply is the matrix, by job, and which search found it.
type reply struct {
	Search string
	Rows   []row
}

type row struct {
	Job   plan.JobID
	Cells []cell
}

// ask describes the jobs that wait or run and the nodes that take runs.
func ask(v plan.View, jobs []plan.JobID, c *Config, had []had) *question {
	q := &question{Now: v.Now(), Config: *c}
	present := uint64(0)
	for n := range plan.NodeID(v.Nodes()) {
		at := v.Node(n)
		devices := 0
		for d := at.First; at.Status == plan.Up && d < at.First+plan.DeviceID(at.Count); d++ {
			if !v.Device(d).Status.Out() {
				devices++
			}
		}
		if devices > 0 {
			present |= 1 << at.Model
		}
		q.Nodes = append(q.Nodes, node{Devices: devices, Model: at.Model})
	}
	order := slices.Clone(jobs)
	slices.SortStableFunc(order, func(a, b plan.JobID) int {
		return cmp.Or(cmp.Compare(v.Service(a), v.Service(b)), cmp.Compare(a, b))
	})
	for _, id := range order {
		if v.Shape(id).Devices == 0 {
			continue
		}
		most := v.Shape(id).Most()
		if c.Double {
			most = reach(v.Shape(id), had, id)
		}
		q.Jobs = append(q.Jobs, describe(v, id, present, most))
	}
	return q
}

// reach is twice what a job has had, or its least legal number.
func reach(shape *plan.Shape, all []had, id plan.JobID) int32 {
	most := int32(1)
	if at, ok := slices.BinarySearchFunc(all, id, func(h had, id plan.JobID) int { return int(h.Job) - int(id) }); ok {
		most = max(most, 2*all[at].Workers)
	}
	least := int32(1)
	for !shape.MayHave(least) {
		least++
	}
	return min(max(most, least), shape.Most())
}

func describe(v plan.View, id plan.JobID, present uint64, most int32) job {
	state, shape := v.Job(id), v.Shape(id)
	j := job{ID: id, PerWorker: int(max(1, shape.Devices)), Models: shape.Models & present, Factor: 1}
	legal := int32(0)
	for n := range most + 1 {
		if shape.MayHave(n) {
			legal = n
		}
		j.Legal = append(j.Legal, legal)
		j.One = append(j.One, lowest(v, id, j.Models, legal, false))
		j.Several = append(j.Several, lowest(v, id, j.Models, legal, true))
	}
	if state.Attempt > 0 {
		restart := (state.Checkpoint.Save + state.Checkpoint.Load).Seconds()
		age := v.Now().Sub(state.Submit).Seconds()
		if whole := age + restart; whole > 0 {
			j.Factor = max(age-restart*float64(state.Attempt-1), 0) / whole
		}
	}
	if state.Run == plan.None {
		return j
	}
	counts := map[plan.NodeID]int32{}
	v.GrantsOf(state.Run, func(g plan.Grant) { counts[g.Node]++ })
	for n, count := range counts {
		j.Base = append(j.Base, cell{n, count / int32(j.PerWorker)})
	}
	slices.SortFunc(j.Base, func(a, b cell) int { return cmp.Compare(a.Node, b.Node) })
	return j
}

// lowest is the rate on the slowest of some models.
func lowest(v plan.View, id plan.JobID, models uint64, workers int32, several bool) int64 {
	least := int64(0)
	for m := range int32(v.Room().Models()) {
		if models&(1<<m) == 0 {
			continue
		}
		if r := v.Rate(id, m, workers, several); r > 0 && (least == 0 || r < least) {
			least = r
		}
	}
	return least
}

// problem is the question as a matrix of devices.
func (q *question) problem() *search.Problem {
	p := &search.Problem{Base: search.NewMatrix(len(q.Jobs), len(q.Nodes)), MostNodes: len(q.Nodes), Mingle: !q.Config.Avoid}
	devices := 0
	for _, n := range q.Nodes {
		p.Room = append(p.Room, n.Devices)
		devices += n.Devices
	}
	fair := (devices + len(q.Jobs) - 1) / len(q.Jobs)
	for i := range q.Jobs {
		j := &q.Jobs[i]
		most := len(j.Legal) - 1
		share := max(1, min(fair/j.PerWorker, most))
		for share < most && j.One[share] == 0 { // below the smallest legal size
			share++
		}
		base := float64(max(j.One[share], j.Several[share], 1))
		may := make([]bool, len(q.Nodes))
		for n := range q.Nodes {
			may[n] = j.Models&(1<<q.Nodes[n].Model) != 0
		}
		p.Jobs = append(p.Jobs, search.Job{Most: most * j.PerWorker, Factor: j.Factor, May: may,
			Speedup: func(nodes, devices int) float64 {
				if nodes > 1 {
					return float64(j.Several[devices/j.PerWorker]) / base
				}
				return float64(j.One[devices/j.PerWorker]) / base
			}})
		for _, c := range j.Base {
			p.Base.Row(i)[c.Node] = uint8(min(int(c.Workers)*j.PerWorker, q.Nodes[c.Node].Devices))
		}
	}
	return p
}

// solve searches. The genetic search begins with the matrix of today and that of the
// greedy one, so it is never worse.
func (q *question) solve() *reply {
	p := q.problem()
	r := &reply{Search: "greedy"}
	best := search.Greedy(p)
	if len(q.Jobs) <= q.Config.GreedyAbove {
		effort := search.Patient()
		effort.Population, effort.Generations = q.Config.Population, q.Config.Generations
		best, _ = search.Genetic(p, []search.Matrix{best}, effort, q.Config.Seed^uint64(q.Now))
		r.Search = "genetic"
	}
	for i := range q.Jobs {
		r.Rows = append(r.Rows, row{q.Jobs[i].ID, q.Jobs[i].trim(best.Row(i))})
	}
	slices.SortFunc(r.Rows, func(a, b row) int { return cmp.Compare(a.Job, b.Job) })
	return r
}

// trim turns devices by node into whole workers, a legal number of them: what is too
// much goes from the nodes with fewest.
func (j *job) trim(devices []uint8) []cell {
	var cells []cell
	workers := int32(0)
	for n, d := range devices {
		if w := int32(d) / int32(j.PerWorker); w > 0 {
			cells = append(cells, cell{plan.NodeID(n), w})
			workers += w
		}
	}
	extra := workers - j.Legal[workers]
	slices.SortStableFunc(cells, func(a, b cell) int { return cmp.Compare(a.Workers, b.Workers) })
	for i := range cells {
		less := min(extra, cells[i].Workers)
		cells[i].Workers -= less
		extra -= less
	}
	cells = slices.DeleteFunc(cells, func(c cell) bool { return c.Workers == 0 })
	slices.SortFunc(cells, func(a, b cell) int { return cmp.Compare(a.Node, b.Node) })
	return cells
}
