// Package fgd places each worker where it fragments the cluster least: Fragmentation
// Gradient Descent (Weng et al., USENIX ATC 2023). A node's fragment is what of its
// free devices the tasks that are to be expected could not use; the worker goes to
// the node, and its share to the device, where the expected fragment grows least or
// shrinks most.
//
// What is to be expected is a histogram of task shapes, most popular first, up to a
// part of all tasks: given (the artefact takes the whole trace), or counted over the
// jobs submitted so far. The score is the artefact's, in whole percents of a
// sigmoid: its coarseness matters, and so does the tie-break behind it, which is
// best fit and then the id.
//
// Read: the public simulator, hkust-adsl/kubernetes-scheduler-simulator. Added:
// gangs, worker by worker; and counts instead of frequencies, so that fragments are
// exact.
package fgd

import (
	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/descent"
	"github.com/musterdl/muster/allocate/fragment"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/plan"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "fgd", System: "FGD", Part: allocate.PlacePart, Status: "read",
	Source: "Weng et al., ATC 2023; hkust-adsl/kubernetes-scheduler-simulator",
	Idea:   "where the free devices that expected tasks could not use grow least",
	Goal:   "throughput", Needs: "nothing; a histogram of task shapes, given or learned from submissions",
	Live:  "as simulated",
	Inner: "the growth of the expected fragment: free devices that expected tasks cannot use",
}

// Config says what tasks are expected and how ties are broken.
type Config struct {
	// Expected are the task shapes to expect; none learns them from the submissions.
	Expected []fragment.Expected `yaml:"expected"`
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
func New(c Config) *descent.Placer { return descent.New(&expected{config: c}, c.CoresPerDevice) }

// expected is the fragment that the tasks to expect make of a node.
type expected struct {
	config Config
	fragment.Mix
}

// Learn keeps the mix of tasks up to date.
func (e *expected) Learn(v plan.View, same bool) bool {
	switch {
	case len(e.config.Expected) == 0:
		return e.Mix.Learn(v, e.config.Popularity, same)
	case !same:
		e.Give(v, e.config.Expected, e.config.Popularity)
	}
	return !same
}

// Of is the fragment of a node.
func (e *expected) Of(n *fragment.Node) int64 { return e.Fragment(n) }
