package philly_test

import (
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/allocatetest"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/strategies/allocate/philly"
)

// The suite asks for every place there is, so timers have to have run out.
func TestConforms(t *testing.T) {
	allocatetest.Conform(t, func() allocate.Placer { return philly.New(philly.Config{}) })
}

func BenchmarkPlace(b *testing.B) {
	allocatetest.Bench(b, func() allocate.Placer { return philly.New(philly.Default()) })
}

// A gang of four waits for one node, then for one rack, then for nothing.
func TestTimers(t *testing.T) {
	type part = allocatetest.Part
	shape := allocatetest.Gang(4)
	for _, test := range []struct {
		name   string
		config philly.Config
		phase  plan.Profile
		free   []part
		waits  unit.Duration // until it starts; Never does not
	}{
		{"a node is free", philly.Default(), plan.Profile{}, []part{{Devices: 3}, {Devices: 1}, {Devices: 4}, {}}, 0},
		{"a rack is free", philly.Default(), plan.Profile{}, []part{{Devices: 3}, {Devices: 1}, {}, {}}, 30 * unit.Minute},
		{"racks have parts", philly.Default(), plan.Profile{}, []part{{Devices: 3}, {}, {Devices: 1}, {}}, unit.Hour},
		{"relaxes at once", philly.Config{}, plan.Profile{}, []part{{Devices: 3}, {}, {Devices: 1}, {}}, 0},
		{"never relaxes", philly.Config{Strict: true}, plan.Profile{}, []part{{Devices: 3}, {Devices: 1}, {}, {}}, -1},
		{"communicates much", philly.Config{StrictAbove: .1}, plan.Profile{Compute: 10, Communicate: 2}, []part{{Devices: 3}, {Devices: 1}, {}, {}}, -1},
		{"communicates little", philly.Config{StrictAbove: .1}, plan.Profile{Compute: 10, Communicate: 1}, []part{{Devices: 3}, {}, {Devices: 1}, {}}, 0},
	} {
		s := allocatetest.Cluster(t, 4, 2, test.free...)
		s.Shapes, s.Profiles = append(s.Shapes, shape), append(s.Profiles, test.phase)
		job := s.Admit("job", plan.Asked{Shape: int32(len(s.Shapes) - 1), Profile: int32(len(s.Profiles) - 1)})
		p := philly.New(test.config)
		for waited := unit.Duration(0); ; {
			placed := len(p.Place(s.View(), allocate.Need{Job: job, Workers: 4, Shape: &shape}, 1, nil)) > 0
			retry := p.Retry(s.View(), job)
			if placed {
				if waited != test.waits {
					t.Errorf("%s: it starts after %v, want %v", test.name, waited, test.waits)
				}
				break
			}
			if retry == unit.Never {
				if test.waits >= 0 {
					t.Errorf("%s: it never starts", test.name)
				}
				break
			}
			waited += retry.Sub(s.Now)
			s.Now = retry
		}
	}
}

func TestConfig(t *testing.T) {
	for _, c := range []philly.Config{{RelaxAfter: -1}, {StrictAbove: -1}, {Strict: true, StrictAbove: .1}} {
		if strategy.Check(c) == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
	if err := strategy.Check(philly.Default()); err != nil {
		t.Error(err)
	}
}
