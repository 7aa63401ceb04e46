package catalogue

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/run"
)

// writeLive prints what each driver can do with runs, and which strategies it obeys: the
// drivers' own tables.
func writeLive(out io.Writer) {
	fmt.Fprint(out, "\n## What acts where\n\nThese are the drivers' own tables. Each yes is shown by a test of that driver, which plays the act's text in `run/runtest`. A strategy that\n"+
		"does what a driver cannot is refused there, where it is read: `muster up`, `muster strategies switch`, `muster-kube`.\n\n| Act | What a strategy does |")
	writeDrivers(out)
	for _, act := range slices.Concat(strategy.Basic, strategy.Acts) {
		fmt.Fprintf(out, "\n| %s | %s |", act, act.Does())
		for _, a := range run.Abilities {
			if a.Means[act] != "" {
				fmt.Fprintf(out, " yes: %s |", a.Means[act])
			} else {
				fmt.Fprintf(out, " no: %s |", a.Why[act])
			}
		}
	}
	fmt.Fprint(out, "\n\nThese strategies do more than start, stop and resize runs, by their defaults; all others act everywhere. Their\n"+
		"live lines say what options add.\n\n| Strategy | Acts |")
	writeDrivers(out)
	for _, e := range All {
		if len(e.Acts) == 0 {
			continue
		}
		fmt.Fprintf(out, "\n| [%s](#%[1]s) | %s |", e.Name, joined(e.Acts))
		for _, a := range run.Abilities {
			if lacks := a.Lacks(e.Acts); lacks != "" {
				fmt.Fprintf(out, " no %s |", lacks)
			} else {
				fmt.Fprint(out, " yes |")
			}
		}
	}
	fmt.Fprintln(out)
}

// writeDrivers ends the head of a table of two columns with one for each driver.
func writeDrivers(out io.Writer) {
	for _, a := range run.Abilities {
		fmt.Fprintf(out, " %s |", a.Driver)
	}
	fmt.Fprint(out, "\n|---|---|", strings.Repeat("---|", len(run.Abilities)))
}
