package stand

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/run/simulated"
)

func init() {
	register("easyscale", "32 V100, 16 P100 and 16 T4: the artefact's 68 jobs (jobs=artefact) or 160 drawn ones at a load, on the kind asked for or over kinds (kinds=one or all)", easyscale)
}

// easyKinds are the devices of EasyScale's artefact.
var easyKinds = []string{"v100", "p100", "t4"}

// easyJob is a job of so many logical workers, each with work of so many seconds on one
// device of each kind. It asks for a kind; a safe one may have any.
type easyJob struct {
	at      float64
	kind    int
	logical int32
	seconds [3]float64
	safe    bool
}

// easyscale has jobs whose speed is that of their busiest device: logical workers lie on
// devices of one kind as evenly as whole numbers can. What is declared is proportional,
// for evening out is the strategy's to know.
func easyscale(open Data, o *Options, seed uint64) (*Stand, error) {
	load, all, artefact := o.Float("load", .9), o.Text("kinds", "all") == "all", o.Text("jobs", "") == "artefact"
	room := []int{32, 16, 16}
	s := &Stand{Cluster: pools(easyKinds, room), Prices: simulated.Prices{Restart: unit.Seconds(o.Float("restart-s", 20))}}
	jobs := drawEasy(room, load, seed)
	if artefact {
		var err error
		if jobs, err = readEasy(open); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(jobs, func(a, b easyJob) int { return cmp.Compare(a.at, b.at) })
	list := &List{}
	for i, e := range jobs {
		j := workload.Job{Name: fmt.Sprint("job", i), Submit: unit.Time(0).Add(unit.Seconds(e.at)),
			Resources:  workload.Resources{Gang: e.logical, Devices: 1, Share: unit.Whole},
			Checkpoint: workload.Checkpoint{OnRequest: true}}
		if !all || !e.safe {
			j.Models = []string{easyKinds[e.kind]}
		}
		truth := workload.Truth{Duration: unit.Seconds(e.seconds[0])}
		for _, n := range []int32{1, 2, 3, 4, 6, 8, 16, 32} {
			if n > e.logical {
				break
			}
			j.Sizes = append(j.Sizes, n)
			for k, model := range easyKinds {
				each := (e.logical + n - 1) / n
				offer := workload.Offer{Model: model, Workers: n, Nodes: 1, Rate: float64(n) / float64(e.logical) * e.seconds[0] / e.seconds[k]}
				j.Menu = append(j.Menu, offer)
				offer.Rate = e.seconds[0] / e.seconds[k] / float64(each)
				truth.Menu = append(truth.Menu, offer)
			}
		}
		list.Add(j, truth)
	}
	s.Jobs = list
	return s, nil
}

// drawEasy draws 160 jobs with the shapes, the kinds asked for and the rate of arrivals of
// the artefact's, of log-normal work (sigma 1.5) that sums to the load's part of what the
// devices could do meanwhile. A P100 is 2.4 and a V100 3.1 times as fast as a T4.
func drawEasy(room []int, load float64, seed uint64) []easyJob {
	const jobs, span, safe, sigma = 160, 4814. * 160 / 68, 42. / 68, 1.5
	shapes := []struct {
		kind    int
		logical int32
		jobs    int
	}{{0, 32, 37}, {0, 16, 10}, {0, 8, 4}, {0, 4, 1}, {1, 16, 9}, {1, 8, 4}, {2, 8, 3}}
	relative, rng := []float64{3.1, 2.4, 1}, rand.New(rand.NewPCG(seed, 1))
	could, asked, list := 0., 0., make([]easyJob, jobs)
	for k, n := range room {
		could += float64(n) * relative[k]
	}
	for i := range list {
		shape := shapes[0]
		for i, u := 0, rng.IntN(68); u >= 0; i++ {
			shape, u = shapes[i], u-shapes[i].jobs
		}
		e := easyJob{kind: shape.kind, logical: shape.logical, at: span * rng.Float64(), safe: true}
		work := float64(e.logical) * math.Exp(sigma*rng.NormFloat64())
		for k := range e.seconds {
			e.seconds[k] = work / float64(e.logical) / relative[k]
		}
		e.safe = rng.Float64() < safe
		asked += work
		list[i] = e
	}
	for i := range list {
		for k := range list[i].seconds {
			list[i].seconds[k] *= load * could * span / asked
		}
	}
	return list
}

// readEasy reads the artefact's jobs. An epoch there is a hundredth of the data set; a step
// takes what was measured, in proportion where a job's batch is another. Of jobs with one
// name the last one counts, as there.
func readEasy(open Data) ([]easyJob, error) {
	steps, err := readCSV(open, "easyscale/overhead.csv")
	if err != nil {
		return nil, err
	}
	rows, err := readCSV(open, "easyscale/workload.csv")
	if err != nil {
		return nil, err
	}
	samples := map[string]float64{"resnet50": 12800, "vgg19": 12800, "shufflenetv2": 12800, "swintransformer": 12800,
		"yolov3": 165.51, "bert": 886.41, "electra": 886.41, "neumf": 49708.45}
	var list []easyJob
	named := map[string]int{}
	for _, row := range rows {
		at, err1 := strconv.ParseFloat(row[1], 64)
		logical, err2 := strconv.ParseInt(row[3], 10, 32)
		batch, err3 := strconv.ParseFloat(row[4], 64)
		epochs, err4 := strconv.ParseFloat(row[5], 64)
		if err := cmp.Or(err1, err2, err3, err4); err != nil {
			return nil, fmt.Errorf("easyscale's job %s: %w", row[0], err)
		}
		e := easyJob{at: at, kind: slices.Index(easyKinds, row[7]), logical: int32(logical), safe: row[6] != "0"}
		model := strings.Replace(row[2], "ncf", "neumf", 1)
		for _, s := range steps {
			if k := slices.Index(easyKinds, s[2]); strings.EqualFold(s[0], model) {
				measured, err1 := strconv.ParseFloat(s[1], 64)
				step, err2 := strconv.ParseFloat(s[4], 64)
				if err := cmp.Or(err1, err2); err != nil {
					return nil, fmt.Errorf("easyscale's steps of %s: %w", s[0], err)
				}
				e.seconds[k] = epochs * samples[model] / float64(logical) / measured * step
			}
		}
		if e.kind < 0 || e.seconds[2] == 0 {
			return nil, fmt.Errorf("easyscale's job %s: nothing was measured of %s on %s, batch %g", row[0], model, row[7], batch)
		}
		if i, again := named[row[0]]; again {
			list[i] = e
			continue
		}
		named[row[0]] = len(list)
		list = append(list, e)
	}
	return list, nil
}

// readCSV reads the rows of a file below its heading.
func readCSV(open Data, path string) ([][]string, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.FieldsPerRecord = -1
	rows, err := r.ReadAll()
	if err != nil || len(rows) == 0 {
		return nil, fmt.Errorf("%s: %w", path, cmp.Or(err, fmt.Errorf("it is empty")))
	}
	return rows[1:], nil
}
