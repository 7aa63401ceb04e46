package local

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/musterdl/muster/run/trainer/progress"
)

// devices are how slow those of a run's workers were seen to be, by rank: what tells a slow device from
// slow layers. A stage that takes other times is put down to neither before it is known which.
type devices struct {
	seen int64 // windows that its program has told of
	// windows are those since something seemed to change, the last of them: how many times as long as at
	// best each worker took.
	windows [][]float64
	told    []float64 // how slow they were said to be
}

// windowsLeast is how many windows there must be before anything is said of devices, and windowsMost how
// many count. surely is how likely chance may be behind what is said: anybody who left a device for
// nothing would lose more than who stayed on a slow one a little longer.
const (
	windowsLeast = 5
	windowsMost  = 32
	surely       = .001
)

// learn takes in what a program wrote of so many workers.
func (d *devices) learn(is *progress.Devices, workers int) {
	if d.told == nil {
		d.told = slices.Repeat([]float64{1}, workers)
	}
	fresh := is.Windows - d.seen
	if fresh < 0 {
		fresh = int64(len(is.Times)) // it counts anew
	}
	d.seen = is.Windows
	for _, times := range is.Times[max(0, int64(len(is.Times))-fresh):] {
		if !slices.Contains(times, 0) {
			d.windows = append(d.windows, times)
		}
	}
	d.windows = slices.Delete(d.windows, 0, max(0, len(d.windows)-windowsMost))
}

// again begins anew: what was seen may have been before a change, or has the time in it in which the run
// was suspended.
func (d *devices) again() { d.windows = nil }

// others is how long the median of the workers beside one took in a window. What holds all of them up
// alike is no device.
func others(times []float64, worker int) float64 {
	all := slices.Delete(slices.Clone(times), worker, worker+1)
	slices.Sort(all)
	return all[(len(all)-1)/2]
}

// factor is a logarithm of which nobody knows more than that it is surely between two bounds.
type factor struct{ least, most float64 }

func (f factor) holds(x float64) bool { return f.least <= x && x <= f.most }

// likely is how many times as long as others a worker takes, by Student's test.
func (d *devices) likely(worker int) factor {
	n := len(d.windows)
	if n < windowsLeast {
		return factor{math.Inf(-1), math.Inf(1)}
	}
	logs := make([]float64, n)
	for k, times := range d.windows {
		logs[k] = math.Log(times[worker] / others(times, worker))
	}
	is, deviation := stat.MeanStdDev(logs, nil)
	count := effective(logs, is)
	off := distuv.StudentsT{Sigma: 1, Nu: count - 1}.Quantile(1-surely) * deviation / math.Sqrt(count)
	return factor{is - off, is + off}
}

// effective is the effective number of windows: how many would say as much as these if none hung together
// with the one before, as they do where others use the machine for a second or two. It is n(1-r)/(1+r),
// where r is how windows that follow each other are correlated.
func effective(logs []float64, mean float64) float64 {
	own, next := 0., 0.
	for k, x := range logs {
		own += (x - mean) * (x - mean)
		if k > 0 {
			next += (x - mean) * (logs[k-1] - mean)
		}
	}
	if next <= 0 {
		return float64(len(logs))
	}
	return max(2, float64(len(logs))*(own-next)/(own+next))
}

// counts is from which factor on a device is slow, as a logarithm.
var counts = math.Log(1 + drift/100.)

// known reports whether enough was seen: of each worker it is sure that its device is slow, or sure that it
// is not, or there are as many windows as count. Of a single worker nothing ever is.
func (d *devices) known() bool {
	if len(d.told) < 2 || len(d.windows) == windowsMost {
		return true
	}
	for i := range d.told {
		if d.likely(i).holds(counts) {
			return false
		}
	}
	return true
}

// slow is how many times as long each worker takes as its device should, 1 for those that are not surely
// slower than the others. What was said before holds as long as it may be so, and, when as many windows
// as count were seen since, as long as the device is slow in the mean.
func (d *devices) slow() []float64 {
	all := slices.Clone(d.told)
	if len(all) < 2 {
		return all
	}
	for i := range all {
		f := d.likely(i)
		inMean := len(d.windows) < windowsMost || (f.least+f.most)/2 >= counts
		switch {
		case f.holds(math.Log(all[i])) && inMean:
		case f.least > counts:
			// In the mean, as what its stages take is told in the mean too.
			own, rest := 0., 0.
			for _, times := range d.windows {
				own, rest = own+times[i], rest+others(times, i)
			}
			all[i] = math.Round(1000*own/rest) / 1000
		default:
			all[i] = 1
		}
	}
	return all
}

// other reports whether devices are otherwise slow than was said last.
func (d *devices) other(slow []float64) bool {
	for i, is := range slow {
		if 100*math.Abs(is-d.told[i]) > drift*d.told[i] {
			return true
		}
	}
	return false
}
