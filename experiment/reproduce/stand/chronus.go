package stand

import (
	"errors"
	"io"
	"math"
	"math/rand/v2"

	"github.com/musterdl/muster/experiment/trace"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/run/report"
)

func init() {
	register("chronus", "one in so many (one-in) jobs of Chronus' trace MIX1 with its deadlines, drawn by seed, on devices that are counted (devices); what stopping and starting costs a job of one device (restart-s)", chronus)
}

// chronusTrace is in the artefact of Chronus (Gao et al., SoCC 2021).
const chronusTrace = "chronus/trace_job_Philly_MIX1.csv.gz"

// chronus is the reference workload RW-D: random sixteenths of the published trace. A job of
// one device saves for 6 s and restores for 24 s, one of g devices 1 + log2 g times as long:
// the artefact's figures (catalogue of scheduling for training, M8).
func chronus(open Data, o *Options, seed uint64) (*Stand, error) {
	devices, oneIn := o.Int("devices", 60), o.Int("one-in", 16)
	all, err := trace.OpenFrom("chronus", chronusTrace, func() (io.ReadCloser, error) { return open(chronusTrace) }, trace.Options{})
	if err != nil {
		return nil, err
	}
	// On one node no job is spread: devices are counted, as there.
	s := &Stand{Cluster: cluster.Uniform("chronus", 1, devices, cluster.Model{Name: "gpu", Speed: 1}, 1),
		Figures: deadlines}
	s.Jobs, err = sample(all, oneIn, o.Float("restart-s", 6+24), rand.New(rand.NewPCG(seed, 60)))
	return s, err
}

// sample reads jobs that ask for devices to the end, and keeps one in so many. A fifth of
// what being stopped and started takes is for saving.
func sample(r trace.Reader, oneIn int, restartSec float64, chance *rand.Rand) (*List, error) {
	defer r.Close()
	kept := &List{}
	for {
		j, t, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return kept, nil
		case err != nil:
			return nil, err
		case chance.IntN(oneIn) == 0 && j.Devices > 0:
			takes := restartSec * (1 + math.Log2(float64(j.Gang*j.Devices)))
			j.Checkpoint = workload.Checkpoint{OnRequest: true, Save: unit.Seconds(takes / 5), Load: unit.Seconds(takes * 4 / 5)}
			kept.Add(j, t)
		}
	}
}

// deadlines counts who is late: late is the part of the jobs with deadlines that missed
// theirs or were refused, admitted the part that was not refused, and late_admitted the
// late part of those.
func deadlines(o *Finished) map[string]float64 {
	var strict, late, admitted, lateAdmitted, free, freeMin float64
	for i := range o.Jobs {
		j := &o.Jobs[i]
		if j.Asked.Deadline == 0 {
			free++
			freeMin += j.JCT().Seconds() / 60
			continue
		}
		strict++
		if j.Outcome != report.Refused {
			admitted++
		}
		if j.Late() {
			if late++; j.Outcome != report.Refused {
				lateAdmitted++
			}
		}
	}
	return map[string]float64{"late": late / max(1, strict), "admitted": admitted / max(1, strict),
		"late_admitted": lateAdmitted / max(1, admitted), "best_effort_jct_min": freeMin / max(1, free)}
}
