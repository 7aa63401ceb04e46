package salus

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/musterdl/muster/allocate/reside"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/unit"
)

// The experiment: so many jobs on one P100 with 16 GiB, drawn from the 99 measured
// ones; their lengths are Pareto, so that few are long, and they come at random.
const (
	traceJobs    = 100
	memoryMiB    = 16 << 10
	shortestSec  = 60.
	longestSec   = 4 * 3600.
	tail         = 1.1
	load         = .9
	quantumSec   = 10.
	fairJobs     = 4
	fairForSec   = 3600.
	fairMemories = 4096
)

// work is one job of the experiment.
type work struct {
	member
	comes, left, ends, served float64
}

// Measure compares FIFO on a device of one's own with Salus's orders on one trace,
// and serves equal jobs in the fair one.
func Measure(open func(path string) (io.ReadCloser, error), seed uint64) (map[string]float64, error) {
	file, err := open("salus/workloads.csv")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	feet, err := footprints(file)
	if err != nil {
		return nil, fmt.Errorf("reading the measured jobs of Salus: %w", err)
	}
	trace := draw(feet, seed)
	figures := map[string]float64{"exclusive_fifo_jct_s": exclusive(trace)}
	for _, c := range []struct {
		name, order string
		lanes       int
	}{{"fifo", "fifo", 1}, {"srtf", "srtf", 1}, {"fair", "fair", 1}, {"pack", "fifo", 8}} {
		jobs := slices.Clone(trace)
		over := share(jobs, c.order, c.lanes, math.Inf(1))
		figures[c.name+"_jct_s"] = mean(jobs)
		figures["over_memory"] += over
	}
	equal := make([]work, fairJobs)
	for i := range equal {
		equal[i] = work{member: member{job: plan.JobID(i), foot: reside.Footprint{Persistent: fairMemories / 8, Ephemeral: fairMemories}, device: plan.None}, comes: float64(i), left: math.Inf(1)}
	}
	figures["over_memory"] += share(equal, "fair", 1, fairForSec)
	least, most := math.Inf(1), 0.0
	for i := range equal {
		least, most = min(least, equal[i].served), max(most, equal[i].served)
	}
	figures["fair_spread"] = (most - least) / most
	return figures, nil
}

// footprints reads the peak memory of each measured job. Of that, what does not grow
// with the batch stays: the intercept of the model's peaks over its batches.
func footprints(r io.Reader) ([]reside.Footprint, error) {
	lines := csv.NewReader(r)
	lines.FieldsPerRecord, lines.LazyQuotes = -1, true
	rows, err := lines.ReadAll()
	if err != nil {
		return nil, err
	}
	batch, peak := map[string][]float64{}, map[string][]float64{}
	models := make([]string, len(rows))
	for i, row := range rows {
		name := strings.Split(row[0], "_")
		if len(row) < 3 || len(name) < 2 {
			return nil, fmt.Errorf("line %d: want model_batch_length,seconds,MB", i+1)
		}
		b, err := strconv.ParseFloat(name[1], 64)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		m, err := strconv.ParseFloat(row[2], 64)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		models[i] = name[0]
		batch[name[0]], peak[name[0]] = append(batch[name[0]], b), append(peak[name[0]], m)
	}
	feet := make([]reside.Footprint, len(rows))
	at := map[string]int{}
	for i, model := range models {
		stays, _ := stat.LinearRegression(batch[model], peak[model], nil, false)
		p := peak[model][at[model]]
		at[model]++
		stays = min(max(stays, 0), p)
		feet[i] = reside.Footprint{Persistent: unit.MiB(stays), Ephemeral: unit.MiB(p - stays)}
	}
	return feet, nil
}

func draw(feet []reside.Footprint, seed uint64) []work {
	dice := rand.New(rand.NewPCG(seed, 0))
	jobs := make([]work, traceJobs)
	sum := 0.0
	for i := range jobs {
		jobs[i] = work{member: member{job: plan.JobID(i), foot: feet[dice.IntN(len(feet))], device: plan.None}, left: min(longestSec, shortestSec*math.Pow(1-dice.Float64(), -1/tail))}
		sum += jobs[i].left
	}
	at := 0.0
	for i := range jobs {
		jobs[i].comes = at
		at += dice.ExpFloat64() * sum / traceJobs / load
	}
	return jobs
}

// exclusive is the mean completion time of one job after the other.
func exclusive(jobs []work) float64 {
	free, sum := 0.0, 0.0
	for _, j := range jobs {
		free = max(free, j.comes) + j.left
		sum += free - j.comes
	}
	return sum / float64(len(jobs))
}

func mean(jobs []work) (sum float64) {
	for i := range jobs {
		sum += (jobs[i].ends - jobs[i].comes) / float64(len(jobs))
	}
	return sum
}

// share lets the jobs share one device until all have ended or time is up; those that
// compute side by side divide it. It counts how often memory was exceeded.
func share(jobs []work, order string, lanes int, until float64) (over float64) {
	memory := memoryMiB - Default().ReserveMiB
	may := func(*member, plan.DeviceID, bool) bool { return true }
	var members []*member
	since := make([]float64, len(jobs))
	next, now := 0, 0.0
	for now < until && (next < len(jobs) || len(members) > 0) {
		for ; next < len(jobs) && jobs[next].comes <= now; next++ {
			members = append(members, &jobs[next].member)
		}
		for _, m := range members {
			switch j := &jobs[m.job]; {
			case order == "fifo":
				m.rank = int64(j.job)
			case order == "srtf":
				m.rank = int64(j.left * 1e6)
			case m.device != plan.None:
				m.rank = int64((j.served - since[j.job]) * float64(m.foot.Persistent+m.foot.Ephemeral))
			}
		}
		devices := []device{{memory: memory}}
		decide(devices, lanes, members, may)
		var running []*work
		for _, m := range members {
			if m.runs {
				running = append(running, &jobs[m.job])
			}
			if m.joined {
				m.joined = false
				for _, o := range members {
					since[o.job] = jobs[o.job].served
				}
			}
		}
		if reside.Need(devices[0].lanes) > memory {
			over++
		}
		step := until - now
		if next < len(jobs) {
			step = min(step, jobs[next].comes-now)
		}
		if order == "fair" {
			step = min(step, quantumSec)
		}
		for _, j := range running {
			step = min(step, j.left*float64(len(running)))
		}
		now += step
		for _, j := range running {
			j.left, j.served = j.left-step/float64(len(running)), j.served+step/float64(len(running))
			if j.left <= 1e-9 {
				j.ends = now
			}
		}
		members = slices.DeleteFunc(members, func(m *member) bool { return jobs[m.job].ends > 0 })
	}
	return over
}
