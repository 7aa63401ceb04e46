package jahani

import (
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/musterdl/muster/solve"
)

// The experiment: 20 jobs whose rates were measured on two kinds of device, and up to
// five nodes of the machines that carry them, at their prices on demand.
const (
	rates     = "gavel/simulation_throughputs.json.gz"
	jobs      = 20
	nodes     = 5
	gapSec    = 1800.0
	medianSec = 7200.0 // on one V100
)

// kind is a machine and where its device's rates are found.
type kind struct {
	Machine
	device string
}

var kinds = []kind{
	{Machine{"p2.xlarge", 0.90, 1, 0}, "k80"}, {Machine{"p2.8xlarge", 7.20, 8, 0}, "k80"},
	{Machine{"p3.2xlarge", 3.06, 1, 0}, "v100"}, {Machine{"p3.8xlarge", 12.24, 4, 0}, "v100"}, {Machine{"p3.16xlarge", 24.48, 8, 0}, "v100"},
}

// task is a job of the experiment.
type task struct {
	Work              // of the whole job
	submit, due, left float64
	end               float64
}

// Measure runs the experiment under the search at every event, and under first come
// first served and earliest deadline first on every one of the machines, where a job has
// a machine to itself. Costs are in dollars, lateness included.
func Measure(open func(path string) (io.ReadCloser, error), seed uint64) (map[string]float64, error) {
	f, err := open(rates)
	if err != nil {
		return nil, fmt.Errorf("opening the measured rates: %w", err)
	}
	defer f.Close()
	tables, err := readRates(f)
	if err != nil {
		return nil, err
	}
	tasks := drawTasks(tables, seed)
	figures := map[string]float64{}
	rent, late := simulate(slices.Clone(tasks), rented(Default()))
	figures["cost"], figures["rent"], figures["lateness"] = rent+late, rent, late
	var all []float64
	for m := range kinds {
		for _, order := range []struct {
			name string
			key  func(t *task) float64
		}{{"fifo", func(t *task) float64 { return t.submit }}, {"edf", func(t *task) float64 { return t.due }}} {
			rent, late := simulate(slices.Clone(tasks), fixed(m, order.key))
			figures[order.name+"-"+kinds[m].Name] = rent + late
			all = append(all, rent+late)
		}
	}
	slices.Sort(all)
	figures["fixed-cheapest"], figures["fixed-mean"] = all[0], stat.Mean(all, nil)
	figures["fixed-median"] = (all[len(all)/2-1] + all[len(all)/2]) / 2
	return figures, gap(tasks[:4], figures)
}

// gap is how the search compares with the program when the first of the tasks are there
// at once and two nodes for them.
func gap(tasks []task, figures map[string]float64) error {
	p := &Problem{Nodes: 2, HorizonSec: Default().HorizonSec, Rho: Default().Rho}
	for _, k := range kinds {
		p.Machines = append(p.Machines, k.Machine)
	}
	for _, t := range tasks {
		t.DueSec = t.due - t.submit
		p.Jobs = append(p.Jobs, t.Work)
	}
	plan, proven, err := Exact(p, solve.Budget{})
	if err != nil {
		return err
	}
	if proven {
		figures["exact"], figures["search"] = p.Cost(plan), p.Cost(Search(p, Plan{}))
	}
	return nil
}

// readRates returns, by job type in order of name, the seconds that a unit of work takes
// on every machine; one unit takes a second on one V100.
func readRates(r io.Reader) ([][][]float64, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("reading the measured rates: %w", err)
	}
	var measured map[string]map[string]map[string]json.RawMessage // device, type and scale, neighbour
	if err := json.NewDecoder(z).Decode(&measured); err != nil {
		return nil, fmt.Errorf("reading the measured rates: %w", err)
	}
	rate := func(device, name string, scale int) (x float64) {
		if err := json.Unmarshal(measured[device][fmt.Sprintf("(%s, %d)", name, scale)]["null"], &x); err != nil {
			return 0 // not measured
		}
		return x
	}
	var names []string
	for key := range measured["v100"] {
		if name, ok := cutScale(key); ok && rate("k80", name, 8) > 0 && rate("v100", name, 8) > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var tables [][][]float64
	for _, name := range names {
		table := make([][]float64, len(kinds))
		for m, k := range kinds {
			table[m] = make([]float64, k.Devices)
			for g := 1; g <= k.Devices; g *= 2 {
				table[m][g-1] = rate("v100", name, 1) / rate(k.device, name, g)
			}
		}
		tables = append(tables, table)
	}
	return tables, nil
}

// cutScale takes the type out of a key such as "('LM (batch size 5)', 8)".
func cutScale(key string) (name string, ok bool) {
	const end = ", 8)"
	if len(key) < len(end)+1 || key[len(key)-len(end):] != end {
		return "", false
	}
	return key[1 : len(key)-len(end)], true
}

// drawTasks draws the jobs: due after one to five times what they take on one V100, and
// dear if they are late, at one to five dollars an hour.
func drawTasks(tables [][][]float64, seed uint64) []task {
	chance := rand.New(rand.NewPCG(seed, 11))
	tasks, now := make([]task, jobs), 0.0
	for i := range tasks {
		length := medianSec * math.Exp(chance.NormFloat64())
		t := task{submit: now, left: 1, Work: Work{Weight: (1 + 4*chance.Float64()) / 3600}}
		for _, row := range tables[chance.IntN(len(tables))] {
			times := slices.Clone(row)
			for g := range times {
				times[g] *= length
			}
			t.Seconds = append(t.Seconds, times)
		}
		t.due = now + length*(1+4*chance.Float64())
		tasks[i] = t
		now += gapSec * chance.ExpFloat64()
	}
	return tasks
}

// decider says what is rented and who runs where, of the tasks that are alive.
type decider func(now float64, tasks []task, alive []int) Plan

// simulate runs tasks, in order of submission, and returns what is paid for machines and
// what for lateness. Moving a job costs nothing.
func simulate(tasks []task, decide decider) (rent, late float64) {
	horizon := Default().HorizonSec
	next, now := 0, 0.0
	var alive []int
	for next < len(tasks) || len(alive) > 0 {
		if len(alive) == 0 {
			now = max(now, tasks[next].submit)
		}
		for ; next < len(tasks) && tasks[next].submit <= now; next++ {
			alive = append(alive, next)
		}
		plan := decide(now, tasks, alive)
		until := now + horizon
		if next < len(tasks) {
			until = min(until, tasks[next].submit)
		}
		whole := func(k int) float64 {
			c := plan.Jobs[k]
			return tasks[alive[k]].Seconds[plan.Rented[c.Node]][c.Devices-1]
		}
		for k, i := range alive {
			if plan.Jobs[k].Devices > 0 {
				until = min(until, now+tasks[i].left*whole(k))
			}
		}
		for _, m := range plan.Rented {
			if m != none {
				rent += kinds[m].PricePerHour / 3600 * (until - now)
			}
		}
		for k, i := range alive {
			if plan.Jobs[k].Devices > 0 {
				if t := &tasks[i]; t.left*whole(k) <= (until-now)+1e-6 {
					t.left, t.end = 0, until
					late += t.Weight * max(0, t.end-t.due)
				} else {
					t.left -= (until - now) / whole(k)
				}
			}
		}
		now = until
		alive = slices.DeleteFunc(alive, func(i int) bool { return tasks[i].left == 0 })
	}
	return rent, late
}

// rented decides by the search.
func rented(c Config) decider {
	p := &Problem{Nodes: nodes, HorizonSec: c.HorizonSec, Rho: c.Rho}
	for _, k := range kinds {
		p.Machines = append(p.Machines, k.Machine)
	}
	return func(now float64, tasks []task, alive []int) Plan {
		p.Jobs = p.Jobs[:0]
		for _, i := range alive {
			w := Work{DueSec: tasks[i].due - now, Weight: tasks[i].Weight}
			for _, times := range tasks[i].Seconds {
				row := slices.Clone(times)
				for g := range row {
					row[g] *= tasks[i].left
				}
				w.Seconds = append(w.Seconds, row)
			}
			p.Jobs = append(p.Jobs, w)
		}
		return Search(p, Plan{})
	}
}

// fixed gives every job in some order one machine of a kind to itself, until it ends.
func fixed(machine int, key func(t *task) float64) decider {
	has := map[int]bool{}
	return func(_ float64, tasks []task, alive []int) Plan {
		plan := Plan{Rented: []int{none, none, none, none, none}[:nodes], Jobs: make([]Choice, len(alive))}
		order := make([]int, len(alive))
		for k := range order {
			order[k] = k
		}
		slices.SortFunc(order, func(a, b int) int {
			first := func(k int) int {
				if has[alive[k]] {
					return 0
				}
				return 1
			}
			return cmp.Or(cmp.Compare(first(a), first(b)), cmp.Compare(key(&tasks[alive[a]]), key(&tasks[alive[b]])), cmp.Compare(a, b))
		})
		for n, k := range order[:min(nodes, len(order))] {
			fastest := 1
			for g, t := range tasks[alive[k]].Seconds[machine] {
				if t > 0 && t < tasks[alive[k]].Seconds[machine][fastest-1] {
					fastest = g + 1
				}
			}
			plan.Rented[n], plan.Jobs[k] = machine, Choice{n, fastest}
			has[alive[k]] = true
		}
		return plan
	}
}
