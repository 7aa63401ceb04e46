package plan

import (
	"math"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// Profile is what is known of a job beside its shape: its layers and the pipeline that
// was asked for, how fast it goes on what, what one iteration does, and what it
// belongs to. Jobs of which nothing of this was said have none.
type Profile struct {
	Stages, Microbatches int32
	Tensor               int32 `json:",omitempty"` // slices of each layer; 0 is 1
	Layers               []ProfileLayer
	Menu                 Menu
	// Compute and Communicate are the two phases of one iteration; 0 is unknown.
	Compute, Communicate unit.Duration
	Servers              int32 // of the workers, the first ranks: parameter servers
	Group, Base          string
	Opportunistic        bool
	Persistent           int32  // MiB that stay while resident without computing; 0 is all
	Law                  string // the fast law its workers are under
	RatePerSecMilli      int64  // requests to a service; 0 is none
	SLO                  unit.Duration
	TargetLoss           float64 // at which its goal is reached; 0 is none
}

// ProfileLayer is one layer's cost for one microbatch.
type ProfileLayer struct {
	Forward, Backward unit.Duration
	ParamKiB          int64
	OutputKiB         int64
	ActivationKiB     int64
}

// Offer is one way to run a job: so many workers on a device model, on one node or on
// several (Nodes 2), and how fast that is in millionths of the reference.
type Offer struct {
	Model   int32 // None is the reference device
	Workers int32
	Nodes   int32
	Batch   int32 // 0 is the job's own
	// RateMicro is 1,000,000 for the job's own gang on one node of the reference device.
	RateMicro int64
	// Plan is the plan that goes so fast, where a planner made the offer.
	Plan workload.Spread `json:",omitzero"`
}

// Menu is what a job can be offered; empty is: in proportion to its workers, on any
// model alike.
type Menu []Offer

// FullRate is the rate of a job on what it asked for, in millionths.
const FullRate = 1_000_000

// rate finds the rate on n workers of one model, over several nodes or on one: as
// listed, or between the two sizes around n on a straight line; 0 beyond the largest.
// Where only the other spread is listed, that is taken.
func (m Menu) rate(model, n int32, several bool) (micro int64, listed bool) {
	for _, exact := range [...]bool{true, false} {
		low, high := Offer{}, Offer{}
		for i := range m {
			o := &m[i]
			if o.Model != model || exact && (o.Nodes > 1) != several {
				continue
			}
			listed = true
			if o.Workers <= n && (o.Workers > low.Workers || o.Workers == low.Workers && o.RateMicro > low.RateMicro) {
				low = *o
			}
			if o.Workers >= n && (high.Workers == 0 || o.Workers < high.Workers || o.Workers == high.Workers && o.RateMicro > high.RateMicro) {
				high = *o
			}
		}
		switch {
		case !listed:
			continue
		case high.Workers == 0:
			return 0, true
		case high.Workers == low.Workers:
			return low.RateMicro, true
		}
		return low.RateMicro + (high.RateMicro-low.RateMicro)*int64(n-low.Workers)/int64(high.Workers-low.Workers), true
	}
	return 0, false
}

// Rate is the rate on n workers of a device model of a cluster; of one that is not
// listed it is that of the reference device times the model's speed.
func (m Menu) Rate(c *cluster.Cluster, model, n int32, several bool) int64 {
	if micro, listed := m.rate(model, n, several); listed {
		return micro
	}
	micro, _ := m.rate(None, n, several)
	if speed := c.Models[model].Speed; speed > 0 {
		return int64(float64(micro) * speed)
	}
	return micro
}

// MenuOf turns a declared menu into one of a cluster's models; those that it does not
// have are left out.
func MenuOf(c *cluster.Cluster, offers []workload.Offer) (menu Menu) {
	for _, o := range offers {
		model, ok := int32(None), true
		if o.Model != "" {
			model, ok = c.ModelID(o.Model)
		}
		if ok {
			menu = append(menu, Offer{Model: model, Workers: o.Workers, Nodes: o.Nodes, Batch: o.Batch, RateMicro: int64(math.Round(o.Rate * FullRate)), Plan: o.Plan})
		}
	}
	return menu
}

// Spread is the plan of a menu's fastest offer of this size that has one.
func (m Menu) Spread(model, n int32, several bool) (s workload.Spread) {
	best := int64(0)
	for i := range m {
		if o := &m[i]; o.Model == model && o.Workers == n && (o.Nodes > 1) == several && o.Plan.Name != "" && o.RateMicro > best {
			best, s = o.RateMicro, o.Plan
		}
	}
	return s
}

// Batch is the global batch that a menu's fastest offer of this size has; 0 is the
// job's own.
func (m Menu) Batch(model, n int32, several bool) (batch int32) {
	best := int64(0)
	for i := range m {
		if o := &m[i]; o.Model == model && o.Workers == n && (o.Nodes > 1) == several && o.RateMicro > best {
			best, batch = o.RateMicro, o.Batch
		}
	}
	return batch
}

var noProfile Profile

// ProfileOf returns what is known of a job beside its shape; never nil, not to be
// written into.
func (v View) ProfileOf(id JobID) *Profile {
	if p := v.s.Jobs[id].Profile; p >= 0 && int(p) < len(v.s.Profiles) {
		return &v.s.Profiles[p]
	}
	return &noProfile
}

// Rate is the believed rate of a job on n workers of a device model, on one node or
// over several, in millionths of what it does on what it asked for; 0 where it cannot
// run so.
func (v View) Rate(id JobID, model, n int32, several bool) int64 {
	shape := v.Shape(id)
	if n <= 0 || shape.Models&(1<<model) == 0 {
		return 0
	}
	menu := v.ProfileOf(id).Menu
	if len(menu) == 0 {
		return FullRate * int64(n) / int64(shape.Gang)
	}
	return menu.Rate(v.s.Cluster, model, n, several)
}

// Menu is what a job can be offered.
func (v View) Menu(id JobID) Menu { return v.ProfileOf(id).Menu }

// On is the plan that a menu has for these slots, where a planner wrote the menu: it was asked when the job was
// submitted, so that no cycle waits for it.
func (m Menu) On(v View, slots []Slot) workload.Spread {
	if len(m) == 0 || len(slots) == 0 {
		return workload.Spread{}
	}
	n, several := int32(0), false
	for i := range slots {
		n, several = n+slots[i].Workers, several || slots[i].Node != slots[0].Node
	}
	return m.Spread(v.Node(slots[0].Node).Model, n, several)
}

// Work is the reference running time of a job that is done and kept, with that of its
// present run up to now: as observed where its rate was, else as believed.
func (v View) Work(id JobID) unit.Duration {
	j := &v.s.Jobs[id]
	return j.Work + v.s.work(j.Run) + v.s.work(j.Leaving)
}

// Left is the reference running time that a job is believed to need still. An estimate
// that was overrun is doubled as often as it takes: the job is not about to end.
func (v View) Left(id JobID) (left unit.Duration, known bool) {
	believed := v.s.Jobs[id].Estimate
	if believed <= 0 {
		return 0, false
	}
	done := v.Work(id)
	for believed < done {
		believed *= 2
	}
	return believed - done, true
}

// work is what a run has done, in reference running time.
func (s *State) work(run RunID) unit.Duration {
	if run == None {
		return 0
	}
	r := &s.Runs[run]
	return r.Done + scaled(s.useful(run)-r.DoneAt, r.RateMicro)
}

func scaled(d unit.Duration, micro int64) unit.Duration {
	return d/FullRate*unit.Duration(micro) + d%FullRate*unit.Duration(micro)/FullRate
}

// Where is the device model of a run, and whether it is on several nodes.
func (v View) Where(run RunID) (model int32, several bool) {
	node := NodeID(None)
	v.GrantsOf(run, func(g Grant) {
		several = several || node != None && node != g.Node
		node, model = g.Node, v.Node(g.Node).Model
	})
	return model, several
}

// Spare is what is believed that a run's plan leaves of its devices; nothing of one without.
func (v View) Spare(run RunID) workload.Spare {
	if id := v.s.Runs[run].Terms.Plan.ID; id >= 0 && int(id) < len(v.s.Plans) {
		return v.s.Plans[id].Spare
	}
	return workload.Spare{}
}

// Observe notes at which rate a run is seen to go from now on, in millionths. One that has
// stood for a time has done nothing in it.
func (s *State) Observe(run RunID, micro int64, stood unit.Duration) {
	r := &s.Runs[run]
	useful := s.useful(run)
	r.Done += scaled(max(0, useful-stood-r.DoneAt), r.RateMicro)
	r.DoneAt, r.RateMicro = useful, micro
}

// Off is by how much a rate that was measured may be less than told, and more, in millionths.
type Off struct {
	Less int64 `json:"less"`
	More int64 `json:"more"`
}

// Unmeasured is what a rate that nobody has measured may be off by: more than any is.
var Unmeasured = Off{1 << 40, 1 << 40}

// Doubt notes by how much the rate that a run is believed to have may be off.
func (s *State) Doubt(run RunID, off Off) { s.Runs[run].RateOff = off }

// Measured is the least and the most that a run's rate may be, as far as it was measured; it was
// not where it may as well be nothing.
func (r *Run) Measured() (least, most int64, ok bool) {
	return r.RateMicro - r.RateOff.Less, r.RateMicro + r.RateOff.More, r.RateMicro > r.RateOff.Less
}

// GoesBy notes that a run, whatever it was told, goes by another plan of those that there are.
func (s *State) GoesBy(run RunID, id int32) {
	if id >= None && int(id) < len(s.Plans) {
		s.Runs[run].Terms.Plan.ID = id
	}
}

// ObserveLoss notes the loss that a job has when so many millionths of its work are
// done.
func (s *State) ObserveLoss(id JobID, loss float64, progress int32) {
	j := &s.Jobs[id]
	if j.Loss > 0 {
		j.Fallen += j.Loss - loss
		if more := progress - j.Progress; more > 0 {
			j.Pace = (j.Loss - loss) / float64(more)
		}
	}
	j.Loss, j.SeenAt = loss, s.View().Executed(id)
}

// A report of progress foretells a job's running time once it has run for so long, so that what
// comes before its first step is little of that, and has done so many millionths of its work, so
// that their rounding is.
const (
	foretells     = 5 * unit.Minute
	foretellsFrom = 100
)

// ObserveProgress notes how many millionths of its work a job says it has done.
func (s *State) ObserveProgress(id JobID, progress int32) {
	j := &s.Jobs[id]
	if j.Progress = progress; j.Foretold > 0 || progress < foretellsFrom {
		return
	}
	shape := &s.Shapes[j.Shape]
	if ran := unit.Duration(s.View().Service(id) / max(1, shape.Milli(shape.Gang))); ran >= foretells {
		j.Foretold, j.ForetoldAt = unit.Duration(float64(ran)/float64(progress)*FullRate), s.Now
	}
}

// Foretold is how long a job runs in all by its own report, 0 before there is one, and when it was
// made.
func (v View) Foretold(id JobID) (unit.Duration, unit.Time) {
	j := &v.s.Jobs[id]
	return j.Foretold, j.ForetoldAt
}

// believe gives a run the rate that its job is believed to have where it is.
func (s *State) believe(run RunID) {
	r := &s.Runs[run]
	node, nodes, model := NodeID(None), 0, int32(0)
	for i := r.First; i != None; i = s.Grants[i].OfRun {
		if g := &s.Grants[i]; g.Node != node {
			node, nodes, model = g.Node, nodes+1, s.Nodes[g.Node].Model
		}
	}
	r.RateMicro = s.View().Rate(r.Job, model, r.Workers, nodes > 1)
}

// Offers gives a job another menu.
func (d *Draft) Offers(job JobID, menu Menu) {
	p := *d.ProfileOf(job)
	p.Menu = menu
	d.s.Profiles = append(d.s.Profiles, p)
	d.s.touchJob(job).Profile = int32(len(d.s.Profiles) - 1)
	d.aside(Aside{Kind: "menu", Job: job, Menu: menu})
}
