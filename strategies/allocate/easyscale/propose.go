package easyscale

import "github.com/musterdl/muster/allocate/divide"

// Tenant is a job as the proposals see it. It is on one kind of device at a time.
type Tenant struct {
	Least, Most int32   // devices it may have
	Counts      []int32 // devices it has, by kind
	Kinds       uint64  // it may use, one bit each
	// Speed is how fast it is on so many devices of a kind, and what part of them is
	// wasted; 0 where it cannot run so.
	Speed func(kind int, devices int32) (speed, waste float64)
}

// on is the kind that a tenant is on, and its devices; none are of kind 0.
func (t *Tenant) on() (kind int, devices int32) {
	for k, n := range t.Counts {
		if n > 0 {
			return k, n
		}
	}
	return 0, 0
}

// gain gives a tenant more devices of a kind; of another kind they replace what it has.
func (t *Tenant) gain(kind int, devices int32) {
	if t.Counts[kind] == 0 {
		clear(t.Counts)
	}
	t.Counts[kind] += devices
}

// propose is what a running job asks for: of its own kind more devices, of each other
// that it may use a place to move to, in all no more than twice what it has. It asks for
// what gains most speed for each device taken, of what does not waste too much. The gain
// is 1 and the relative speed gained by a device.
func propose(id int, t *Tenant, free []int32, maxWaste float64, into []divide.Proposal) []divide.Proposal {
	on, has := t.on()
	now := 0.0
	for kind := range free {
		most := min(free[kind], min(2*has, t.Most)-t.Counts[kind])
		if t.Kinds&(1<<kind) == 0 || most <= 0 {
			continue
		}
		if now == 0 {
			now, _ = t.Speed(on, has)
		}
		if now <= 0 || has == 0 {
			return into
		}
		best := divide.Proposal{Job: id, Kind: kind}
		for added := int32(1); added <= most; added++ {
			then, waste := t.Speed(kind, t.Counts[kind]+added)
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
		if speed, _ := t.Speed(k, t.Least); speed > best {
			kind, best = k, speed
		}
	}
	return kind, kind >= 0
}
