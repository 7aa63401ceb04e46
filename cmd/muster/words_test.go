package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/plan"
)

var commandRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `muster ([^`]+)` \\|$")

// TestComingFrom runs the commands of each page for those who come from elsewhere, and holds the pages to the
// words that the program answers to.
func TestComingFrom(t *testing.T) {
	pages, err := filepath.Abs("../../docs/coming-from")
	if err != nil {
		t.Fatal(err)
	}
	p := newPlane(t)
	p.start()
	t.Setenv("MUSTER_SOCKET", p.socket())
	t.Setenv("PATH", os.Getenv("PATH"))
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../docs/examples/coming-from")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	nodes, err := p.client.Nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for system, known := range words {
		page, err := os.ReadFile(filepath.Join(pages, system+".md"))
		if err != nil {
			t.Fatal(err)
		}
		rows := commandRow.FindAllStringSubmatch(string(page), -1)
		if len(rows) < 5 {
			t.Errorf("%s.md has %d commands", system, len(rows))
		}
		for word, ours := range known {
			if !slices.ContainsFunc(rows, func(row []string) bool { return of(row[1], word) }) && word != "salloc" && word != "sky down" && word != "sky jobs cancel" {
				t.Errorf("%s.md says nothing of %s", system, word)
			}
			if _, err := muster(t, strings.Fields(word)...); err == nil || !strings.Contains(err.Error(), "that is "+ours+";") {
				t.Errorf("muster %s: %v, expected: that is %s", word, err, ours)
			}
		}
		for _, row := range rows {
			if row[2] == "up" {
				continue
			}
			args := strings.Fields(strings.ReplaceAll(row[2], "NODE", nodes.Nodes[0].Name))
			if args[0] == "logs" || args[0] == "hold" { // there must be output, or a run, to be asked about
				p.until(args[1], "runs", func(j view.Job) bool { return j.State() == plan.Running.String() })
			}
			if out, err := muster(t, args...); err != nil {
				t.Errorf("%s.md: muster %s: %v\n%s", system, strings.Join(args, " "), err, out)
			}
		}
	}
}

// of says whether a command line begins with a word or several.
func of(line, word string) bool { return line == word || strings.HasPrefix(line, word+" ") }
