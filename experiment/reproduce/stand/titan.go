package stand

import (
	"math"
	"math/rand/v2"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/run/simulated"
)

func init() {
	register("titan", "100 fine-tunes of five foundation models on 16 devices of 80 GiB (batch, load; start-s: to load a model; all-differ: nobody shares one)", tunes)
}

// foundation is the truth about a model: a step on 1, 2, 4 and 8 devices takes a constant,
// and a time per sample on each.
type foundation struct {
	name                 string
	stepUS               [4]float64
	sampleUS             float64
	memoryMiB, sampleMiB float64
}

// tuned are fitted to the profiles of gaow0007/TitanSched (MIT) on A100, two of them on
// V100 as models of their own; headPart is what the jobs' own heads cost of a sample's time.
var tuned = []foundation{
	{"vit", [4]float64{17267, 18469, 23045, 33122}, 1890, 519, 97.0},
	{"vit-large", [4]float64{38654, 43366, 56532, 94188}, 5014, 1796, 260.2},
	{"roberta-base", [4]float64{11236, 12422, 13271, 28527}, 5033, 658, 525.4},
	{"vit-large on V100", [4]float64{70730, 70532, 70765, 141704}, 5487, 1795, 260.2},
	{"roberta-base on V100", [4]float64{20559, 20967, 21070, 41733}, 10553, 657, 525.4},
}

const headPart = .01

// tunes draws the fine-tunes: run times log-normal about half an hour, sizes as often as
// in the authors' traces, load times as much work as the devices do until the last
// submission. What a merge saves is the constant of a step, which is taken once.
func tunes(_ Data, o *Options, seed uint64) (*Stand, error) {
	const jobs, devices = 100, 16
	batch, load, start := o.Float("batch", 16), o.Float("load", 2), unit.Seconds(o.Float("start-s", 30))
	differ := o.Int("all-differ", 0) > 0
	r := rand.New(rand.NewPCG(seed, 4))
	all, total := make([]item, jobs), 0.0
	for i := range all {
		m := &tuned[r.IntN(len(tuned))]
		if differ {
			m = &tuned[i%len(tuned)]
		}
		gang := int32(1)
		switch u := r.Float64(); { // the traces' mix
		case u > .55:
			gang = 8
		case u > .49:
			gang = 4
		case u > .40:
			gang = 2
		}
		seconds := min(max(1800*math.Exp(1.3*r.NormFloat64()), 60), 8*3600)
		total += seconds * float64(gang)
		work := batch * m.sampleUS * (1 + headPart)
		all[i] = item{workload.Job{Resources: workload.Resources{Gang: gang, Devices: 1, Share: unit.Whole, Memory: unit.MiB(m.memoryMiB + batch*m.sampleMiB)},
			Traits: workload.Traits{Base: m.name, Menu: []workload.Offer{{Workers: gang, Batch: int32(batch) * gang, Rate: 1}}}},
			workload.Truth{Duration: unit.Seconds(seconds), Merge: work / (work + m.stepUS[log2(gang)])}}
		if differ {
			all[i].Base = ""
		}
	}
	come(all, r, total, devices, load)
	return &Stand{Cluster: cluster.Uniform("tunes", devices/8, 8, cluster.Model{Name: "a100", Memory: 80 << 10, Speed: 1}, 8),
		Jobs: list(all), Prices: simulated.Prices{Start: start}}, nil
}

func log2(n int32) (k int) {
	for ; n > 1; n /= 2 {
		k++
	}
	return k
}
