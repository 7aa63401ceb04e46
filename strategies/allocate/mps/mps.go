// Package mps lets work that asks for a part of a device share it under NVIDIA MPS:
// the clients of one server compute side by side, each under a ceiling on the SMs it
// may use and on the memory it may hold.
//
// What is promised to each is its share; its ceiling is above that, so that it may
// use what the others leave: ceilings may add up to more than the device. A share goes
// to the tightest device where all clients together are legal (package envelope).
//
// After NVIDIA's documents on MPS; the placement is ours. Its price is in what follows
// from the fence: a fatal fault of one client ends all on the device, and another
// ceiling needs another process, so a run keeps the one it started with. Work that
// wants whole devices goes to the fewest nodes. Left out: client priorities, static
// partitioning, the server's one-user rule.
package mps

import (
	"cmp"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/fit"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "mps", System: "NVIDIA MPS", Part: allocate.PlacePart, Status: "after",
	Source: "NVIDIA MPS documentation; the placement is ours",
	Idea:   "shares side by side on the tightest device, each under a ceiling above its share",
	Acts:   []strategy.Act{strategy.Share},
	Goal:   "throughput", Needs: "shares and device memory of the jobs",
	Live: "under MPS CUDA_MPS_ACTIVE_THREAD_PERCENTAGE and CUDA_MPS_PINNED_DEVICE_MEM_LIMIT, which a worker reads when it starts; on slots a quota of cores and memory",
}

// Config is what an MPS server allows and how far ceilings are above shares.
type Config struct {
	// Headroom is the ceiling over the share. NVIDIA advises twice an even part.
	Headroom float64 `yaml:"headroom" least:"1"`
	// MaxClients is how many clients a server takes.
	MaxClients int `yaml:"max-clients" least:"1"`
	// ReserveMiB is device memory that is kept free for the server.
	ReserveMiB unit.MiB `yaml:"reserve-mib" least:"0"`
}

// Default returns the configuration used where none is given.
func Default() Config { return Config{Headroom: 2, MaxClients: 48, ReserveMiB: 512} }

// Placer is the strategy. Its fields beyond the configuration are scratch.
type Placer struct {
	config Config
	fewest fit.Fewest
	gang   fit.Gang
}

var _ allocate.Placer = (*Placer)(nil)

// New returns the placer; the configuration must be valid.
func New(c Config) *Placer { return &Placer{config: c} }

// Place puts shares worker by worker on the tightest device; a runner-up keeps off the
// first node of every better candidate. The score is minus what is left of the devices
// used, in thousandths; for whole devices, minus the nodes.
func (p *Placer) Place(v plan.View, need allocate.Need, k int, into []allocate.Candidate) []allocate.Candidate {
	if need.Shape.Share == 1000 || need.Shape.Devices == 0 {
		return p.fewest.Candidates(v, need, k, into, func(found fit.Placement) int64 { return -int64(found.Nodes) })
	}
	before := len(into)
	into = p.gang.OneByOne(v, need, k, into, func() (plan.NodeID, plan.DeviceID, int64) {
		device, left := p.tightest(v, need.Shape)
		if device == plan.None {
			return plan.None, plan.None, 0
		}
		return v.Device(device).Node, device, -int64(left)
	})
	for i := before; i < len(into); i++ {
		c := &into[i]
		c.Share = plan.NewShare()
		c.Share.Fence, c.Share.Ceiling = plan.MPS, p.Ceiling(need.Shape.Share)
	}
	return into
}

// Ceiling is that of a share.
func (p *Placer) Ceiling(share int32) int32 {
	return min(1000, int32(p.config.Headroom*float64(share)))
}

// tightest returns the device on which one more worker is legal and leaves the least,
// and what it leaves; of equals the first.
func (p *Placer) tightest(v plan.View, shape *plan.Shape) (best plan.DeviceID, left int32) {
	best = plan.None
	fit.EachNode(v, shape, 0, func(id plan.NodeID) bool {
		if p.gang.Holds(id) <= 0 {
			return false
		}
		n := v.Node(id)
		for d := n.First; d < n.First+plan.DeviceID(n.Count); d++ {
			if p.gang.Shares(d) <= 0 {
				continue
			}
			rest := v.Device(d).Free - (p.gang.On(d)+1)*shape.Share
			if (best == plan.None || cmp.Less(rest, left)) && p.legal(v, d, shape) {
				best, left = d, rest
			}
		}
		return false
	})
	return best, left
}

// legal reports whether a device may have one more client beside those it has and
// those the candidate has put there: the server takes no more than so many, and their
// memory adds up. Ceilings may add up to more than the device.
func (p *Placer) legal(v plan.View, id plan.DeviceID, shape *plan.Shape) bool {
	more := p.gang.On(id) + 1
	clients, memory := int(more), more*shape.Memory
	v.GrantsOn(id, func(g plan.Grant) {
		if v.Run(g.Run).Status != plan.Stopping {
			clients, memory = clients+1, memory+g.Persist+g.Peak
		}
	})
	has := v.Device(id).Memory
	return clients <= p.config.MaxClients && memory <= has-min(has, int32(p.config.ReserveMiB))
}
