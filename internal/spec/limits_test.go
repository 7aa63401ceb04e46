package spec

import (
	"fmt"
	"strings"
	"testing"

	"github.com/goccy/go-yaml/lexer"
	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/costtest"
	"github.com/musterdl/muster/internal/draws"
)

// A file of 4 MB costs no more than the budget, whether it can be read or not.
func TestNoFileCostsMore(t *testing.T) {
	type file struct{ before, item, after string }
	for name, c := range map[string]file{
		"arguments":                      {"command: [", "a,", "b]"},
		"arguments as people write them": {"command:\n", "- a\n", ""},
		"sizes":                          {"sizes: [", "1,", "1]"},
		"jobs with an unknown field":     {"jobs: [", "{x: 1},", "{x: 1}]"},
		"jobs of a line each":            {"jobs:\n", "- {name: j, workers: 2, estimate: 90m}\n", ""},
		"documents":                      {"", "---\nname: a\n", ""},
		"environment":                    {"command: [a]\nenv: {", "AAAAAA: 1,", "B: 2}"},
		"words":                          {"name: ", "a ", ""},
		"lines":                          {"name: a\n", "a\n", ""},
		"a long text":                    {"command: |\n", "  x\n", ""},
		"quotes":                         {"command: \"", "\\n", "\""},
		"texts":                          {"command: ", "\"\"", ""},
		"comments":                       {"name: a\n", "#\n", ""},
		"commas":                         {"", ",", ""},
		"colons":                         {"", ": ", ""},
		"at signs":                       {"", "@", ""},
		"tags":                           {"", "! ", ""},
		"aliases":                        {"a: &a 1\nb: [", "*a,", "*a]"},
		"aliases of lists":               {"a: &a [" + strings.Repeat("1,", 9000) + "1]\njobs: [", "*a,", "*a]"},
		"aliases of environments":        {"jobs:\n- env: &a {" + strings.Repeat("A: 1,", 4000) + "}\n", "- env: *a\n", ""},
		"brackets":                       {"", "[", ""},
		"tabs":                           {"", "\t\n", ""},
	} {
		// As large as a file may be, and as many of them as are let through.
		whole := (maxFileBytes - len(c.before) - len(c.after)) / len(c.item)
		few := (maxMarks - marks([]byte(c.before+c.after)) - 1) / max(1, marks([]byte(c.item)))
		for _, n := range []int{whole, min(few, whole)} {
			text := []byte(c.before + strings.Repeat(c.item, n) + c.after)
			var err error
			costtest.Within(t, fmt.Sprintf("%s, %d bytes", name, len(text)), 1, func() { _, err = Jobs("f.yaml", text) })
			t.Logf("%.120v", err)
		}
	}
}

// What people submit at once is far below the limits: ten thousand jobs of a line each.
func TestTenThousandJobsFit(t *testing.T) {
	var b strings.Builder
	b.WriteString("jobs:\n")
	for i := range 10_000 {
		b.WriteString("- {name: job" + string(rune('a'+i%26)) + strings.Repeat("x", i%7) + ", workers: 2, estimate: 90m, command: [python, train.py]}\n")
	}
	jobs := strings.ReplaceAll(b.String(), "name: job", "class: ")
	if got, err := Jobs("f.yaml", []byte(jobs)); err != nil || len(got) != 10_000 {
		t.Errorf("%d jobs: %.300v", len(got), err)
	}
}

// The count that is made before the scanner runs bounds what it makes.
func TestMarksBoundTokens(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune("ab \t\n\r:#-?*&!|>'\"%@`{}[],~<.\\é0"))).Draw(t, "text")
		if tokens, most := len(lexer.Tokenize(text)), 2*marks([]byte(text))+2; tokens > most {
			t.Fatalf("%q: %d tokens, at most %d expected", text, tokens, most)
		}
	})
}
