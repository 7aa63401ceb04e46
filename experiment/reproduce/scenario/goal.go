package scenario

import (
	"fmt"
	"strings"

	"github.com/musterdl/muster/catalogue"
)

// goal is what may be wanted most, and the composition for it.
type goal struct {
	name, strategy string
	note           string // what a reader must know of it
}

// shortest is the composition for throughput. A service that runs keeps its share: under
// MPS another one takes another process, and nobody stands by.
const shortest = "estimate: noisy\norder: srtf\nreserve: easy\nplace: antman/igniter/advantage\nshare: colocate\nsize: efficient\ncut: dp-cut\nsequence: 1f1b\nflow: strict\n" +
	"options:\n  igniter: {repack: false}\n"

// goals are the compositions of the day by the survey's map (muster strategies --goal).
var goals = []goal{
	{"throughput", "name: throughput\n" + shortest, ""},
	{"measured", "name: measured\n" + shortest + "  colocate: {measured-only: true}\n", "as for throughput, but jobs live beside others only where that pair of classes was measured"},
	{"cost", "name: cost\nestimate: noisy\nplace: antman/igniter/advantage\njoint: gavel\ncut: dp-cut\nsequence: 1f1b\nflow: strict\noptions:\n  gavel: {policy: cost}\n  igniter: {repack: false}\n",
		"gavel, for most steps per dollar"},
	{"deadline", "name: deadline\nestimate: noisy\nplace: antman/igniter/advantage\njoint: chronus\ncut: dp-cut\nsequence: 1f1b\nflow: strict\noptions:\n  igniter: {repack: false}\n",
		"chronus promises deadlines or refuses (refused jobs count as missed)"},
	{"latency", "srtf+easy+spread+efficient+dp-cut+1f1b+strict+noisy",
		"services go first, as under every goal with lanes, and have whole devices, spread out; no guests beside them"},
	{"energy", "name: energy\n" + shortest,
		"there is no strategy for energy yet: this is the composition for throughput, whose energy is reported"},
}

// Goals lists them.
func Goals() (names []string) {
	for _, g := range goals {
		names = append(names, g.name)
	}
	return names
}

// find returns a goal by its name.
func find(name string) (goal, error) {
	for _, g := range goals {
		if g.name == name {
			return g, nil
		}
	}
	return goal{}, fmt.Errorf("there is no goal %q: expected one of %s", name, strings.Join(Goals(), ", "))
}

// composition is that of a goal.
func composition(name string) (catalogue.Composition, error) {
	g, err := find(name)
	if err != nil {
		return catalogue.Composition{}, err
	}
	return catalogue.Resolve(g.strategy)
}
