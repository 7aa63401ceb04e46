package catalogue

import (
	"fmt"
	"io"
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
}

// Listing is every strategy in the order of the steps.
func Listing() []Line {
	lines := make([]Line, len(All))
	for i, e := range All {
		lines[i] = line(e.Description)
	}
	return lines
}

// WriteListing prints the strategies as a table.
func WriteListing(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "STEP\tPART\tNAME\tSTATUS\tIDEA")
	for _, l := range Listing() {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", l.Step, l.Part, l.Name, l.Status, l.Idea)
	}
	return t.Flush()
}
