package lifetime

import "math"

// Steps of running time: four per doubling, the first up to a second, the last beyond 500 years.
const (
	perDoubling = 4
	Steps       = 34 * perDoubling
)

// StepOf is the step that so many seconds fall into.
func StepOf(seconds float64) int {
	if seconds < 1 {
		return 0
	}
	return min(Steps-1, int(math.Log2(seconds)*perDoubling))
}

// Begins is where a step begins, in seconds; the last ends where one more would.
var Begins = func() (at [Steps + 1]float64) {
	for step := 1; step <= Steps; step++ {
		at[step] = math.Exp2(float64(step) / perDoubling)
	}
	return at
}()

// unknown is what part of those who come to a step end there before anything is known: all
// doublings are as likely, from a thirtieth of a second, which is in the first step, to some months.
var unknown = func() (hazard [Steps]float64) {
	const widest, below = 23 * perDoubling, 5 * perDoubling
	hazard[0] = float64(below) / (widest + below)
	for s := 1; s < Steps; s++ {
		hazard[s] = 1 / float64(max(1, widest-s))
	}
	return hazard
}()

// shifted is what part ends in each step where the first is so many steps further up.
func shifted(hazard *[Steps]float64, by int) (is [Steps]float64) {
	left := 1.
	for step := range min(by, Steps) {
		left *= 1 - hazard[step]
	}
	for step := range is {
		switch from := step + by; {
		case from >= Steps:
			is[step] = 1
		case from >= 0:
			is[step] = hazard[from]
		}
	}
	if by > 0 {
		is[0] = 1 - left*(1-is[0])
	}
	return is
}

// Table is how likely a job of a group comes to each step and ends there, and what a completion
// costs from there on where nothing is lost.
type Table struct {
	Comes, Ends [Steps]float64
	cost        [Steps]float64 // 0 is not known yet
}

func newTable(hazard *[Steps]float64) *Table {
	t, left := &Table{}, 1.
	for s := range Steps {
		t.Comes[s], t.Ends[s] = left, left*hazard[s]
		left -= t.Ends[s]
	}
	return t
}

// Quantile is how many seconds are not exceeded, in all, by a part of those who came to a step.
func (t *Table) Quantile(from int, part float64) float64 {
	left := t.Comes[from] * (1 - part)
	for s := from; s < Steps; s++ {
		if ended := t.Ends[s]; t.Comes[s]-ended <= left {
			if ended == 0 {
				return Begins[s]
			}
			return Begins[s] + (t.Comes[s]-left)/ended*(Begins[s+1]-Begins[s])
		}
	}
	return Begins[Steps]
}

// Index is how many seconds a completion is expected to cost from a step on, looking ahead by so
// many steps that it is least.
func (t *Table) Index(from int) float64 {
	if t.cost[from] == 0 {
		t.cost[from] = t.After(from, 0)
	}
	return t.cost[from]
}

// After is the index where so many seconds are lost at first: then to look far ahead pays more.
func (t *Table) After(from int, lost float64) float64 {
	cost, came := float64(math.MaxInt32), t.Comes[from]
	ended, spent := 0., lost*came
	for s := from; s < Steps && ended < came; s++ {
		ended += t.Ends[s]
		spent += t.Ends[s] * ((Begins[s]+Begins[s+1])/2 - Begins[from])
		if all := spent + (came-ended)*(Begins[s+1]-Begins[from]); all < cost*ended {
			cost = all / ended
		}
	}
	return cost
}

// Together is After for a job that so many others are like: its end tells how long they take, and so they are
// completed besides, each in as much time.
func (t *Table) Together(from int, lost, others float64) float64 {
	cost, came := float64(math.MaxInt32), t.Comes[from]
	ended, spent, theirs := 0., lost*came, 0.
	for s := from; s < Steps && ended < came; s++ {
		middle := (Begins[s] + Begins[s+1]) / 2
		ended += t.Ends[s]
		spent += t.Ends[s] * (middle - Begins[from])
		theirs += t.Ends[s] * (middle + lost)
		if all := spent + (came-ended)*(Begins[s+1]-Begins[from]) + others*theirs; all < cost*ended*(1+others) {
			cost = all / (ended * (1 + others))
		}
	}
	return cost
}
