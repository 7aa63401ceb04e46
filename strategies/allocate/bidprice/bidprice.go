// Package bidprice places each worker where the room that it takes is worth least to those who
// usually come: bid-price control (Talluri and van Ryzin, Management Science 1998), over what is
// left of nodes.
//
// What usually comes is counted over the jobs submitted so far, as FGD does. Every kind of task
// has a worth, in devices, at which the best ways to fill the empty cluster ask for as many of it
// as come: a share that leaves a rest which nobody fills is worth its rest too, and one that
// fills such rests is worth nothing. A core has a price by node, the one at which the node is worth least, so
// that cores are dear where devices are many and free where they are few. What a node has free
// is worth the best that it can still be filled with, blurred, since chance says who comes; and a worker costs
// what its node is worth less afterwards. Costs count in hundredths of a device: of equals it is
// best fit, and then the id.
//
// The worths are those of a linear program over fillings (Gilmore and Gomory, 1961), found by a few steps of a
// scaling that starts at the sizes. They follow from the number of jobs alone, each time it has grown by an
// eighth, so that an engine that was restarted has the same.
//
// Left out: host memory, which is kept but has no price; that devices of one task have to
// stand on one node; what will be given back; turning work away for better that may come.
package bidprice

import (
	"math"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/descent"
	"github.com/musterdl/muster/allocate/fragment"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/plan"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "bid-price", Part: allocate.PlacePart, Status: "ours",
	Source: "ours, after bid-price control (Talluri and van Ryzin, Management Science 1998) and FGD (ATC 2023)",
	Idea:   "where the room that is taken is worth least to what usually comes, cores and devices priced",
	Goal:   "throughput", Challenges: []string{"C1"}, Needs: "nothing; task shapes are learned from submissions",
	Live: "as simulated",
}

// Config says what tasks are expected and how ties are broken.
type Config struct {
	// Popularity is the part of all tasks that the shapes considered make up, the
	// most popular first.
	Popularity float64 `yaml:"popularity" above:"0" most:"1"`
	// CoresPerDevice is how many free cores weigh as much as one free device where
	// best fit breaks a tie; 0 ignores cores.
	CoresPerDevice int64 `yaml:"cores-per-device" least:"0"`
}

// Default returns the configuration used where none is given.
func Default() Config { return Config{Popularity: .95, CoresPerDevice: 16} }

// New returns the placer; the configuration must be valid.
func New(c Config) *descent.Placer {
	return descent.New(&worths{popularity: c.Popularity}, c.CoresPerDevice)
}

// worths is what the free room of nodes is worth.
type worths struct {
	popularity float64
	mix        fragment.Mix
	prices     prices
}

const (
	// device is the worth of one in whole numbers, and step what counts as equal.
	device, step = 1_000_000, 10_000
	// full are the points of what costs nothing.
	full = 1 << 20
)

// Learn has the prices follow what comes.
func (w *worths) Learn(v plan.View, same bool) bool {
	if !w.mix.Learn(v, w.popularity, same) {
		return false
	}
	w.prices.findWorths(v, &w.mix)
	return true
}

// Of is what a node has free is worth.
func (w *worths) Of(n *fragment.Node) int64 {
	return int64(math.Round(device * w.prices.of[n.Model].worth(n)))
}

// Points are fewer the more is lost.
func (w *worths) Points(lost int64) int32 {
	return int32(max(0, full-(max(0, lost)+step/2)/step))
}
