package share

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/musterdl/muster/model/queue"
)

// d writes devices as a vector of one model.
func d(devices ...float64) Vector {
	v := make(Vector, len(devices))
	for i, x := range devices {
		v[i] = int64(x * 1000)
	}
	return v
}

func all(devices float64) []queue.Amount { return []queue.Amount{{Milli: int64(devices * 1000)}} }

// tree makes a tree of queues whose parents are found by their names.
func tree(queues ...queue.Queue) *queue.Tree {
	t := &queue.Tree{Queues: append([]queue.Queue{queue.Root()}, queues...)}
	for i := range t.Queues {
		q := &t.Queues[i]
		if i > 0 {
			if k := strings.LastIndexByte(q.Name, '/'); k > 0 {
				q.Parent = t.Find(q.Name[:k])
			} else {
				q.Parent = 0
			}
		}
		if q.Weight == 0 {
			q.Weight = 1000
		}
	}
	return t
}

type situation struct {
	name         string
	tree         *queue.Tree
	models       []string
	capacity     Vector
	held, demand []Vector // of the queues below the root
	want         []string // queue: deserved borrowed lent at risk
	words        []string
}

var situations = []situation{{
	name:     "guarantee first, then spare by weight",
	tree:     tree(queue.Queue{Name: "a", Weight: 2000, Guarantee: all(32)}, queue.Queue{Name: "b", Weight: 3000, Guarantee: all(8)}),
	capacity: d(80), held: []Vector{d(40), d(30)}, demand: []Vector{d(60), d(60)},
	want:  []string{": 80 0 0 0", "a: 48 8 0 0", "b: 32 22 0 0"},
	words: []string{"capacity 80, wants 120 -> deserves 80", "guarantee 32 + 2/5 of 40 spare = 48, wants 60 -> deserves 48", "guarantee 8 + 3/5 of 40 spare = 32, wants 60 -> deserves 32"},
}, {
	name:     "an idle guarantee is lent and can be asked back",
	tree:     tree(queue.Queue{Name: "a", Guarantee: all(30)}, queue.Queue{Name: "b", Guarantee: all(10)}, queue.Queue{Name: "c"}),
	capacity: d(48), held: []Vector{d(4), d(28), d(16)}, demand: []Vector{d(4), d(40), d(16)},
	want:  []string{": 48 0 0 0", "a: 4 0 26 0", "b: 28 18 0 13.765", "c: 16 16 0 12.235"},
	words: []string{"", "4 of guarantee 30, wants 4 -> deserves 4", "guarantee 10 + 1/1 of 18 spare = 28, wants 40 -> deserves 28", "16 spare, wants 16 -> deserves 16"},
}, {
	name: "what is kept is not lent, limits and borrowing bind",
	tree: tree(queue.Queue{Name: "a", Guarantee: all(16), Keep: all(6)}, queue.Queue{Name: "b", Limit: all(10)},
		queue.Queue{Name: "c", Guarantee: all(4), Borrow: all(3)}),
	capacity: d(32), held: []Vector{d(0), d(10), d(7)}, demand: []Vector{d(0), d(30), d(30)},
	want:  []string{": 17 0 0 0", "a: 0 0 1 0", "b: 10 10 0 0.769", "c: 7 3 0 0.231"},
	words: []string{"", "6 of guarantee 16, wants 0, keeps 6 idle -> deserves 0", "10 spare, wants 30, may hold 10 -> deserves 10", "guarantee 4 + 3 spare = 7, wants 30, may hold 7 -> deserves 7"},
}, {
	name:     "priority before share",
	tree:     tree(queue.Queue{Name: "a", Guarantee: all(4)}, queue.Queue{Name: "b", Priority: 1}),
	capacity: d(16), held: []Vector{d(0), d(0)}, demand: []Vector{d(16), d(9)},
	want:  []string{": 16 0 0 0", "a: 7 0 0 0", "b: 9 0 0 0"},
	words: []string{"", "guarantee 4 + 1/1 of 3 spare after higher priorities = 7, wants 16 -> deserves 7", "9 spare, wants 9 -> deserves 9"},
}, {
	name:     "more is guaranteed than there is",
	tree:     tree(queue.Queue{Name: "a", Guarantee: all(30)}, queue.Queue{Name: "b", Guarantee: all(10)}),
	capacity: d(20), held: []Vector{d(0), d(0)}, demand: []Vector{d(30), d(30)},
	want:  []string{": 20 0 0 0", "a: 15 0 0 0", "b: 5 0 0 0"},
	words: []string{"", "15 of guarantee 30 (more is guaranteed than there is), wants 30 -> deserves 15"},
}, {
	name:     "a tree: a sibling inside borrows before others outside",
	tree:     tree(queue.Queue{Name: "r", Guarantee: all(32)}, queue.Queue{Name: "r/v", Guarantee: all(20)}, queue.Queue{Name: "r/w"}, queue.Queue{Name: "s"}),
	capacity: d(40), held: []Vector{d(0), d(2), d(18), d(20)}, demand: []Vector{d(0), d(2), d(40), d(40)},
	want:  []string{": 40 0 0 0", "r: 36 0 12 0", "r/v: 2 0 18 0", "r/w: 34 18 0 6", "s: 4 20 0 12"},
	words: []string{"", "guarantee 32 + 1/2 of 8 spare = 36, wants 42 -> deserves 36", "2 of guarantee 20, wants 2 -> deserves 2", "1/1 of 34 spare in r, wants 40 -> deserves 34"},
}, {
	name:     "jobs directly in a queue with others below",
	tree:     tree(queue.Queue{Name: "r", Guarantee: all(16)}, queue.Queue{Name: "r/v", Weight: 3000}),
	capacity: d(16), held: []Vector{d(8), d(8)}, demand: []Vector{d(20), d(20)},
	want: []string{": 16 0 0 0", "r: 16 0 0 0", "r/v: 12 8 0 0"},
}, {
	name:   "models apart, a guarantee over all of them where it is wanted",
	tree:   tree(queue.Queue{Name: "a", Guarantee: []queue.Amount{{Milli: 20_000}, {Model: "A100", Milli: 4_000}}}, queue.Queue{Name: "b", Limit: all(8)}),
	models: []string{"V100", "A100"}, capacity: d(24, 8), held: []Vector{d(0, 0), d(0, 0)}, demand: []Vector{d(30, 4), d(6, 6)},
	want: []string{": 24,8 0,0 0,0 0,0", "a: 20,4 0,0 0,0 0,0", "b: 4,4 0,0 0,0 0,0"},
	words: []string{"", "V100: guarantee 16 + 1/1 of 4 spare = 20, wants 30 -> deserves 20; A100: guarantee 4, wants 4 -> deserves 4",
		"V100: 4 spare, wants 6, may hold 4 -> deserves 4; A100: 4 spare, wants 6, may hold 4 -> deserves 4"},
}, {
	name:     "what a limit stands in the way of is not kept idle",
	tree:     tree(queue.Queue{Name: "a"}, queue.Queue{Name: "b", Guarantee: all(2), Limit: all(2)}, queue.Queue{Name: "b/x", Guarantee: all(1), Keep: all(1)}, queue.Queue{Name: "b/y"}),
	capacity: d(10), held: []Vector{d(0), d(0), d(0), d(0)}, demand: []Vector{d(10), d(0), d(0), d(2)},
	want: []string{": 9 0 0 0", "a: 8 0 0 0", "b: 1 0 0 0", "b/x: 0 0 0 0", "b/y: 1 0 0 0"},
}}

func show(v Vector) string {
	parts := make([]string, len(v))
	for i, x := range v {
		parts[i] = count(x)
	}
	return strings.Join(parts, ",")
}

func TestSituations(t *testing.T) {
	for _, s := range situations {
		t.Run(s.name, func(t *testing.T) {
			if s.models == nil {
				s.models = []string{"V100"}
			}
			if err := s.tree.Check(func(string) bool { return true }); err != nil {
				t.Fatal(err)
			}
			got := Compute(Input{Tree: s.tree, Models: s.models, Capacity: s.capacity,
				Held: append([]Vector{nil}, s.held...), Demand: append([]Vector{nil}, s.demand...)})
			for i, want := range s.want {
				q := got[i]
				if text := fmt.Sprintf("%s: %s %s %s %s", q.Queue, show(q.Deserved), show(q.Borrowed), show(q.Lent), show(q.AtRisk)); text != want {
					t.Errorf("deserved, borrowed, lent, at risk of %s, want %s", text, want)
				}
			}
			for i, want := range s.words {
				if want != "" && got[i].Arithmetic != want {
					t.Errorf("the words of %q\ngot  %s\nwant %s", got[i].Queue, got[i].Arithmetic, want)
				}
			}
		})
	}
}

func TestOwnPart(t *testing.T) {
	s := situations[6]
	got := Compute(Input{Tree: s.tree, Models: []string{"V100"}, Capacity: s.capacity, Held: append([]Vector{nil}, s.held...), Demand: append([]Vector{nil}, s.demand...)})
	if got[1].Own[0] != 4000 || got[2].Own[0] != 12000 || got[0].Own[0] != 0 {
		t.Errorf("own parts %v %v %v, want 4, 12 and 0", got[0].Own, got[1].Own, got[2].Own)
	}
}

func TestEmpty(t *testing.T) {
	got := Compute(Input{Tree: &queue.Tree{}, Models: []string{"V100"}, Capacity: d(8), Held: []Vector{d(2)}, Demand: []Vector{d(12)}})
	if len(got) != 1 || got[0].Deserved[0] != 8000 || got[0].Demand[0] != 12000 {
		t.Errorf("a tree without queues: %+v", got)
	}
	if got := Compute(Input{Tree: &queue.Tree{}}); len(got) != 1 {
		t.Errorf("nothing at all: %+v", got)
	}
}

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		total   int64
		weights []int64
		want    []int64
	}{
		{10, []int64{1, 1, 1}, []int64{4, 3, 3}},
		{7, []int64{2, 3, 2}, []int64{2, 3, 2}},
		{100, []int64{0, 0}, []int64{0, 0}},
		{0, []int64{5}, []int64{0}},
		{1 << 50, []int64{1 << 50, 1 << 50}, []int64{1 << 49, 1 << 49}},
		{1064, []int64{9, 5, 8, 20, 6, 12, 4, 11, 4, 8, 3, 32, 10, 2, 1}, nil},
	} {
		got := Split(c.total, c.weights)
		if c.want != nil && !reflect.DeepEqual(got, c.want) {
			t.Errorf("%d by %v is %v, want %v", c.total, c.weights, got, c.want)
		}
		if sum := sumOf(got); sumOf(c.weights) > 0 && sum != c.total {
			t.Errorf("%v sum to %d, want %d", got, sum, c.total)
		}
	}
}

// TestGuaranteedFirst: who is short of what it is guaranteed goes before who deserves more, has
// less and is of higher priority, else that one would have to give it back.
func TestGuaranteedFirst(t *testing.T) {
	tr := tree(queue.Queue{Name: "a", Priority: 1}, queue.Queue{Name: "b", Guarantee: all(4)})
	l := queue.NewLedger(tr, []string{"V100"}, d(10))
	l.Wait(1, 1, 10_000)
	l.Wait(2, 1, 6000)
	dealer := NewDealer(tr, []string{"V100"}, d(10))
	for held, first := range []bool{true, true, true, true, false} {
		dealer.Aim(&l)
		if before, _ := l.Before(2, 1, 1, 1); before != first {
			t.Errorf("b, guaranteed 4, holds %d and goes first: %v", held, before)
		}
		l.Use(2, 0, 0, 1000)
		l.Wait(2, 1, -1000)
	}
}
