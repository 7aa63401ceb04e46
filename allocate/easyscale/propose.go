package easyscale

import "github.com/musterdl/muster/allocate/divide"

// Tenant is a job as the proposals see it.
type Tenant struct {
	Least, Most int32   // devices it may have in all
	Counts      []int32 // devices it has, by kind
	Kinds       uint64  // it may use, one bit each
	Mixed       bool    // may use several kinds at once
	// Speed is how fast it is on so many devices of each kind, and what part of them is
	// wasted; 0 where it cannot run so.
	Speed func(counts []int32) (speed, waste float64)
}

func (t *Tenant) total() (n int32) {
	for _, c := range t.Counts {
		n += c
	}
	return n
}

// with is the speed with so many more devices of a kind.
func (t *Tenant) with(kind int, added int32) (speed, waste float64) {
	t.Counts[kind] += added
	speed, waste = t.Speed(t.Counts)
	t.Counts[kind] -= added
	return speed, waste
}

// propose is what a running job asks for: of each kind the addition, of no more devices
// than it has already, with the largest gain in speed for each device added, among those
// whose waste is not too large. The gain is 1 and the relative speed gained by a device.
func propose(id int, t *Tenant, free []int32, maxWaste float64, into []divide.Proposal) []divide.Proposal {
	now, _ := t.Speed(t.Counts)
	has := t.total()
	if now <= 0 || has == 0 {
		return into
	}
	for kind := range free {
		if t.Kinds&(1<<kind) == 0 || !t.Mixed && t.Counts[kind] == 0 {
			continue
		}
		best := divide.Proposal{Job: id, Kind: kind}
		for added := int32(1); added <= min(has, free[kind], t.Most-has); added++ {
			then, waste := t.with(kind, added)
			gain := (then/now-1)/float64(added) + 1
			if then > now*(1+1e-9) && waste <= maxWaste && gain > best.Gain {
				best.Units, best.Gain = added, gain
			}
		}
		if best.Units > 0 {
			into = append(into, best)
		}
	}
	return into
}

// start is the kind of the smallest proposal of a job that has nothing: its least number
// of devices, of the kind that is fastest for it among those with as many free, the
// first of equals. The artefact offers the slowest kind alone, and waits for that one.
func start(t *Tenant, free []int32) (kind int, ok bool) {
	kind, best := -1, 0.0
	for k, n := range free {
		if n < t.Least || t.Kinds&(1<<k) == 0 {
			continue
		}
		if speed, _ := t.with(k, t.Least); speed > best {
			kind, best = k, speed
		}
	}
	return kind, kind >= 0
}
