package easyscale

import "math"

// Split is how a job's logical workers lie on the devices it has.
type Split struct {
	PerDevice []int32 // logical workers on a device, by kind
	// Waste is the part of what the devices could do that is lost, where those with less
	// to do wait for the others and where places for logical workers stay empty.
	Waste float64
	// Speed is in logical workers' steps a second: what the devices could do, less the
	// waste.
	Speed float64
}

// Best is the split of least waste of so many logical workers over counts[i] devices of
// kind i, which do speeds[i] steps of a logical worker a second. The slowest kind gets
// 1, 2, ... on a device; every other one as many times more as it is faster, rounded
// down or up. It reports false where the job has no device.
func Best(logical int32, speeds []float64, counts []int32) (Split, bool) {
	slowest, kinds := math.Inf(1), 0
	for i, n := range counts {
		if n > 0 {
			slowest, kinds = min(slowest, speeds[i]), kinds+1
		}
	}
	best, found := Split{Waste: math.Inf(1)}, false
	for m := range logical {
		for up := range 1 << kinds {
			per := perDevice(float64(m+1)/slowest, up, speeds, counts)
			if s, ok := split(logical, speeds, counts, per); ok && s.Waste < best.Waste {
				best, found = s, true
			}
		}
	}
	return best, found && kinds > 0
}

// perDevice is speed times seconds on each kind the job has, rounded up where its bit
// says so and down elsewhere.
func perDevice(seconds float64, up int, speeds []float64, counts []int32) []int32 {
	per := make([]int32, len(counts))
	for i, n := range counts {
		if n == 0 {
			continue
		}
		// A hair's breadth is not a worker: 3 times 1.1 is 3.3000000000000003.
		exact := seconds * speeds[i]
		per[i] = int32(math.Floor(exact + 1e-9))
		if up&1 == 1 {
			per[i] = int32(math.Ceil(exact - 1e-9))
		}
		up >>= 1
	}
	return per
}

// split applies the formula of the waste; false where the logical workers do not all
// have a place.
func split(logical int32, speeds []float64, counts, per []int32) (Split, bool) {
	step, places, could := 0.0, int32(0), 0.0
	for i, n := range counts {
		if n > 0 {
			step = max(step, float64(per[i])/speeds[i])
		}
		places += n * per[i]
		could += float64(n) * speeds[i]
	}
	if places < logical || step == 0 {
		return Split{}, false
	}
	lost := float64(places-logical) / step
	for i, n := range counts {
		lost += float64(n) * (speeds[i] - float64(per[i])/step)
	}
	return Split{PerDevice: per, Waste: lost / could, Speed: could - lost}, true
}
