package tidy

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mostUnreached is how many lines testdata/unreached.txt may have.
const mostUnreached = 5

// TestMentioned is the quick look for what no program reaches: functions whose name stands
// in no other place but tests.
func TestMentioned(t *testing.T) {
	listed := reasons(t, "testdata/unreached.txt")
	if len(listed) > mostUnreached {
		t.Errorf("testdata/unreached.txt has %d lines, at most %d", len(listed), mostUnreached)
	}
	mentioned := map[string]bool{}
	for _, s := range sources(t) {
		if suite(s.folder) {
			continue
		}
		declared := map[*ast.Ident]bool{}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.FuncDecl:
				declared[x.Name] = true
			case *ast.Ident:
				mentioned[x.Name] = mentioned[x.Name] || !declared[x]
			}
			return true
		})
	}
	for _, s := range sources(t) {
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || mentioned[f.Name.Name] || suite(s.folder) || slices.Contains(calledByLibraries, f.Name.Name) {
				continue
			}
			name := s.folder + "." + f.Name.Name
			if f.Recv != nil {
				name = s.folder + "." + nameOf(receiver(f)) + "." + f.Name.Name
			}
			if !excused(listed, s.folder, name) {
				t.Errorf("%s: nothing but tests mentions %s: use it or take it out, or make it the tests' own", s.path, name)
			}
		}
	}
}

// calledByLibraries are names of methods that the standard library and other modules call.
var calledByLibraries = []string{"main", "init", "MarshalText", "MarshalJSON", "UnmarshalJSON", "Describe", "Collect", "DeepCopyObject",
	"Transformer", "Resync", "Visit"}

func receiver(f *ast.FuncDecl) ast.Expr {
	of := f.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if generic, ok := of.(*ast.IndexExpr); ok {
		of = generic.X
	}
	return of
}

func excused(listed map[string]string, folder, name string) bool {
	return listed[name] != "" || listed[folder] != ""
}

// TestReached asks, slowly, what no program reaches: neither those of this module nor those
// of the module for Kubernetes.
func TestReached(t *testing.T) {
	if os.Getenv("MUSTER_LONG") == "" {
		t.Skip("set MUSTER_LONG=1 to follow every call")
	}
	listed := reasons(t, "testdata/unreached.txt")
	tool := filepath.Join(t.TempDir(), "deadcode")
	output(t, "..", "go", "build", "-o", tool, "golang.org/x/tools/cmd/deadcode")
	dead, loaded := unreached(t, tool, ".."), programs(t, "..")
	deadThere, loadedThere := unreached(t, tool, "../run/kube"), programs(t, "../run/kube")
	found := map[string]bool{}
	for name, folder := range deadThere {
		if in(folder, "run/kube") {
			dead[name] = folder
		}
	}
	for name, folder := range dead {
		if _, also := deadThere[name]; loadedThere[folder] && !also || suite(folder) {
			continue
		}
		found[name], found[folder] = true, found[folder] || !loaded[folder] && !loadedThere[folder]
		if !excused(listed, folder, name) {
			t.Errorf("no program reaches %s: use it or take it out, or make it the tests' own", name)
		}
	}
	for name := range listed {
		if !found[name] {
			t.Errorf("testdata/unreached.txt: %s is reached, or gone: take it out", name)
		}
	}
}

// unreached are the functions of ours that no main package of a module reaches, with the
// folder of each.
func unreached(t *testing.T, tool, dir string) map[string]string {
	t.Helper()
	var packages []struct {
		Path  string
		Funcs []struct{ Name string }
	}
	if err := json.Unmarshal(output(t, dir, tool, "-json", "-filter", strings.TrimSuffix(module, "/"), "./..."), &packages); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, p := range packages {
		folder := strings.TrimPrefix(p.Path, module)
		for _, f := range p.Funcs {
			all[folder+"."+f.Name] = folder
		}
	}
	return all
}

// programs are the folders of ours that a module's main packages are made of.
func programs(t *testing.T, dir string) map[string]bool {
	t.Helper()
	args := []string{"list", "-deps"}
	for name := range strings.FieldsSeq(string(output(t, dir, "go", "list", "-f", `{{if eq .Name "main"}}{{.ImportPath}}{{end}}`, "./..."))) {
		args = append(args, name)
	}
	folders := map[string]bool{}
	for name := range strings.FieldsSeq(string(output(t, dir, "go", args...))) {
		if folder, ours := strings.CutPrefix(name, module); ours {
			folders[folder] = true
		}
	}
	return folders
}

// output runs a program in a folder and returns what it writes.
func output(t *testing.T, dir, name string, args ...string) []byte {
	t.Helper()
	var complaints bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stderr = dir, &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, complaints.String())
	}
	return out
}
