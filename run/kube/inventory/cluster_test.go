package inventory

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/plan"

	"pgregory.net/rapid"
)

// TestOrderIsKept: under joins and leaves every machine keeps its node id, gone ones
// have no room, and the devices of a node are its machine's.
func TestOrderIsKept(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		var order []string
		present := map[string]bool{}
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			for _, i := range rapid.SliceOfN(rapid.IntRange(0, 9), 1, 4).Draw(t, "flip") {
				name := fmt.Sprintf("n%d", i)
				present[name] = !present[name]
			}
			var ms []Machine
			for name, here := range present {
				if here { // in any order
					i := len(name) + int(name[1]-'0')
					ms = append(ms, Machine{Name: name, Count: i, CPU: 1000, Memory: 1,
						Model: cluster.Model{Name: fmt.Sprintf("m%d", i%3), Memory: 100}, Rack: fmt.Sprintf("r%d", i%2)})
				}
			}
			before := order
			order = Order(order, ms)
			if !slices.Equal(order[:len(before)], before) || !slices.IsSorted(order[len(before):]) {
				t.Fatalf("order %v became %v", before, order)
			}
			c, err := Cluster(ms, order)
			if err != nil {
				t.Fatal(err)
			}
			plan.NewState(c)
			for id, name := range order {
				n := c.Nodes[id]
				i := slices.IndexFunc(ms, func(m Machine) bool { return m.Name == name })
				if i < 0 {
					if n.Name != name || n.Count != 0 || n.CPU != 0 || n.Memory != 0 {
						t.Fatalf("%s is gone: %+v", name, n)
					}
					continue
				}
				m := ms[i]
				if n.Name != name || int(n.Count) != m.Count || c.Models[n.Model].Name != m.Model.Name || c.Racks[n.Rack].Name != m.Rack {
					t.Fatalf("node %d: %+v is not %+v", id, n, m)
				}
				for _, d := range c.Devices[n.First : n.First+n.Count] {
					if int(d.Node) != id {
						t.Fatalf("device of node %d is on %d", id, d.Node)
					}
				}
			}
			slices.Reverse(ms)
			if again, _ := Cluster(ms, before); fmt.Sprint(again) != fmt.Sprint(c) {
				t.Fatal("another order of machines, or new ones left to append, gave another cluster")
			}
		}
	})
}

func TestClusterRefuses(t *testing.T) {
	many := func(n int) (ms []Machine) {
		for i := range n {
			ms = append(ms, Machine{Name: fmt.Sprintf("n%02d", i), Model: cluster.Model{Name: fmt.Sprintf("m%02d", i)}})
		}
		return ms
	}
	if _, err := Cluster(many(64), nil); err != nil {
		t.Error(err)
	}
	tables := []struct {
		machines []Machine
		order    []string
		want     string
	}{
		{many(65), nil, "65 device models (m00, m01"},
		{append(many(1), many(1)...), nil, `two machines are named "n00"`},
		{many(1), []string{"n00", "n00"}, `names "n00" twice`},
	}
	for _, c := range tables {
		if _, err := Cluster(c.machines, c.order); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

func TestDeviceMemoryIsTheMachines(t *testing.T) {
	m := cluster.Model{Name: "T4", Memory: 15360}
	a := Machine{Name: "a", Model: m, Count: 2}
	b := Machine{Name: "b", Model: m, Count: 2, Devices: []Device{{Memory: 15000}, {}}}
	b.Model.Memory = 15100
	c, err := Cluster([]Machine{a, b}, []string{"b"})
	must(t, err)
	want := []cluster.Device{{Node: 0, Memory: 15000}, {Node: 0, Memory: 15100}, {Node: 1, Memory: 15360}, {Node: 1, Memory: 15360}}
	if !slices.Equal(c.Devices, want) {
		t.Errorf("got %v", c.Devices)
	}
}
