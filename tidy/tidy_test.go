// The tests of this package are about the code itself: who may import whom, what the
// pure core may not touch, how large things may grow, and that every package says
// what it is.
package tidy

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/musterdl/muster/"

// source is one non-test Go file of the repository.
type source struct {
	path    string // from the root
	folder  string
	file    *ast.File
	set     *token.FileSet
	imports []string // of ours without the module, others whole
	// lines are all; of them some are code and some hold a comment.
	lines, code, comments int
}

// all are the sources once they are parsed.
var all []source

// sources parses every Go file, tests left out.
func sources(t *testing.T) []source {
	t.Helper()
	if all != nil {
		return all
	}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if n := d.Name(); n == "testdata" || strings.HasPrefix(n, ".") && path != ".." {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		s := parsed(t, strings.TrimPrefix(filepath.ToSlash(path), "../"), data)
		for _, i := range s.file.Imports {
			p, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			s.imports = append(s.imports, strings.TrimPrefix(p, module))
		}
		all = append(all, s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// parsed reads one file.
func parsed(t *testing.T, path string, data []byte) source {
	t.Helper()
	s := source{path: path, folder: filepath.ToSlash(filepath.Dir(path)), set: token.NewFileSet()}
	var err error
	if s.file, err = parser.ParseFile(s.set, path, data, parser.ParseComments); err != nil {
		t.Fatal(err)
	}
	s.countLines(string(data))
	return s
}

// in reports whether a folder is one of the given ones or lies below one.
func in(folder string, of ...string) bool {
	return slices.ContainsFunc(of, func(o string) bool { return folder == o || strings.HasPrefix(folder, o+"/") })
}

// steps are the folders of the contracts. Beside a contract lie its conformance suite and
// the mechanisms that strategies share; the strategies lie under strategies/STEP.
var steps = []string{"profile", "allocate", "schedule", "pipeline", "flow", "serve"}

func mechanism(folder string) bool {
	return in(folder, steps...) && !slices.Contains(steps, folder) && !suite(folder)
}

// core is what decides: the state, the cycle, the steps and their strategies.
var core = append([]string{"plan", "engine", "strategies", "mechanism/control"}, steps...)

// suite is a conformance suite: a test that happens to be a package.
func suite(folder string) bool { return strings.HasSuffix(folder, "test") }

// TestImports keeps the house rules: what each folder may import of ours.
func TestImports(t *testing.T) {
	for _, s := range sources(t) {
		for _, imp := range s.imports {
			if strings.Contains(strings.Split(imp, "/")[0], ".") || !ours(imp) {
				continue // another module's, or the standard library's
			}
			if why := forbidden(s.folder, imp); why != "" {
				t.Errorf("%s imports %s: %s", s.path, imp, why)
			}
		}
	}
}

func ours(imp string) bool {
	_, err := os.Stat(filepath.Join("..", strings.Split(imp, "/")[0]))
	return err == nil
}

func forbidden(folder, imp string) string {
	switch {
	case suite(folder):
		return ""
	case in(folder, "model") && imp != "model/unit" && imp != "model/queue":
		return "nouns import nothing but unit"
	case folder == "plan" && !in(imp, "model"):
		return "plan imports nouns only"
	case in(imp, "strategies") && folder != "catalogue" && systemOf(folder) != systemOf(imp):
		return "only catalogue imports strategies"
	case imp == "run/simulated/world" && !in(folder, "run/simulated", "experiment/reproduce", "internal/ahead"):
		return "only run/simulated, and who sets it up, may know the truth"
	case in(folder, "strategies") && in(imp, "engine", "run", "internal", "experiment", "catalogue"):
		return "a strategy imports its contracts, nouns, plan and mechanisms"
	case in(folder, steps...) && in(imp, "engine", "run", "internal", "experiment", "catalogue"):
		return "a contract knows no engine, driver or world"
	case in(folder, "mechanism") && !in(imp, "model", "mechanism"):
		return "a mechanism knows nouns only"
	case in(folder, "engine") && in(imp, "run", "internal", "experiment", "catalogue"):
		return "the engine knows no driver and no file"
	case folder == "internal/server/door" && ours(imp) && imp != "internal/access":
		return "the door knows who asks, and nothing of what is asked"
	case folder == "run/kube/driver/fleet" && in(imp, "run/kube/gang"):
		return "the fleet knows no gangs"
	case in(folder, "run") && in(imp, "catalogue") && !in(folder, "run/kube/cmd", "run/kube/advise"):
		return "a driver contains no strategy"
	}
	return ""
}

// systemOf is the folder of the strategy that a folder belongs to, strategies/STEP/SYSTEM: what a strategy alone uses
// lies below its own.
func systemOf(folder string) string {
	parts := strings.Split(folder, "/")
	return strings.Join(parts[:min(len(parts), 3)], "/")
}

// TestMechanismsAreShared: what one strategy alone uses lies below it, and is counted with it.
func TestMechanismsAreShared(t *testing.T) {
	users := map[string]map[string]bool{}
	for _, s := range sources(t) {
		for _, imp := range s.imports {
			if users[imp] == nil {
				users[imp] = map[string]bool{}
			}
			users[imp][systemOf(s.folder)] = true
		}
	}
	for _, folder := range folders(sources(t)) {
		if alone := slices.Collect(maps.Keys(users[folder])); (mechanism(folder) || in(folder, "mechanism")) && len(alone) == 1 && in(alone[0], "strategies") {
			t.Errorf("%s alone uses %s: move it there", alone[0], folder)
		}
	}
}

// TestPureCore: engine, plan, contracts and strategies read no clock, open nothing,
// start nothing and draw no chance that is not a parameter.
func TestPureCore(t *testing.T) {
	pure := append([]string{"model", "mechanism", "plan", "strategies", "engine", "run/simulated/world"}, steps...)
	banned := []string{"os", "net", "net/http", "os/exec", "time", "syscall", "log", "log/slog", "math/rand", "crypto/rand", "io/ioutil"}
	for _, s := range sources(t) {
		if !in(s.folder, pure...) || in(s.folder, "run/simulated/world/pollux", "run/simulated/world/speed/fit") || suite(s.folder) {
			continue
		}
		for _, imp := range s.imports {
			if slices.Contains(banned, imp) {
				t.Errorf("%s imports %s: time, chance and the outside are parameters here", s.path, imp)
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if g, ok := n.(*ast.GoStmt); ok {
				t.Errorf("%s:%d starts a goroutine", s.path, s.set.Position(g.Pos()).Line)
			}
			return true
		})
	}
}

// TestNames: no package is called after what it is not.
func TestNames(t *testing.T) {
	for _, s := range sources(t) {
		if slices.Contains([]string{"utils", "util", "common", "helpers", "helper", "base", "manager", "misc"}, s.file.Name.Name) {
			t.Errorf("%s: package %s says nothing", s.path, s.file.Name.Name)
		}
	}
}

// TestComments: every package has a sentence, and so has every exported name, methods
// included.
func TestComments(t *testing.T) {
	documented := map[string]bool{}
	for _, s := range sources(t) {
		documented[s.folder] = documented[s.folder] || s.file.Doc != nil
		for _, d := range s.file.Decls {
			switch x := d.(type) {
			case *ast.FuncDecl:
				if x.Name.IsExported() && x.Doc == nil {
					t.Errorf("%s: func %s has no comment", s.path, x.Name.Name)
				}
			case *ast.GenDecl:
				for _, name := range unsaid(x) {
					t.Errorf("%s: %s has no comment", s.path, name)
				}
			}
		}
	}
	for folder, ok := range documented {
		if !ok {
			t.Errorf("%s: no file of the package has a package comment", folder)
		}
	}
}

// unsaid are the exported names of a declaration that no comment is about; one above a
// group is about all of it.
func unsaid(d *ast.GenDecl) (names []string) {
	for _, spec := range d.Specs {
		switch x := spec.(type) {
		case *ast.TypeSpec:
			if x.Name.IsExported() && d.Doc == nil && x.Doc == nil {
				names = append(names, "type "+x.Name.Name)
			}
		case *ast.ValueSpec:
			for _, name := range x.Names {
				if name.IsExported() && d.Doc == nil && x.Doc == nil && x.Comment == nil {
					names = append(names, d.Tok.String()+" "+name.Name)
				}
			}
		}
	}
	return names
}

// TestStrategySizes prints the lines of each strategy folder, tests left out, the largest
// first; it fails nothing: go test -v -run StrategySizes ./tidy.
func TestStrategySizes(t *testing.T) {
	lines := map[string]int{}
	for _, s := range sources(t) {
		if in(s.folder, "strategies") {
			lines[systemOf(s.folder)] += s.lines
		}
	}
	folders := slices.SortedFunc(maps.Keys(lines), func(a, b string) int {
		return cmp.Or(lines[b]-lines[a], strings.Compare(a, b))
	})
	for _, folder := range folders {
		t.Logf("%5d %s", lines[folder], folder)
	}
}
