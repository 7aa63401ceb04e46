package liquid_test

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/engine/compose"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/strategies/allocate/fixed"
	"github.com/musterdl/muster/strategies/allocate/liquid"
	"github.com/musterdl/muster/strategies/allocate/random"
	"github.com/musterdl/muster/strategies/flow/maxmin"
	"github.com/musterdl/muster/strategies/profile/declared"
	"github.com/musterdl/muster/strategies/schedule/fifo"
)

// racked is 4 racks of 8 nodes of 4 devices behind uplinks, as the claim has them; the
// world knows no domains.
func racked() *cluster.Cluster {
	c := cluster.Uniform("racked", 32, 4, cluster.Model{Name: "gpu", Speed: 1}, 8)
	for i := range c.Nodes {
		c.Nodes[i].Uplink = 10_000
	}
	for i := range c.Racks {
		c.Racks[i].Uplink = 20_000
	}
	return c
}

// source draws parameter server jobs at 80 % load with so much traffic.
type source struct {
	rng     *rand.Rand
	left    int
	at      float64
	traffic unit.Mbps
}

func (s *source) Next() (workload.Job, workload.Truth, error) {
	if s.left--; s.left < 0 {
		return workload.Job{}, workload.Truth{}, io.EOF
	}
	gang, mean := []int32{1, 1, 1, 4, 4, 4, 8, 8, 8, 16}[s.rng.IntN(10)], 5.5*1800*math.Exp(.5)
	s.at += s.rng.ExpFloat64() * mean / (.8 * 128)
	j := workload.Job{Name: fmt.Sprint("job", s.left), Submit: unit.Time(0).Add(unit.Duration(s.at * float64(unit.Second))), Resources: workload.Resources{Gang: gang, Devices: 1, Share: 1000},
		Traits: workload.Traits{Servers: gang / 4}}
	if gang > 1 {
		j.Traffic = s.traffic
	}
	return j, workload.Truth{Duration: unit.Duration(1800 * math.Exp(s.rng.NormFloat64()) * float64(unit.Second))}, nil
}

func history(t *testing.T, seed uint64, traffic unit.Mbps, scheduler schedule.Scheduler) (jct float64, commits []byte) {
	t.Helper()
	var b bytes.Buffer
	s, err := simulated.New(simulated.Config{Cluster: racked(), Jobs: &source{rng: rand.New(rand.NewPCG(seed, 1)), left: 200, traffic: traffic}, Scheduler: scheduler, Check: seed == 1, Decisions: &b})
	for more := true; more && err == nil; {
		more, err = s.Advance()
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Result()
	if err != nil || r.Finished != 200 {
		t.Fatalf("%d of 200 jobs finished (%v)", r.Finished, err)
	}
	return r.AvgJCTSec, b.Bytes()
}

func parts(p allocate.Placer) compose.Parts {
	return compose.Parts{Estimator: declared.Estimator{}, Order: fifo.New(fifo.Default()), Sizer: fixed.Sizer{}, Placer: p, Flow: maxmin.Policy{}}
}

// batches are the parts of a batched run.
func batches() compose.Parts {
	p := parts(liquid.New(liquid.Default()))
	p.Joint = liquid.NewBatch(liquid.DefaultBatch())
	return p
}

// In the world, where runs share the links of nodes and racks max-min, jobs end no later
// than where chance puts them, one by one or in batches. How much sooner depends on the
// network: by chance 32 devices of a rack, 0.8 of them used, send 16 of 20 Gbps at 650
// Mbps each, and more than there is at 1000. Equal runs commit equal bytes.
func TestInTheWorld(t *testing.T) {
	for traffic, most := range map[unit.Mbps]float64{650: 1, 1000: .85} {
		var one, batch, chance float64
		for seed := range uint64(3) {
			placed, _ := history(t, seed+1, traffic, compose.New(parts(liquid.New(liquid.Default()))))
			batched, first := history(t, seed+1, traffic, compose.New(batches()))
			drawn, _ := history(t, seed+1, traffic, compose.New(parts(random.New(random.Config{Seed: seed}))))
			one, batch, chance = one+placed, batch+batched, chance+drawn
			if seed == 0 {
				if _, second := history(t, seed+1, traffic, compose.New(batches())); !bytes.Equal(first, second) {
					t.Error("two equal runs commit different bytes")
				}
			}
		}
		t.Logf("%d Mbps: mean JCT of random's: immediate %.3f, batch %.3f", traffic, one/chance, batch/chance)
		if one > most*chance || batch > most*chance {
			t.Errorf("%d Mbps: mean JCT of random's: immediate %.3f, batch %.3f, want at most %.2f", traffic, one/chance, batch/chance, most)
		}
	}
}
