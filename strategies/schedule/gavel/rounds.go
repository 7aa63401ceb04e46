package gavel

import (
	"cmp"
	"slices"
)

// Round is what the realiser knows at the start of a round, by job and type.
type Round struct {
	X       [][]float64 // the parts of time they should have
	Got     [][]float64 // the time they had since X was new, in any unit
	Credit  float64     // added to every Got: half a round, so that the first rounds rank too
	Deficit [][]float64 // what was missing when X was last replaced
	Rate    [][]float64 // only whether it is 0 matters
	Gang    []int
	Room    []int
	Turn    []int // the types, in the order in which they are filled

	types []int // memory that is used again
	queue []entry
}

// entry is a job on a type that is filled.
type entry struct {
	job                  int
	priority, deficit, x float64
}

// Assign realises shares for one round: every job runs on one type or waits. The
// types are filled in turn; on each, who has got the smallest part of its time
// compared with its share goes first, and who has no share there may take what is
// left. It returns every job's type, -1 for none; they hold until it is asked again.
func (r *Round) Assign() []int {
	r.types = r.types[:0]
	for range r.X {
		r.types = append(r.types, -1)
	}
	types, queue := r.types, r.queue
	for _, k := range r.Turn {
		total := 0.0
		for j := range r.X {
			total += r.Got[j][k] + r.Credit
		}
		queue = queue[:0]
		for j, x := range r.X {
			if types[j] >= 0 || r.Rate[j][k] <= 0 || r.Gang[j] > r.Room[k] {
				continue
			}
			e := entry{job: j, deficit: r.Deficit[j][k]}
			if x[k] > atLeast {
				e.x, e.priority = x[k], x[k]*total/(r.Got[j][k]+r.Credit)
			}
			queue = append(queue, e)
		}
		r.queue = queue
		slices.SortFunc(queue, func(a, b entry) int {
			return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(b.deficit, a.deficit), cmp.Compare(b.x, a.x), cmp.Compare(a.job, b.job))
		})
		room := r.Room[k]
		for _, e := range queue {
			if r.Gang[e.job] <= room {
				types[e.job] = k
				room -= r.Gang[e.job]
			}
		}
	}
	return types
}

// atLeast is the smallest share that counts: below it lies the solver's tolerance.
const atLeast = 1e-6
