package stand

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated"
)

func init() {
	register("salus", "100 jobs of Salus's measured memory and heavy-tailed lengths on one device of 16 GiB at load 0.9; with equal, four alike for an hour (equal)", salus)
}

// salusMemory is what its lanes may have of the device: 16 GiB less what Salus reserves.
const salusMemory = 16<<10 - 300

// salus is so many jobs on one P100, drawn from the 99 that were measured; lengths are
// Pareto, so that few are long, and they come at random.
func salus(open Data, o *Options, seed uint64) (*Stand, error) {
	const jobs, shortest, longest, tail, load = 100, 60., 4 * 3600., 1.1, .9
	s := &salusRun{}
	c := cluster.Uniform("one", 1, 1, cluster.Model{Name: "p100", Memory: 16 << 10, Speed: 1}, 1)
	on := &Stand{Cluster: c, Step: s.step, Figures: s.figures}
	if equal := o.Int("equal", 0); equal > 0 {
		all := make([]item, equal)
		for i := range all {
			all[i] = salusJob(512, 4096+512, 24*3600)
			all[i].Submit = unit.Time(0).Add(unit.Duration(i) * unit.Second)
		}
		on.Jobs = list(all)
		on.Set = func(c *simulated.Config) { c.Until = unit.Time(0).Add(unit.Hour) }
		return on, nil
	}
	file, err := open("salus/workloads.csv")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	stays, peaks, err := footprints(file)
	if err != nil {
		return nil, fmt.Errorf("reading the measured jobs of Salus: %w", err)
	}
	dice := rand.New(rand.NewPCG(seed, 0))
	all, sum := make([]item, jobs), 0.0
	for i := range all {
		which := dice.IntN(len(stays))
		length := min(longest, shortest*math.Pow(1-dice.Float64(), -1/tail))
		all[i] = salusJob(stays[which], peaks[which], length)
		sum += length
	}
	at := 0.0
	for i := range all {
		all[i].Submit = unit.Time(0).Add(unit.Seconds(at))
		at += dice.ExpFloat64() * sum / jobs / load
	}
	on.Jobs = list(all)
	return on, nil
}

func salusJob(stays, peak, seconds float64) item {
	return item{workload.Job{Resources: workload.Resources{Gang: 1, Devices: 1, Share: unit.Whole, Memory: unit.MiB(peak)},
		Traits: workload.Traits{Persistent: unit.MiB(max(1, stays))}},
		workload.Truth{Duration: unit.Seconds(seconds)}}
}

// footprints reads the peak memory of each measured job, MiB. Of that, what does not
// grow with the batch stays: the intercept of the model's peaks over its batches.
func footprints(r io.Reader) (stays, peaks []float64, err error) {
	lines := csv.NewReader(r)
	lines.FieldsPerRecord, lines.LazyQuotes = -1, true
	rows, err := lines.ReadAll()
	if err != nil {
		return nil, nil, err
	}
	batch, peak := map[string][]float64{}, map[string][]float64{}
	models := make([]string, len(rows))
	for i, row := range rows {
		name := strings.Split(row[0], "_")
		if len(row) < 3 || len(name) < 2 {
			return nil, nil, fmt.Errorf("line %d: want model_batch_length,seconds,MB", i+1)
		}
		b, err := strconv.ParseFloat(name[1], 64)
		if err != nil {
			return nil, nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		m, err := strconv.ParseFloat(row[2], 64)
		if err != nil {
			return nil, nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		models[i], peaks = name[0], append(peaks, m)
		batch[name[0]], peak[name[0]] = append(batch[name[0]], b), append(peak[name[0]], m)
	}
	for i, model := range models {
		at0, _ := stat.LinearRegression(batch[model], peak[model], nil, false)
		stays = append(stays, min(max(at0, 0), peaks[i]))
	}
	return stays, peaks, nil
}

// salusRun is what is seen of one history.
type salusRun struct{ over, shared float64 }

// step counts when the runs on the device would not fit in its memory: what stays of
// each, and of those who take turns the most that any needs beyond.
func (s *salusRun) step(_ unit.Time, _ []plan.Change, v plan.View) {
	sum, runs, most := int32(0), 0, map[int32]int32{}
	v.GrantsOn(0, func(g plan.Grant) {
		r := v.Run(g.Run)
		if r.Status == plan.Stopping {
			return
		}
		runs++
		shape := v.Shape(r.Job)
		stays := min(v.ProfileOf(r.Job).Persistent, shape.Memory)
		sum += stays
		if g.Turn == 0 {
			sum += shape.Memory - stays
		} else {
			most[g.Turn] = max(most[g.Turn], shape.Memory-stays)
		}
	})
	for _, peak := range most {
		sum += peak
	}
	if runs > 1 {
		s.shared++
		if sum > salusMemory {
			s.over++
		}
	}
}

// figures are how often memory was exceeded of how often jobs were together, and how
// unlike the service of equal jobs was.
func (s *salusRun) figures(o *Finished) map[string]float64 {
	least, most := math.Inf(1), 0.0
	for id := range plan.JobID(o.View.Jobs()) {
		had := o.View.Executed(id).Seconds()
		least, most = min(least, had), max(most, had)
	}
	return map[string]float64{"over_memory": s.over, "together": s.shared, "service_spread": (most - least) / max(1, most)}
}
