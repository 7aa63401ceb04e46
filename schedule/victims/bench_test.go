package victims_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/schedule/victims"
)

var needs = []struct {
	name  string
	shape plan.Shape
}{
	{"one", whole(1, 1)},
	{"node", whole(1, 8)},
	{"gang64", whole(64, 1)},
	{"gang8x8", whole(8, 8)},
	{"gang512", whole(512, 1)},
	{"share", plan.Shape{Gang: 3, Devices: 1, Share: 300, Models: 1}},
	{"free", whole(8, 8)}, // of charge
	{"impossible", whole(20000, 1)},
}

// BenchmarkChoose chooses among all jobs of 10,000 devices: 10,000 of one device, or
// gangs of up to 64.
func BenchmarkChoose(b *testing.B) {
	for _, mix := range []struct {
		name  string
		gangs []int32
	}{{"singles", []int32{1}}, {"gangs", []int32{1, 1, 1, 1, 1, 1, 2, 4, 4, 8, 16, 4, 32, 1, 1, 1, 1, 64}}} {
		s := full(1250, mix.gangs...)
		random := rand.New(rand.NewPCG(1, 2))
		for i := range s.input.Candidates {
			c := &s.input.Candidates[i]
			c.Price, c.Key = random.Int64N(1e12), schedule.Key{random.Int64N(100)}
		}
		for _, need := range needs {
			s.wants(need.shape)
			if need.name == "free" {
				for i := range s.input.Candidates {
					s.input.Candidates[i].Price = 0
				}
			}
			for name, chooser := range choosers() {
				b.Run(fmt.Sprintf("%s/%s/%s", mix.name, need.name, name), func(b *testing.B) {
					b.ReportAllocs()
					in, price, tries := time.Duration(0), int64(0), 0
					for b.Loop() {
						s.tries = 0
						got, _ := chooser.Choose(s.input, func(chosen []int) bool {
							began := time.Now()
							defer func() { in += time.Since(began) }()
							return s.try(chosen)
						})
						price, tries = s.price(got), s.tries
					}
					b.ReportMetric(float64(len(s.input.Candidates)), "candidates")
					b.ReportMetric(float64(in.Nanoseconds())/float64(b.N), "ns-in-try/op")
					b.ReportMetric(float64(price)/1e12, "price")
					b.ReportMetric(float64(tries), "tries")
				})
			}
		}
	}
}

// BenchmarkPrice prices 10,000 runs.
func BenchmarkPrice(b *testing.B) {
	s := full(1250, 1)
	for i := range s.state.Jobs {
		s.state.Jobs[i].Checkpoint = plan.Checkpointing{Every: unit.Minute, Load: unit.Second}
	}
	s.state.Now = s.state.Now.Add(100 * unit.Second)
	s.wants(whole(1, 1))
	for b.Loop() {
		for i := range s.input.Candidates {
			_, _, s.input.Candidates[i].Price = victims.Price(s.input.View, s.input.Candidates[i].Run)
		}
	}
}
