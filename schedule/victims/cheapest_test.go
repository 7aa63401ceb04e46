package victims_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/victims"
)

// Up to ten candidates the choice is the best of all sets, whatever the placer.
func TestExact(t *testing.T) {
	var chooser victims.Cheapest
	draws.Check(t, func(t *rapid.T) {
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
		t.Run(name, func(t *testing.T) {
			draws.Check(t, func(t *rapid.T) {
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
			})
		})
	}
}

func choosers() map[string]victims.Chooser {
	return map[string]victims.Chooser{"cheapest": new(victims.Cheapest), "newest": new(victims.Newest), "lowest-rank": new(victims.LowestRank)}
}

// gap compares the heuristic with the best of all sets of a few more than ten.
func gap(t *testing.T, seed uint64, scenes, least, most int, bound float64) {
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
	if mean > bound {
		t.Errorf("the heuristic costs %.3f times the best on average", mean)
	}
}

func TestGap(t *testing.T) { gap(t, 1, 60, 11, 12, 1.002) }

func TestGapLong(t *testing.T) {
	if os.Getenv("MUSTER_LONG") == "" {
		t.Skip("set MUSTER_LONG=1 to compare the heuristic with the best of all sets on larger cases")
	}
	gap(t, 2, 1000, 11, 14, 1.005)
	gap(t, 3, 100, 15, 17, 1.005)
}

// On 10,000 jobs of one device each the best is known in closed form.
func TestLarge(t *testing.T) {
	s := full(1250, 1)
	random := rand.New(rand.NewPCG(1, 2))
	var prices, nodes []int64
	for i := range s.input.Candidates {
		s.input.Candidates[i].Price = random.Int64N(1e12)
		prices = append(prices, s.input.Candidates[i].Price)
		if i%8 == 0 {
			nodes = append(nodes, 0)
		}
		nodes[i/8] += prices[i] // first fit filled the nodes in order
	}
	slices.Sort(prices)
	slices.Sort(nodes)
	sum := func(of []int64) (sum int64) {
		for _, p := range of {
			sum += p
		}
		return sum
	}
	for _, test := range []struct {
		need plan.Shape
		want int64
	}{
		{whole(1, 1), prices[0]}, {whole(64, 1), sum(prices[:64])}, {whole(1, 8), nodes[0]}, {whole(8, 8), sum(nodes[:8])},
		{plan.Shape{Gang: 4, Devices: 1, Share: 500, Models: 1}, sum(prices[:2])},
	} {
		s.wants(test.need)
		got, ok := new(victims.Cheapest).Choose(s.input, s.try)
		if price := s.price(got); !ok || price != test.want {
			t.Errorf("%+v: costs %d (%v), the best %d", test.need, price, ok, test.want)
		}
	}
}

// Whatever else the caller wants, as long as more victims never make it worse, a set
// is found if all would do, within 64 tries.
func TestPicky(t *testing.T) {
	s := full(40, 1, 2, 1, 4, 8, 16, 1, 3)
	draws.Check(t, func(t *rapid.T) {
		s.wants(whole(int32(rapid.IntRange(1, 40).Draw(t, "gang")), int32(rapid.IntRange(1, 8).Draw(t, "devices"))))
		least := rapid.IntRange(0, len(s.input.Candidates)+1).Draw(t, "least")
		must := rapid.IntRange(0, len(s.input.Candidates)-1).Draw(t, "must")
		tries := 0
		picky := func(chosen []int) bool {
			tries++
			return len(chosen) >= least && slices.Contains(chosen, must) && s.try(chosen)
		}
		got, ok := new(victims.Cheapest).Choose(s.input, picky)
		if n := tries; n > 64 {
			t.Fatalf("%d tries", n)
		}
		if want := least <= len(s.input.Candidates); ok != want || ok && !picky(got) {
			t.Fatalf("found %v: %v", ok, got)
		}
	})
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

// No victim of a choice among many could stay.
func TestNoneTooMany(t *testing.T) {
	s := full(40, 1, 2, 1, 4, 8, 16, 1, 3)
	draws.Check(t, func(t *rapid.T) {
		for i := range s.input.Candidates {
			s.input.Candidates[i].Price = int64(rapid.IntRange(0, 9).Draw(t, "price"))
		}
		devices := int32(rapid.IntRange(1, 8).Draw(t, "devices"))
		s.wants(whole(8/devices*int32(41-rapid.IntRange(1, 40).Draw(t, "nodes")), devices))
		got, ok := new(victims.Cheapest).Choose(s.input, s.try)
		if !ok {
			t.Fatal("found none")
		}
		for i := range got {
			if fewer := slices.Delete(slices.Clone(got), i, i+1); s.try(fewer) {
				t.Fatalf("%v would do, and %v are displaced", fewer, got)
			}
		}
	})
}

// A caller that insists on the dearest gets no others with it.
func TestShrinks(t *testing.T) {
	s := full(40, 1)
	for i := range s.input.Candidates {
		s.input.Candidates[i].Price = int64(i)
	}
	s.wants(whole(1, 1))
	got, ok := new(victims.Cheapest).Choose(s.input, func(chosen []int) bool { return slices.Contains(chosen, 319) && s.try(chosen) })
	if !ok || !slices.Equal(got, []int{319}) {
		t.Errorf("displaces %v (%v), want [319]", got, ok)
	}
}
