// Package matrix says how many workers each job has on each node: the situation in a form
// that can travel to whoever searches outside the cycle (package search), and the rows that
// come back. It is a mechanism; Pollux (Qiao et al., OSDI 2021) is the strategy that it was
// made for.
//
// Situations, rows and what is kept of them are figures: as text those of thousands of jobs
// would hold the engine up for longer than a decision may.
package matrix

import (
	"cmp"
	"math"
	"slices"

	"github.com/musterdl/muster/allocate/search"
	"github.com/musterdl/muster/model/figures"
	"github.com/musterdl/muster/plan"
)

// Situation is the nodes with the devices that jobs may have, and the jobs, of which the
// earlier win where two want the same.
type Situation struct {
	Nodes []Node
	Jobs  []Job
}

// Node is what a node has for runs: nothing unless it is up.
type Node struct {
	Devices int
	Model   int32
}

// Job is counted in devices, of which a worker has PerWorker.
type Job struct {
	ID        plan.JobID
	PerWorker int
	Models    uint64
	// One and Several are the rates in millionths by number of workers, on one node
	// and on several; that of a number which is not legal is that of the next below.
	One     []int64
	Several []int64
	// Legal is the largest legal number of workers by number of workers.
	Legal []int32
	// Factor multiplies its speed if its row changes.
	Factor float64
	// Base is its row of today.
	Base []Cell
}

// Cell is the workers of a job on a node.
type Cell struct {
	Node    plan.NodeID
	Workers int32
}

// Row is what a job has.
type Row struct {
	Job   plan.JobID
	Cells []Cell
}

// Look takes in the nodes, and says which models there are.
func (s *Situation) Look(v plan.View) (present uint64) {
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
		s.Nodes = append(s.Nodes, Node{Devices: devices, Model: at.Model})
	}
	return present
}

// Describe is a job that may use some models, and at most so many workers. On several
// models it is taken to have its lowest rate; its factor is 1.
func Describe(v plan.View, id plan.JobID, models uint64, most int32) Job {
	shape, run := v.Shape(id), v.Job(id).Run
	j := Job{ID: id, PerWorker: int(max(1, shape.Devices)), Models: models, Factor: 1}
	legal := int32(0)
	for n := range most + 1 {
		if shape.MayHave(n) {
			legal = n
		}
		j.Legal = append(j.Legal, legal)
		j.One = append(j.One, lowest(v, id, models, legal, false))
		j.Several = append(j.Several, lowest(v, id, models, legal, true))
	}
	if run == plan.None {
		return j
	}
	counts := map[plan.NodeID]int32{}
	v.GrantsOf(run, func(g plan.Grant) { counts[g.Node]++ })
	for n, count := range counts {
		j.Base = append(j.Base, Cell{n, count / int32(j.PerWorker)})
	}
	slices.SortFunc(j.Base, func(a, b Cell) int { return cmp.Compare(a.Node, b.Node) })
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

// Problem is the situation as one of devices by job and node; a job's speed is over that
// on a fair share.
func (s *Situation) Problem(mingle bool) *search.Problem {
	p := &search.Problem{Base: search.NewMatrix(len(s.Jobs), len(s.Nodes)), MostNodes: len(s.Nodes), Mingle: mingle}
	devices := 0
	for _, n := range s.Nodes {
		p.Room = append(p.Room, n.Devices)
		devices += n.Devices
	}
	fair := (devices + len(s.Jobs) - 1) / len(s.Jobs)
	for i := range s.Jobs {
		j := &s.Jobs[i]
		most := len(j.Legal) - 1
		share := max(1, min(fair/j.PerWorker, most))
		for share < most && j.One[share] == 0 { // below the smallest legal size
			share++
		}
		base := float64(max(j.One[share], j.Several[share], 1))
		may := make([]bool, len(s.Nodes))
		for n := range s.Nodes {
			may[n] = j.Models&(1<<s.Nodes[n].Model) != 0
		}
		p.Jobs = append(p.Jobs, search.Job{Most: most * j.PerWorker, Factor: j.Factor, May: may,
			Speedup: func(nodes, devices int) float64 {
				if nodes > 1 {
					return float64(j.Several[devices/j.PerWorker]) / base
				}
				return float64(j.One[devices/j.PerWorker]) / base
			}})
		for _, c := range j.Base {
			p.Base.Row(i)[c.Node] = uint8(min(int(c.Workers)*j.PerWorker, s.Nodes[c.Node].Devices))
		}
	}
	return p
}

// Rows are what a matrix of devices gives the jobs in legal numbers of whole workers, by
// job.
func (s *Situation) Rows(m search.Matrix) (rows []Row) {
	for i := range s.Jobs {
		rows = append(rows, Row{s.Jobs[i].ID, s.Jobs[i].trim(m.Row(i))})
	}
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Compare(a.Job, b.Job) })
	return rows
}

// trim turns devices by node into whole workers, a legal number of them: what is too
// much goes from the nodes with fewest.
func (j *Job) trim(devices []uint8) []Cell {
	var cells []Cell
	workers := int32(0)
	for n, d := range devices {
		if w := int32(d) / int32(j.PerWorker); w > 0 {
			cells = append(cells, Cell{plan.NodeID(n), w})
			workers += w
		}
	}
	extra := workers - j.Legal[workers]
	slices.SortStableFunc(cells, func(a, b Cell) int { return cmp.Compare(a.Workers, b.Workers) })
	for i := range cells {
		less := min(extra, cells[i].Workers)
		cells[i].Workers -= less
		extra -= less
	}
	cells = slices.DeleteFunc(cells, func(c Cell) bool { return c.Workers == 0 })
	slices.SortFunc(cells, func(a, b Cell) int { return cmp.Compare(a.Node, b.Node) })
	return cells
}

// Put appends the situation.
func (s *Situation) Put(b []byte) []byte {
	b = figures.PutCount(b, len(s.Nodes))
	for _, n := range s.Nodes {
		b = figures.Put(b, int64(n.Devices), int64(n.Model))
	}
	b = figures.PutCount(b, len(s.Jobs))
	for i := range s.Jobs {
		j := &s.Jobs[i]
		b = figures.PutCount(figures.Put(b, int64(j.ID), int64(j.PerWorker), int64(j.Models), int64(math.Float64bits(j.Factor))), len(j.Legal))
		for n, legal := range j.Legal {
			b = figures.Put(b, int64(legal), j.One[n], j.Several[n])
		}
		b = putCells(b, j.Base)
	}
	return b
}

// Read reads what Put wrote; the reader says whether that was whole.
func Read(r *figures.Reader) (s Situation) {
	for range r.Counted {
		s.Nodes = append(s.Nodes, Node{int(r.Next()), int32(r.Next())})
	}
	for range r.Counted {
		j := Job{ID: plan.JobID(r.Next()), PerWorker: int(r.Next()), Models: uint64(r.Next()), Factor: math.Float64frombits(uint64(r.Next()))}
		for range r.Counted {
			j.Legal, j.One, j.Several = append(j.Legal, int32(r.Next())), append(j.One, r.Next()), append(j.Several, r.Next())
		}
		j.Base = readCells(r)
		s.Jobs = append(s.Jobs, j)
	}
	return s
}

// PutRows appends rows.
func PutRows(b []byte, rows []Row) []byte {
	b = figures.PutCount(b, len(rows))
	for i := range rows {
		b = putCells(figures.Put(b, int64(rows[i].Job)), rows[i].Cells)
	}
	return b
}

// ReadRows reads what PutRows wrote; the reader says whether that was whole.
func ReadRows(r *figures.Reader) (rows []Row) {
	for range r.Counted {
		rows = append(rows, Row{plan.JobID(r.Next()), readCells(r)})
	}
	return rows
}

func putCells(b []byte, cells []Cell) []byte {
	b = figures.PutCount(b, len(cells))
	for _, c := range cells {
		b = figures.Put(b, int64(c.Node), int64(c.Workers))
	}
	return b
}

func readCells(r *figures.Reader) (cells []Cell) {
	if n := r.Count(); n > 0 {
		cells = make([]Cell, n)
	}
	for i := range cells {
		cells[i] = Cell{plan.NodeID(r.Next()), int32(r.Next())}
	}
	return cells
}
