package which

import (
	_ "embed" // for the page
	"fmt"
	"io"
	"strings"
	"text/template"

	"github.com/musterdl/muster/catalogue"
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
		"told":   told,
		"claims": func(claim, metric string) (string, error) { return claimed(p.Found, claim, metric) },
	}).Parse(text)
	if err != nil {
		return err
	}
	return t.Execute(w, map[string]any{"Histories": p.Histories, "Figures": figures})
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
