package tidy

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestFunctionsOfTheTables: what the tables of ARCHITECTURE.md name in their last column is in the code: a method of the
// Scheduler or, with its name, of an owner under "One decision", and a method, function or type under "A job's way".
func TestFunctionsOfTheTables(t *testing.T) {
	page, err := os.ReadFile("../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	declared := declarations(sources(t))
	for title, prefix := range map[string]string{"A job's way": "", "One decision": "Scheduler."} {
		names := lastColumn(string(page), title)
		if len(names) < 8 {
			t.Errorf("the table under %q names %q in its last column, expected more", title, names)
		}
		for _, name := range names {
			if !strings.Contains(name, ".") {
				name = prefix + name
			}
			if !strings.Contains(name, "/") && !declared[name] {
				t.Errorf("ARCHITECTURE.md, %s: there is no %s in the code", title, name)
			}
		}
	}
}

// declarations are the names that files declare: functions and types alone and behind their package, methods alone and
// behind their receiver.
func declarations(all []source) map[string]bool {
	declared := map[string]bool{}
	for _, s := range all {
		for _, d := range s.file.Decls {
			switch x := d.(type) {
			case *ast.FuncDecl:
				of := s.file.Name.Name
				if x.Recv != nil {
					of = nameOf(receiver(x))
				}
				declared[x.Name.Name], declared[of+"."+x.Name.Name] = true, true
			case *ast.GenDecl:
				for _, spec := range x.Specs {
					if named, ok := spec.(*ast.TypeSpec); ok {
						declared[named.Name.Name], declared[s.file.Name.Name+"."+named.Name.Name] = true, true
					}
				}
			}
		}
	}
	return declared
}

// lastColumn is what stands in backticks in the last column of the table under a title.
func lastColumn(page, title string) (names []string) {
	_, section, _ := strings.Cut(page, "\n## "+title+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.TrimSuffix(strings.TrimSpace(line), "|"), "|")
		if !strings.HasPrefix(line, "|") {
			continue
		}
		for _, m := range span.FindAllStringSubmatch(cells[len(cells)-1], -1) {
			names = append(names, m[1])
		}
	}
	return names
}

// TestDecisionsAreNumbered: every number has its page, so that a gap is no lost decision.
func TestDecisionsAreNumbered(t *testing.T) {
	pages, err := filepath.Glob("../docs/decisions/*.md")
	if err != nil {
		t.Fatal(err)
	}
	numbered := regexp.MustCompile(`^(\d{4})-[a-z0-9-]+\.md$`)
	for i, page := range pages {
		if m := numbered.FindStringSubmatch(filepath.Base(page)); m == nil || strings.TrimLeft(m[1], "0") != strconv.Itoa(i+1) {
			t.Errorf("%s: expected the decision of number %d, as in %04d-name.md", page, i+1, i+1)
			break
		}
	}
}
