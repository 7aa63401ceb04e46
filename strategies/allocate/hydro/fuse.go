package hydro

import "github.com/musterdl/muster/model/unit"

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
