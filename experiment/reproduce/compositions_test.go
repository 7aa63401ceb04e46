package reproduce

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/envelope"
	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/report"
	"github.com/musterdl/muster/run/simulated"
)

// choice is one strategy in the place of one part; "" leaves the part to its default.
type choice struct{ part, name string }

func (c choice) String() string { return c.part + ": " + c.name }

// fileOf is a composition file of some choices.
func fileOf(row []choice) string {
	lines := []string{"restart: on-request"}
	for _, c := range row {
		if c.name != "" {
			lines = append(lines, c.String())
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

func buildRow(row []choice) (catalogue.Built, error) {
	c, err := catalogue.Read("pair", []byte(fileOf(row)))
	if err != nil {
		return catalogue.Built{}, err
	}
	return c.Build(catalogue.Env{Seed: 1}, true)
}

// levels are the choices of every part. A part that there need not be may also be left
// out.
func levels() (all [][]choice) {
	at := map[string]int{}
	for _, e := range catalogue.All {
		part := e.Part.Name
		i, seen := at[part]
		if !seen {
			i, at[part] = len(all), len(all)
			all = append(all, nil)
			if e.Part.Null == "" {
				all[i] = append(all[i], choice{part, ""})
			}
		}
		c := choice{part, e.Name}
		if chain := (choice{part, e.Name + "/first-fit"}); e.Part == allocate.PlacePart {
			if _, err := buildRow([]choice{chain}); err == nil { // it takes some jobs only
				c = chain
			}
		}
		all[i] = append(all[i], c)
	}
	return all
}

// leftOut is work that a strategy does not take, and that nobody else takes in its place.
var leftOut = map[string]func(j *workload.Job) bool{
	"jahani": func(j *workload.Job) bool { return j.Gang > 4 }, // a gang over several nodes
}

// mostCommits and mostSteps bound a history of forty jobs in two days, of which none
// should be displaced often, nor looked at every microsecond.
const mostCommits, mostSteps = 20_000, 20_000

type pair [2]choice

// clashes are the pairs that cannot be built together. Each is refused with a reason
// that names both.
func clashes(t *testing.T, all [][]choice) map[pair]bool {
	refused := map[pair]bool{}
	for i := range all {
		for k := range i {
			for _, a := range all[k] {
				for _, b := range all[i] {
					_, err := buildRow([]choice{a, b})
					if err == nil {
						continue
					}
					refused[pair{a, b}] = true
					for _, c := range []choice{a, b} {
						if !strings.Contains(err.Error(), c.name) && !strings.Contains(err.Error(), c.part) {
							t.Errorf("%s with %s is refused, and the reason does not name %s: %v", a, b, c, err)
						}
					}
				}
			}
		}
	}
	return refused
}

// covering is a list of compositions in which every two choices that go together are
// together once at least: greedily, each row begins with the first pair that is missing
// and adds what covers most.
func covering(all [][]choice, refused map[pair]bool) (rows [][]choice) {
	missing := map[pair]bool{}
	for i := range all {
		for k := range i {
			for _, a := range all[k] {
				for _, b := range all[i] {
					if p := (pair{a, b}); !refused[p] {
						missing[p] = true
					}
				}
			}
		}
	}
	for i := range all {
		for k := range i {
			for _, a := range all[k] {
				for _, b := range all[i] {
					if missing[pair{a, b}] {
						rows = append(rows, fillRow(all, refused, missing, i, k, a, b))
					}
				}
			}
		}
	}
	return rows
}

// fillRow makes one row of two choices, of the parts k and i.
func fillRow(all [][]choice, refused, missing map[pair]bool, i, k int, a, b choice) []choice {
	row := make([]choice, len(all))
	row[k], row[i] = a, b
	delete(missing, pair{a, b})
	of := func(x, y int, c choice) pair { // of choice c for part x with what part y has
		if x < y {
			return pair{c, row[y]}
		}
		return pair{row[y], c}
	}
	for x := range all {
		if row[x].part != "" {
			continue
		}
		best, most := choice{}, -1
		for _, c := range all[x] {
			covered, fits := 0, true
			for y := range all {
				if row[y].part != "" {
					p := of(x, y, c)
					fits = fits && !refused[p]
					if missing[p] {
						covered++
					}
				}
			}
			if fits && covered > most {
				best, most = c, covered
			}
		}
		for y := range all {
			if row[y].part != "" {
				delete(missing, of(x, y, best))
			}
		}
		row[x] = best
	}
	return row
}

// unlikeNodes is a small cluster of three device models, one of which can be cut.
func unlikeNodes() *cluster.Cluster {
	table, _ := envelope.MIG("A100", 0)
	c := &cluster.Cluster{Name: "unlike"}
	v100 := c.AddModel(cluster.Model{Name: "V100", Memory: 16 << 10, Speed: 1})
	k80 := c.AddModel(cluster.Model{Name: "K80", Memory: 12 << 10, Speed: 0.4})
	a100 := c.AddModel(cluster.Model{Name: "A100", Memory: 40 << 10, Speed: 2, Geometries: table.Geometries()})
	one, other := c.AddRack(cluster.Rack{Name: "one", Uplink: 100_000}), c.AddRack(cluster.Rack{Name: "other", Uplink: 100_000})
	for i, n := range []struct {
		rack, model int32
		devices     int
	}{{one, v100, 4}, {one, v100, 4}, {other, k80, 4}, {other, a100, 2}} {
		c.AddNode(cluster.Node{Name: fmt.Sprint("n", i), Rack: n.rack, Model: n.model, CPU: 48 * unit.Whole, Memory: 256 << 10, Uplink: 25_000}, n.devices)
	}
	return c
}

// kinds of work that the jobs of the test are, in turn.
var kinds = []func(j *workload.Job, truth *workload.Truth, rng *rand.Rand){
	func(j *workload.Job, _ *workload.Truth, rng *rand.Rand) { j.Gang = 2 + rng.Int32N(3) },
	func(j *workload.Job, _ *workload.Truth, rng *rand.Rand) { j.Share = unit.Milli(1+rng.IntN(9)) * 100 },
	func(j *workload.Job, truth *workload.Truth, _ *rand.Rand) {
		j.Gang, j.Sizes = 2, []int32{1, 2, 4}
		j.Menu = []workload.Offer{{Workers: 1, Rate: 0.6}, {Workers: 2, Rate: 1}, {Workers: 4, Rate: 1.7}, {Model: "K80", Workers: 1, Rate: 0.2}, {Model: "K80", Workers: 4, Rate: 0.7}}
		truth.Menu = j.Menu
	},
	func(j *workload.Job, _ *workload.Truth, _ *rand.Rand) { j.Opportunistic, j.Persistent = true, 512 },
	func(j *workload.Job, _ *workload.Truth, _ *rand.Rand) {
		j.Share, j.Service = 300, workload.Service{RatePerSec: 20, SLO: 200 * unit.Millisecond}
	},
	func(j *workload.Job, _ *workload.Truth, _ *rand.Rand) {
		j.Gang, j.Pipeline = 4, workload.Pipeline{Stages: 4, Microbatches: 8}
		for i := range 8 {
			cost := unit.Duration(1+i) * unit.Millisecond
			j.Pipeline.Layers = append(j.Pipeline.Layers, workload.Layer{Forward: cost, Backward: 2 * cost, ParamKiB: 1024, OutputKiB: 256, ActivationKiB: 512})
		}
	},
	func(j *workload.Job, _ *workload.Truth, _ *rand.Rand) {
		j.Gang, j.Traffic, j.Phase = 6, 4000, workload.Phase{Compute: 80 * unit.Millisecond, Communicate: 40 * unit.Millisecond}
	},
	func(j *workload.Job, _ *workload.Truth, rng *rand.Rand) {
		j.Group, j.Base, j.Deadline = "tuning", "bert", unit.Duration(2+rng.IntN(10))*unit.Hour
	},
}

// mixed is a short history of all kinds of work.
type mixed struct {
	rng  *rand.Rand
	n    int
	most int
	now  unit.Time
}

// Next returns the next job.
func (m *mixed) Next() (workload.Job, workload.Truth, error) {
	if m.n == m.most {
		return workload.Job{}, workload.Truth{}, io.EOF
	}
	m.now = m.now.Add(unit.Duration(m.rng.IntN(90)) * unit.Second)
	j := workload.Job{Name: fmt.Sprint("j", m.n), Submit: m.now, Priority: m.rng.Int32N(2),
		Resources: workload.Resources{Gang: 1, Devices: 1, Share: unit.Whole, Memory: unit.MiB(1+m.rng.IntN(4)) << 10, CPU: unit.Whole},
		Tenant:    fmt.Sprint("t", m.rng.IntN(2))}
	truth := workload.Truth{Duration: unit.Duration(60+m.rng.IntN(1200)) * unit.Second}
	j.Checkpoint = workload.Checkpoint{OnRequest: true, Load: 20 * unit.Second, Save: 2 * unit.Second}
	if m.rng.IntN(4) > 0 {
		j.Estimate = truth.Duration * unit.Duration(5+m.rng.IntN(11)) / 10
	}
	kinds[m.n%len(kinds)](&j, &truth, m.rng)
	m.n++
	return j, truth, nil
}

func mixedJobs(seed uint64, jobs int) *mixed {
	return &mixed{rng: rand.New(rand.NewPCG(seed, 0)), most: jobs}
}

// byID is a script that is played here: first in, first out.
type byID struct{}

func (byID) Ask(line []byte) (hello, reply []byte, err error) {
	var q struct{ Jobs []struct{ ID int } }
	if err := json.Unmarshal(line, &q); err != nil {
		return nil, nil, err
	}
	order := []int{}
	for _, j := range q.Jobs {
		order = append(order, j.ID)
	}
	reply, err = json.Marshal(map[string][]int{"order": order})
	return []byte(`{"hello": "by-id", "protocol": 1}`), reply, err
}

func (byID) End(error) {}

func playScripts(t *testing.T) {
	catalogue.Scripts = func([]string, unit.Duration) catalogue.Exchange { return byID{} }
	t.Cleanup(func() { catalogue.Scripts = nil })
}

// runChecked simulates a composition with the checker on, and says what is wrong: a job
// that does not finish, accounts that do not balance, a panic.
func runChecked(row []choice, c *cluster.Cluster, jobs simulated.Source, breaks simulated.Breaks) (r report.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	built, err := buildRow(row)
	if err != nil {
		return r, err
	}
	collector, commits, steps := report.NewCollector(report.Limits{}), 0, 0
	taken := &taken{source: jobs, deadlines: map[string]bool{}}
	for _, c := range row {
		if out := leftOut[c.name]; out != nil {
			taken.leave = append(taken.leave, out)
		}
	}
	r, err = new(scene).finish(simulated.Config{Cluster: c, Jobs: taken, Scheduler: built.Scheduler, Policy: engine.DefaultPolicy(), TellTruth: built.TellTruth,
		Prices: simulated.DefaultPrices(), Collector: collector, Check: true, Until: unit.Time(2 * unit.Day), Breaks: breaks,
		Hooks: simulated.Hooks{Step: func(at unit.Time, _ []engine.Event, _ *engine.Out, _ plan.View) {
			if steps++; steps > mostSteps {
				panic(fmt.Sprintf("more than %d steps by %s", mostSteps, unit.Duration(at)))
			}
		},
			Commit: func(v plan.View, _ *plan.Commit) {
				if commits++; commits > mostCommits {
					panic(fmt.Sprintf("more than %d commits by %s", mostCommits, unit.Duration(v.Now())))
				}
			}}})
	if err != nil {
		return r, err
	}
	for _, j := range collector.View().Jobs {
		if j.Outcome != report.Finished && !(j.Outcome == report.Refused && taken.deadlines[j.Name]) {
			return r, fmt.Errorf("job %s is %s", j.Name, j.Outcome)
		}
	}
	if !r.Balanced {
		err = fmt.Errorf("the ledger does not balance")
	}
	return r, err
}

// taken are the jobs that a composition takes; it notes which have a deadline, since only
// those may be refused.
type taken struct {
	source    simulated.Source
	leave     []func(*workload.Job) bool
	deadlines map[string]bool
}

// Next returns the next job that is taken.
func (k *taken) Next() (workload.Job, workload.Truth, error) {
	for {
		j, truth, err := k.source.Next()
		if err != nil || !slices.ContainsFunc(k.leave, func(out func(*workload.Job) bool) bool { return out(&j) }) {
			k.deadlines[j.Name] = j.Deadline > 0
			return j, truth, err
		}
	}
}

// TestCompositions: every two strategies of different parts are run together once, on a
// little of every kind of work and unlike devices, under the checker; or they are
// refused with a reason that names both. A short run plays one row in sixteen. Which those are, and what
// is drawn for a row, follows from its names, so that one more strategy changes nothing for other rows.
func TestCompositions(t *testing.T) {
	playScripts(t)
	all := levels()
	began, used := time.Now(), cpuSeconds()
	refused := clashes(t, all)
	rows := covering(all, refused)
	t.Logf("%d compositions cover every pair of the choices of %d parts, %d pairs are refused; found in %s", len(rows), len(all), len(refused), time.Since(began))
	every := uint32(16)
	if os.Getenv("MUSTER_LONG") == "1" {
		every = 1
	}
	for i, row := range rows {
		began, sum := cpuSeconds(), crc32.ChecksumIEEE([]byte(fileOf(row)))
		if sum%every != 0 {
			continue
		}
		_, err := runChecked(row, unlikeNodes(), mixedJobs(uint64(sum/every%3), 40), simulated.Breaks{})
		if took := cpuSeconds() - began; took > 1 {
			t.Logf("row %d took %.1f s of the processor: %v", i, took, row)
		}
		if err != nil {
			t.Errorf("%v\n%s", err, fileOf(row))
		}
	}
	t.Logf("all took %s, %.0f s of them of this processor", time.Since(began), cpuSeconds()-used)
}

// TestJoints: every decider for all jobs at once survives an empty cluster and ends all
// jobs of a few random histories, with estimates and without, while nodes are lost, and
// the same history gives the same decisions. Each strategy's own folder has the long
// form of this (scheduletest.ConformJoint).
func TestJoints(t *testing.T) {
	playScripts(t)
	for _, name := range catalogue.Names(allocate.JointPart) {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(5) {
				row := []choice{{"joint", name}, {"estimate", []string{"oracle", "declared"}[seed%2]}}
				jobs := []int{0, 1, 5, 8, 10}[seed]
				breaks := simulated.Breaks{}
				if seed > 2 {
					breaks = simulated.Breaks{Seed: seed, NodeEvery: unit.Hour, NodeFor: 10 * unit.Minute}
				}
				var hash [2]string
				for i := range hash {
					r, err := runChecked(row, unlikeNodes(), mixedJobs(seed, jobs), breaks)
					if err != nil {
						t.Fatalf("%d jobs of seed %d: %v\n%s", jobs, seed, err, fileOf(row))
					}
					hash[i] = r.DecisionHash
				}
				if hash[0] != hash[1] {
					t.Errorf("%d jobs of seed %d: the same history gave other decisions: %s, then %s", jobs, seed, hash[0], hash[1])
				}
			}
		})
	}
}
