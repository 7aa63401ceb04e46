// Package envelope is the mechanism behind sharing a device: which ways of fencing
// tenants off from each other there are, how well each fences, which sets of tenants
// are legal under it, who falls with whom, and what changing a fence costs. Policies
// ask for envelopes; how one is enforced is a backend's affair.
//
// After NVIDIA's documents on MPS and MIG (catalogue A1 and A2; the profile tables
// read there, the placement starts recalled) and HAMi-core for quotas. Left out:
// media engines and graphics profiles of MIG, MPS inside a MIG instance.
package envelope

import (
	"fmt"

	"github.com/musterdl/muster/unit"
)

// Fence is a way of keeping the tenants of a device apart.
type Fence int8

// The fences, in order of what they protect.
const (
	TimeSliced Fence = iota // the driver's own time slices: nothing is capped
	MPS                     // one server process, a ceiling per client on SMs and on memory
	Quota                   // an interposed library counts memory and throttles launches
	Guarded                 // as Quota, and every access is checked against the tenant's bounds
	Partition               // MIG: SMs, caches and memory of one's own
	Whole                   // nobody else on the device
)

// Isolation is what a fence keeps tenants from doing to each other.
type Isolation int8

// The classes of isolation, each including those before it.
const (
	None       Isolation = iota
	Soft                 // caps that well-behaved tenants keep
	HardMemory           // nobody reaches, fills or brings down what is another's memory
	HardAll              // compute and bandwidth are one's own as well
)

// Isolation returns the class of a fence. MPS is soft although its clients have
// address spaces of their own: a fatal fault of one ends all.
func (f Fence) Isolation() Isolation {
	switch f {
	case MPS, Quota:
		return Soft
	case Guarded:
		return HardMemory
	case Partition, Whole:
		return HardAll
	}
	return None
}

// Resize is what it takes to change one tenant's envelope.
type Resize int8

// The ways of resizing.
const (
	Live    Resize = iota // at once
	Restart               // the tenant's process starts again
	Recut                 // the tenant leaves, its instance is destroyed, another is created
)

// Resize returns what changing one tenant's envelope takes.
func (f Fence) Resize() Resize {
	switch f {
	case MPS:
		return Restart // a client reads its ceiling when it connects
	case Partition, Whole:
		return Recut
	}
	return Live
}

// Choose returns the weakest of the offered fences that isolates as needed: what
// protects more also shares worse.
func Choose(need Isolation, offered []Fence) (Fence, bool) {
	best, found := Whole, false
	for _, f := range offered {
		if f.Isolation() >= need && (!found || f < best) {
			best, found = f, true
		}
	}
	return best, found
}

// Device is what tenants share, and how.
type Device struct {
	Fence  Fence
	Memory unit.MiB
	// Reserve is memory that the driver or the MPS server keeps for itself.
	Reserve unit.MiB
	// MaxClients bounds the tenants of an MPS server; 0 is any number.
	MaxClients int
	// Table are the instance profiles, for Partition.
	Table *Table
}

// Tenant is one envelope: of compute it may use up to Ceiling, which is also its
// quota under Quota and Guarded, and of memory Memory.
type Tenant struct {
	Ceiling unit.Milli
	Memory  unit.MiB
	Needs   Isolation
	// Instance is its part of the device, for Partition.
	Instance Instance
}

// Legal reports whether the tenants may be on the device together, and why not.
func Legal(d Device, tenants []Tenant) (ok bool, why string) {
	quota, memory := unit.Milli(0), unit.MiB(0)
	for i, t := range tenants {
		switch {
		case t.Ceiling < 1 || t.Ceiling > unit.Whole:
			return false, fmt.Sprintf("tenant %d: a ceiling of %d thousandths", i, t.Ceiling)
		case t.Memory < 0:
			return false, fmt.Sprintf("tenant %d: negative memory", i)
		case t.Needs > d.Fence.Isolation():
			return false, fmt.Sprintf("tenant %d needs better isolation", i)
		}
		quota, memory = quota+t.Ceiling, memory+t.Memory
	}
	switch {
	case d.Fence == Partition:
		return d.legalParts(tenants)
	case memory > d.Memory-d.Reserve:
		return false, fmt.Sprintf("%d MiB of %d MiB", memory, d.Memory-d.Reserve)
	case d.Fence == Whole && len(tenants) > 1:
		return false, "more than one tenant"
	case (d.Fence == Quota || d.Fence == Guarded) && quota > unit.Whole:
		return false, fmt.Sprintf("quotas of %d thousandths", quota)
	case d.Fence == MPS && d.MaxClients > 0 && len(tenants) > d.MaxClients:
		return false, fmt.Sprintf("%d clients of at most %d", len(tenants), d.MaxClients)
	}
	return true, ""
}

// legalParts wants the instances to be a layout and every tenant to fit its own.
func (d *Device) legalParts(tenants []Tenant) (ok bool, why string) {
	if d.Table == nil {
		return false, "the device has no instance profiles"
	}
	layout := make(Layout, len(tenants))
	for i, t := range tenants {
		layout[i] = t.Instance
	}
	if ok, why = d.Table.Legal(layout); !ok {
		return false, why
	}
	for i, t := range tenants {
		if part := d.Table.Part(t.Instance); t.Memory > part.Memory || t.Ceiling > part.Milli {
			return false, fmt.Sprintf("tenant %d does not fit %s", i, d.Table.Name(t.Instance))
		}
	}
	return true, ""
}

// Falls reports whether a fatal fault of one tenant of a device ends another one of
// it: an MPS server takes all its clients with it.
func (f Fence) Falls() bool { return f == MPS }
