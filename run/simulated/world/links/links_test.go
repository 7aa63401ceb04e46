package links_test

import (
	"math"
	"testing"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/run/simulated/world/links"
)

// TestLinksFallShort: by the seed, each link on its own, never above what is written on it;
// one that has no limit stays so.
func TestLinksFallShort(t *testing.T) {
	c := cluster.Uniform("c", 3, 1, cluster.Model{Name: "gpu", Speed: 1}, 3)
	c.Nodes[0].Uplink, c.Nodes[1].Uplink = 1000, 1000
	a, b, sure := links.New(c, .1, 7), links.New(c, .1, 7), links.New(c, 0, 7)
	one, two := a.Capacity(c.NodeLink(0)), a.Capacity(c.NodeLink(1))
	if one >= 1000 || two >= 1000 || one == two || one < 600 || b.Capacity(c.NodeLink(0)) != one || sure.Capacity(c.NodeLink(0)) != 1000 ||
		!math.IsInf(a.Capacity(c.NodeLink(2)), 1) {
		t.Errorf("they carry %v, again %v, and %v without", one, b.Capacity(c.NodeLink(0)), sure.Capacity(c.NodeLink(0)))
	}
}
