package mps_test

import (
	"math"
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/allocatetest"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/strategies/allocate/mps"
)

// The suite fills devices to the last MiB, so the server's own memory is left out.
func newPlacer() allocate.Placer {
	c := mps.Default()
	c.ReserveMiB, c.MaxClients = 0, 1000
	return mps.New(c)
}

func TestConforms(t *testing.T) { allocatetest.Conform(t, newPlacer) }

func BenchmarkPlace(b *testing.B) { allocatetest.Bench(b, newPlacer) }

// A share goes beside another rather than to an empty device, under a ceiling of twice
// itself that is enforced by MPS.
func TestTerms(t *testing.T) {
	type part = allocatetest.Part
	s := allocatetest.Cluster(t, 8, 1, part{Devices: 1}, part{Shares: []int32{500}})
	p := mps.New(mps.Default())
	if got := allocatetest.Offer(t, s, p, allocatetest.Share(300, 0), 1); got != "1/7:1" {
		t.Errorf("placed at %s", got)
	}
	shape := allocatetest.Share(300, 0)
	c := p.Place(s.View(), allocate.Need{Job: 0, Workers: 1, Shape: &shape}, 1, nil)[0]
	if c.Share == nil || *c.Share != (plan.ShareTerms{Guest: plan.None, Fence: plan.MPS, Ceiling: 600}) {
		t.Errorf("terms are %+v", c.Share)
	}
	if p.Ceiling(700) != 1000 {
		t.Error("a ceiling is above the device")
	}
}

// The server's memory and its number of clients bound who may share.
func TestLegal(t *testing.T) {
	s := plan.NewState(cluster.Uniform("one", 1, 2, cluster.Model{Name: "gpu", Memory: 16 << 10, Speed: 1}, 1))
	place := func(share, memory int32, c mps.Config) int {
		shape := plan.Shape{Gang: 8, Devices: 1, Share: share, Memory: memory, Models: 1}
		for ; shape.Gang > 0; shape.Gang-- {
			if len(mps.New(c).Place(s.View(), allocate.Need{Workers: shape.Gang, Shape: &shape}, 1, nil)) > 0 {
				break
			}
		}
		return int(shape.Gang)
	}
	c := mps.Default()
	if got := place(500, 8<<10, c); got != 2 {
		t.Errorf("%d workers of 8 GiB, want 2: the server keeps some memory", got)
	}
	if got := place(500, 7<<10, c); got != 4 {
		t.Errorf("%d workers of 7 GiB, want 4", got)
	}
	c.MaxClients = 3
	if got := place(100, 0, c); got != 6 {
		t.Errorf("%d workers, want 3 clients each", got)
	}
}

func TestConfig(t *testing.T) {
	for _, change := range []func(*mps.Config){func(c *mps.Config) { c.Headroom = .5 }, func(c *mps.Config) { c.Headroom = math.NaN() },
		func(c *mps.Config) { c.MaxClients = 0 }, func(c *mps.Config) { c.ReserveMiB = -1 }} {
		c := mps.Default()
		if change(&c); strategy.Check(mps.Default()) != nil || strategy.Check(c) == nil {
			t.Errorf("validation of %+v", c)
		}
	}
}
