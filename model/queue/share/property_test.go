package share

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/queue"
)

// anyInput draws a tree of up to 12 queues in up to three levels with demands and
// holdings; guarantees of children stay within their parents' and the cluster's.
func anyInput(t *rapid.T) Input {
	number := func(most int64, what string) int64 {
		return rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, most), rapid.Map(rapid.Int64Range(0, most/1000), func(x int64) int64 { return x * 1000 })).Draw(t, what)
	}
	const most = 64_000
	capacity := number(most, "capacity")
	tr := &queue.Tree{Queues: []queue.Queue{queue.Root()}}
	left := []int64{capacity} // of each queue's guarantee for its children's
	depth := []int{0}
	n := rapid.IntRange(0, 12).Draw(t, "queues")
	for i := 1; i <= n; i++ {
		p := rapid.IntRange(0, i-1).Draw(t, "parent")
		for depth[p] >= 3 {
			p = int(tr.Queues[p].Parent)
		}
		q := queue.Queue{Name: fmt.Sprintf("q%d", i), Parent: int32(p), Weight: int32(rapid.IntRange(1, 5000).Draw(t, "weight")), Priority: int32(rapid.IntRange(0, 1).Draw(t, "priority"))}
		if p > 0 {
			q.Name = tr.Queues[p].Name + "/" + q.Name
		}
		var g int64
		if left[p] > 0 && rapid.Bool().Draw(t, "guaranteed") {
			g = rapid.Int64Range(0, left[p]).Draw(t, "guarantee")
			left[p] -= g
			q.Guarantee = []queue.Amount{{Milli: g}}
			if rapid.Bool().Draw(t, "keeps") {
				q.Keep = []queue.Amount{{Milli: rapid.Int64Range(0, g).Draw(t, "keep")}}
			}
		}
		if rapid.IntRange(0, 2).Draw(t, "limited") == 0 {
			q.Limit = []queue.Amount{{Milli: g + number(most, "limit")}}
		}
		if rapid.IntRange(0, 2).Draw(t, "borrows little") == 0 {
			q.Borrow = []queue.Amount{{Milli: number(most, "borrow")}}
		}
		tr.Queues, left, depth = append(tr.Queues, q), append(left, g), append(depth, depth[p]+1)
	}
	in := Input{Tree: tr, Models: []string{"V100"}, Capacity: Vector{capacity}}
	for range tr.Queues {
		held := number(most/8, "held")
		in.Held = append(in.Held, Vector{held})
		in.Demand = append(in.Demand, Vector{held + number(most, "wanted")})
		in.Past = append(in.Past, number(most/8, "past"))
	}
	return in
}

func TestAgainstFractions(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		in := anyInput(t)
		if err := in.Tree.Check(func(string) bool { return true }); err != nil {
			t.Fatal(err)
		}
		want := bruteForce(in)
		for i, s := range Compute(in) {
			// Each level rounds by less than one, and hands on what it was handed.
			off := new(big.Rat).Sub(big.NewRat(s.Deserved[0], 1), want[i])
			if bound := int64(2 + strings.Count(s.Queue, "/") + len(in.Tree.Queues)); off.Abs(off).Cmp(big.NewRat(bound, 1)) > 0 {
				t.Fatalf("%q deserves %d, in fractions %s (%s)\n%+v", s.Queue, s.Deserved[0], want[i].FloatString(3), s.Arithmetic, in)
			}
		}
	})
}

// TestFlatAgainstFractions is exact: one level rounds by less than one thousandth.
func TestFlatAgainstFractions(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		in := anyInput(t)
		for i := range in.Tree.Queues[1:] {
			q := &in.Tree.Queues[i+1]
			q.Parent, q.Name = 0, fmt.Sprintf("q%d", i+1)
		}
		want, shares := bruteForce(in), Compute(in)
		for i, s := range shares {
			off := new(big.Rat).Sub(big.NewRat(s.Deserved[0], 1), want[i])
			// Where guarantees shrink, what is kept idle shrinks to fractions too.
			if i > 0 && off.Abs(off).Cmp(big.NewRat(1, 1)) >= 0 || i == 0 && fits(in, shares) && off.Sign() != 0 {
				t.Fatalf("%q deserves %d, in fractions %s (%s)\n%+v", s.Queue, s.Deserved[0], want[i].FloatString(3), s.Arithmetic, in)
			}
		}
	})
}

// fits says whether all guarantees can be had at once.
func fits(in Input, shares []Share) bool {
	var sum int64
	for i, q := range in.Tree.Queues {
		if i > 0 && q.Parent == 0 {
			sum += shares[i].Guarantee[0]
		}
	}
	return sum <= in.Capacity[0]
}

func TestProperties(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		in := anyInput(t)
		shares := Compute(in)
		if again := Compute(in); !reflect.DeepEqual(shares, again) {
			t.Fatal("the same input gave another answer")
		}
		var lent, risk, kept int64
		free := true // no limit stands in the way of giving everything away
		for i, s := range shares {
			q := in.Tree.Queues[i]
			if s.Deserved[0] > s.Demand[0] || s.Deserved[0] > in.Capacity[0] {
				t.Fatalf("%q deserves more than it wants or there is: %+v", s.Queue, s)
			}
			if len(q.Limit) > 0 && s.Deserved[0] > q.Limit[0].Milli {
				t.Fatalf("%q deserves more than its limit %d: %+v", s.Queue, q.Limit[0].Milli, s)
			}
			if s.AtRisk[0] > s.Borrowed[0] && i > 0 || s.Lent[0] > max(0, s.Guarantee[0]-s.Held[0]) {
				t.Fatalf("%q: more at risk than borrowed, or lent than unused: %+v", s.Queue, s)
			}
			if i > 0 && q.Parent == 0 {
				lent += s.Lent[0]
				risk += s.AtRisk[0]
			}
			free = free && len(q.Limit) == 0 && len(q.Borrow) == 0
			if len(q.Keep) > 0 {
				kept += q.Keep[0].Milli
			}
		}
		if risk > lent { // the rest is held by jobs directly in the root
			t.Fatalf("%d at risk, %d lent", risk, lent)
		}
		if in.Held[0][0] == 0 && risk != lent {
			t.Fatalf("%d at risk, %d lent", risk, lent)
		}
		if free && kept == 0 && shares[0].Deserved[0] != min(in.Capacity[0], shares[0].Demand[0]) {
			t.Fatalf("the cluster is not given away: %+v", shares[0])
		}
		honoured(t, in, shares)
	})
}

// honoured checks that a guarantee that is asked for is deserved, limits above it
// permitting.
func honoured(t *rapid.T, in Input, shares []Share) {
	if !fits(in, shares) {
		t.Fatal("the drawn guarantees do not fit")
	}
	for i, s := range shares {
		q := in.Tree.Queues[i]
		if i == 0 || len(q.Guarantee) == 0 {
			continue
		}
		bounded := false
		for at := int32(i); at >= 0; at = in.Tree.Queues[at].Parent {
			a := in.Tree.Queues[at]
			bounded = bounded || len(a.Limit) > 0 || len(a.Borrow) > 0
		}
		inner := false
		for _, other := range in.Tree.Queues {
			inner = inner || other.Parent == int32(i)
		}
		if !bounded && !inner && s.Deserved[0] < min(s.Guarantee[0], s.Demand[0]) {
			t.Fatalf("%q deserves less than its guarantee, which it wants: %+v", s.Queue, s)
		}
	}
}

func TestMonotoneInWeight(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		in := anyInput(t)
		if len(in.Tree.Queues) < 2 {
			return
		}
		i := rapid.IntRange(1, len(in.Tree.Queues)-1).Draw(t, "queue")
		before := Compute(in)[i].Deserved[0]
		in.Tree.Queues[i].Weight += int32(rapid.IntRange(1, 5000).Draw(t, "more"))
		// Rounding may take back what rounding gave.
		slack := int64(1 + len(in.Tree.Queues))
		if after := Compute(in)[i].Deserved[0]; after < before-slack {
			t.Fatalf("%q deserved %d, and with a greater weight %d\n%+v", in.Tree.Queues[i].Name, before, after, in)
		}
	})
}

// TestDealer: what is kept while demand and past use change is what is worked out anew.
func TestDealer(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		in := anyInput(t)
		d := NewDealer(in.Tree, in.Models, in.Capacity)
		for range 3 {
			for i := range d.nodes {
				if n := &d.nodes[i]; len(n.children) == 0 {
					d.ask(i, 0, in.Demand[n.queue][0])
					d.used(i, in.Past[n.queue])
				}
			}
			d.deal()
			for i, s := range Compute(in) {
				if s.Deserved[0] != d.nodes[i].deserved[0] {
					t.Fatalf("%q deserves %d, and worked out anew %d\n%+v", s.Queue, d.nodes[i].deserved[0], s.Deserved[0], in)
				}
			}
			q := rapid.IntRange(0, len(in.Demand)-1).Draw(t, "queue")
			in.Demand[q] = Vector{rapid.Int64Range(0, 64_000).Draw(t, "demand")}
			in.Past[q] = rapid.Int64Range(0, 8000).Draw(t, "past")
		}
	})
}

// BenchmarkOneChange is what a decision costs: one of a thousand queues wants something else.
func BenchmarkOneChange(b *testing.B) {
	in := thousandQueues()
	d := NewDealer(in.Tree, in.Models, in.Capacity)
	for i := range d.nodes {
		if n := &d.nodes[i]; len(n.children) == 0 {
			for m := range in.Models {
				d.ask(i, m, 50_000)
			}
		}
	}
	l := queue.NewLedger(in.Tree, in.Models, in.Capacity)
	d.Aim(&l)
	b.ReportAllocs()
	for i := range b.N {
		l.Wait(l.Leaf(int32(31+i%1000)), 3, 1000)
		d.Aim(&l)
	}
}

func thousandQueues() Input {
	r := rand.New(rand.NewPCG(1, 1))
	tr := &queue.Tree{Queues: []queue.Queue{queue.Root()}}
	for g := range 30 {
		tr.Queues = append(tr.Queues, queue.Queue{Name: fmt.Sprintf("g%d", g), Weight: 1000})
	}
	for i := range 1000 {
		p := int32(1 + i%30)
		tr.Queues = append(tr.Queues, queue.Queue{Name: fmt.Sprintf("%s/q%d", tr.Queues[p].Name, i), Parent: p, Weight: 1000 + int32(i%4)*500, Guarantee: all(5)})
	}
	in := Input{Tree: tr, Models: []string{"V100", "A100"}, Capacity: d(6000, 4000)}
	for range tr.Queues {
		held := d(float64(r.IntN(8)), float64(r.IntN(8)))
		in.Held, in.Demand = append(in.Held, held), append(in.Demand, d(float64(held[0]/1000)+float64(r.IntN(20)), float64(held[1]/1000)))
	}
	return in
}

func BenchmarkThousandQueues(b *testing.B) {
	in := thousandQueues()
	b.ReportAllocs()
	for b.Loop() {
		Compute(in)
	}
}

// TestModels: with amounts by model only, models do not touch each other; with
// amounts over all models, no total is exceeded and no guarantee is lost.
func TestModels(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		a := anyInput(t)
		a.Past = nil // it is laid on all models
		names := []string{"V100", "A100"}
		number := rapid.Int64Range(0, 64_000)
		both := Input{Tree: a.Tree, Models: names, Capacity: Vector{a.Capacity[0], number.Draw(t, "capacity")}}
		for i := range a.Tree.Queues {
			held := number.Draw(t, "held")
			both.Held = append(both.Held, Vector{a.Held[i][0], held})
			both.Demand = append(both.Demand, Vector{a.Demand[i][0], held + number.Draw(t, "wanted")})
		}
		inUse := make(Vector, 2)
		for i, s := range Compute(both) {
			q := a.Tree.Queues[i]
			if len(q.Limit) > 0 && sumOf(s.Deserved) > q.Limit[0].Milli {
				t.Fatalf("%q deserves %v, more than its limit %d", s.Queue, s.Deserved, q.Limit[0].Milli)
			}
			if len(q.Guarantee) > 0 && sumOf(s.Guarantee) < q.Guarantee[0].Milli {
				t.Fatalf("%q is guaranteed %v of %d", s.Queue, s.Guarantee, q.Guarantee[0].Milli)
			}
			for m := range names {
				if s.Deserved[m] > s.Demand[m] || s.Lent[m] > max(0, s.Guarantee[m]-s.Held[m]) {
					t.Fatalf("%q: %+v", s.Queue, s)
				}
				inUse[m] += s.Own[m]
			}
		}
		if inUse[0] > both.Capacity[0] || inUse[1] > both.Capacity[1] {
			t.Fatalf("%v are deserved of %v", inUse, both.Capacity)
		}
		for i := range a.Tree.Queues {
			q := &a.Tree.Queues[i]
			for _, list := range [][]queue.Amount{q.Guarantee, q.Limit, q.Keep, q.Borrow} {
				for k := range list {
					list[k].Model = "V100"
				}
			}
		}
		alone := Compute(a)
		for i, s := range Compute(both) {
			if s.Deserved[0] != alone[i].Deserved[0] || s.Lent[0] != alone[i].Lent[0] || s.AtRisk[0] != alone[i].AtRisk[0] {
				t.Fatalf("%q of two models: %+v, of one: %+v", s.Queue, s, alone[i])
			}
		}
	})
}
