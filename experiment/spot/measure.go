package spot

import (
	_ "embed" // for Claim
	"fmt"

	"github.com/musterdl/muster/mechanism/peers"
	"github.com/musterdl/muster/model/figures"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/shape"
)

// Claim is the table, as data, for muster reproduce.
//
//go:embed claim.yaml
var Claim []byte

// What all of them run: the largest GPT-2, with one device in a node.
const (
	batch = 512 // samples of 1,024 tokens
	out   = 10_000
	start = 30 * unit.Second
	// micro is a microbatch of the swarm, in samples, and window how many of them are under way.
	micro  = 8
	window = 64
)

// ground is a trace with machines of a kind.
func ground(t Trace, device string, order pipeline.Ordering) (*Ground, error) {
	var gpt shape.Shape
	for _, s := range shape.Presets {
		if s.Name == "gpt-2" {
			gpt = s
		}
	}
	profile, whys := shape.New(gpt, shape.Half)
	if len(whys) > 0 {
		return nil, whys[0]
	}
	kind, why := shape.Device(device, shape.Half)
	if why != "" {
		return nil, fmt.Errorf("%s", why)
	}
	m := &parallel.Model{Name: gpt.Name, Profile: profile, Batch: batch, State: parallel.MixedAdam}
	return &Ground{Trace: t, X: parallel.NewSimulator(m, parallel.Even(kind, t.Nodes, 1, out)), Start: start,
		Limits: parallel.Limits{Sequences: []parallel.Sequence{{Name: "1f1b", Order: order}}, Samples: 8}}, nil
}

// Measure plays the traces under planners that go on by copies and by restarts, under every fixed
// number of nodes, and as a swarm. What is told is the part of what could be done at best.
func Measure(copies, restarts parallel.Planner, order pipeline.Ordering) func(open figures.Open, seed uint64) (map[string]float64, error) {
	return func(open figures.Open, seed uint64) (map[string]float64, error) {
		got := map[string]float64{}
		t4, err := Bamboo(open, "spot/bamboo/g4dn-trace.csv")
		if err != nil {
			return nil, err
		}
		g, err := ground(t4, "T4", order)
		if err == nil {
			err = table(got, "t4", g, copies, restarts)
		}
		if err != nil {
			return nil, err
		}
		for _, zone := range []string{"us-east-2b", "us-west-2a"} {
			v100, err := SkyPilot(open, "spot/skypilot/availability/16-node/aws-08-27-2023/"+zone+"_v100_1.json.gz")
			if err != nil {
				return nil, err
			}
			if g, err = ground(v100, "V100-16GB", order); err == nil {
				err = table(got, zone, g, copies, restarts)
			}
			if err != nil {
				return nil, err
			}
		}
		return got, nil
	}
}

// table is the row of one trace. The fixed number that is best is known when all is over; whoever
// chooses one before does no better.
func table(got map[string]float64, name string, g *Ground, copies, restarts parallel.Planner) error {
	ideal := g.Ideal([]parallel.Planner{copies, restarts})
	if ideal == 0 {
		return fmt.Errorf("%s: the model fits on no number of nodes", name)
	}
	played := g.Play(Policy{Planner: copies, Copies: true})
	got[name+"_oobleck"], got[name+"_recovers"] = played.Samples/ideal, float64(played.Recovers)
	played = g.Play(Policy{Planner: restarts})
	got[name+"_varuna"], got[name+"_restarts"] = played.Samples/ideal, float64(played.Restarts)
	for n := 1; n <= g.Trace.Nodes; n++ { // in hindsight
		got[name+"_fixed"] = max(got[name+"_fixed"], g.Play(Policy{Planner: restarts, Fixed: n}).Samples/ideal)
	}
	got[name+"_swarm"] = g.swarm(restarts) / ideal
	return nil
}

// swarm is how many samples a swarm of peers does, each of which has one stage of as few as the
// model needs: fewer stages mean fewer ways for a microbatch to wait. It computes again what it
// does not keep, as a peer cannot know how many microbatches will come its way.
func (g *Ground) swarm(p parallel.Planner) float64 {
	stages := 1
	for ; stages < g.Trace.Nodes && !g.planFor(p, stages).found; stages++ {
	}
	x := g.X
	ways := x.AllIn(2, 1) // what does not come in is computed again
	rank := parallel.Rank{Tensor: 1, Replicas: 1, Devices: []int32{0}}
	all, _, why := x.Stage(&rank, parallel.Slice{First: 0, End: x.Model.Profile.Layers(), Ways: ways}, micro, 1)
	if why != "" {
		return 0
	}
	s := peers.Swarm{Stages: stages, Batch: x.Model.Batch / micro, Window: window, Trainers: 1, Hop: unit.Millisecond,
		Forward:    unit.Duration(float64(all.Forward+all.Input+all.Weight) / float64(stages) / (1 + peers.BackwardWeight)),
		WeightsKiB: all.ParamKiB / int64(stages), Rebalance: 5 * unit.Minute, Steps: 1 << 30, End: g.Trace.End}
	last := map[int32]int{}
	for _, c := range g.Trace.Changes {
		for _, n := range c.Goes {
			s.Peers[last[n]].Until = c.At
		}
		for _, n := range c.Comes {
			last[n] = len(s.Peers)
			s.Peers = append(s.Peers, peers.Peer{Speed: 1, Link: out, Stage: peers.Anywhere, From: c.At, Until: unit.Never})
		}
	}
	return float64(len(peers.Run(s).Steps) * x.Model.Batch)
}
