package spec

import (
	"strings"
	"testing"

	"github.com/musterdl/muster/model/unit"
)

// TestSites: a link leads back as it came, unless the other site says another one.
func TestSites(t *testing.T) {
	var s Sites
	placed := example(t, "sites")
	if _, err := clusterOf("c.yaml", placed, ResolveOptions{Sites: &s}); err != nil {
		t.Fatal(err)
	}
	if s.Names[1] != "west" || s.Of[1] != 1 || s.Links[0][1].Bandwidth != 5000 || s.Links[0][1].Latency != 30*unit.Millisecond || s.PerGB[0][1] != 20 ||
		s.Links[1][0].Bandwidth != 4000 || s.Links[2][1].Latency != 12*unit.Millisecond || s.Links[2][1].Bandwidth != 2000 || s.Links[2][0].Bandwidth != 1000 || s.PerGB[1][0] != 0 {
		t.Errorf("%+v", s)
	}
	// Who knows no sites refuses them.
	if _, err := Cluster("c.yaml", placed); err == nil || !strings.Contains(err.Error(), "c.yaml:3") || !strings.Contains(err.Error(), "muster plan") {
		t.Errorf("%v", err)
	}
	if _, err := clusterOf("c.yaml", example(t, "cluster"), ResolveOptions{Sites: &s}); err != nil || len(s.Names) > 0 {
		t.Errorf("%v, %+v: expected no sites where a file has none", err, s)
	}
}

// TestWrongSites: all that is wrong is said at once, each with its line.
func TestWrongSites(t *testing.T) {
	text := `models: [{name: A100, memory: 80GiB}]
sites:
  - name: east
    links: [{to: wset, bandwidth: 5Gbps}, {to: east, bandwidth: 5Gbps}, {to: west}, {to: west, bandwidth: 1Gbps}]
  - name: west
  - name: west
  - {name: south, links: [{to: east, bandwidth: 1Gbps}]}
racks:
  - {name: r0, site: easd, nodes: [{name: e, devices: 8}]}
  - {name: r1, nodes: [{name: w, devices: 8}]}
  - {name: r2, site: west, nodes: [{name: x, devices: 8}]}
  - {name: r3, site: east, nodes: [{name: y, devices: 8}]}
`
	_, err := clusterOf("c.yaml", []byte(text), ResolveOptions{Sites: &Sites{}})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{`c.yaml:4:18: sites[0].links[0].to: found "wset"`, "the site itself", "what two nodes have between them", `a link to "west" a second time`, `the site "west" a second time`,
		`sites[3].links: found no link to "west"`, `found "easd"`, "racks[1].site: found nothing", `the site "south" without a rack`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nexpected %q", err, want)
		}
	}
	if _, err := clusterOf("c.yaml", []byte("models: [{name: A100, memory: 80GiB}]\nracks: [{site: a, nodes: [{name: e, devices: 8}]}]\n"), ResolveOptions{Sites: &Sites{}}); err == nil || !strings.Contains(err.Error(), "no site where there are none") {
		t.Errorf("%v", err)
	}
}

// TestTwoSites: a preset has two sites and the link between them, and nobody else takes it.
func TestTwoSites(t *testing.T) {
	var s Sites
	c, err := Resolve("a100:2x8+1x4", ResolveOptions{Sites: &s})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Nodes) != 3 || c.Nodes[2].Count != 4 || s.Of[c.Nodes[1].Rack] != 0 || s.Of[c.Nodes[2].Rack] != 1 || s.Links[1][0] != across {
		t.Errorf("%+v, %+v", c.Nodes, s)
	}
	for _, wrong := range []string{"a100:2x8+", "a100:2x8+1", "a999:1x8+1x8", "a100:1x8+1x8+1x8"} {
		if _, err := Resolve(wrong, ResolveOptions{Sites: &s}); err == nil {
			t.Errorf("%s was taken", wrong)
		}
	}
	if _, err := Resolve("a100:2x8+1x4", ResolveOptions{}); err == nil || !strings.Contains(err.Error(), "muster plan") {
		t.Errorf("%v", err)
	}
}
