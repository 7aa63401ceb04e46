package stand

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/run/simulated/world"
)

func init() {
	register("gandiva", "sixty gangs at twice the load on 4 nodes of 4 devices; pairs as Gavel measured them", gandiva)
}

// gandiva is sixty jobs on four nodes of four devices, twice as much work as those can
// do in the time they come in. What two jobs do beside each other is Gavel's measurement
// of single workers on V100, taken to hold for gangs. Prices are the paper's (catalogue of
// allocation for training, C5): a run is suspended when its memory is least, so that about
// 100 ms is all that suspending takes, and resuming; a move takes 1 to 2 s.
func gandiva(open Data, o *Options, seed uint64) (*Stand, error) {
	const nodes, perNode, jobs, load = 4, 4, 60, 2
	table, err := readPairs(open)
	if err != nil {
		return nil, err
	}
	all := gandivaJobs(seed, jobs, nodes*perNode, load, table)
	c := cluster.Uniform("small", nodes, perNode, cluster.Model{Name: "v100", Memory: 16 << 10, Speed: 1}, 4)
	g := &gandivaRun{table: table, together: map[[2]plan.JobID]unit.Duration{}}
	for _, j := range all {
		g.class, g.needs, g.gang, g.last = append(g.class, j.Class), append(g.needs, j.Duration.Seconds()), append(g.gang, float64(j.Gang)), j.Submit
	}
	g.first = make([]float64, len(all))
	return &Stand{Cluster: c, Jobs: list(all), World: world.Config{Speeds: table}, Prices: simulated.Prices{Restart: 2 * unit.Second, Pause: 100 * unit.Millisecond},
		Step: g.step, Figures: g.figures}, nil
}

// gandivaRun is what is seen of one history.
type gandivaRun struct {
	table *pairs
	class []string
	needs []float64
	gang  []float64
	last  unit.Time // submission

	progress
	first    []float64       // by job: s from its submission until it had its first ten minutes
	useful   float64         // device-seconds of work done until the last submission
	now      [][2]plan.JobID // who are beside each other since the last step
	together map[[2]plan.JobID]unit.Duration
}

// step sees who has had ten minutes, how much work is done, and who was beside whom.
func (g *gandivaRun) step(at unit.Time, _ []plan.Change, v plan.View) {
	for _, pair := range g.now {
		g.together[pair] += at.Sub(g.at)
	}
	g.progress.step(at, v, func(id plan.JobID, since unit.Time, before, now float64) {
		if enough := min(600, g.needs[id]) - 1e-3; before < enough && now >= enough {
			crossed := since.Seconds() + at.Sub(since).Seconds()*(enough-before)/(now-before)
			g.first[id] = crossed - v.Job(id).Submit.Seconds()
		}
		if at <= g.last {
			g.useful += (now - before) * g.gang[id]
		}
	})
	g.now = g.now[:0]
	for id := range plan.RunID(v.RunSlots()) {
		if r := v.Run(id); r.Status == plan.Running && r.Terms.Share.Guest != plan.None && r.Terms.Share.Guest != r.Job {
			if host := v.Job(r.Terms.Share.Guest).Run; host != plan.None && v.Run(host).Status == plan.Running {
				g.now = append(g.now, [2]plan.JobID{r.Terms.Share.Guest, r.Job})
			}
		}
	}
}

// quantum is the time slice of Gandiva, and settles how much longer than that a pair may
// be seen together that is parted at the end of its trial.
const quantum, settles = unit.Minute, 2 * unit.Second

func (g *gandivaRun) figures(*Finished) map[string]float64 {
	late := slices.Clone(g.first)
	slices.Sort(late)
	out := map[string]float64{"first_ten_minutes_p95_s": stat.Quantile(.95, stat.Empirical, late, nil),
		"work_until_last": g.useful / (16 * g.last.Seconds()), "quanta_kept_below_one": 0, "pairs": float64(len(g.together))}
	packed := unit.Duration(0)
	for pair, span := range g.together {
		packed += span // whole microseconds: their sum is the same in every order
		r := g.table.keep[[2]string{g.class[pair[0]], g.class[pair[1]]}]
		if r[0]+r[1] < 1 && span > quantum+settles {
			out["quanta_kept_below_one"] += math.Ceil(float64(span-settles)/float64(quantum)) - 1
		}
	}
	out["quanta_packed"] = float64(packed) / float64(quantum)
	return out
}

// gandivaJobs draws the jobs of S-small: half of them single workers, run times
// log-normal about half an hour between 5 minutes and 8 hours.
func gandivaJobs(seed uint64, jobs, devices int, load float64, table *pairs) []item {
	r := rand.New(rand.NewPCG(seed, 3))
	all, total := make([]item, jobs), 0.0
	for i := range all {
		class := table.classes[r.IntN(len(table.classes))]
		gang := int32(1)
		switch u := r.Float64(); {
		case u > .9:
			gang = 8
		case u > .7:
			gang = 4
		case u > .5:
			gang = 2
		}
		needs := min(max(1800*math.Exp(1.3*r.NormFloat64()), 300), 8*3600)
		total += needs * float64(gang)
		all[i] = item{Job: workload.Job{
			Resources: workload.Resources{Gang: gang, Devices: 1, Share: unit.Whole, Memory: class.memory},
			// The table says which pairs fit in memory, not how much each takes; the batch
			// stands in for the utilisation that it does not have either.
			Traits: workload.Traits{Class: class.name, Persistent: 64, Phase: workload.Phase{Compute: unit.Duration(class.batch), Communicate: unit.Duration(10000 - class.batch)}},
		}, Truth: workload.Truth{Duration: unit.Seconds(needs)}}
	}
	come(all, r, total, devices, load)
	slices.SortStableFunc(all, func(a, b item) int { return cmp.Compare(a.Submit, b.Submit) })
	return all
}

// pairs is what single-worker jobs keep of their rates beside each other.
type pairs struct {
	classes []kind
	keep    map[[2]string][2]float64
}

// kind is a kind of single-worker job in the table.
type kind struct {
	name  string
	batch int32
	solo  float64
	// memory is our guess: the table says which pairs fit on 16 GiB, not what each takes.
	memory unit.MiB
}

// Rate knows nothing: jobs go as fast as they say.
func (*pairs) Rate(string, string, int, int) (float64, bool) { return 0, false }

// thrashing is what is left to two whose memory does not fit: next to nothing.
const thrashing = .001

// Pair is what two classes keep of their own rates.
func (p *pairs) Pair(a, b, _ string) (float64, float64, bool) {
	r, ok := p.keep[[2]string{a, b}]
	return r[0], r[1], ok
}

func readPairs(open Data) (*pairs, error) {
	all, err := readGavelRates(open)
	if err != nil {
		return nil, err
	}
	rates, p := all["v100"], &pairs{keep: map[[2]string][2]float64{}}
	for name, row := range rates {
		c := kind{name: name, batch: 1}
		if !strings.HasSuffix(name, ", 1)") || json.Unmarshal(row["null"], &c.solo) != nil || c.solo <= 0 {
			continue
		}
		if _, after, ok := strings.Cut(name, "batch size "); ok {
			n, _ := strconv.Atoi(after[:strings.IndexByte(after, ')')])
			c.batch = int32(n)
		}
		p.classes = append(p.classes, c)
	}
	if len(p.classes) == 0 {
		return nil, fmt.Errorf("%s: no rates of single workers on v100", gavelTable)
	}
	slices.SortFunc(p.classes, func(a, b kind) int { return cmp.Compare(a.name, b.name) })
	for i := range p.classes {
		a, without := &p.classes[i], 0
		for _, b := range p.classes {
			var both [2]float64
			if json.Unmarshal(rates[a.name][b.name], &both) != nil || both[0] == 0 {
				without++
			}
			p.keep[[2]string{a.name, b.name}] = [2]float64{max(thrashing, both[0]/a.solo), max(thrashing, both[1]/b.solo)}
		}
		switch {
		case without == 0:
			a.memory = 3584
		case without == 1:
			a.memory = 5120
		case without == 2:
			a.memory = 7168
		case without < 10:
			a.memory = 9728
		default:
			a.memory = 12288
		}
	}
	return p, nil
}
