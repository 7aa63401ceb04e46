// Package sites chooses the data centres on which one large job trains: several of them, with a
// pipeline that is cut at their borders only, or one. Each is a black box with devices, prices,
// links and what its place costs: how long a step takes somewhere is asked of a Curve. What is
// chosen from is the set of places of which none is better in both time and money.
//
// The computational power network of the survey names no algorithm; this definition is ours.
// Left out: the price of energy, classes of isolation and regions that a user prefers (who asks
// leaves out the centres that may not be used), and centres that give and take devices while
// a job runs.
package sites

import (
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
)

// Network is the centres there are, and the ways between them.
type Network struct {
	Centres []Centre
	// Ways hold those from each centre to each other.
	Ways [][]Way
}

// Centre is a data centre as far as others see it.
type Centre struct {
	Name  string
	Pools []Pool
}

// Pool is like nodes of a centre that are free.
type Pool struct {
	Kind    int32 // of device, as the Curve numbers them
	Nodes   int
	Devices int     // of a node
	Dollars float64 // for a device and hour
}

// Way leads from one centre to another.
type Way struct {
	pipeline.Link
	DollarsPerGB float64 // of what goes out
}

// Job is what is to be trained.
type Job struct {
	Home               int // the centre where its data and its weights lie
	DataGB, WeightsGB  float64
	Steps              float64
	Stages             []int // how many it may have; each takes a node
	Most               int   // centres at once
	Deadline           unit.Duration
	Budget             float64 // dollars; 0 is none, as for the deadline
	TimeAgainstDollars float64 // how much sooner counts against cheaper: 0 is money alone, 1 time alone
}

// Part is neighbouring stages in one pool.
type Part struct{ Centre, Pool, Stages int }

// Place is where a job could train, in the order of its stages, and what that comes to.
type Place struct {
	Parts   []Part
	Time    unit.Duration // until the last step has ended, the moving of data and weights included
	Dollars float64       // for devices all that time, and for what leaves a centre
}

// Step is what a step takes somewhere.
type Step struct {
	Takes unit.Duration
	// BorderGB go over the border behind each part but the last, and as much comes back.
	BorderGB []float64
}

// Curve tells how fast a job goes.
type Curve interface {
	// Step says what a step takes on some parts, or why the job cannot run there.
	Step(parts []Part) (Step, pipeline.Why)
	// Least is a time below which no step on these parts can be. It is asked for all places, and
	// Step for those alone that could be good.
	Least(parts []Part) unit.Duration
}

// moving is how long it takes to bring the data to the first part and to each part its weights,
// all at once over different ways, and what that costs.
func (n *Network) moving(j *Job, parts []Part) (longest unit.Duration, dollars float64) {
	stages := 0
	for _, p := range parts {
		stages += p.Stages
	}
	for i, p := range parts {
		gb := j.WeightsGB * float64(p.Stages) / float64(stages)
		if i == 0 {
			gb += j.DataGB
		}
		if p.Centre == j.Home || gb == 0 {
			continue
		}
		way := &n.Ways[j.Home][p.Centre]
		longest = max(longest, way.Takes(int64(gb*1e9/1024)))
		dollars += gb * way.DollarsPerGB
	}
	return longest, dollars
}

// place says what some parts come to where a step takes so much. Devices are paid for from the
// beginning, as they are held while data and weights come.
func (n *Network) place(j *Job, parts []Part, s Step) Place {
	p := Place{Parts: parts}
	p.Time, p.Dollars = n.moving(j, parts)
	p.Time += unit.Duration(j.Steps * float64(s.Takes))
	for i, part := range parts {
		pool := &n.Centres[part.Centre].Pools[part.Pool]
		p.Dollars += float64(part.Stages*pool.Devices) * pool.Dollars * p.Time.Seconds() / 3600
		if i < len(s.BorderGB) {
			here, there := part.Centre, parts[i+1].Centre
			p.Dollars += j.Steps * s.BorderGB[i] * (n.Ways[here][there].DollarsPerGB + n.Ways[there][here].DollarsPerGB)
		}
	}
	return p
}

// all lists the places of a job: those in fewer centres first. There are many: of five centres with
// two pools each and eight stages some tens of thousands in three of them at most. That is why the
// curve, which may simulate each, has to give a bound.
func (n *Network) all(j *Job) (all [][]Part) {
	for centres := 1; centres <= min(j.Most, len(n.Centres)); centres++ {
		for _, stages := range j.Stages {
			n.spread(&all, nil, centres, stages)
		}
	}
	return all
}

// spread adds parts for so many stages more in so many centres more. A centre comes once: its
// stages are neighbours, so that no microbatch comes back to it over a border.
func (n *Network) spread(all *[][]Part, begun []Part, centres, stages int) {
	if centres == 0 {
		*all = append(*all, slices.Clone(begun))
		return
	}
	for c := range n.Centres {
		if slices.ContainsFunc(begun, func(p Part) bool { return p.Centre == c }) {
			continue
		}
		for k, pool := range n.Centres[c].Pools {
			from, to := 1, stages-(centres-1)
			if centres == 1 {
				from = stages
			}
			for s := from; s <= min(to, pool.Nodes); s++ {
				n.spread(all, append(begun, Part{c, k, s}), centres-1, stages-s)
			}
		}
	}
}
