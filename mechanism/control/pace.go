package control

import (
	"math"
	"slices"

	"github.com/musterdl/muster/model/unit"
)

// Block is a stretch of a job's steps, from the end of one step to that of a later one.
type Block struct {
	Steps int64         `json:"steps"`
	Took  unit.Duration `json:"took_us"`
}

// Blocks cuts what is seen of a job's steps into blocks of at least so many steps and at least so
// much time. The zero value takes every step that it sees.
type Blocks struct {
	Steps int64
	Over  unit.Duration

	step  int64
	at    unit.Time
	begun bool
}

// Again begins anew: what comes next is not compared with what was before.
func (b *Blocks) Again() { b.begun = false }

// Seen takes in that a step ended at a time, and tells the block that this ends, if any. Who looks
// now and then sees the last of several steps, which makes no difference to a block.
func (b *Blocks) Seen(step int64, at unit.Time) (Block, bool) {
	if !b.begun || step < b.step || at < b.at {
		b.step, b.at, b.begun = step, at, true
		return Block{}, false
	}
	got := Block{step - b.step, at.Sub(b.at)}
	if got.Steps < max(b.Steps, 1) || got.Took < max(b.Over, 1) {
		return Block{}, false
	}
	b.step, b.at = step, at
	return got, true
}

// Pace is how fast a job goes, in steps per second: the median of its blocks, and the least and the
// most that this may be. Of too few blocks nothing is sure: the least is zero, the most infinite.
type Pace struct{ Is, Least, Most float64 }

// doubt is how likely the true median may be below the least that is told, and above the most: the
// usual twentieth.
const doubt = .05

// PaceOf is the pace of blocks; zero of none. The bounds are those of the sign test: whatever is
// behind the noise, half of the blocks are expected on either side of the median, so that the k-th
// smallest is above it as likely as fewer than k of n coins show heads. It is blocks that are
// compared, and not steps, since neighbouring steps are slow together.
func PaceOf(blocks []Block) Pace {
	n := len(blocks)
	if n == 0 {
		return Pace{}
	}
	paces := make([]float64, n)
	for i, b := range blocks {
		paces[i] = float64(b.Steps) / b.Took.Seconds()
	}
	slices.Sort(paces)
	p := Pace{Is: (paces[(n-1)/2] + paces[n/2]) / 2, Most: math.Inf(1)}
	if k := surely(n); k > 0 {
		p.Least, p.Most = paces[k-1], paces[n-k]
	}
	return p
}

// surely is the greatest k for which fewer than k heads of n coins are no likelier than doubt.
func surely(n int) (k int) {
	heads, sum := -float64(n)*math.Ln2, 0.0 // how likely k heads are, as a logarithm, and k or fewer
	for {
		if sum += math.Exp(heads); sum > doubt {
			return k
		}
		heads += math.Log(float64(n-k) / float64(k+1))
		k++
	}
}
