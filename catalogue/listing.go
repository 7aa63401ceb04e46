package catalogue

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
)

// Line is one strategy as lists show it.
type Line struct {
	Name   string `json:"name"`
	System string `json:"system"`
	Step   string `json:"step"`
	Part   string `json:"part"`
	Source string `json:"source"`
	Status string `json:"status"`
	Idea   string `json:"idea"`
	Goal   string `json:"goal"`
	// Inner is the score that stands for the goal, where there is one.
	Inner string `json:"inner,omitempty"`
	// Challenges are those of the survey that it answers.
	Challenges []string `json:"challenges,omitempty"`
	// Default is whether it decides where nobody names a strategy.
	Default bool `json:"default,omitempty"`
	// Claim is whether muster reproduce can run its system's experiment.
	Claim bool `json:"claim"`
}

// Listing is every selected strategy in the order of the steps.
func Listing(s Selection) []Line {
	lines := []Line{}
	for e := range every {
		if s.takes(e) {
			lines = append(lines, e.line())
		}
	}
	return lines
}

// WriteListing prints the selected strategies as a table, and what the survey has
// beside them.
func WriteListing(w io.Writer, s Selection) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "STEP\tPART\tNAME\tSTATUS\tIDEA")
	for _, l := range Listing(s) {
		name := l.Name
		if l.Default {
			name += " *"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", l.Step, l.Part, name, l.Status, l.Idea)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\n* decides where nobody names a strategy: --strategy %s. docs/which.md says which is best for which jobs.\nSTATUS\n", House)
	for _, status := range slices.Sorted(maps.Keys(statuses)) {
		fmt.Fprintf(w, "  %s\n", statuses[status])
	}
	return s.writeMissing(w)
}
