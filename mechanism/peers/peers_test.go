package peers

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/unit"
	"pgregory.net/rapid"
)

// always is a swarm of peers that are there all the time, by stage.
func always(stages ...[]float64) Swarm {
	s := Swarm{Stages: len(stages), Batch: 64, Window: 32, Trainers: 1, Forward: unit.Second, End: unit.Never}
	for stage, speeds := range stages {
		for _, speed := range speeds {
			s.Peers = append(s.Peers, Peer{Speed: speed, Link: 200, Stage: stage, Until: unit.Never})
		}
	}
	return s
}

// TestAlone: one peer for each of two stages does by hand what the clock says: a microbatch
// takes 1 s forward and 2.5 s backward at each, one after the other.
func TestAlone(t *testing.T) {
	s := always([]float64{1}, []float64{1})
	s.Batch, s.Window, s.Steps = 1, 1, 2
	s.Hop = unit.Second / 2
	got := Run(s)
	if want := []unit.Time{unit.Time(9 * unit.Second), unit.Time(18 * unit.Second)}; !slices.Equal(got.Steps, want) {
		t.Errorf("steps end at %v, want %v", got.Steps, want)
	}
	if !slices.Equal(got.Work, []float64{7, 7}) || got.Again+got.Missing+got.Doubled+got.Moves != 0 {
		t.Errorf("%+v", got)
	}
}

// TestShareOfWork: in the long run a peer does the part of its stage's work that its speed is
// of the stage's speed, within 2 %, also where passes take up to a tenth less or more.
func TestShareOfWork(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	for range 5 {
		s := always()
		s.Stages = 1 + r.IntN(3)
		totals := make([]float64, s.Stages)
		for stage := range s.Stages {
			for range 2 + r.IntN(5) {
				p := Peer{Speed: .25 + 3.75*r.Float64(), Stage: stage, Until: unit.Never}
				s.Peers = append(s.Peers, p)
				totals[stage] += p.Speed
			}
		}
		s.Trainers, s.Jitter, s.Seed = 1+r.IntN(3), .1, r.Uint64()
		s.Batch, s.Steps = 256, 100
		got := Run(s)
		for i, p := range s.Peers {
			share := got.Work[i] / (float64(s.Steps*s.Batch) * (1 + BackwardWeight))
			if want := p.Speed / totals[p.Stage]; math.Abs(share/want-1) > .02 {
				t.Errorf("peer %d does %.4f of stage %d, its speed is %.4f", i, share, p.Stage, want)
			}
		}
	}
}

// TestNothingLost: whenever peers go, with a word or without, and others come, each step
// averages the gradient of each microbatch at each stage exactly once.
func TestNothingLost(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		stages := rapid.IntRange(1, 4).Draw(t, "stages")
		s := always(slices.Repeat([][]float64{{1, .5, 2}}, stages)...)
		s.Batch, s.Window = rapid.IntRange(1, 24).Draw(t, "batch"), rapid.IntRange(1, 12).Draw(t, "window")
		s.Trainers, s.Seed, s.Steps = rapid.IntRange(1, 3).Draw(t, "trainers"), rapid.Uint64().Draw(t, "seed"), 4
		s.Jitter, s.Hop = .1, 10*unit.Millisecond
		s.Deadline = 20 * unit.Second
		s.WeightsKiB = rapid.Int64Range(0, 500_000).Draw(t, "weights") // up to half a minute to average
		if rapid.Bool().Draw(t, "rebalance") {
			s.Rebalance = 5 * unit.Second
		}
		for stage := range stages {
			p := &s.Peers[3*stage+rapid.IntRange(0, 2).Draw(t, "which")]
			p.Until = unit.Time(rapid.Int64Range(1, int64(2*unit.Minute)).Draw(t, "until"))
			p.Silent = rapid.Bool().Draw(t, "silent")
			if rapid.Bool().Draw(t, "another") {
				from := unit.Time(rapid.Int64Range(1, int64(2*unit.Minute)).Draw(t, "from"))
				s.Peers = append(s.Peers, Peer{Speed: 1, Link: 200, Stage: Anywhere, From: from, Until: unit.Never})
			}
		}
		got := Run(s)
		if len(got.Steps) != s.Steps || got.Missing+got.Doubled != 0 {
			t.Fatalf("%+v", got)
		}
		if again := Run(s); !slices.Equal(again.Steps, got.Steps) || !slices.Equal(again.Work, got.Work) {
			t.Fatalf("the same swarm twice: %+v and %+v", got, again)
		}
	})
}

// TestNobodyThere: a stage without peers waits for one that comes.
func TestNobodyThere(t *testing.T) {
	s := always([]float64{1}, []float64{1})
	s.Batch, s.Steps = 4, 1
	s.Peers[1].Until = unit.Time(5 * unit.Second)
	s.Peers = append(s.Peers, Peer{Speed: 1, Link: 200, Stage: Anywhere, From: unit.Time(unit.Minute), Until: unit.Never})
	got := Run(s)
	if len(got.Steps) != 1 || got.Steps[0] < unit.Time(unit.Minute) || got.Missing+got.Doubled != 0 {
		t.Errorf("%+v", got)
	}
	s.End = unit.Time(30 * unit.Second)
	if got := Run(s); len(got.Steps) != 0 {
		t.Errorf("%+v", got)
	}
}

// TestRebalance: from eight peers, two and two, the stages come to four each, and a step takes
// about half as long.
func TestRebalance(t *testing.T) {
	s := always(slices.Repeat([]float64{1}, 8), []float64{1, 1}, []float64{1, 1})
	s.Rebalance, s.Steps, s.Batch = 5*unit.Minute, 40, 256
	got := Run(s)
	first, last := got.Steps[0], got.Steps[39].Sub(got.Steps[38])
	if got.Moves != 4 || float64(last) > .52*float64(first) {
		t.Errorf("%d moves, the first step takes %v, the last %v", got.Moves, unit.Duration(first), last)
	}
}

// TestNoMove: nobody moves that would leave his stage slower than the one that he helps.
func TestNoMove(t *testing.T) {
	for _, c := range []struct {
		stages [][]Load
		moves  bool
	}{
		{[][]Load{{{0, 0, 1}}, {{1, 9, 1}}}, false},
		{[][]Load{{{0, 0, 1}, {1, 1, 1}}, {{2, 9, 1}}}, false},
		{[][]Load{{{0, 1, 1}, {1, 0, 1}, {2, 2, 1}}, {{3, 9, 1}}}, true},
		{[][]Load{{{0, 0, 1}, {1, 1, 1}}, {}}, true},
		{[][]Load{{}, {}}, false},
	} {
		peer, from, to, moves := Rebalance(c.stages)
		if moves != c.moves || moves && (from != 0 || to != 1 || len(c.stages[0]) == 3 && peer != 1) {
			t.Errorf("%v: %d from %d to %d: %v", c.stages, peer, from, to, moves)
		}
	}
}

// TestShares: no time is shorter in which the peers could average everything; bisection finds that.
// The claim of SWARM holds the shares against the linear program's solver.
func TestShares(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		links := make([]unit.Mbps, 3+r.IntN(8))
		for i := range links {
			links[i] = unit.Mbps(1 + r.IntN(1000))
		}
		others := float64(len(links) - 2)
		sum, worst := 0., 0.
		for i, w := range Shares(links) {
			if w < 0 {
				t.Fatalf("%v: share %g of %d", links, w, i)
			}
			sum, worst = sum+w, max(worst, (1+others*w)/float64(links[i]))
		}
		low, high := 1/float64(slices.Min(links)), (1+others)/float64(slices.Min(links))
		for range 60 {
			middle, all := (low+high)/2, 0.
			for _, b := range links {
				all += (middle*float64(b) - 1) / others
			}
			if all >= 1 {
				high = middle
			} else {
				low = middle
			}
		}
		if math.Abs(sum-1) > 1e-9 || math.Abs(worst/high-1) > 1e-9 {
			t.Fatalf("%v: shares add up to %g, the slowest takes %g, there is %g", links, sum, worst, high)
		}
	}
}

// TestParts: all is given out, nobody is more than one above his share rounded down, and no other
// way to give out what is left has a smaller largest quotient of shares.
func TestParts(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		shares := rapid.SliceOfN(rapid.Float64Range(.01, 1), 1, 8).Draw(t, "shares")
		total := rapid.Int64Range(0, 10_000).Draw(t, "total")
		parts, sum, all := Parts(total, shares), int64(0), 0.
		for i := range shares {
			sum, all = sum+parts[i], all+shares[i]
		}
		if sum != total {
			t.Fatalf("%v of %v give %d of %d", parts, shares, sum, total)
		}
		for i := range shares {
			if float64(parts[i]) < math.Floor(float64(total)*shares[i]/all) {
				t.Fatalf("%v of %v: %d is below its share rounded down", parts, shares, i)
			}
			for j := range shares { // who got one more was not less entitled than who did not
				if float64(parts[i]) > float64(total)*shares[i]/all && shares[i]/float64(parts[i]) < shares[j]/float64(parts[j]+1)*(1-1e-12) {
					t.Fatalf("%v of %v: %d has one that %d was to have", parts, shares, i, j)
				}
			}
		}
	})
}

// TestRouter: a new peer is not flooded, and one that is banned comes back when it is announced.
func TestRouter(t *testing.T) {
	r := NewRouter(1, 1)
	r.Announce(0, 0)
	for range 100 {
		r.Choose(0, 1)
	}
	r.Announce(0, 1)
	got := map[int32]int{}
	for range 100 {
		peer, _ := r.Choose(0, 1)
		got[peer]++
	}
	if got[0] != 50 || got[1] != 50 {
		t.Errorf("a new peer and an old one of the same speed do %v", got)
	}
	r.Ban(0, 0)
	if peer, there := r.Choose(0, 1); peer != 1 || !there {
		t.Errorf("chose %d, which is banned", peer)
	}
	r.Ban(0, 1)
	if _, there := r.Choose(0, 1); there {
		t.Error("all are banned, and one was chosen")
	}
	r.Announce(0, 0)
	if peer, there := r.Choose(0, 1); peer != 0 || !there {
		t.Error("who is announced anew is not chosen")
	}
}
