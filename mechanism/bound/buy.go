package bound

import "math"

// buy is what a job pays that chooses freely: its completion time, and the price of the
// cheapest time for its work until then. It goes from cell to cell, gives back the dearest
// that it holds for what is cheaper, and stops when waiting alone costs more than the best so
// far. Between the points at which it compares costs they rise or fall on a straight line. The
// market notes what it buys. At once is the price of not waiting at all.
func (m *market) buy(j *buyer) (least, atOnce float64) {
	least = math.Inf(1)
	end, price := 0.0, m.price[j.size]
	m.bag = m.bag[:0]
	held, paid := 0.0, 0.0
	for cell := int(j.cell); cell < len(m.begins); cell++ {
		from, to := m.span(cell, j)
		if from-j.submit >= least {
			break
		}
		m.seen++
		here := lot{price: price[cell], cell: int32(cell)}
		if math.IsInf(least, 1) {
			lacks := j.work - held
			take := min(to-from, lacks)
			held, paid, from = held+take, paid+take*here.price, from+take
			m.bag.push(lot{here.price, take, here.cell})
			if take < lacks {
				continue
			}
			atOnce = from - j.submit + paid
			least, end = atOnce, from
		}
		for from < to && len(m.bag) > 0 && m.bag[0].price > here.price {
			take, gain := m.swap(&here, to-from)
			from, paid = from+take, paid-take*gain
			if cost := from - j.submit + paid; gain > 1 && cost < least {
				least, end = cost, from
			}
		}
		if here.time > 0 {
			m.bag.push(here)
		}
	}
	m.noteBought(j, end)
	return least, atOnce
}

// span is the part of a cell in which a job may run.
func (m *market) span(cell int, j *buyer) (from, to float64) {
	from, to = max(m.begins[cell], j.submit), math.Inf(1)
	if cell+1 < len(m.begins) {
		to = m.begins[cell+1]
	}
	return from, to
}

// swap gives back the dearest time for what is cheaper here, at most so much.
func (m *market) swap(here *lot, most float64) (take, gain float64) {
	take, gain = min(most, m.bag[0].time), m.bag[0].price-here.price
	here.time += take
	if m.bag[0].time -= take; m.bag[0].time <= 0 {
		m.bag.pop()
	}
	return take, gain
}

// noteBought notes the cheapest time for a job that ends then as bought.
func (m *market) noteBought(j *buyer, end float64) {
	bought, price := m.bought[j.size], m.price[j.size]
	spare := end - j.submit - j.work // of the time until then, the dearest is not used
	m.bag = m.bag[:0]
	for cell := int(j.cell); cell < len(m.begins); cell++ {
		from, to := m.span(cell, j)
		if from >= end {
			break
		}
		here := lot{price[cell], min(to, end) - from, int32(cell)}
		bought[cell] += j.many * here.time
		if spare > 0 {
			m.bag.push(here)
		}
	}
	for spare > 0 && len(m.bag) > 0 {
		back := min(spare, m.bag[0].time)
		bought[m.bag[0].cell] -= j.many * back
		spare -= back
		m.bag.pop()
	}
}

// lot is time bought in one cell.
type lot struct {
	price, time float64
	cell        int32
}

// dearestFirst is a heap of lots. It is the innermost of the bound: mechanism/heap, whose order is a function, makes that a tenth slower.
type dearestFirst []lot

func (h *dearestFirst) push(x lot) {
	s := append(*h, x)
	for i := len(s) - 1; i > 0; {
		up := (i - 1) / 2
		if s[up].price >= s[i].price {
			break
		}
		s[up], s[i], i = s[i], s[up], up
	}
	*h = s
}

func (h *dearestFirst) pop() {
	last := len(*h) - 1
	(*h)[0] = (*h)[last]
	s := (*h)[:last]
	for i := 0; 2*i+1 < last; {
		down := 2*i + 1
		if down+1 < last && s[down+1].price > s[down].price {
			down++
		}
		if s[i].price >= s[down].price {
			break
		}
		s[i], s[down], i = s[down], s[i], down
	}
	*h = s
}
