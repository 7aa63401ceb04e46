package report

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/musterdl/muster/model/unit"
)

// Interval is an estimate with its 95 % interval, made from N samples (seeds, or
// weeks of a trace). With fewer than two samples nothing is known about the
// spread: the interval is then infinite, and no line holds.
type Interval struct {
	Point float64
	Low   float64
	High  float64
	N     int
}

// unknown is the interval around a point whose spread nothing is known about.
func unknown(point float64, n int) Interval {
	return Interval{point, math.Inf(-1), math.Inf(1), n}
}

// Known says whether the interval is finite.
func (i Interval) Known() bool {
	return !math.IsInf(i.Low, 0) && !math.IsInf(i.High, 0) && !math.IsNaN(i.Low+i.High+i.Point)
}

// MarshalJSON writes what is unknown as null, because JSON has no infinity; of an
// interval both ends or none are known.
func (i Interval) MarshalJSON() ([]byte, error) {
	if !i.Known() {
		i.Low, i.High = math.NaN(), math.NaN()
	}
	finite := func(x float64) *float64 {
		if math.IsInf(x, 0) || math.IsNaN(x) {
			return nil
		}
		return &x
	}
	return json.Marshal(struct {
		Point *float64 `json:"point"`
		Low   *float64 `json:"low"`
		High  *float64 `json:"high"`
		N     int      `json:"n"`
	}{finite(i.Point), finite(i.Low), finite(i.High), i.N})
}

// MeanInterval is the mean of independent samples, such as one per seed, with
// the 95 % interval of Student's t. For paired seeds give it the differences.
func MeanInterval(samples []float64) Interval {
	n := len(samples)
	if n == 0 {
		return unknown(math.NaN(), 0)
	}
	mean, deviation := stat.MeanStdDev(samples, nil)
	if n == 1 {
		return unknown(mean, 1)
	}
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(n - 1)}.Quantile(0.975)
	half := t * deviation / math.Sqrt(float64(n))
	return Interval{mean, mean - half, mean + half, n}
}

// PairedDifference is the mean of a[i]-b[i], where both were run on seed i.
func PairedDifference(a, b []float64) (Interval, error) {
	if len(a) != len(b) {
		return Interval{}, fmt.Errorf("comparing paired runs: %d values beside %d", len(a), len(b))
	}
	d := make([]float64, len(a))
	for i := range a {
		d[i] = a[i] - b[i]
	}
	return MeanInterval(d), nil
}

// Bootstrap says how to resample. The same seed gives the same interval.
type Bootstrap struct {
	Seed      uint64
	Resamples int // by default 10,000
}

// PairedRatio is mean(a)/mean(b), where both were run on seed i. Pairs are
// resampled together, so that what is hard for both cancels out.
func PairedRatio(a, b []float64, boot Bootstrap) (Interval, error) {
	if len(a) != len(b) {
		return Interval{}, fmt.Errorf("comparing paired runs: %d values beside %d", len(a), len(b))
	}
	blocks := make([]block, len(a))
	for i := range a {
		blocks[i] = block{a[i], b[i]}
	}
	return boot.ratio(blocks), nil
}

// block is what is resampled as a whole: its parts of a numerator and a denominator.
type block struct{ over, under float64 }

// ratio is the sum of over by the sum of under, with the interval between the
// nearest-rank quantiles of the resampled ratios at 2.5 % and 97.5 %.
func (boot Bootstrap) ratio(blocks []block) Interval {
	total := block{}
	for _, b := range blocks {
		total.over, total.under = total.over+b.over, total.under+b.under
	}
	n := len(blocks)
	if n < 2 {
		return unknown(total.over/total.under, n)
	}
	resamples := boot.Resamples
	if resamples <= 0 {
		resamples = 10_000
	}
	rng := rand.New(rand.NewPCG(boot.Seed, 0))
	ratios := make([]float64, resamples)
	for k := range ratios {
		drawn := block{}
		for range n {
			b := blocks[rng.IntN(n)]
			drawn.over, drawn.under = drawn.over+b.over, drawn.under+b.under
		}
		ratios[k] = drawn.over / drawn.under
	}
	slices.Sort(ratios)
	rank := func(permille int) float64 { return ratios[max(1, (resamples*permille+999)/1000)-1] }
	return Interval{total.over / total.under, rank(25), rank(975), n}
}

// A trace is one history, so its spread is estimated by resampling its weeks:
// long enough that what happens in one hardly depends on the one before. The
// ends are left out, because there the cluster fills and drains.
const (
	blockLength = 7 * unit.Day
	edgeLength  = 3 * unit.Day
)

// MeanJCTByWeek is the mean JCT in seconds of the finished jobs of one run of a
// trace, with the block bootstrap over weeks of submission.
func MeanJCTByWeek(jobs []JobRecord, boot Bootstrap) Interval {
	return boot.ratio(byWeek(jobs, func(j *JobRecord) (block, bool) {
		return block{j.JCT().Seconds(), 1}, j.Outcome == Finished
	}))
}

// JCTRatioByWeek is the mean JCT of a over that of b, two runs of one trace, with
// the block bootstrap over weeks of submission. Jobs are matched by ID; one that
// is not finished in both runs is in neither mean.
func JCTRatioByWeek(a, b []JobRecord, boot Bootstrap) Interval {
	other := make(map[int32]float64, len(b))
	for i := range b {
		if b[i].Outcome == Finished {
			other[b[i].ID] = b[i].JCT().Seconds()
		}
	}
	return boot.ratio(byWeek(a, func(j *JobRecord) (block, bool) {
		under, ok := other[j.ID]
		return block{j.JCT().Seconds(), under}, ok && j.Outcome == Finished
	}))
}

// byWeek sums what the jobs give into one block per week of submission, without
// the jobs of the first and the last days. All jobs count for where the trace
// begins and ends; weeks without a job that counts make no block.
func byWeek(jobs []JobRecord, give func(*JobRecord) (block, bool)) []block {
	if len(jobs) == 0 {
		return nil
	}
	first, last := jobs[0].Submit, jobs[0].Submit
	for i := range jobs {
		first, last = min(first, jobs[i].Submit), max(last, jobs[i].Submit)
	}
	first, last = first.Add(edgeLength), last.Add(-edgeLength)
	if last < first {
		return nil
	}
	weeks := make([]block, last.Sub(first)/blockLength+1)
	filled := make([]bool, len(weeks))
	for i := range jobs {
		j := &jobs[i]
		if j.Submit < first || j.Submit > last {
			continue
		}
		if b, ok := give(j); ok {
			w := j.Submit.Sub(first) / blockLength
			weeks[w].over, weeks[w].under = weeks[w].over+b.over, weeks[w].under+b.under
			filled[w] = true
		}
	}
	kept := weeks[:0]
	for w := range weeks {
		if filled[w] {
			kept = append(kept, weeks[w])
		}
	}
	return kept
}
