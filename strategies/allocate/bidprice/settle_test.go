package bidprice

import (
	"testing"

	"fmt"
	"github.com/musterdl/muster/allocate/fragment"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/plan"
)

func BenchmarkSettle(b *testing.B) {
	for _, models := range []int{1, 7} {
		c := &cluster.Cluster{Racks: []cluster.Rack{{}}}
		for m := range models {
			c.Models = append(c.Models, cluster.Model{Name: fmt.Sprint(m)})
		}
		for m := range models {
			c.AddNode(cluster.Node{Name: fmt.Sprint(m), Model: int32(m), CPU: 96000}, 8)
		}
		s := plan.NewState(c)
		for i := range 64 {
			s.Shapes = append(s.Shapes, plan.Shape{Gang: 1, Devices: 1, Share: int32(10*(i%32) + 200), CPU: int32(4000 + 500*(i/32)), Models: 1<<models - 1 - 1<<(i%models)*min(1, uint64(models)-1)})
			s.Admit("j", plan.Asked{Shape: int32(i)})
		}
		b.Run(fmt.Sprint(models), func(b *testing.B) {
			var mix fragment.Mix
			mix.Learn(s.View(), 1, false)
			var p prices
			for b.Loop() {
				p.findWorths(s.View(), &mix)
			}
		})
	}
}
