// Package dotproduct places each worker where what it asks for and what the node has
// free point least in the same direction: the dot product of the two, devices and cores
// each over those of the largest node, is smallest. Cores that a node has plenty of are
// so kept for who needs many, and full nodes are preferred to empty ones.
//
// Read: the dot-product baseline of the FGD artefact (Weng et al., ATC 2023;
// hkust-adsl/kubernetes-scheduler-simulator), with its settings of the paper's runs
// (devices of a node added up, normalised by the largest node, a share on the tightest
// device). It takes the vector from Tetris (Grandl et al., SIGCOMM 2014), which prefers
// the largest product. Left out: its other ways to extend and to normalise.
package dotproduct

import (
	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/scored"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/plan"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "dot-product", Part: allocate.PlacePart, Status: "read",
	Source: "baseline of FGD (Weng et al., ATC 2023), after Tetris (Grandl et al., SIGCOMM 2014)",
	Idea:   "the node whose free cores and devices have the smallest dot product with the request",
	Goal:   "throughput", Needs: "nothing", Live: "as simulated",
}

// New returns the placer.
func New() *scored.Placer {
	return scored.New(func(_ plan.View, n *scored.Node, shape *plan.Shape) int64 {
		dot := over(n.CPU, n.MostCPU)*over(int64(shape.CPU), n.MostCPU) + over(n.Total, n.MostTotal)*over(shape.Milli(1), n.MostTotal)
		return int64(100 * (1 - dot/2))
	})
}

// over is a part of a whole; of nothing it is none.
func over(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
