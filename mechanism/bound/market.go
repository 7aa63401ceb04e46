package bound

import (
	"cmp"
	"math"
	"slices"

	"github.com/musterdl/muster/model/unit"
)

const (
	// leastCells and mostCells bound half the number of cells to begin with.
	leastCells, mostCells = 64, 512
	// mostRows bounds the ways in which gangs are counted.
	mostRows = 8
)

// market sells the time of all devices. Its unit of time is the microsecond.
type market struct {
	begins []float64 // of the cells of time; the last one has no end, and is free
	sizes  []unit.Milli
	rows   []row
	price  [][]float64 // by size and cell: of running for a microsecond
	bought [][]float64 // by size and cell: microseconds
	bag    dearestFirst
	// seen is how many cells jobs looked at, and most how many they may.
	seen, most int
}

// row is one way of counting what is sold. The first is the area of the devices. In the others a
// job counts floor(g/q) of floor(m/q): jobs that run at once do not take more than that
// together, since the floors of parts add up to no more than the floor of their sum. With q just
// above m/2 that says that of two such gangs one waits. (As bounds on packing: Fekete and
// Schepers, Math. Programming 91, 2001, recalled.)
type row struct {
	part  []float64 // by size: what a job takes of the whole
	price []float64 // by cell: of the whole for a microsecond
	trend []float64 // by cell: how much more than the whole was bought
}

// buyer is a job, or as many alike.
type buyer struct {
	submit, work, many float64
	size, cell         int32 // cell is the one of its submission
}

// cells says where they begin. Half of them hold equally many submissions and ends of
// jobs that start at once, the others are equally long.
func cells(jobs []Job, speed uint64) []float64 {
	var marks, begins []float64
	for _, j := range jobs {
		marks = append(marks, float64(j.Submit), float64(j.Submit)+float64(j.Duration))
	}
	slices.Sort(marks)
	half := min(max(len(jobs)/512, leastCells), mostCells)
	longest := slices.MaxFunc(jobs, func(x, y Job) int { return cmp.Compare(x.Duration, y.Duration) }).Duration
	end := float64(makespan(jobs, speed)) + float64(longest)
	for i := range half {
		begins = append(begins, marks[i*len(marks)/half], end*float64(i)/float64(half))
	}
	begins = append(begins, end)
	slices.Sort(begins)
	return slices.Compact(begins)
}

// open sets up rows over those cells, in which all is free.
func open(jobs []Job, speed uint64, begins []float64) *market {
	m := &market{begins: begins, most: min(leastVisits+visitsPerJob*len(jobs), mostVisits)}
	for _, j := range jobs {
		m.sizes = append(m.sizes, j.Devices)
	}
	slices.Sort(m.sizes)
	m.sizes = slices.Compact(m.sizes)
	m.count(1, speed)
	largest := uint64(m.sizes[len(m.sizes)-1])
	gangs := func(q uint64) {
		if whole := speed / max(1, q); q > 0 && q <= largest && whole*q != speed { // else the area says as much
			m.count(q, whole)
		}
	}
	for k := uint64(2); k <= 4; k++ {
		gangs(speed/k + 1)
	}
	for _, size := range slices.Backward(m.sizes) {
		gangs(uint64(size))
	}
	m.room()
	return m
}

// count adds a row in which a job counts as often as q is in its size, and the devices as whole.
func (m *market) count(q, whole uint64) {
	r := row{part: make([]float64, len(m.sizes)), price: make([]float64, len(m.begins)), trend: make([]float64, len(m.begins))}
	for i, size := range m.sizes {
		r.part[i] = float64(uint64(size)/q) / float64(whole)
	}
	same := func(other row) bool { return slices.Equal(other.part, r.part) }
	if len(m.rows) < mostRows && !slices.ContainsFunc(m.rows, same) {
		m.rows = append(m.rows, r)
	}
}

// room makes room for figures by size and cell.
func (m *market) room() {
	for range m.sizes {
		m.price = append(m.price, make([]float64, len(m.begins)))
		m.bought = append(m.bought, make([]float64, len(m.begins)))
	}
}

// refined is the market at the same prices, where the cells are halved in which prices change
// more than half as much as in the mean, for as long as the cells last.
func (m *market) refined() *market {
	rough, all := make([]float64, len(m.begins)-1), 0.0
	for _, r := range m.rows {
		for k := range rough {
			change := math.Abs(r.price[k+1] - r.price[k])
			if k > 0 {
				change += math.Abs(r.price[k] - r.price[k-1])
			}
			rough[k] += change * (m.begins[k+1] - m.begins[k])
			all += change * (m.begins[k+1] - m.begins[k])
		}
	}
	fine := &market{sizes: m.sizes, rows: make([]row, len(m.rows)), seen: m.seen, most: m.most}
	for k, begin := range m.begins {
		ends := []float64{begin}
		if k < len(rough) && rough[k]*float64(len(rough)) > all/2 {
			ends = append(ends, (begin+m.begins[k+1])/2)
		}
		for _, at := range ends {
			fine.begins = append(fine.begins, at)
			for i := range m.rows {
				fine.rows[i].price = append(fine.rows[i].price, m.rows[i].price[k])
			}
		}
	}
	for i := range m.rows {
		fine.rows[i].part, fine.rows[i].trend = m.rows[i].part, make([]float64, len(fine.begins))
	}
	fine.room()
	return fine
}

// buyers are the jobs.
func (m *market) buyers(jobs []Job) []buyer {
	all := make([]buyer, len(jobs))
	cell := 0
	for i, j := range jobs {
		for cell+1 < len(m.begins) && m.begins[cell+1] <= float64(j.Submit) {
			cell++
		}
		size, _ := slices.BinarySearch(m.sizes, j.Devices)
		all[i] = buyer{submit: float64(j.Submit), work: float64(j.Duration), many: 1, size: int32(size), cell: int32(cell)}
	}
	return all
}

// addTo adds so many times x to a sum.
func addTo(sum []float64, times float64, x []float64) {
	for k, is := range x[:len(sum)] {
		sum[k] += times * is
	}
}

// sell lets all jobs buy. The sum is the bound on the sum of completion times, gross what it
// was added up from; where jobs look at more cells than they may there is none.
func (m *market) sell(jobs []buyer) (sum, gross float64) {
	for s := range m.sizes {
		clear(m.bought[s])
		clear(m.price[s])
		for i := range m.rows {
			if part := m.rows[i].part[s]; part > 0 {
				addTo(m.price[s], part, m.rows[i].price)
			}
		}
	}
	for i := range jobs {
		if m.seen > m.most {
			return math.Inf(-1), 0
		}
		least, atOnce := m.buy(&jobs[i])
		sum += jobs[i].many * least
		gross += jobs[i].many * atOnce
	}
	for i := range m.rows {
		for k := range len(m.begins) - 1 {
			worth := m.rows[i].price[k] * (m.begins[k+1] - m.begins[k])
			sum, gross = sum-worth, gross+worth
		}
	}
	return sum, gross
}
