package peers

import (
	"cmp"
	"math"
	"slices"

	"github.com/musterdl/muster/model/unit"
)

// Load is what a peer publishes.
type Load struct {
	Peer   int32
	Queued float64 // work that waited there, in the mean since the last time
	Speed  float64 // work per second
}

// Rebalance says which peer moves to which stage: of the stage with least work queued for its
// speed, the peer with least, to the stage with most. Nobody moves where that would leave
// the slower of the two stages no faster than the slower is now.
func Rebalance(stages [][]Load) (peer int32, from, to int, moves bool) {
	from, to = -1, -1
	load := make([]float64, len(stages))
	speed := make([]float64, len(stages))
	for s, peers := range stages {
		queued := 0.
		for _, p := range peers {
			queued, speed[s] = queued+p.Queued, speed[s]+p.Speed
		}
		if load[s] = queued / speed[s]; len(peers) == 0 {
			load[s] = math.Inf(1)
		}
		if len(peers) > 1 && (from < 0 || load[s] < load[from]) {
			from = s
		}
		if to < 0 || load[s] > load[to] {
			to = s
		}
	}
	if from < 0 || from == to {
		return 0, from, to, false
	}
	least := slices.MinFunc(stages[from], func(a, b Load) int {
		return cmp.Or(cmp.Compare(a.Queued, b.Queued), cmp.Compare(a.Peer, b.Peer))
	})
	return least.Peer, from, to, min(speed[from]-least.Speed, speed[to]+least.Speed) > min(speed[from], speed[to])
}

// Shares are the parts of a vector that the peers of a stage average, each for all: with share
// w, one of n peers sends 1+(n-2)w of the vector. They minimise the time of the slowest,
//
//	min xi with (1+(n-2) w_i) / bandwidth_i <= xi, sum w = 1, w >= 0,
//
// which has a closed form: xi is the larger of 1/least bandwidth, since each peer sends at
// least its own vector, and of (2n-2)/sum of bandwidths, where all are busy all the time.
func Shares(bandwidths []unit.Mbps) []float64 {
	n, sum := float64(len(bandwidths)), 0.
	for _, b := range bandwidths {
		sum += float64(b)
	}
	xi := max(1/float64(slices.Min(bandwidths)), (2*n-2)/sum)
	w, may := make([]float64, len(bandwidths)), 0.
	for i, b := range bandwidths {
		if w[i] = max(0, (xi*float64(b)-1)/(n-2)); n <= 2 {
			w[i] = float64(b) // it does not matter who averages how much
		}
		may += w[i]
	}
	for i := range w {
		w[i] /= may // where the slowest decides, the others have time left
	}
	return w
}

// Parts are whole numbers in the proportion of shares: each share rounded down, and what is
// left one by one to the largest quotient of share and one more than it has (Hagenbach-Bischoff).
func Parts(total int64, shares []float64) []int64 {
	sum, left := 0., total
	for _, w := range shares {
		sum += w
	}
	parts := make([]int64, len(shares))
	for i, w := range shares {
		parts[i] = int64(float64(total) * w / sum)
		left -= parts[i]
	}
	for ; left > 0; left-- {
		best := 0
		for i, w := range shares {
			if w/float64(parts[i]+1) > shares[best]/float64(parts[best]+1) {
				best = i
			}
		}
		parts[best]++
	}
	return parts
}

// average is how long the peers of a stage take to average so many KiB of gradients.
func average(kib int64, bandwidths []unit.Mbps) (slowest unit.Duration) {
	if len(bandwidths) < 2 || kib == 0 {
		return 0
	}
	for i, part := range Parts(kib, Shares(bandwidths)) {
		slowest = max(slowest, transfer(kib+int64(len(bandwidths)-2)*part, bandwidths[i]))
	}
	return slowest
}

// transfer is how long so much takes on a link. A megabit per second is a bit per microsecond.
func transfer(kib int64, b unit.Mbps) unit.Duration {
	return unit.Duration(math.Ceil(float64(kib) * 8 * 1024 / float64(b)))
}
