package igniter

import (
	"math"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/sharing"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/strategies/serve/igniter/sizing"
)

// together sizes all services of a device anew with one more: from their least shares a
// unit more to all who are late, until nobody is. That is the least that serves them, in
// whichever order they came. It leaves the shares in p.pack.Try, the newcomer's last, and
// whose they are in p.beside, and returns by how much the shares in all grow; infinite
// where a device is not enough, or is not for now, since somebody is on the way to it.
func (p *Placer) together(v plan.View, id plan.DeviceID, work sizing.Workload, batch int, bound float64, memory int32) float64 {
	d := v.Device(id)
	if d.Status.Out() || d.Geometry != 0 || d.FreeMemory < memory {
		return math.Inf(1)
	}
	p.works, p.placed, p.beside = p.works[:0], p.placed[:0], p.beside[:0]
	before, foreign, arriving := 0.0, false, false
	v.GrantsOn(id, func(g plan.Grant) {
		r := v.Run(g.Run)
		w := p.workload(v, r.Job)
		if w.Model == nil || r.Terms.Share.Batch == 0 || r.Status == plan.Stopping {
			foreign = true // no service, of which nothing is known, or one that leaves
			return
		}
		arriving = arriving || r.Change != 0
		b, share := sizing.Bound(&p.config.Device, w)
		p.placed = append(p.placed, sizing.Placed{Workload: len(p.works), Tenant: sharing.Tenant{Model: w.Model, Batch: b, SharePercent: share}})
		p.works, p.beside = append(p.works, w), append(p.beside, allocate.Beside{Run: g.Run, Share: r.Terms.Share})
		before += float64(g.Reserve) / 10
	})
	if foreign {
		return math.Inf(1)
	}
	newcomer := sizing.Placed{Workload: len(p.works), Tenant: sharing.Tenant{Model: work.Model, Batch: batch, SharePercent: bound}}
	p.works = append(p.works, work)
	total, ok := p.pack.Fit(&p.config.Device, p.works, append(p.pack.Try[:0], p.placed...), newcomer)
	if !ok {
		return math.Inf(1)
	}
	if arriving {
		p.arrives = true
		return math.Inf(1)
	}
	return total - before
}

// repack gives the newcomer its share on a device, and the others there those that they
// need beside it: less to some first, so that there is room for more to others.
func (p *Placer) repack(c *allocate.Candidate) (milli int32) {
	milliOf := func(i int) int32 { return int32(math.Ceil(10*p.pack.Try[i].SharePercent - 1e-9)) }
	for _, more := range []bool{false, true} {
		for i, b := range p.beside {
			if share := milliOf(i); share != b.Share.Milli && share > b.Share.Milli == more {
				b.Share.Milli, b.Share.Ceiling = share, share
				c.Beside = append(c.Beside, b)
			}
		}
	}
	return milliOf(len(p.beside))
}
