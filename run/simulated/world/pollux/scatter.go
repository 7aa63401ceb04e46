package pollux

import (
	"cmp"
	"slices"
	"sync"
)

// point is where a step was timed: nodes, replicas, local batch.
type point [3]int64

// scatter interpolates linearly between measurements that form no grid. It is
// the piecewise linear function over the Delaunay cells of the points.
//
// No triangulation is kept. The Delaunay cell around q is the answer to a small
// linear program: among all ways to write q as a weighted mean of points, the one
// with the least spread (sum of weight times squared distance to q) uses only
// corners of that cell. Coordinates are integers, so it is solved exactly.
//
// The points nearly form a grid, so most cells are boxes or prisms, which may be
// cut into simplices in several ways: the measurements do not say which. Here the
// corner with fewest replicas, then most nodes, then the smallest batch gets the
// greatest weight possible, then the next.
type scatter struct {
	samples []sample

	mutex sync.Mutex
	known map[point]Step // answers so far
}

type sample struct {
	at   point
	step Step
}

// scatterLimit bounds the coordinates: within it no product below exceeds 63 bits.
var scatterLimit = point{64, 64, 1 << 15}

func (s *scatter) add(p point, t Step) { s.samples = append(s.samples, sample{p, t}) }

// sort puts the points in the order of preference.
func (s *scatter) sort() {
	slices.SortFunc(s.samples, func(x, y sample) int {
		return cmp.Or(cmp.Compare(x.at[1], y.at[1]), cmp.Compare(y.at[0], x.at[0]), cmp.Compare(x.at[2], y.at[2]))
	})
}

// corners is a choice of up to four points with weights that mean q: the weight
// of samples[at[i]] is num[i]/den, and den > 0.
type corners struct {
	at  [4]int
	num [4]int64
	den int64
}

// at interpolates at q; ok is false outside the convex hull of the points.
func (s *scatter) at(q point) (Step, bool) {
	for i := range q {
		if q[i] < 1 || q[i] > scatterLimit[i] {
			return Step{}, false
		}
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if step, ok := s.known[q]; ok {
		return step, true
	}
	c, ok := s.surround(q)
	if !ok {
		return Step{}, false
	}
	step := s.mean(c)
	s.known[q] = step
	return step, true
}

// surround finds the corners of the simplex around q.
func (s *scatter) surround(q point) (corners, bool) {
	columns := s.columns(q)
	basis, ok := feasible(columns)
	if !ok {
		return corners{}, false
	}
	return choose(columns, descend(columns, basis, distances(columns))), true
}

// column is a point seen from q, with a last row of ones for the weights' sum.
type column [4]int64

func (s *scatter) columns(q point) []column {
	columns := make([]column, len(s.samples))
	for i := range s.samples {
		p := &s.samples[i].at
		columns[i] = column{p[0] - q[0], p[1] - q[1], p[2] - q[2], 1}
	}
	return columns
}

// distances are the squared distances of the points to q.
func distances(columns []column) []int64 {
	cost := make([]int64, len(columns))
	for i, c := range columns {
		cost[i] = c[0]*c[0] + c[1]*c[1] + c[2]*c[2]
	}
	return cost
}

// feasible finds four affinely independent points around q, by driving the
// weight off four artificial points.
func feasible(columns []column) (basis [4]int, ok bool) {
	n := len(columns)
	all := append(slices.Clone(columns), column{1, 0, 0, 0}, column{0, 1, 0, 0}, column{0, 0, 1, 0}, column{0, 0, 0, 1})
	cost := make([]int64, n+4)
	for i := range 4 {
		basis[i], cost[n+i] = n+i, 1
	}
	basis = descend(all, basis, cost)
	inverse := invert(all, basis)
	for row, at := range basis {
		if at < n {
			continue
		}
		if inverse.adjugate[row][3] != 0 {
			return basis, false
		}
		// The artificial point has no weight left: any real one that spans may stand in.
		stand := slices.IndexFunc(columns, func(c column) bool { return inverse.row(row, c) != 0 })
		if stand < 0 {
			return basis, false
		}
		basis[row] = stand
		inverse = invert(all, basis)
	}
	return basis, true
}

// descend runs the simplex method with Bland's rule, which cannot cycle.
func descend(columns []column, basis [4]int, cost []int64) [4]int {
	for {
		inverse := invert(columns, basis)
		enter := entering(inverse, columns, basis, cost)
		if enter < 0 {
			return basis
		}
		basis[leaving(inverse, columns[enter], basis)] = enter
	}
}

// entering is the first column that would lower the cost, or -1.
func entering(v inverse, columns []column, basis [4]int, cost []int64) int {
	for j, c := range columns {
		if v.reduced(c, cost[j], basis, cost) < 0 {
			return j
		}
	}
	return -1
}

// leaving picks the row whose weight reaches zero first as the entering point
// gains weight. The weights sum to one, so there always is such a row.
func leaving(v inverse, enter column, basis [4]int) int {
	best, bestWeight, bestRate := -1, int64(0), int64(0)
	for row := range 4 {
		rate := v.row(row, enter)
		if rate <= 0 {
			continue
		}
		weight := v.adjugate[row][3]
		if d := weight*bestRate - bestWeight*rate; best < 0 || d < 0 || d == 0 && basis[row] < basis[best] {
			best, bestWeight, bestRate = row, weight, rate
		}
	}
	return best
}

// choose picks one simplex of the Delaunay cell that the optimal basis belongs to.
func choose(columns []column, basis [4]int) corners {
	v, cost := invert(columns, basis), distances(columns)
	var cell []int
	for j, c := range columns {
		if v.reduced(c, cost[j], basis, cost) == 0 {
			cell = append(cell, j)
		}
	}
	var best corners
	for a := range cell {
		for b := a + 1; b < len(cell); b++ {
			for c := b + 1; c < len(cell); c++ {
				for d := c + 1; d < len(cell); d++ {
					try, ok := weigh(columns, [4]int{cell[a], cell[b], cell[c], cell[d]})
					if ok && (best.den == 0 || try.before(best, cell)) {
						best = try
					}
				}
			}
		}
	}
	return best
}

// weigh writes q in terms of four points, if they are independent and surround it.
func weigh(columns []column, at [4]int) (corners, bool) {
	v := invert(columns, at)
	if v.det == 0 {
		return corners{}, false
	}
	w := corners{at: at, den: v.det}
	for row := range 4 {
		if w.num[row] = v.adjugate[row][3]; w.num[row] < 0 {
			return corners{}, false
		}
	}
	return w, true
}

// before prefers more weight on the first point of the cell, then on the next.
func (c corners) before(other corners, cell []int) bool {
	for _, p := range cell {
		if d := c.weight(p)*other.den - other.weight(p)*c.den; d != 0 {
			return d > 0
		}
	}
	return false
}

func (c corners) weight(p int) int64 {
	if i := slices.Index(c.at[:], p); i >= 0 {
		return c.num[i]
	}
	return 0
}

func (s *scatter) mean(c corners) Step {
	var t Step
	for i, at := range c.at {
		w := float64(c.num[i]) / float64(c.den)
		t.Seconds += w * s.samples[at].step.Seconds
		t.SyncSeconds += w * s.samples[at].step.SyncSeconds
	}
	return t
}

// inverse is the inverse of a basis matrix as adjugate and positive determinant;
// det is 0 for dependent columns.
type inverse struct {
	adjugate [4][4]int64
	det      int64
}

// row returns one coordinate of column c in the basis, times det.
func (v *inverse) row(r int, c column) int64 {
	a := &v.adjugate[r]
	return a[0]*c[0] + a[1]*c[1] + a[2]*c[2] + a[3]*c[3]
}

// reduced is what one unit of weight on column c changes the cost by, times det.
func (v *inverse) reduced(c column, costOfC int64, basis [4]int, cost []int64) int64 {
	sum := costOfC * v.det
	for r, b := range basis {
		sum -= cost[b] * v.row(r, c)
	}
	return sum
}

func invert(columns []column, basis [4]int) inverse {
	var v inverse
	for r := range 4 {
		for c := range 4 {
			v.adjugate[r][c] = cofactor(columns, basis, c, r)
		}
		v.det += v.adjugate[0][r] * columns[basis[0]][r]
	}
	if v.det < 0 {
		v.det = -v.det
		for r := range 4 {
			for c := range 4 {
				v.adjugate[r][c] = -v.adjugate[r][c]
			}
		}
	}
	return v
}

// cofactor is the signed minor of the basis matrix without a coordinate (matrix
// row) and a basis position (matrix column).
func cofactor(columns []column, basis [4]int, coordinate, position int) int64 {
	var m [3][3]int64
	i := 0
	for p := range 4 {
		if p == position {
			continue
		}
		j := 0
		for c := range 4 {
			if c != coordinate {
				m[i][j] = columns[basis[p]][c]
				j++
			}
		}
		i++
	}
	minor := m[0][0]*(m[1][1]*m[2][2]-m[1][2]*m[2][1]) -
		m[0][1]*(m[1][0]*m[2][2]-m[1][2]*m[2][0]) +
		m[0][2]*(m[1][0]*m[2][1]-m[1][1]*m[2][0])
	if (coordinate+position)%2 == 1 {
		return -minor
	}
	return minor
}
