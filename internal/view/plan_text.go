package view

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/musterdl/muster/run/report/terminal"
	"github.com/musterdl/muster/run/trainer/progress"
)

// narrow and wide bound how many columns a timeline has.
const (
	narrow = 40
	wide   = 160
)

// letters are the kinds of passes that a line of a timeline may show, and what they are.
var letters = []struct{ letter, words string }{
	{"F", "forward"}, {"R", "forward again"}, {"B", "backward"}, {"I", "backward, inputs"}, {"W", "backward, weights"},
}

// WritePlan draws the timeline that is predicted of a job's plan above the measured one, over the same
// time: a line for each rank, and in each column the pass that takes most of it.
func WritePlan(w io.Writer, p *Plan, o TextOptions) error {
	var b bytes.Buffer
	about := p.text()
	if p.Schedule == "" {
		about = p.Words
	}
	fmt.Fprintf(&b, "%s: %s\n", o.Paint(terminal.Bold, p.Job), about)
	if p.Schedule != "" && p.Words != "" {
		fmt.Fprintln(&b, p.Words)
	}
	longest := 1.
	lines := [][][]progress.Span{p.Predicted}
	if p.Measured != nil {
		lines = append(lines, p.Measured.Timeline)
	}
	for _, all := range lines {
		for _, line := range all {
			for _, s := range line {
				longest = max(longest, s.EndUs)
			}
		}
	}
	const label = len("rank 000  ")
	columns := wide
	if o.Width > 0 {
		columns = min(wide, max(narrow, o.Width-label))
	}
	seen := map[string]bool{}
	for i, words := range []string{"as predicted", "as measured"}[:len(lines)] {
		if len(lines[i]) == 0 {
			continue
		}
		fmt.Fprintln(&b, o.Paint(terminal.Dim, fmt.Sprintf("%s, a column is %s", words, seconds(longest/float64(columns)/1e6))))
		for rank, line := range lines[i] {
			drawn := columnsOf(line, longest, columns)
			for _, k := range letters {
				seen[k.letter] = seen[k.letter] || strings.Contains(drawn, k.letter)
			}
			fmt.Fprintf(&b, "rank %-5d%s\n", rank, drawn)
		}
	}
	var key []string
	for _, k := range letters {
		if seen[k.letter] {
			key = append(key, k.letter+" "+k.words)
		}
	}
	if len(key) > 0 {
		fmt.Fprintln(&b, o.Paint(terminal.Dim, strings.Join(key, "; ")+"; . idle"))
	}
	for _, one := range p.Menu {
		chosen := ""
		if one.Chosen {
			chosen = ", by which it runs"
		}
		fmt.Fprintf(&b, "offer       %s on %s of %s, a step %s%s\n", one.Schedule, count(int(one.Workers), "worker", "workers"), orAny(one.Model), seconds(one.StepSec), chosen)
	}
	_, err := w.Write(b.Bytes())
	return err
}

func orAny(model string) string {
	if model == "" {
		return "any device"
	}
	return model
}

// columnsOf draws one rank: the letter of the pass that takes most of a column, or a point where it is
// idle for longer than for any pass.
func columnsOf(line []progress.Span, longest float64, columns int) string {
	drawn, each := []byte(strings.Repeat(".", columns)), longest/float64(columns)
	most := make([]float64, columns) // of the pass that is drawn there
	left := make([]float64, columns) // idle
	for c := range left {
		left[c] = each
	}
	letter := make([]byte, columns)
	for _, s := range line {
		at := strings.IndexFunc(s.Op, func(r rune) bool { return r >= 'A' && r <= 'Z' })
		if at < 0 || !(s.StartUs >= 0 && s.EndUs >= s.StartUs) {
			continue // what a job writes is not trusted
		}
		for c := int(s.StartUs / each); c < columns && float64(c)*each < s.EndUs; c++ {
			took := min(s.EndUs, float64(c+1)*each) - max(s.StartUs, float64(c)*each)
			if left[c] -= took; took > most[c] {
				most[c], letter[c] = took, s.Op[at]
			}
		}
	}
	for c := range drawn {
		if most[c] > 0 && most[c] >= left[c] {
			drawn[c] = letter[c]
		}
	}
	return string(drawn)
}
