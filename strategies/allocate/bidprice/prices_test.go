package bidprice

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/allocate/fragment"
	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// settled are the prices for what is expected on nodes of 8 devices and so many cores, one by model.
func settled(expected []fragment.Expected, cores ...unit.Milli) (plan.View, *prices) {
	c := &cluster.Cluster{Racks: []cluster.Rack{{}}}
	for m, each := range cores {
		c.AddModel(cluster.Model{Name: fmt.Sprint(m)})
		c.AddNode(cluster.Node{Name: fmt.Sprint(m), Model: int32(m), CPU: each * 1000}, 8)
	}
	v := plan.NewState(c).View()
	var mix fragment.Mix
	mix.Give(v, expected, 1)
	p := &prices{}
	p.findWorths(v, &mix)
	return v, p
}

// Where most take .8 of a device and few take the rest, who takes .8 takes the whole device, and
// the rest is worth next to nothing, for itself and to those who fit into it.
func TestWorths(t *testing.T) {
	_, p := settled([]fragment.Expected{{Devices: 1, Share: 1000, Count: 200}, {Devices: 1, Share: 800, Count: 600}, {Devices: 1, Share: 200, Count: 20}}, 96)
	whole, most, rest := p.items[2].worth, p.items[1].worth, p.items[0].worth
	if p.items[0].size != 20 || most < .95*whole || rest > .1*whole {
		t.Errorf("a device is worth %.3f, .8 of it %.3f and .2 of it %.3f", whole, most, rest)
	}
	if values := &p.of[0].at[0].values; values[20] > .1 || values[80] < .9*values[100] {
		t.Errorf("a free device is worth %.3f, .8 of one %.3f and .2 of one %.3f", values[100], values[80], values[20])
	}
}

// A core is dear where the devices are many, and free where cores are left over anyway.
func TestCorePrices(t *testing.T) {
	v, p := settled([]fragment.Expected{{Devices: 1, Share: 1000, CPU: 4000, Count: 50}, {Devices: 1, Share: 1000, CPU: 12000, Count: 50}}, 32, 400)
	for model, dear := range []bool{true, false} {
		n := fragment.Node{Model: int32(model), CPU: int64(v.Node(plan.NodeID(model)).FreeCPU), Free: []int32{1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000}}
		before := p.of[model].worth(&n)
		if n.CPU -= 8000; (before-p.of[model].worth(&n) > .01) != dear {
			t.Errorf("eight cores of node %d are worth %.3f", model, before-p.of[model].worth(&n))
		}
	}
}

// Whatever comes, more room is worth more, and all worths are numbers.
func TestValues(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		var expected []fragment.Expected
		for range rapid.IntRange(0, 40).Draw(t, "kinds") {
			e := fragment.Expected{Devices: rapid.Int32Range(1, 9).Draw(t, "devices"), Share: 1000, CPU: unit.Milli(rapid.IntRange(0, 500_000).Draw(t, "cpu")), Count: rapid.Int64Range(1, 1_000_000).Draw(t, "count")}
			if e.Devices == 1 {
				e.Share = unit.Milli(rapid.IntRange(1, 1000).Draw(t, "share"))
			}
			if rapid.Bool().Draw(t, "confined") {
				e.Models = []string{"1"}
			}
			expected = append(expected, e)
		}
		_, p := settled(expected, unit.Milli(rapid.IntRange(0, 200).Draw(t, "cores")), 0, 1000)
		for _, table := range p.tables {
			for price := range table.at {
				last := 0.0
				for level, value := range table.at[price].values {
					if math.IsNaN(value) || math.IsInf(value, 0) || value < last-1e-9 {
						t.Fatalf("%d levels are worth %v and one less %v", level, value, last)
					}
					last = value
				}
			}
		}
	})
}

func BenchmarkWorths(b *testing.B) {
	var expected []fragment.Expected
	for i := range 64 {
		expected = append(expected, fragment.Expected{Devices: 1, Share: unit.Milli(10*(i%32) + 200), CPU: unit.Milli(4000 + 500*(i/32)), Count: int64(i + 1)})
	}
	v, p := settled(expected, 64, 96, 400)
	var mix fragment.Mix
	mix.Give(v, expected, 1)
	for b.Loop() {
		p.findWorths(v, &mix)
	}
}
