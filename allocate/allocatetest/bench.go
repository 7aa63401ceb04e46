package allocatetest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/plan"
)

// Bench measures one placement on clusters of 1,000 and of 100,000 devices whose
// nodes are busy at random: for a placer whose cost follows the placement and not
// the cluster, the two agree.
func Bench(b *testing.B, newPlacer func() allocate.Placer) {
	for _, devices := range []int{1_000, 100_000} {
		s := busy(b, devices)
		for _, c := range []struct {
			name  string
			shape plan.Shape
		}{
			{"one", with(func(s *plan.Shape) { s.CPU = 4000 })},
			{"gang16", with(func(s *plan.Shape) { s.Gang, s.CPU = 16, 4000 })},
			{"share", with(func(s *plan.Shape) { s.Share, s.CPU = 300, 1000 })},
			{"cores", with(func(s *plan.Shape) { s.Devices, s.CPU = 0, 4000 })},
		} {
			b.Run(fmt.Sprintf("devices=%d/%s", devices, c.name), func(b *testing.B) {
				p := newPlacer()
				s.Shapes = append(s.Shapes, c.shape)
				job := s.Admit("job", plan.Asked{Shape: int32(len(s.Shapes) - 1)})
				var found []allocate.Candidate
				place := func(attempt int) {
					need := allocate.Need{Job: job, Attempt: int32(attempt), Workers: c.shape.Gang, Shape: &c.shape}
					if found = p.Place(s.View(), need, 1, found[:0]); len(found) == 0 {
						b.Fatal("no room")
					}
				}
				place(-1) // whoever learns or remembers does so beforehand
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					place(i)
				}
			})
		}
	}
}

// busy is a cluster of nodes of 8 devices in racks of 16, each with 0 to 8 devices
// taken, and on every fourth node another one in part.
func busy(b *testing.B, devices int) *plan.State {
	b.Helper()
	s := plan.NewState(cluster.Uniform("busy", devices/8, 8, cluster.Model{Name: "gpu", Speed: 1}, 16))
	dice := rand.New(rand.NewPCG(1, 2))
	for n := range int32(devices / 8) {
		taken := int32(dice.IntN(9))
		start := func(shape plan.Shape, device plan.DeviceID) {
			s.Shapes = append(s.Shapes, shape)
			d := s.Edit()
			job := s.Admit("busy", plan.Asked{Shape: int32(len(s.Shapes) - 1)})
			run, _ := d.Start(job, []plan.Slot{{Node: plan.NodeID(n), Device: device, Workers: shape.Gang}}, plan.DefaultTerms(), plan.Reason{})
			if run == plan.None {
				b.Fatal("the cluster cannot be filled")
			}
			d.Commit()
		}
		if taken > 0 {
			start(with(func(s *plan.Shape) { s.Gang, s.CPU = taken, 1000*int32(4+dice.IntN(9)) }), plan.None)
		}
		if taken < 8 && n%4 == 0 {
			start(with(func(s *plan.Shape) { s.Share = 500 }), plan.DeviceID(8*n+taken))
		}
	}
	return s
}
