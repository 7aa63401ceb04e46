package equal_test

import (
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/strategies/allocate/equal"
)

func TestWant(t *testing.T) {
	elastic := plan.Shape{Gang: 4, Devices: 1, Share: 1000, Sizes: [8]int32{2, 8, 16}}
	wide, shared, rigid, cores := elastic, elastic, elastic, elastic
	wide.Devices = 2
	shared.Share = 500
	rigid.Sizes = [8]int32{}
	cores.Devices = 0
	for _, c := range []struct {
		name  string
		shape plan.Shape
		crowd allocate.Crowd
		want  int32
	}{
		{"alone", elastic, allocate.Crowd{Active: 1, Devices: 64}, 16},
		{"exactly the gang", elastic, allocate.Crowd{Active: 16, Devices: 64}, 4},
		{"between two sizes", elastic, allocate.Crowd{Active: 9, Devices: 64}, 4},
		{"less than the smallest", elastic, allocate.Crowd{Active: 64, Devices: 64}, 2},
		{"two devices per worker", wide, allocate.Crowd{Active: 4, Devices: 64}, 8},
		{"half a device per worker", shared, allocate.Crowd{Active: 8, Devices: 64}, 16},
		{"rigid", rigid, allocate.Crowd{Active: 64, Devices: 64}, 4},
		{"no devices", cores, allocate.Crowd{Active: 64, Devices: 64}, 4},
		{"nobody counted", elastic, allocate.Crowd{Devices: 64}, 16},
	} {
		s := plan.NewState(cluster.Uniform("one", 1, 1, cluster.Model{Name: "gpu"}, 1))
		s.Shapes = []plan.Shape{c.shape}
		id := s.Admit(c.name, plan.Asked{})
		if got := (equal.Sizer{}).Want(s.View(), id, c.crowd); got != c.want {
			t.Errorf("%s: wants %d workers, expected %d", c.name, got, c.want)
		}
	}
}
