package which

import (
	_ "embed" // for the page
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/template"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/experiment/reproduce"
)

// text is what to choose in words, around what was measured.
//
//go:embed page.md.tmpl
var text string

// Page is a study that is shown as the page for operators.
type Page struct {
	*Study
	Found []catalogue.Finding // what claims found last
}

// Write writes the page, as Markdown.
func (p Page) Write(w io.Writer, _ bool) error {
	t, err := template.New("page.md.tmpl").Funcs(template.FuncMap{
		"table":  p.markdown,
		"times":  p.times,
		"never":  p.never,
		"told":   told,
		"claims": func(claim, metric string) (string, error) { return claimed(p.Found, claim, metric) },
	}).Parse(text)
	if err != nil {
		return err
	}
	return t.Execute(w, map[string]any{"Histories": p.Histories, "Figures": figures})
}

// between are figures by which choices are put in proportion to each other in words.
var between = map[string]func(r *reproduce.ComparedRow) float64{
	"jct":         func(r *reproduce.ComparedRow) float64 { return r.AvgJCTSec },
	"preemptions": preemptions,
	"longest":     func(r *reproduce.ComparedRow) float64 { return r.LongestGangWaitSec },
}

// times is how many times as large a figure is under a choice as under another, over the histories.
func (s *Study) times(of, choice, other string) (string, error) {
	a, b := s.choice(choice), s.choice(other)
	if a < 0 || b < 0 || between[of] == nil {
		return "", fmt.Errorf("there is no %s of %s and %s", of, choice, other)
	}
	return s.over(func(h *History) float64 { return between[of](&h.Compared.Rows[a]) / between[of](&h.Compared.Rows[b]) }), nil
}

// never is how many times as long jobs take under a choice where some never save, over the histories.
func (s *Study) never(choice string) (string, error) {
	i := s.choice(choice)
	if i < 0 {
		return "", fmt.Errorf("there is no choice %s", choice)
	}
	return s.over(func(h *History) float64 { return h.Never.Rows[i].AvgJCTSec / h.Compared.Rows[i].AvgJCTSec }), nil
}

// over is the range of a ratio over the histories.
func (s *Study) over(ratio func(h *History) float64) string {
	least, most := math.Inf(1), 0.
	for _, h := range s.compared() {
		r := ratio(&h)
		least, most = min(least, r), max(most, r)
	}
	return number(least) + " to " + number(most)
}

// choice is where a choice stands, or -1.
func (s *Study) choice(name string) int {
	return slices.IndexFunc(s.Choices, func(c Choice) bool { return c.Strategy == name })
}

// markdown is one figure of every choice on every history.
func (s *Study) markdown(f figure) string {
	var b strings.Builder
	for i, row := range s.table(&f) {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			fmt.Fprintln(&b, strings.Repeat("|---", len(row))+"|")
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// claimed is what a claim's metric came to last.
func claimed(found []catalogue.Finding, claim, metric string) (string, error) {
	for i := range found {
		if f := &found[i]; f.Name == claim && f.Metric == metric && f.Measured != nil {
			return number(*f.Measured), nil
		}
	}
	return "", fmt.Errorf("nothing is known of the metric %q of the claim %s: muster reproduce %s --write docs/claims.json", metric, claim, claim)
}
