package control

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/musterdl/muster/model/unit"
)

// TestSurely: of all ways in which n coins fall, those with fewer heads than the k that is told are
// no more than a twentieth, and those with as many are more.
func TestSurely(t *testing.T) {
	for n := range 17 {
		k, few, one := surely(n), 0, 0
		for way := range 1 << n {
			if heads := bits.OnesCount(uint(way)); heads < k {
				few++
			} else if heads == k {
				one++
			}
		}
		if all := 1 << n; 20*few > all || 20*(few+one) <= all {
			t.Errorf("of %d: %d", n, k)
		}
	}
	// Of many it comes near to what the normal distribution says.
	if k := surely(100_000); math.Abs(float64(k)-(50_000-1.645*math.Sqrt(25_000))) > 2 {
		t.Errorf("of 100000: %d", k)
	}
}

// TestPaceOf: whatever the noise, the true median is below the least that is told no oftener than
// said, and above the most; one slow block of many moves neither.
func TestPaceOf(t *testing.T) {
	const tries = 20_000
	draw := rand.New(rand.NewPCG(7, 7))
	for _, c := range []struct {
		name   string
		draw   func() float64
		median float64
	}{{"even", draw.Float64, .5}, {"normal", draw.NormFloat64, 0}, {"bursts", draw.ExpFloat64, math.Ln2}} {
		for _, n := range []int{5, 8, 20, 64} {
			below, above := 0, 0
			for range tries {
				blocks := make([]Block, n)
				for i := range blocks {
					blocks[i] = Block{100, unit.Duration(1e6 * (1 + .05*c.draw()))}
				}
				p, is := PaceOf(blocks), 100/(1+.05*c.median)
				if is < p.Least*(1-1e-6) {
					below++
				}
				if is > p.Most*(1+1e-6) {
					above++
				}
			}
			if most := doubt*tries + 4*math.Sqrt(doubt*tries); float64(max(below, above)) > most {
				t.Errorf("%s, %d blocks: of %d the median was %d times below, %d times above", c.name, n, tries, below, above)
			}
		}
	}
	if p := PaceOf([]Block{{1, unit.Second}, {3, unit.Second}, {2, unit.Second}, {8, unit.Second}}); p != (Pace{2.5, 0, math.Inf(1)}) {
		t.Errorf("four blocks: %+v", p)
	}
	if p := PaceOf(nil); p != (Pace{}) {
		t.Errorf("none: %+v", p)
	}
}

// TestBlocks: a block ends with the step that makes it long enough in steps and in time; after a
// rest, and where steps or time go back, counting begins anew.
func TestBlocks(t *testing.T) {
	b := Blocks{Steps: 3, Over: unit.Second}
	for i, c := range []struct {
		step int64
		at   unit.Time
		want Block
	}{{5, 10, Block{}}, {7, 2_000_010, Block{}}, {8, 2_000_010, Block{3, 2_000_000}}, {20, 2_500_010, Block{}}, {21, 3_100_010, Block{13, 1_100_000}},
		{2, 9_000_000, Block{}}, {9, 8_000_000, Block{}}, {12, 9_000_000, Block{3, 1_000_000}}} {
		if got, ok := b.Seen(c.step, c.at); got != c.want || ok != (c.want != Block{}) {
			t.Errorf("%d: %+v, %v, expected %+v", i, got, ok, c.want)
		}
	}
	b.Again()
	if got, ok := b.Seen(100, 99_000_000); ok {
		t.Errorf("after a rest: %+v", got)
	}
}
