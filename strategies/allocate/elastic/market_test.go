package elastic

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/allocate/ladder"
	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/plan"
)

// drawMarket is a few jobs with a few counts each, some of which run.
func drawMarket(t *rapid.T) *market {
	m := &market{holds: rapid.Float64Range(60, 3600).Draw(t, "holds")}
	for range rapid.IntRange(1, 4).Draw(t, "jobs") {
		l := &ladder.Ladder{Devices: []int32{0}, Count: []int32{0}, Micro: []float64{0}}
		devices, micro := int32(0), 0.
		for range rapid.IntRange(1, 3).Draw(t, "rungs") {
			devices += rapid.Int32Range(1, 4).Draw(t, "step")
			micro = max(1, micro+rapid.Float64Range(-.2, 2).Draw(t, "faster")*plan.FullRate)
			l.Devices, l.Count, l.Micro = append(l.Devices, devices), append(l.Count, devices), append(l.Micro, micro)
		}
		j := job{Ladder: l, left: rapid.Float64Range(1, 1e5).Draw(t, "left"), restart: rapid.Float64Range(0, 300).Draw(t, "restart"), has: rapid.IntRange(0, len(l.Count)-1).Draw(t, "has")}
		if rapid.Bool().Draw(t, "seen") {
			j.goes = rapid.Float64Range(.01, 4).Draw(t, "goes")
		}
		m.jobs = append(m.jobs, j)
	}
	return m
}

// total is what all gain with what they get, and the devices that takes.
func (m *market) total(gets []int) (gain float64, devices int32) {
	for i := range m.jobs {
		gain += m.gain(&m.jobs[i], gets[i])
		devices += m.jobs[i].Devices[gets[i]]
	}
	return gain, devices
}

// best is the most that the jobs from i on can add to gets within so many devices.
func (m *market) best(gets []int, i int, devices int32) float64 {
	if i == len(m.jobs) {
		gain, _ := m.total(gets)
		return gain
	}
	most := -1e300
	for rung, takes := range m.jobs[i].Devices {
		if takes <= devices {
			gets[i] = rung
			most = max(most, m.best(gets, i+1, devices-takes))
		}
	}
	return most
}

// TestPrice: at every price no other shares of as many devices, or fewer, gain more, as trying
// them all shows; and what is handed out beyond that is there, and adds to it.
func TestPrice(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		m, devices := drawMarket(t), rapid.Int32Range(0, 16).Draw(t, "devices")
		got := func() (gets []int) {
			for i := range m.jobs {
				gets = append(gets, m.jobs[i].gets)
			}
			return gets
		}
		m.measureDrain(devices)
		m.demand(rapid.Float64Range(1e-3, 10).Draw(t, "price"))
		gain, used := m.total(got())
		if most := m.best(make([]int, len(m.jobs)), 0, used); most > gain+1e-9*max(1, most, -gain) {
			t.Fatalf("shares of %d devices gain %g, others gain %g", used, gain, most)
		}
		m.share(devices)
		gain, used = m.total(got())
		if used > devices {
			t.Fatalf("%d of %d devices are handed out", used, devices)
		}
		for i := range m.jobs {
			gets := got()
			for gets[i]++; gets[i] < len(m.jobs[i].Count); gets[i]++ {
				if more, takes := m.total(gets); takes <= devices && more > gain+1e-9*max(1, gain, -gain) {
					t.Fatalf("job %d gains by rung %d, which is within the %d devices that %d leaves", i, gets[i], devices, used)
				}
			}
		}
	})
}
