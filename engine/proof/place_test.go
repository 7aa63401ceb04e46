package proof

import (
	"encoding/json"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// What the eight strategies share: how they remember, the lists they go through and
// first fit.

// remember encodes a memory: numbers, strings and lists of them.
func remember(memory any) []byte {
	b, err := json.Marshal(memory)
	if err != nil {
		panic(err)
	}
	return b
}

// recall replaces a memory by one that was encoded.
func recall[T any](memory []byte, into *T) error {
	var fresh T
	err := json.Unmarshal(memory, &fresh)
	*into = fresh
	return err
}

// waiting lists the jobs in the queue, in order of submission.
func waiting(v plan.View) (jobs []plan.JobID) {
	for id := range plan.JobID(v.Jobs()) {
		if v.Job(id).Phase == plan.Waiting {
			jobs = append(jobs, id)
		}
	}
	return jobs
}

// running lists the live runs, in order of their jobs.
func running(v plan.View) (runs []plan.RunID) {
	for id := range plan.JobID(v.Jobs()) {
		if run := v.Job(id).Run; run != plan.None {
			runs = append(runs, run)
		}
	}
	return runs
}

// ended reports whether nothing is left to decide about.
func ended(v plan.View) bool {
	for id := range plan.JobID(v.Jobs()) {
		if !v.Job(id).Phase.Over() {
			return false
		}
	}
	return true
}

// place starts a job on the first devices that have room, whole or in parts, and
// makes idle cut devices whole where that is what it takes.
func place(d *plan.Draft, job plan.JobID, n int32, terms plan.Terms, why plan.Reason) bool {
	shape := d.Shape(job)
	if shape.Share == 1000 {
		slots, ok := wholes(d, shape, n)
		if !ok {
			return false
		}
		_, reason := d.Start(job, slots, terms, why)
		return reason.Code == plan.NoReason
	}
	for first := range plan.DeviceID(d.Devices()) { // a part that is too small may come first
		if slots := parts(d.View, shape, n, first); slots != nil {
			if _, reason := d.Start(job, slots, terms, why); reason.Code == plan.NoReason {
				return true
			}
		}
	}
	for id := range plan.DeviceID(d.Devices()) { // it may fit no part
		mark := d.Mark()
		if d.Device(id).First == plan.None && d.Reshape(id, 0, plan.Reason{Code: plan.Partitioned}) {
			if slots := parts(d.View, shape, n, id); slots != nil {
				if _, reason := d.Start(job, slots, terms, why); reason.Code == plan.NoReason {
					return true
				}
			}
			d.Rollback(mark)
		}
	}
	return false
}

// wholes finds n workers of whole devices.
func wholes(d *plan.Draft, shape *plan.Shape, n int32) (slots []plan.Slot, ok bool) {
	m := d.Mark()
	for id := range plan.NodeID(d.Nodes()) {
		node := d.Node(id)
		if node.Status != plan.Up || n == 0 {
			continue
		}
		for dev := node.First; dev < node.First+plan.DeviceID(node.Count) && node.FreeDevices < n*shape.Devices; dev++ {
			if d.Device(dev).First == plan.None && d.Device(dev).Geometry != 0 {
				d.Reshape(dev, 0, plan.Reason{Code: plan.Partitioned})
				node = d.Node(id)
			}
		}
		if k := min(n, node.FreeDevices/shape.Devices); k > 0 {
			slots = append(slots, plan.Slot{Node: id, Device: plan.None, Workers: k})
			n -= k
		}
	}
	if n > 0 {
		d.Rollback(m)
	}
	return slots, n == 0
}

// parts finds n workers of shares of devices, from a device on.
func parts(v plan.View, shape *plan.Shape, n int32, from plan.DeviceID) (slots []plan.Slot) {
	for id := from; id < plan.DeviceID(v.Devices()) && n > 0; id++ {
		dev := v.Device(id)
		if v.Node(dev.Node).Status != plan.Up || dev.Status == plan.Lost {
			continue
		}
		k := min(n, dev.Free/shape.Share)
		if dev.Geometry != 0 {
			k = min(k, 1)
		}
		if k > 0 {
			slots = append(slots, plan.Slot{Node: dev.Node, Device: id, Workers: k})
			n -= k
		}
	}
	if n > 0 {
		return nil
	}
	return slots
}

// round returns the first multiple of a period after now.
func round(now unit.Time, period unit.Duration) unit.Time {
	return (now/unit.Time(period) + 1) * unit.Time(period)
}
