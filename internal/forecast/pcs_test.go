package forecast_test

import (
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
)

// readPCS reads the first jobs of a trace of PCS.
func readPCS(t testing.TB, vc string, limit int) []job {
	t.Helper()
	var tables map[string][]float64
	data1, err := os.ReadFile(data + "pcs/scaling_us_per_iter.json")
	if err != nil {
		t.Skip("the data of PCS are not at " + data)
	}
	if err := json.Unmarshal(data1, &tables); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(data + "pcs/traces/trace_" + vc + ".csv.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(z).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var jobs []job
	for i, row := range rows[1:] {
		if i == limit {
			break
		}
		var x [3]float64
		for k, s := range row[1:4] {
			if x[k], err = strconv.ParseFloat(s, 64); err != nil {
				t.Fatal(err)
			}
		}
		table := tables[row[5]]
		j := job{id: i, submit: x[0], work: x[1], left: x[1], demand: min(int(x[2]), len(table)), speed: []float64{0}}
		for g := range j.demand {
			j.speed = append(j.speed, table[0]/table[g])
		}
		jobs = append(jobs, j)
	}
	return jobs
}

// configurations of PCS that its authors chose, by name.
func configurations(t testing.TB) map[string]pcs {
	t.Helper()
	raw, err := os.ReadFile(data + "pcs/pcs_configs.json")
	if err != nil {
		t.Skip("the data of PCS are not at " + data)
	}
	var read map[string]struct {
		Limits []any    `json:"class_thresholds"`
		Rates  []string `json:"class_rates"`
		Well   float64  `json:"clip_demand_factor"`
		Step   float64  `json:"delta"`
	}
	if err := json.Unmarshal(raw, &read); err != nil {
		t.Fatal(err)
	}
	all := map[string]pcs{}
	for name, c := range read {
		p := pcs{well: c.Well, step: c.Step}
		for i, limit := range c.Limits {
			number, ok := limit.(float64)
			if !ok {
				number = math.Inf(1)
			}
			rate, ok := new(big.Rat).SetString(c.Rates[i])
			if !ok {
				t.Fatalf("%s: rate %q: expected a fraction", name, c.Rates[i])
			}
			weight, _ := rate.Float64()
			p.limits, p.weights = append(p.limits, number), append(p.weights, weight)
		}
		all[name] = p
	}
	return all
}

// point is what comes of a policy: the mean JCT in seconds, and the mean distance of
// the predicted JCT from the real one in parts of the prediction, as PCS has it:
// bare runs forward without later arrivals, sampled through drawn ones.
type point struct{ jct, bare, sampled float64 }

// predictions are about one job in so many, through a number of futures.
type predictions struct{ every, futures int }

func replay(jobs []job, p policy, how predictions) (at point) {
	all := slices.Clone(jobs)
	f := &fluid{gpus: 64, policy: p}
	bare, sampled := map[int]float64{}, map[int]float64{}
	for i := range all {
		j := &all[i]
		for f.now < j.submit {
			f.advance(j.submit)
		}
		f.submit(j)
		if i%how.every != how.every/2 || i < 50 {
			continue
		}
		bare[i] = f.fork().ends(i, nil) - j.submit
		var spans []float64
		for k := range how.futures {
			later := &bootstrap{past: jobs[:i+1], chance: rand.New(rand.NewPCG(uint64(i), uint64(k))), at: j.submit}
			spans = append(spans, f.fork().ends(i, later.next)-j.submit)
		}
		sampled[i] = leastError(append(spans, bare[i]))
	}
	for len(f.active) > 0 {
		f.advance(math.Inf(1))
	}
	for i := range all {
		jct := all[i].end - all[i].submit
		at.jct += jct / float64(len(all))
		if b, ok := bare[i]; ok {
			at.bare += math.Abs(b-jct) / b / float64(len(bare))
			at.sampled += math.Abs(sampled[i]-jct) / sampled[i] / float64(len(bare))
		}
	}
	return at
}

// leastError is the prediction that errs least in parts of itself: the median of the
// samples weighted by themselves.
func leastError(spans []float64) float64 {
	slices.Sort(spans)
	total, sum := 0., 0.
	for _, s := range spans {
		total += s
	}
	for _, s := range spans {
		if sum += s; sum >= total/2 {
			return s
		}
	}
	return 0
}

// bootstrap draws who comes: thirty in a row from the last five hundred, again and
// again.
type bootstrap struct {
	past   []job
	chance *rand.Rand
	at     float64
	from   int
	left   int
	made   int
}

func (b *bootstrap) next() *job {
	if b.left == 0 {
		recent := min(500, len(b.past)-1)
		b.from = len(b.past) - recent + b.chance.IntN(recent)
		b.left = min(30, len(b.past)-b.from)
	}
	j := b.past[b.from]
	b.at += j.submit - b.past[b.from-1].submit
	b.from++
	b.left--
	b.made++
	j.submit, j.id, j.left = b.at, len(b.past)+b.made, j.work
	return &j
}

// TestPCS compares what a prediction is worth under the policies of PCS, under AFS and
// under slack: a job goes before those that were submitted less than some times
// its work after it. The order of the published figures is checked on one workload;
// with MUSTER_LONG=1 two are shown, with MUSTER_FULL=1 all six.
func TestPCS(t *testing.T) {
	workloads, jobs, how := []string{"0e4a51"}, 400, predictions{every: 10}
	slacks := []float64{2}
	if os.Getenv("MUSTER_LONG") == "1" {
		workloads, jobs, how = []string{"0e4a51", "6c71a0"}, 1000, predictions{every: 80, futures: 3}
	}
	if os.Getenv("MUSTER_FULL") == "1" {
		workloads, jobs, how = []string{"0e4a51", "2869ce", "6c71a0", "b436b2", "ee9e8c", "6214e9"}, 2001, predictions{every: 80, futures: 3}
		slacks = []float64{1, 2}
	}
	chosen := configurations(t)
	for _, vc := range workloads {
		all := readPCS(t, vc, jobs)
		base := replay(all, afs{}, predictions{every: how.every})
		t.Logf("%s AFS: mean JCT %.0f s, error %.1f %%", vc, base.jct, 100*base.bare)
		tell := func(name string, p policy, how predictions) point {
			at := replay(all, p, how)
			t.Logf("%s %s: %.3f of AFS' mean JCT, error %.1f %%, through %d futures %.1f %%", vc, name, at.jct/base.jct, 100*at.bare, how.futures, 100*at.sampled)
			return at
		}
		for _, name := range []string{"jct", "bal", "pred"} {
			c, ok := chosen[vc+"_"+name]
			if !ok {
				continue // 2869ce has none
			}
			if at := tell("PCS-"+name, c, predictions{every: how.every}); at.bare >= base.bare || at.jct <= base.jct {
				t.Errorf("%s PCS-%s: error %.3f and mean JCT %.0f s: expected a smaller error and a longer JCT than AFS' %.3f and %.0f s", vc, name, at.bare, at.jct, base.bare, base.jct)
			}
		}
		for _, slack := range slacks {
			tell(fmt.Sprintf("slack %g", slack), ranked{func(j *job) float64 { return j.submit + slack*j.work }, 0.5, 0.1}, how)
		}
	}
}
