package sites

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
)

// drawn is a network of up to five centres and a job.
func drawn(r *rand.Rand) (*Network, *Job) {
	n := &Network{}
	for i := range 1 + r.IntN(5) {
		c := Centre{Name: fmt.Sprint("centre", i)}
		for range 1 + r.IntN(2) {
			c.Pools = append(c.Pools, Pool{Kind: int32(r.IntN(3)), Nodes: r.IntN(5), Devices: 1 + r.IntN(4), Dollars: float64(1+r.IntN(40)) / 10})
		}
		n.Centres = append(n.Centres, c)
	}
	for range n.Centres {
		var ways []Way
		for range n.Centres {
			ways = append(ways, Way{pipeline.Link{Bandwidth: unit.Mbps(100 + r.IntN(5000)), Latency: unit.Duration(r.IntN(100_000))}, float64(r.IntN(10)) / 100})
		}
		n.Ways = append(n.Ways, ways)
	}
	return n, &Job{Home: r.IntN(len(n.Centres)), DataGB: float64(r.IntN(1000)), WeightsGB: float64(r.IntN(100)), Steps: float64(1 + r.IntN(1000)),
		Stages: [][]int{{4}, {2}, {1, 2, 4}, {3, 4}}[r.IntN(4)], Most: 1 + r.IntN(3), TimeAgainstDollars: r.Float64()}
}

// erratic is a curve without any order in it, but for its bound.
type erratic struct {
	seed  uint64
	asked int
}

func (e *erratic) draw(parts []Part) *rand.Rand {
	h := e.seed
	for _, p := range parts {
		h = h*1_000_003 + uint64(p.Centre*100+p.Pool*10+p.Stages)
	}
	return rand.New(rand.NewPCG(h, 1))
}

func (e *erratic) Step(parts []Part) (Step, pipeline.Why) {
	e.asked++
	r := e.draw(parts)
	if r.IntN(10) == 0 {
		return Step{}, "it does not fit"
	}
	s := Step{Takes: e.Least(parts) + unit.Duration(r.IntN(5_000_000))}
	for range len(parts) - 1 {
		s.BorderGB = append(s.BorderGB, r.Float64()/10)
	}
	return s, ""
}

func (e *erratic) Least(parts []Part) unit.Duration {
	return unit.Duration(e.draw(parts[:1]).IntN(5_000_000))
}

// brute goes through all ways to put each stage by itself into some pool, keeps those that are
// places, and adds up what each comes to, stage by stage.
func brute(n *Network, j *Job, curve Curve) (all []Place) {
	var labels [][2]int
	for c := range n.Centres {
		for k := range n.Centres[c].Pools {
			labels = append(labels, [2]int{c, k})
		}
	}
	for _, stages := range j.Stages {
		for code := range int(math.Pow(float64(len(labels)), float64(stages))) {
			var parts []Part
			for range stages {
				at := labels[code%len(labels)]
				code /= len(labels)
				if last := len(parts) - 1; last >= 0 && parts[last].Centre == at[0] && parts[last].Pool == at[1] {
					parts[last].Stages++
				} else {
					parts = append(parts, Part{at[0], at[1], 1})
				}
			}
			legal, seen := len(parts) <= j.Most, map[int]bool{}
			for _, p := range parts {
				legal = legal && !seen[p.Centre] && p.Stages <= n.Centres[p.Centre].Pools[p.Pool].Nodes
				seen[p.Centre] = true
			}
			if !legal {
				continue
			}
			step, why := curve.Step(parts)
			if why != "" {
				continue
			}
			all = append(all, sum(n, j, parts, step, stages))
		}
	}
	return all
}

func sum(n *Network, j *Job, parts []Part, step Step, stages int) Place {
	p := Place{Parts: parts}
	rate := 0.
	for i, part := range parts {
		pool := n.Centres[part.Centre].Pools[part.Pool]
		rate += float64(part.Stages) * float64(pool.Devices) * pool.Dollars
		gb := j.WeightsGB / float64(stages) * float64(part.Stages)
		if i == 0 {
			gb += j.DataGB
		}
		if part.Centre != j.Home && gb > 0 {
			way := n.Ways[j.Home][part.Centre]
			p.Time = max(p.Time, way.Latency+unit.Duration(math.Ceil(float64(int64(gb*1e9/1024))*8192/float64(way.Bandwidth))))
			p.Dollars += gb * way.DollarsPerGB
		}
		if i > 0 {
			p.Dollars += j.Steps * step.BorderGB[i-1] * (n.Ways[part.Centre][parts[i-1].Centre].DollarsPerGB + n.Ways[parts[i-1].Centre][part.Centre].DollarsPerGB)
		}
	}
	p.Time += unit.Duration(j.Steps * float64(step.Takes))
	p.Dollars += rate * p.Time.Seconds() / 3600
	return p
}

// better reports whether a is better than b in time or money and worse in neither, where a
// millionth of a millionth is nothing.
func better(a, b Place) bool {
	cheaper, dearer := a.Dollars < b.Dollars*(1-1e-12), a.Dollars > b.Dollars*(1+1e-12)
	return a.Time <= b.Time && !dearer && (a.Time < b.Time || cheaper)
}

// TestBest: what the search finds is what brute force finds, and it asks for fewer places.
func TestBest(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	asked, places := 0, 0
	for i := range 1000 {
		n, j := drawn(r)
		curve := &erratic{seed: uint64(i)}
		f, why := n.Search(j, curve)
		asked, places = asked+f.Asked, places+f.Places
		all := brute(n, j, curve)
		if len(all) == 0 {
			if why == "" {
				t.Fatal("there is no place, and nothing says why")
			}
			continue
		}
		var best []Place
		for _, p := range all {
			if !slices.ContainsFunc(all, func(o Place) bool { return better(o, p) }) &&
				!slices.ContainsFunc(best, func(o Place) bool { return !better(o, p) && !better(p, o) && o.Time == p.Time }) {
				best = append(best, p)
			}
		}
		slices.SortFunc(best, func(a, b Place) int { return int(a.Time - b.Time) })
		if !slices.EqualFunc(best, f.Best, func(a, b Place) bool { return a.Time == b.Time && math.Abs(a.Dollars/b.Dollars-1) < 1e-9 }) {
			t.Fatalf("case %d: found %v, brute force %v", i, f.Best, best)
		}
		chosen(t, n, j, f, all)
	}
	if asked*2 > places {
		t.Errorf("asked for %d of %d places", asked, places)
	}
}

// chosen holds what is chosen against all places.
func chosen(t *testing.T, n *Network, j *Job, f Found, all []Place) {
	t.Helper()
	soonest := slices.MinFunc(all, func(a, b Place) int { return int(a.Time - b.Time) })
	for _, deadline := range []unit.Duration{0, soonest.Time * 2, soonest.Time, soonest.Time - 1} {
		j.Deadline = deadline
		p, why := f.Choose(n, j)
		if possible := deadline == 0 || deadline >= soonest.Time; possible != (why == "") || possible && deadline > 0 && p.Time > deadline {
			t.Fatalf("a deadline of %v where %v is possible: %v, %q", deadline, soonest.Time, p, why)
		}
		if why != "" && (p.Time != soonest.Time || !strings.Contains(string(why), soonest.Time.String())) {
			t.Fatalf("the nearest is %v, said: %v, %q", soonest, p, why)
		}
		for _, o := range all {
			if why == "" && len(o.Parts) == 1 && len(p.Parts) > 1 && o.Dollars <= p.Dollars && (deadline == 0 || o.Time <= deadline) {
				t.Fatalf("chose %v, where one centre keeps the deadline and is not dearer: %v", p, o)
			}
		}
	}
	j.Deadline = 0
}

// TestLimits: of a budget that nothing keeps the nearest is said.
func TestLimits(t *testing.T) {
	n := &Network{Centres: []Centre{{"near", []Pool{{Nodes: 2, Devices: 1, Dollars: 1}}}, {"far", []Pool{{Nodes: 9, Devices: 1, Dollars: 1}}}},
		Ways: [][]Way{{{}, {pipeline.Link{Bandwidth: 1000}, .1}}, {{pipeline.Link{Bandwidth: 1000}, .1}, {}}}}
	j := &Job{Steps: 3600, Stages: []int{3}, Most: 2, WeightsGB: 3, Budget: 2}
	f, why := n.Search(j, level{})
	if why != "" {
		t.Fatal(why)
	}
	p, why := f.Choose(n, j)
	if want := "no place ends for 2.00 dollars: the nearest takes 1h8s and 3.11 dollars, on near:2 + far:1"; string(why) != want || len(p.Parts) != 2 {
		t.Errorf("%q, want %q", why, want)
	}
	j.Budget = 4
	if p, why := f.Choose(n, j); why != "" || n.Text(&p) != "near:2 + far:1" {
		t.Errorf("%s %q", n.Text(&p), why)
	}
	j.Stages = []int{12}
	if _, why := n.Search(j, level{}); !strings.Contains(string(why), "no 2 of 2 centres have room for [12] stages") {
		t.Errorf("%q", why)
	}
}

// level is a curve of one second everywhere.
type level struct{}

func (level) Step(parts []Part) (Step, pipeline.Why) {
	return Step{Takes: unit.Second, BorderGB: make([]float64, len(parts)-1)}, ""
}

func (level) Least([]Part) unit.Duration { return 0 }
