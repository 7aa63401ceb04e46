package proof

import (
	"slices"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// mig keeps tenants in hard partitions, and cuts a device another way when that makes
// room for one more: all its tenants stop, the device is cut after them, and all start
// again after the cut, in one commit (after MISO, Li et al., SoCC 2022, and
// MIG-serving, Tan et al., 2021; a first fit of geometries). It pulls at: reshape, two
// levels of waiting in one commit, devices that are neither free nor whole.
type mig struct{}

func (m mig) Decide(d *plan.Draft, _ schedule.Trigger) unit.Time {
	for _, job := range waiting(d.View) {
		shape := d.Shape(job)
		if shape.Gang > 1 || !m.cuttable(d.View, shape.Share) {
			place(d, job, shape.Gang, plan.DefaultTerms(), plan.Reason{Code: plan.Fits})
			continue
		}
		if !m.part(d, job) && !m.recut(d, job, true) {
			m.recut(d, job, false)
		}
	}
	return unit.Never
}

// geometries are the ways to cut a device.
func geometries(v plan.View, id plan.DeviceID) []cluster.Geometry {
	return v.Cluster().Models[v.Node(v.Device(id).Node).Model].Geometries
}

// cuttable reports whether some device can be cut into a part that holds a share.
func (mig) cuttable(v plan.View, share int32) bool {
	for id := range plan.DeviceID(v.Devices()) {
		for _, g := range geometries(v, id) {
			if slices.ContainsFunc(g.Parts, func(p cluster.Part) bool { return int32(p.Milli) >= share }) {
				return true
			}
		}
	}
	return false
}

// part starts a job in a free part of a device that is cut already.
func (m mig) part(d *plan.Draft, job plan.JobID) bool {
	for id := range plan.DeviceID(d.Devices()) {
		if d.Device(id).Geometry != 0 && m.on(d, job, id, plan.Fits) {
			return true
		}
	}
	return false
}

func (m mig) on(d *plan.Draft, job plan.JobID, id plan.DeviceID, why plan.ReasonCode) bool {
	_, reason := d.Start(job, []plan.Slot{{Node: d.Device(id).Node, Device: id, Workers: 1}}, plan.DefaultTerms(), plan.Reason{Code: why, A: int64(d.Device(id).Geometry)})
	return reason.Code == plan.NoReason
}

// recut finds a device and a geometry that holds the device's tenants and the job:
// first among the devices in use, then among the idle ones.
func (m mig) recut(d *plan.Draft, job plan.JobID, used bool) bool {
	for id := range plan.DeviceID(d.Devices()) {
		var tenants []plan.RunID
		settled := true
		d.GrantsOn(id, func(g plan.Grant) {
			r := d.Run(g.Run)
			settled = settled && r.Status == plan.Running && r.Workers == 1 && d.Shape(r.Job).Share < 1000
			tenants = append(tenants, g.Run)
		})
		if !settled || used != (len(tenants) > 0) {
			continue
		}
		for geometry := range geometries(d.View, id) {
			if geometry > 0 && m.try(d, job, id, int16(geometry), tenants) {
				return true
			}
		}
	}
	return false
}

// try swaps the tenants of a device into another geometry, with one more.
func (m mig) try(d *plan.Draft, job plan.JobID, id plan.DeviceID, geometry int16, tenants []plan.RunID) bool {
	mark := d.Mark()
	why := plan.Reason{Code: plan.Partitioned, A: int64(geometry)}
	jobs := []plan.JobID{}
	for _, run := range tenants {
		jobs = append(jobs, d.Run(run).Job)
		d.Stop(run, why, 0)
	}
	ok := d.Reshape(id, geometry, why)
	for _, j := range append(jobs, job) {
		ok = ok && m.on(d, j, id, plan.Partitioned)
	}
	if !ok {
		d.Rollback(mark)
	}
	return ok
}
