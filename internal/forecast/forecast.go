// Package forecast says when a waiting job will start and end, as a range with a
// known chance of being right, and keeps score of what it said.
//
// A forecast has four layers, each of use alone:
//
//   - Durations and Arrivals: what is not known of the future, drawn from what was
//     seen of the past. How long a running job still runs is drawn from jobs like it
//     that ran at least as long; who comes next is drawn in blocks of the same hours
//     of the last days, so that bursts stay bursts.
//   - Sample: the engine is run forward through a number of such futures (whoever
//     can do that passes Futures), and the quantiles of what happens are the raw
//     range. A forward run without later arrivals is wrong by 9 to 87 % (PCS,
//     OSDI'24), most of it because of jobs that came later.
//   - Conformal: raw ranges are too narrow in practice, since futures share the
//     mistakes of what they are drawn from. They are widened, or narrowed, by how far
//     off past promises of the same queue were: conformalised quantile regression
//     (Romano et al., NeurIPS 2019), one side at a time, over a sliding window, with
//     the missing rate steered by feedback (Gibbs and Candes, NeurIPS 2021), since
//     queues change and the promises of a day are not exchangeable with the next's.
//   - Promise and Score: a promise is a record that is never changed; what became of
//     the job is another. Scores are folded from both.
//
// Time and chance are parameters: equal histories and seeds give equal forecasts.
package forecast

import (
	"encoding/json"
	"math"

	"github.com/musterdl/muster/model/unit"
)

// The levels of a range: eight in ten of what happens should fall inside it.
const (
	LowLevel    = 0.1
	MedianLevel = 0.5
	HighLevel   = 0.9
)

// Range is an instant that is not known: nine in ten it is not before Low, even
// odds at Median, nine in ten not after High. Never is later than was looked.
type Range struct {
	Low, Median, High unit.Time
}

// Unknown is the range of which nothing is known.
func Unknown() Range { return Range{Median: unit.Never, High: unit.Never} }

// Holds reports whether an instant falls inside.
func (r Range) Holds(at unit.Time) bool { return r.Low <= at && at <= r.High }

type rangeJSON struct {
	Low    *unit.Time `json:"low_us,omitempty"`
	Median *unit.Time `json:"median_us,omitempty"`
	High   *unit.Time `json:"high_us,omitempty"`
}

// MarshalJSON leaves out what is later than was looked: no number says never.
func (r Range) MarshalJSON() ([]byte, error) {
	some := func(t unit.Time) *unit.Time {
		if t == unit.Never {
			return nil
		}
		return &t
	}
	return json.Marshal(rangeJSON{some(r.Low), some(r.Median), some(r.High)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (r *Range) UnmarshalJSON(data []byte) error {
	var j rangeJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	or := func(t *unit.Time) unit.Time {
		if t == nil {
			return unit.Never
		}
		return *t
	}
	*r = Range{or(j.Low), or(j.Median), or(j.High)}
	return nil
}

// grain is the span below which being off counts as little: a wait of a second
// predicted as ten is no mistake anybody minds.
const grain = unit.Minute

// most is the longest span on the scale; Never is put there, so that sums stay
// finite.
const most = 10 * 365 * unit.Day

// scale puts a span on the scale on which ranges are corrected: a logarithm, since
// waits spread over orders of magnitude and being off by a factor is what matters.
func scale(d unit.Duration) float64 {
	return math.Log1p(float64(min(max(d, 0), most)) / float64(grain))
}

// unscale is the inverse of scale; what is at the end of the scale is Forever.
func unscale(z float64) unit.Duration {
	if z >= scale(most)-1e-9 {
		return unit.Forever
	}
	return unit.Duration(math.Round(math.Expm1(max(z, 0)) * float64(grain)))
}

// until is the span from one instant to another, Forever to Never.
func until(from, to unit.Time) unit.Duration {
	if to == unit.Never {
		return unit.Forever
	}
	return to.Sub(from)
}
