package gang

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of docs/kubernetes.md anew")

// TestPage: the tables of the page for users are what is read.
func TestPage(t *testing.T) {
	path := filepath.Join("..", "..", "..", "docs", "kubernetes.md")
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := string(page)
	for name, table := range map[string]string{"kinds": kindsTable(), "annotations": annotationsTable()} {
		if want, err = between(want, name, table); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	if want == string(page) {
		return
	}
	if !*update {
		t.Fatalf("%s does not say what the package reads; run in run/kube: go test ./gang -run Page -update", path)
	}
	if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// between puts a text between the two comments that are named so.
func between(page, name, text string) (string, error) {
	before, rest, ok := strings.Cut(page, "<!-- "+name+": ")
	if !ok {
		return "", fmt.Errorf("there is no comment %q", "<!-- "+name+": ... -->")
	}
	how, rest, _ := strings.Cut(rest, "-->\n")
	_, after, ok := strings.Cut(rest, "<!-- end of "+name+" -->")
	if !ok {
		return "", fmt.Errorf("there is no comment %q", "<!-- end of "+name+" -->")
	}
	return before + "<!-- " + name + ": " + how + "-->\n" + text + "<!-- end of " + name + " -->" + after, nil
}

func annotationsTable() string {
	var b strings.Builder
	b.WriteString("| Annotation | For example | Says | Without it |\n|---|---|---|---|\n")
	for _, a := range annotations {
		name := "`" + a.Name + "`"
		if a.Label {
			name += " (or label)"
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s |\n", name, a.Example, cell(a.Says), cell(a.Otherwise))
	}
	return b.String()
}

func kindsTable() string {
	var b strings.Builder
	b.WriteString("| Kind | API | Stopped by | Can be resized |\n|---|---|---|---|\n")
	for _, k := range kinds {
		stopped, resized := "evicting its pods", "no"
		if k.Suspends {
			stopped = "suspending it"
		}
		if k.Name == kindPod {
			stopped = "evicting it; over if nobody makes it again"
		}
		if k.Resizes {
			resized = "yes"
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s |\n", k.Kind, k.APIVersion, stopped, resized)
	}
	return b.String()
}

// cell is a text as a cell of a table may hold it.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
