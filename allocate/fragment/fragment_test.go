package fragment_test

import (
	"testing"

	"github.com/musterdl/muster/allocate/fragment"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/plan"
)

// TestFragment: a node has one and a half devices and four cores free. Three tasks of a
// whole device are expected, and one of a share of .6, for which both are wasted where
// its cores are not there.
func TestFragment(t *testing.T) {
	c := &cluster.Cluster{Models: []cluster.Model{{Name: "a"}}, Racks: []cluster.Rack{{}}}
	c.AddNode(cluster.Node{Name: "n", CPU: 4000}, 2)
	v := plan.NewState(c).View()
	whole := fragment.Expected{Devices: 1, Share: 1000, Count: 3}
	share := fragment.Expected{Devices: 1, Share: 600, CPU: 8000, Count: 1}
	for _, test := range []struct {
		name       string
		expected   []fragment.Expected
		popularity float64
		want       int64
	}{
		{"whole devices cannot use the half", []fragment.Expected{whole}, 1, 3 * 500},
		{"the share has no cores, and wastes all", []fragment.Expected{whole, share}, 1, 3*500 + 1500},
		{"who is rare is not expected", []fragment.Expected{whole, share}, .7, 3 * 500},
		{"a model that is not there is none", []fragment.Expected{{Devices: 1, Share: 100, Count: 2, Models: []string{"b"}}}, 1, 2 * 1500},
	} {
		var m fragment.Mix
		m.Give(v, test.expected, test.popularity)
		n := fragment.Node{CPU: 4000, Total: 1500, Free: []int32{500, 1000}}
		if got := m.Fragment(&n); got != test.want {
			t.Errorf("%s: %d, expected %d", test.name, got, test.want)
		}
		if n.TakeWhole(1); n.Total != 500 || n.Free[1] != 0 || n.Free[0] != 500 {
			t.Errorf("%s: a whole device taken leaves %+v", test.name, n)
		}
	}
}

// TestLearn: what is learned is told by the number of jobs alone, and not at every job.
func TestLearn(t *testing.T) {
	c := &cluster.Cluster{Models: []cluster.Model{{Name: "a"}}, Racks: []cluster.Rack{{}}}
	s := plan.NewState(c)
	s.Shapes = []plan.Shape{{Gang: 2, Devices: 1, Share: 1000, Models: 1}}
	var m fragment.Mix
	changes := 0
	for range 40 {
		s.Admit("job", plan.Asked{Profile: plan.None})
		if m.Learn(s.View(), 1, changes > 0) {
			changes++
		}
	}
	if changes != 17 { // 1 to 8 each, then 10, 12, 14, 16, 20, 24, 28, 32 and 40
		t.Errorf("it was learned %d times from 40 jobs, expected 17", changes)
	}
	half := fragment.Node{Total: 500, Free: []int32{500}}
	if got := m.Fragment(&half); got != 80*500 {
		t.Errorf("half a device wastes %d of 80 tasks that take a whole one, expected %d", got, 80*500)
	}
}
