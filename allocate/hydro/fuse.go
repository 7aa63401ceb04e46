package hydro

import "github.com/musterdl/muster/unit"

// fuseLimit is how many trials fit into one fused run on a device: one takes some
// memory, the second and every other what two take more than one. At least 1.
func fuseLimit(device, one, two unit.MiB) int {
	more := two - one
	if one <= 0 || more <= 0 || device < two {
		return 1
	}
	return int((device - one) / more)
}

// split divides n trials evenly over as few fused runs as the limit allows, and over as
// many as there are devices where those are more; the larger ones first.
func split(n, limit, devices int) (sizes []int) {
	if n < 1 {
		return nil
	}
	runs := min(max((n+limit-1)/limit, devices), n)
	for i := range runs {
		size := n / runs
		if i < n%runs {
			size++
		}
		sizes = append(sizes, size)
	}
	return sizes
}

// cost is how long one unit of a trial's work takes on one device.
type cost struct {
	alone float64 // s, of one trial by itself, unscaled
	first float64 // s, of one scaled trial by itself
	more  float64 // s, that every other fused trial adds
}

// published is the artefact's table for ResNet-18 on a 24 GB device: ten unscaled
// trials side by side take 39.7 s, a hundred scaled and fused ones 38.3 s. One alone is
// taken to be a tenth of the ten, as if the device were fully used by any of them, and
// a single scaled trial to gain nothing; both are the worst case for fusing.
var published = cost{alone: 39.7 / 10, first: 39.7 / 10, more: (38.3 - 39.7/10) / 99}

// fused is how long so many fused trials take for a unit of work each.
func (c cost) fused(n int) float64 { return c.first + float64(n-1)*c.more }

// makespan is how long trials take in fused runs that go one after the other onto the
// devices that are free first.
func (c cost) makespan(sizes []int, devices int) (last float64) {
	free := make([]float64, devices)
	for _, n := range sizes {
		at := 0
		for d := range free {
			if free[d] < free[at] {
				at = d
			}
		}
		free[at] += c.fused(n)
		last = max(last, free[at])
	}
	return last
}
