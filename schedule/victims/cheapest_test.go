package victims_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/victims"
)

// Up to ten candidates the choice is the best of all sets, whatever the placer.
func TestExact(t *testing.T) {
	var chooser victims.Cheapest
	rapid.Check(t, func(t *rapid.T) {
		dice := func(lo, hi int) int { return rapid.IntRange(lo, hi).Draw(t, "dice") }
		exact(t, &chooser, draw(dice, 11-dice(1, 10)))
	})
}

// The same on scenes that are drawn evenly and so are richer.
func TestExactEvenly(t *testing.T) {
	var chooser victims.Cheapest
	sizes := map[int]int{}
	for seed := range uint64(1500) {
		s := draw(seeded(4, seed), 10)
		sizes[exact(t, &chooser, s)]++
		if t.Failed() {
			t.Fatalf("seed 4/%d", seed)
		}
	}
	t.Logf("scenes by number of victims (-1: impossible): %v", sizes)
	for size := -1; size <= 5; size++ {
		if sizes[size] < 10 {
			t.Errorf("only %d scenes with %d victims", sizes[size], size)
		}
	}
}

// exact compares a choice with the best and returns how many victims there are, or
// -1 where it is impossible.
func exact(t interface{ Errorf(string, ...any) }, chooser victims.Chooser, s *scene) int {
	got, ok := chooser.Choose(s.input, s.try)
	if s.tries > 1024 {
		t.Errorf("%d tries", s.tries)
	}
	got = slices.Clone(got)
	_, want, possible := s.brute()
	if ok != possible || !slices.Equal(got, want) {
		t.Errorf("chose %v (%v), the best is %v (%v); candidates %+v", got, ok, want, possible, s.input.Candidates)
	}
	if !ok {
		return -1
	}
	return len(got)
}

func seeded(seed, more uint64) func(lo, hi int) int {
	random := rand.New(rand.NewPCG(seed, more))
	return func(lo, hi int) int { return lo + random.IntN(hi-lo+1) }
}

// Every chooser returns only sets that will do, finds one wherever all candidates
// together would do, and keeps to its bound of tries.
func TestContract(t *testing.T) {
	for name, chooser := range choosers() {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			dice := func(lo, hi int) int { return rapid.IntRange(lo, hi).Draw(t, "dice") }
			s := draw(dice, 26-dice(1, 25))
			got, ok := chooser.Choose(s.input, s.try)
			got, tries := slices.Clone(got), s.tries
			if len(s.input.Candidates) > 10 && tries > 64 {
				t.Fatalf("%d tries", tries)
			}
			if ok && !s.try(got) {
				t.Fatalf("%v will not do", got)
			}
			if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
				t.Fatalf("%v is not ascending", got)
			}
			var all []int
			for i := range s.input.Candidates {
				all = append(all, i)
			}
			if !ok && s.try(all) {
				t.Fatalf("found none where all %d would do", len(all))
			}
			again, okAgain := chooser.Choose(s.input, s.try)
			if ok != okAgain || !slices.Equal(got, again) {
				t.Fatalf("chose %v and then %v", got, again)
			}
		}))
	}
}

func choosers() map[string]victims.Chooser {
	return map[string]victims.Chooser{"cheapest": new(victims.Cheapest), "newest": new(victims.Newest), "lowest-rank": new(victims.LowestRank)}
}

// gap compares the heuristic with the best of all sets of a few more than ten.
func gap(t *testing.T, seed uint64, scenes, least, most int) {
	var chooser victims.Cheapest
	compared, equal, size, tries, mostTries := 0, 0, 0, 0, 0
	mean, worst := 0.0, 1.0
	for i := uint64(0); compared < scenes; i++ {
		dice := seeded(seed, i)
		s := draw(dice, dice(least, most))
		for i := range s.input.Candidates {
			s.input.Candidates[i].Price = int64(dice(1, 1000))
		}
		if len(s.input.Candidates) < least {
			continue
		}
		got, ok := chooser.Choose(s.input, s.try)
		got, n := slices.Clone(got), s.tries
		want, _, possible := s.brute()
		if ok != possible {
			t.Fatalf("seed %d/%d: found %v, possible %v", seed, i, ok, possible)
		}
		if !ok || want == 0 {
			continue
		}
		if s.price(got) == want {
			equal++
		}
		ratio := float64(s.price(got)) / float64(want)
		mean, worst = mean+ratio, max(worst, ratio)
		compared, size, tries, mostTries = compared+1, size+len(got), tries+n, max(mostTries, n)
	}
	mean /= float64(compared)
	t.Logf("seed %d, %d to %d candidates: %d scenes of %.1f victims, %d equal to the best; price over the best's: mean %.4f, worst %.3f; tries: mean %.1f, most %d",
		seed, least, most, compared, float64(size)/float64(compared), equal, mean, worst, float64(tries)/float64(compared), mostTries)
	if mean > 1.02 {
		t.Errorf("the heuristic costs %.3f times the best on average", mean)
	}
}

func TestGap(t *testing.T) { gap(t, 1, 30, 11, 12) }

func TestGapLong(t *testing.T) {
	if os.Getenv("MUSTER_LONG") == "" {
		t.Skip("set MUSTER_LONG=1 to compare the heuristic with the best of all sets on larger cases")
	}
	gap(t, 2, 1000, 11, 14)
	gap(t, 3, 100, 15, 17)
}

// The order of choice, where a person can follow it. Gangs fill nodes of 8 in order.
func TestOrder(t *testing.T) {
	for _, test := range []struct {
		name   string
		gangs  []int32
		prices []int64
		need   plan.Shape
		want   string
	}{
		{"the cheapest, though they are more", []int32{8, 4, 4}, []int64{9, 3, 3}, whole(8, 1), "[1 2]"},
		{"where prices tie, the fewest", []int32{8, 4, 4}, []int64{6, 3, 3}, whole(8, 1), "[0]"},
		{"where all is free, the fewest", []int32{4, 4, 8}, []int64{0, 0, 0}, whole(8, 1), "[2]"},
		{"where these tie too, the latest", []int32{8, 8}, []int64{5, 5}, whole(3, 1), "[1]"},
		{"a worker's devices are on one node", []int32{4, 4, 4, 4}, []int64{1, 9, 1, 8}, whole(1, 8), "[2 3]"},
		{"a gang's need not be", []int32{4, 4, 4, 4}, []int64{1, 9, 1, 8}, whole(8, 1), "[0 2]"},
		{"a gang goes whole", []int32{8, 16, 8}, []int64{3, 4, 3}, whole(16, 1), "[1]"},
		{"too large", []int32{8, 8}, []int64{0, 0}, whole(17, 1), "[] false"},
	} {
		t.Run(test.name, func(t *testing.T) {
			devices := int32(0)
			for _, g := range test.gangs {
				devices += g
			}
			s := full(int(devices/8), test.gangs...)
			for i := range s.input.Candidates {
				s.input.Candidates[i].Price = test.prices[i]
			}
			s.wants(test.need)
			got, ok := new(victims.Cheapest).Choose(s.input, s.try)
			text := fmt.Sprint(got)
			if !ok {
				text += " false"
			}
			if text != test.want {
				t.Errorf("displaces %s, want %s", text, test.want)
			}
		})
	}
}

func whole(gang, devices int32) plan.Shape {
	return plan.Shape{Gang: gang, Devices: devices, Share: 1000, Models: 1}
}

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
			s.input.Candidates[i].Price = random.Int64N(1e12)
		}
		for _, need := range needs {
			s.wants(need.shape)
			for name, chooser := range choosers() {
				b.Run(fmt.Sprintf("%s/%s/%s", mix.name, need.name, name), func(b *testing.B) {
					b.ReportAllocs()
					in, victims, tries := time.Duration(0), 0, 0
					for b.Loop() {
						s.tries = 0
						got, _ := chooser.Choose(s.input, func(chosen []int) bool {
							began := time.Now()
							defer func() { in += time.Since(began) }()
							return s.try(chosen)
						})
						victims, tries = len(got), s.tries
					}
					b.ReportMetric(float64(len(s.input.Candidates)), "candidates")
					b.ReportMetric(float64(in.Nanoseconds())/float64(b.N), "ns-in-try/op")
					b.ReportMetric(float64(victims), "victims")
					b.ReportMetric(float64(tries), "tries")
				})
			}
		}
	}
}
