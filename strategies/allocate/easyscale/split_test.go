package easyscale

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/allocate/divide"
	"github.com/musterdl/muster/internal/draws"
)

// relative are the speeds of V100, P100 and T4 in the artefact.
var relative = []float64{3.1, 2.4, 1}

// The artefact's case: 16 logical workers, speeds 3.1, 2.4 and 1.
func TestWasteByHand(t *testing.T) {
	for _, test := range []struct {
		name   string
		counts []int32
		per    []int32
		waste  float64
		speed  float64
	}{
		{"all on one V100", []int32{1, 0, 0}, []int32{16, 0, 0}, 0, 3.1},
		{"8 on each of two", []int32{2, 0, 0}, []int32{8, 0, 0}, 0, 6.2},
		{"6 on each of three, 2 places empty", []int32{3, 0, 0}, []int32{6, 0, 0}, 1. / 9, 9.3 * 8 / 9},
		// A step takes 4 s on the T4; the V100 does its 12 in 3.87 s: 0.1 of 4.1 is lost.
		{"V100 and T4", []int32{1, 0, 1}, []int32{12, 0, 4}, .1 / 4.1, 4},
		// 4/3.1 s a step: the P100 wait with 3 each, and so do the T4 with 1.
		{"two of each", []int32{2, 2, 2}, []int32{4, 3, 1}, 1 - 12.4/13, 12.4},
		{"one T4 each", []int32{0, 0, 16}, []int32{0, 0, 1}, 0, 16},
		{"more than there are logical workers", []int32{0, 0, 32}, []int32{0, 0, 1}, .5, 16},
	} {
		got, ok := Best(16, relative, test.counts)
		if !ok || !slices.Equal(got.PerDevice, test.per) || math.Abs(got.Waste-test.waste) > 1e-9 || math.Abs(got.Speed-test.speed) > 1e-9 {
			t.Errorf("%s: got %+v, want %v, waste %.4f, speed %.4f", test.name, got, test.per, test.waste, test.speed)
		}
	}
	if _, ok := Best(16, relative, []int32{0, 0, 0}); ok {
		t.Error("a job without a device has a split")
	}
}

// The speed by the waste is the logical workers by the time of a step; and no split at
// all is faster than the best by more than rounding to a quarter of what a device of the
// fastest kind has.
func TestBestAgainstAllSplits(t *testing.T) {
	most := 0.0
	draws.Check(t, func(t *rapid.T) {
		logical := rapid.Int32Range(1, 16).Draw(t, "logical")
		counts := rapid.SliceOfN(rapid.Int32Range(0, 3), 3, 3).Draw(t, "counts")
		got, ok := Best(logical, relative, counts)
		if !ok || counts[0]+counts[1]+counts[2] > logical {
			return
		}
		step, places := 0.0, int32(0)
		for i, n := range counts {
			if n > 0 {
				step = max(step, float64(got.PerDevice[i])/relative[i])
			}
			places += n * got.PerDevice[i]
		}
		if math.Abs(got.Speed-float64(logical)/step) > 1e-9 || places < logical || got.Waste < -1e-9 || got.Waste > 1 {
			t.Errorf("%+v: a step takes %g s, %d places for %d", got, step, places, logical)
		}
		if exact := fastest(logical, counts); got.Speed > exact+1e-9 {
			t.Errorf("%+v is faster than any split, %g", got, exact)
		} else {
			most = max(most, exact/got.Speed-1)
		}
	})
	if most > .34 || most == 0 {
		t.Errorf("the rule's candidates lose up to %.3f against all splits", most)
	}
	t.Logf("the rule's candidates lose up to %.3f against all splits", most)
}

// fastest tries every time that a step could take.
func fastest(logical int32, counts []int32) (speed float64) {
	for k, n := range counts {
		for a := int32(1); n > 0 && a <= logical; a++ {
			step, places := float64(a)/relative[k], int32(0)
			used := true
			for i, n := range counts {
				per := int32(math.Floor(step*relative[i] + 1e-9))
				places, used = places+n*per, used && (n == 0 || per > 0)
			}
			if used && places >= logical {
				speed = max(speed, float64(logical)/step)
			}
		}
	}
	return speed
}

func TestPropose(t *testing.T) {
	tenant := func(counts []int32, kinds uint64) *Tenant {
		return &Tenant{Least: 1, Most: 16, Counts: counts, Kinds: kinds, Speed: func(kind int, n int32) (speed, waste float64) {
			s, _ := Best(16, relative[kind:kind+1], []int32{n})
			return s.Speed, s.Waste
		}}
	}
	for _, test := range []struct {
		name   string
		tenant *Tenant
		free   []int32
		want   []divide.Proposal
	}{
		{"doubles where it stands", tenant([]int32{2, 0, 0}, 1), []int32{8, 8, 8}, []divide.Proposal{{Job: 7, Kind: 0, Units: 2, Gain: 1.5}}},
		{"no more than is free", tenant([]int32{4, 0, 0}, 1), []int32{1, 8, 8}, nil}, // 4 on one of 5 devices are as slow as on 4
		{"never more devices than logical workers", tenant([]int32{0, 0, 16}, 4), []int32{8, 8, 8}, nil},
		// Two P100 do 4.8 steps a second for 3.1; two T4 would do 2.
		{"or moves", tenant([]int32{1, 0, 0}, 7), []int32{8, 8, 8}, []divide.Proposal{
			{Job: 7, Kind: 0, Units: 1, Gain: 2}, {Job: 7, Kind: 1, Units: 2, Gain: (4.8/3.1-1)/2 + 1}}},
		{"to as many of a faster kind", tenant([]int32{0, 0, 16}, 7), []int32{16, 0, 0}, []divide.Proposal{{Job: 7, Kind: 0, Units: 16, Gain: (3.1-1)/16 + 1}}},
		{"not where it may not be", tenant([]int32{0, 0, 16}, 4), []int32{16, 0, 0}, nil},
		{"has nothing to grow from", tenant([]int32{0, 0, 0}, 7), []int32{8, 8, 8}, nil},
	} {
		got := propose(7, test.tenant, test.free, .3, nil)
		same := slices.EqualFunc(got, test.want, func(a, b divide.Proposal) bool {
			return a.Job == b.Job && a.Kind == b.Kind && a.Units == b.Units && math.Abs(a.Gain-b.Gain) < 1e-9
		})
		if !same {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
	if k, ok := start(tenant([]int32{0, 0, 0}, 6), []int32{3, 0, 2}); !ok || k != 2 {
		t.Errorf("starts on kind %d (%v), want 2: it may not use 0, and 1 is full", k, ok)
	}
}
