package gavel

import (
	"cmp"
	"math"
	"slices"

	"github.com/musterdl/muster/mechanism/solve"
)

// A program of many jobs and few device types is solved by sifting. At given prices of
// devices a job by itself has its value the cheapest way on one type or on two, and nearly
// all jobs have one that is plainly the cheapest: they are held to it, and the program
// is about the others single. Its prices say whether anybody held would do otherwise by
// now. Who would joins the program, until nobody would: then what was found is the best
// there is for all, for prices under which everybody does the best are the proof.

// mostWhole is how many kinds of jobs are a program at once.
const mostWhole = 100

// way is how a job has its value: on one type, or for all of its time on two of which one
// gives more than the value and the other less.
type way struct{ on, and int }

const single = -1

// parts are the parts of a job's time on a way's types for a value.
func (w way) parts(a []float64, value float64) (on, and float64) {
	if w.and == single {
		return value / a[w.on], 0
	}
	on = (value - a[w.and]) / (a[w.on] - a[w.and])
	return on, 1 - on
}

// can reports whether a way gives a value.
func (w way) can(a []float64, value float64) bool {
	on, and := w.parts(a, value)
	return on >= 0 && and >= 0 && on+and <= 1
}

// cost is what a way costs at prices of a job's time on the types.
func (w way) costs(a, price []float64, value float64) float64 {
	on, and := w.parts(a, value)
	if w.and == single {
		return on * price[w.on]
	}
	return float64(on*price[w.on]) + float64(and*price[w.and])
}

// choice is a way and what it costs.
type choice struct {
	way
	cost float64
}

// cheapest is the cheapest way to have a value at prices of a job's time on the types, and
// the second.
func cheapest(a, price []float64, value float64) (best, next choice) {
	best.cost, next.cost = math.Inf(1), math.Inf(1)
	try := func(w way) {
		switch c := (choice{w, w.costs(a, price, value)}); {
		case c.cost >= next.cost || !w.can(a, value):
		case c.cost < best.cost:
			best, next = c, best
		default:
			next = c
		}
	}
	for k := range a {
		if a[k] <= 0 {
			continue
		}
		try(way{k, single})
		for l := range a {
			if a[k] > value && a[l] < value {
				try(way{k, l})
			}
		}
	}
	return best, next
}

// sieve is who is in the program, and which way the others are held to.
type sieve struct {
	whole int // up to so many kinds are a program at once
	alike int // so many of those who choose between the same two ways are in it at first
	begun bool
	in    []bool
	way   []way
}

// all takes everybody in, and reports whether that changes anything.
func (s *sieve) all() bool {
	before := slices.Contains(s.in, false)
	for j := range s.in {
		s.in[j] = true
	}
	return before
}

// target is what a job is to have: its floor, and so much more for each unit of the level.
type target struct{ floor, each float64 }

func (t target) at(level float64) float64 { return float64(t.floor*(1-slack)) + float64(t.each*level) }

// duals are what a program says of devices, and by kind of job of values.
type duals struct{ device, value []float64 }

// level raises the level as far as it goes. Of many kinds the twin may show that nothing but what
// the first can have at most is in the way: then no program is needed.
func (f *filling) level(targets []target) (level float64, at duals, err error) {
	if len(f.a) <= f.sieve.whole {
		return f.solve(targets, true)
	}
	level = math.Inf(1)
	for j, t := range targets {
		if t.each > 0 {
			level = min(level, (f.cap[j]-t.at(0))/t.each)
		}
	}
	all := Problem{Room: f.p.Room, Rate: f.p.Rate, Gang: make([]float64, len(f.a))}
	a := make([][]float64, len(f.a))
	for j, t := range targets {
		all.Gang[j], a[j] = f.p.Gang[j]*f.count[j], f.able(j)
		for k := range a[j] {
			if t != (target{}) {
				a[j][k] /= t.at(level)
			}
		}
	}
	choices, order, _ := f.p.turns(a)
	if x, _, ok := all.bring(a, choices, order, 1); ok {
		f.x = x
		return level, duals{device: make([]float64, len(f.p.Room)), value: make([]float64, len(f.a))}, nil
	}
	return f.solve(targets, true)
}

// solve raises the level as far as it goes with everybody at the target, or makes the
// targets' cost least, where a job's time costs its taste.
func (f *filling) solve(targets []target, raise bool) (level float64, at duals, err error) {
	if !f.sieve.begun {
		n := len(f.a)
		f.sieve.begun, f.sieve.in, f.sieve.way = true, make([]bool, n), make([]way, n)
		if n <= f.sieve.whole {
			f.sieve.all()
		} else if err := f.hold(targets, raise); err != nil {
			return 0, at, err
		}
	}
	for holds := 0; ; {
		level, at, err = f.sifted(targets, raise)
		if err != nil && f.sieve.all() {
			continue
		}
		if err != nil {
			return 0, at, err
		}
		otherwise := f.otherwise(targets, raise, level, &at)
		if len(otherwise) == 0 {
			return level, at, nil
		}
		if holds++; len(otherwise) > f.sieve.whole && raise && holds == 1 {
			if err := f.hold(targets, raise); err != nil {
				return 0, at, err
			}
			continue
		}
		for _, j := range otherwise {
			f.sieve.in[j] = true
		}
	}
}

// mostAlike is how many of those who choose between the same two ways are in the program at first.
const mostAlike = 40

// hold holds everybody to what is cheapest at prices near the best, but for those whose choice
// is closest, of any two ways.
func (f *filling) hold(targets []target, raise bool) error {
	level, at, err := f.near(targets)
	if err != nil {
		return err
	}
	type close struct {
		between [2]way
		gap     float64
		job     int
	}
	choices := make([]close, len(targets))
	for j, t := range targets {
		best, next := cheapest(f.able(j), f.timePrices(j, raise, at), t.at(level))
		f.sieve.way[j], f.sieve.in[j] = best.way, math.IsInf(best.cost, 1)
		choices[j] = close{[2]way{best.way, next.way}, (next.cost - best.cost) / best.cost, j}
	}
	slices.SortFunc(choices, func(a, b close) int {
		return cmp.Or(compare(a.between[0], b.between[0]), compare(a.between[1], b.between[1]), cmp.Compare(a.gap, b.gap), cmp.Compare(a.job, b.job))
	})
	alike := 0
	for i, c := range choices {
		if alike++; i == 0 || choices[i-1].between != c.between {
			alike = 0
		}
		if alike < f.sieve.alike {
			f.sieve.in[c.job] = true
		}
	}
	return nil
}

func compare(a, b way) int { return cmp.Or(cmp.Compare(a.on, b.on), cmp.Compare(a.and, b.and)) }

// near looks for the prices at which the level that all together can pay for is least: that is
// the level they can have. Where more of a type is used than there is at some prices, better
// ones are on its side of a plane: we go on from the middle of what is left between the planes
// until that is small.
func (f *filling) near(targets []target) (level float64, at *duals, err error) {
	const small, most = 1e-4, 60
	least := math.Inf(1)
	level, at = math.Inf(1), &duals{device: make([]float64, len(f.p.Room))}
	var planes [][]float64
	for range most {
		lp := &solve.Problem{Maximise: true}
		radius, budget := lp.Var(0, 1, 1), []solve.Term(nil)
		for k := range f.p.Room { // a part of the budget for all of a type
			v := lp.Var(0, 1, 0)
			budget = append(budget, solve.Term{Var: v, Coef: 1})
			if f.p.Room[k] > 0 {
				lp.Row(0, solve.Inf, solve.Term{Var: v, Coef: 1}, solve.Term{Var: radius, Coef: -1})
			}
		}
		lp.Row(1, 1, budget...)
		for _, plane := range planes {
			terms := []solve.Term{{Var: radius, Coef: -1}}
			for k, x := range plane {
				terms = append(terms, solve.Term{Var: budget[k].Var, Coef: x})
			}
			lp.Row(0, solve.Inf, terms...)
		}
		s, err := f.solver.Solve(lp, solve.Budget{})
		if err != nil || s.Status != solve.Optimal || s.X[radius] < small {
			return level, at, err
		}
		price := make([]float64, len(f.p.Room))
		for k, w := range f.p.Room {
			if w > 0 {
				price[k] = s.X[budget[k].Var] / w
			}
		}
		reached, used := f.afford(targets, price)
		plane, norm := make([]float64, len(used)), 0.0
		for k, w := range f.p.Room {
			if w > 0 {
				plane[k] = used[k]/w - 1
			}
			norm += float64(plane[k] * plane[k])
		}
		if full := slices.Max(plane); reached < level*(1-1e-12) || reached <= level && full < least {
			level, least, at.device = reached, full, price // of prices that do equally well those that suit what there is
		}
		for k := range plane {
			plane[k] /= math.Sqrt(max(norm, 1e-30))
		}
		planes = append(planes, plane)
	}
	return level, at, nil
}

// afford is the highest level that all together can pay for with 1 at prices of devices, and
// what they use of the types then: Newton's steps, which go down from above as what a
// level costs is convex.
func (f *filling) afford(targets []target, price []float64) (level float64, used []float64) {
	level = math.Inf(1)
	for j, t := range targets {
		if t.each > 0 {
			level = min(level, (f.cap[j]-t.at(0))/t.each)
		}
	}
	time := make([]float64, len(price))
	for range 50 {
		cost, slope := 0.0, 0.0
		used = make([]float64, len(price))
		for j, t := range targets {
			weight, value := f.p.Gang[j]*f.count[j], t.at(level)
			if value <= 0 {
				continue
			}
			for k := range time {
				time[k] = weight * price[k]
			}
			a := f.able(j)
			w, _ := cheapest(a, time, value)
			if math.IsInf(w.cost, 1) {
				continue // a rounding beyond what it can have
			}
			cost += w.cost
			slope += w.costs(a, time, value+t.each) - w.cost
			on, and := w.parts(a, value)
			if used[w.on] += float64(weight * on); w.and != single {
				used[w.and] += float64(weight * and)
			}
		}
		if cost <= 1+1e-12 || slope <= 0 {
			break
		}
		level = max(0, level-(cost-1)/slope)
	}
	return level, used
}

// timePrices are what a kind's time costs on the types.
func (f *filling) timePrices(j int, raise bool, at *duals) []float64 {
	price, weight := make([]float64, len(f.p.Room)), f.p.Gang[j]*f.count[j]
	for k := range price {
		if price[k] = weight * at.device[k]; !raise {
			price[k] += weight * taste(j*len(price)+k)
		}
	}
	return price
}

// otherwise are those who would do otherwise than they are held to. Of the others it notes
// the price of their value.
func (f *filling) otherwise(targets []target, raise bool, level float64, at *duals) (who []int) {
	for j, t := range targets {
		if f.sieve.in[j] {
			continue
		}
		price := f.timePrices(j, raise, at)
		a, w, value := f.able(j), f.sieve.way[j], t.at(level)
		if best, _ := cheapest(a, price, value); !w.can(a, value) || w.costs(a, price, value) > best.cost+1e-12 {
			who = append(who, j)
		}
		at.value[j] = w.costs(a, price, t.at(1)) - w.costs(a, price, t.at(0))
	}
	return who
}

// able are a kind's values on the types that it can run on.
func (f *filling) able(j int) []float64 {
	a := slices.Clone(f.a[j])
	for k, r := range f.p.Rate[j] {
		if r <= 0 || f.p.Gang[j] > f.p.Room[k] {
			a[k] = 0
		}
	}
	return a
}

// sifted solves the program of those who are in, beside the others.
func (f *filling) sifted(targets []target, raise bool) (float64, duals, error) {
	var in []int
	fixed, each := slices.Clone(f.p.Room), make([]float64, len(f.p.Room)) // what the others leave of the room, and take more by the level
	for j, t := range targets {
		if f.sieve.in[j] {
			in = append(in, j)
			continue
		}
		for k, part := range f.held(j, t.at(0)) {
			fixed[k] -= float64(f.p.Gang[j] * f.count[j] * part)
			each[k] -= float64(f.p.Gang[j] * f.count[j] * part)
		}
		for k, part := range f.held(j, t.at(1)) {
			each[k] += float64(f.p.Gang[j] * f.count[j] * part)
		}
	}
	lp, at, level := f.program(in, raise)
	capacity, rows := len(in), make([]int, len(in))
	for k := range fixed {
		used := make([]solve.Term, len(in), len(in)+1)
		for i, j := range in {
			used[i] = solve.Term{Var: at[i][k], Coef: f.p.Gang[j] * f.count[j]}
		}
		if each[k] != 0 && raise {
			used = append(used, solve.Term{Var: level, Coef: each[k]})
		}
		lower := 0.0
		if len(in) < len(targets) {
			lower = -solve.Inf
		}
		lp.Row(lower, fixed[k], used...)
	}
	for i, j := range in {
		rows[i] = f.aim(lp, j, at[i], targets[j], level)
	}
	s, err := solved(&f.solver, lp)
	if err != nil {
		return 0, duals{}, err
	}
	found := duals{device: make([]float64, len(fixed)), value: make([]float64, len(targets))}
	for k := range fixed {
		found.device[k] = math.Abs(s.Dual[capacity+k])
	}
	for i, parts := range f.p.parts(s.X, at) {
		if j := in[i]; rows[i] >= 0 {
			f.x[j], found.value[j] = parts, math.Abs(s.Dual[rows[i]])
		} else {
			f.x[j] = parts
		}
	}
	for j, t := range targets {
		if !f.sieve.in[j] {
			f.x[j] = f.held(j, t.at(s.Objective))
		}
	}
	return s.Objective, found, nil
}

// held are a kind's parts of time for a value by the way that it is held to.
func (f *filling) held(j int, value float64) []float64 {
	x := make([]float64, len(f.p.Room))
	w := f.sieve.way[j]
	on, and := w.parts(f.a[j], value)
	if x[w.on] = on; w.and != single {
		x[w.and] = and
	}
	return x
}

// program are the parts of time of those who are in, and the level.
func (f *filling) program(in []int, raise bool) (lp *solve.Problem, at [][]int, level int) {
	lp, at = &solve.Problem{Maximise: raise}, make([][]int, len(in))
	for i, j := range in {
		at[i] = make([]int, len(f.p.Room))
		for k, r := range f.p.Rate[j] {
			most, cost := 1.0, 0.0
			if r <= 0 || f.p.Gang[j] > f.p.Room[k] {
				most = 0
			}
			if !raise {
				cost = f.p.Gang[j] * f.count[j] * taste(j*len(f.p.Room)+k)
			}
			at[i][k] = lp.Var(0, most, cost)
		}
	}
	if raise {
		level = lp.Var(0, solve.Inf, 1)
	}
	for _, vars := range at {
		time := make([]solve.Term, len(vars))
		for k, v := range vars {
			time[k] = solve.Term{Var: v, Coef: 1}
		}
		lp.Row(0, 1, time...)
	}
	return lp, at, level
}

// aim makes a kind have its target; it returns the row, -1 where there is none.
func (f *filling) aim(lp *solve.Problem, j int, vars []int, t target, level int) int {
	switch {
	case t.each > 0:
		return lp.Row(0, solve.Inf, append(f.value(j, vars, t.each), solve.Term{Var: level, Coef: -1})...)
	case t.floor > 0:
		return lp.Row(1-slack, solve.Inf, f.value(j, vars, t.floor)...)
	}
	return -1
}
