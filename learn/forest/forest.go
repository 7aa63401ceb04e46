// Package forest predicts a number from features by a random forest (Breiman 2001): trees
// grown on samples drawn with replacement, each split where the squared error falls most,
// and their mean. It is the estimator of Liquid (Gu et al., TPDS 2022), which predicts
// what a job needs from the parameters of its command line; Published has its settings.
// Left out: importances, proximities and classification, which nobody here asks for.
package forest

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
)

// Config says how trees grow.
type Config struct {
	Trees    int `yaml:"trees"`
	Depth    int `yaml:"depth"`     // splits from the root to a leaf, at most
	MinSplit int `yaml:"min-split"` // samples that a split needs
	MinLeaf  int `yaml:"min-leaf"`  // samples on either side of it
	// Features is how many of them, drawn anew, each split looks at; 0 is all.
	Features int    `yaml:"features"`
	Seed     uint64 `yaml:"seed"`
}

// Published are Liquid's settings.
func Published() Config { return Config{Trees: 70, Depth: 13, MinSplit: 10, MinLeaf: 5, Seed: 1} }

// Validate says what is wrong with a configuration.
func (c Config) Validate() error {
	switch {
	case c.Trees < 1 || c.Depth < 1:
		return errors.New("trees and depth must be at least 1")
	case c.MinSplit < 2 || c.MinLeaf < 1:
		return errors.New("min-split must be at least 2 and min-leaf at least 1")
	case c.Features < 0:
		return errors.New("features must not be negative")
	}
	return nil
}

// Forest is a trained one.
type Forest struct{ trees []tree }

// tree is its nodes, the root first.
type tree []node

// node is a leaf with a value, where left is 0, or a split: x[feature] <= at goes left.
type node struct {
	feature     int
	at, value   float64
	left, right int
}

// Train grows a forest on samples: rows of features, all as long, and their values.
func Train(x [][]float64, y []float64, c Config) (*Forest, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if len(x) == 0 || len(x) != len(y) {
		return nil, fmt.Errorf("there are %d rows of features and %d values: as many are needed, and one at least", len(x), len(y))
	}
	for i := range x {
		if len(x[i]) != len(x[0]) {
			return nil, fmt.Errorf("row %d has %d features, row 0 has %d", i, len(x[i]), len(x[0]))
		}
	}
	f := &Forest{}
	for t := range c.Trees {
		g := grower{x: x, y: y, config: c, rng: rand.New(rand.NewPCG(c.Seed, uint64(t)))}
		rows := make([]int, len(x))
		for i := range rows {
			rows[i] = g.rng.IntN(len(x))
		}
		g.grow(rows, 0)
		f.trees = append(f.trees, g.tree)
	}
	return f, nil
}

// Predict is the mean of the trees.
func (f *Forest) Predict(x []float64) float64 {
	sum := 0.0
	for _, t := range f.trees {
		i := 0
		for t[i].left != 0 {
			if x[t[i].feature] <= t[i].at {
				i = t[i].left
			} else {
				i = t[i].right
			}
		}
		sum += t[i].value
	}
	return sum / float64(len(f.trees))
}

type grower struct {
	x      [][]float64
	y      []float64
	config Config
	rng    *rand.Rand
	tree   tree
}

// grow adds the tree of some rows and returns its root.
func (g *grower) grow(rows []int, depth int) int {
	sum := 0.0
	for _, r := range rows {
		sum += g.y[r]
	}
	at := len(g.tree)
	g.tree = append(g.tree, node{value: sum / float64(len(rows))})
	if depth == g.config.Depth || len(rows) < g.config.MinSplit {
		return at
	}
	feature, threshold, ok := g.best(rows, sum)
	if !ok {
		return at
	}
	var low, high []int
	for _, r := range rows {
		if g.x[r][feature] <= threshold {
			low = append(low, r)
		} else {
			high = append(high, r)
		}
	}
	left := g.grow(low, depth+1)
	right := g.grow(high, depth+1)
	n := &g.tree[at]
	n.feature, n.at, n.left, n.right = feature, threshold, left, right
	return at
}

// best is the split after which the squared errors of the two sides sum to the least,
// which is where the squares of their sums, by their counts, sum to the most. Of equals
// it is the first looked at.
func (g *grower) best(rows []int, sum float64) (feature int, at float64, ok bool) {
	least := sum * sum / float64(len(rows)) * (1 + 1e-12)
	order := slices.Clone(rows)
	for _, f := range g.features() {
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(g.x[a][f], g.x[b][f]) })
		left := 0.0
		for i := range len(order) - 1 {
			left += g.y[order[i]]
			this, next := g.x[order[i]][f], g.x[order[i+1]][f]
			n, m := i+1, len(order)-i-1
			if this == next || n < g.config.MinLeaf || m < g.config.MinLeaf {
				continue
			}
			if score := left*left/float64(n) + (sum-left)*(sum-left)/float64(m); score > least {
				least, feature, at, ok = score, f, this+(next-this)/2, true
			}
		}
	}
	return feature, at, ok
}

func (g *grower) features() []int {
	all := g.rng.Perm(len(g.x[0]))
	if n := g.config.Features; n > 0 && n < len(all) {
		all = all[:n]
	}
	return all
}
