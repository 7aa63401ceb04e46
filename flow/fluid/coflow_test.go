package fluid_test

import (
	"math"
	"slices"
	"testing"

	"github.com/musterdl/muster/flow/fluid"
	"github.com/musterdl/muster/mechanism/maxmin"
)

// fair shares alike and tells what it saw.
type fair struct {
	maxmin.Filler
	seen func(m *fluid.Moment, rates []float64)
	wake float64 // looks again so much later; 0 does not
}

func (f *fair) Share(m *fluid.Moment, rates []float64) float64 {
	f.Fill(m.Capacities, m.Flows, rates)
	if f.seen != nil {
		f.seen(m, rates)
	}
	if f.wake > 0 {
		return f.wake
	}
	return math.Inf(1)
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*max(1, b) }

func TestChains(t *testing.T) {
	to := func(from, to int32, mb float64) fluid.Transfer { return fluid.Transfer{From: from, To: to, MB: mb} }
	jobs := []fluid.Chain{
		{ArriveSec: 0, Coflows: [][]fluid.Transfer{{to(0, 1, 10), to(2, 1, 10)}, {to(1, 0, 5)}}},
		{ArriveSec: 1, Coflows: [][]fluid.Transfer{{to(0, 2, 4)}}},
		{ArriveSec: 100, Coflows: [][]fluid.Transfer{{to(0, 2, 20)}, {to(0, 2, 0)}, {to(0, 2, 30)}}},
		{ArriveSec: 7},
	}
	// Job 0 fills port 1 with 5 MB/s from each side: 20 MB in 2 s; job 1 has the other
	// half of port 0's sending side, 4 MB in 0.8 s. Then job 0 sends 5 MB alone.
	want := []float64{2.5, 1.8, 105, 7}
	s := fluid.Switch{Ports: 3, MBPerSec: 10}
	if got := s.Run(jobs, &fair{}); !slices.EqualFunc(got, want, near) {
		t.Errorf("ends: got %v, want %v", got, want)
	}
	if got := s.Run(jobs, &fair{wake: .037}); !slices.EqualFunc(got, want, near) {
		t.Errorf("a sharer that looks more often: got %v, want %v", got, want)
	}
}

func TestLive(t *testing.T) {
	one := []fluid.Transfer{{From: 0, To: 1, MB: 6}, {From: 0, To: 1, MB: 3}}
	var sent []float64
	s := fluid.Switch{Ports: 2, MBPerSec: 1}
	end := s.Run([]fluid.Chain{{Coflows: [][]fluid.Transfer{one, one}}}, &fair{seen: func(m *fluid.Moment, rates []float64) {
		x := m.Live[0]
		if len(m.Live) != 1 || x.First != 0 || x.End != len(m.Flows) || x.BeganSec != 9*float64(x.Coflow) || x.BeforeMB != 9*float64(x.Coflow) {
			t.Errorf("at %g: %+v", m.NowSec, m.Live)
		}
		sent = append(sent, x.SentMB)
	}})
	if !slices.Equal(sent, []float64{0, 6, 0, 6}) || end[0] != 18 {
		t.Errorf("sent %v at the events, ended at %v", sent, end)
	}
}
