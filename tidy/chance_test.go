package tidy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// seeded are the names of math/rand/v2 that draw nothing by themselves.
var seeded = []string{"New", "NewPCG", "NewChaCha8", "NewZipf", "Rand", "PCG", "ChaCha8", "Source", "Zipf"}

// TestChanceIsSeeded: what is drawn in a test is drawn again in its next run. Random cases come from internal/draws, which
// fixes rapid's seed, and generators have a seed that is no clock.
func TestChanceIsSeeded(t *testing.T) {
	for path, file := range tests(t) {
		for _, why := range unseeded(file.syntax) {
			t.Errorf("%s:%d: %s", path, file.set.Position(why.at).Line, why.text)
		}
	}
}

// TestUnseededIsFound: the check finds what it looks for.
func TestUnseededIsFound(t *testing.T) {
	const text = `package p
import ("math/rand/v2"; "time"; "pgregory.net/rapid"; "testing")
func TestX(t *testing.T) {
	rapid.Check(t, nil)
	t.Run("x", rapid.MakeCheck(nil))
	_ = rand.IntN(3)
	_ = rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	_ = rand.New(rand.NewPCG(1, 2))
}`
	file, err := parser.ParseFile(token.NewFileSet(), "x_test.go", text, 0)
	if err != nil {
		t.Fatal(err)
	}
	if found := unseeded(file); len(found) != 4 {
		t.Errorf("found %v, expected four", found)
	}
}

type unfixed struct {
	at   token.Pos
	text string
}

// unseeded is what a test draws without a seed.
func unseeded(file *ast.File) (found []unfixed) {
	imported := map[string]string{} // by name
	for _, i := range file.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		name := path[strings.LastIndex(path, "/")+1:]
		if path == "math/rand/v2" {
			name = "rand"
		}
		if i.Name != nil {
			name = i.Name.Name
		}
		imported[name] = path
	}
	ast.Inspect(file, func(n ast.Node) bool {
		x, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		of, ok := x.X.(*ast.Ident)
		switch {
		case x.Sel.Name == "UnixNano":
			found = append(found, unfixed{x.Pos(), "a clock is no seed: use draws.Seed"})
		case !ok:
		case imported[of.Name] == "pgregory.net/rapid" && (x.Sel.Name == "Check" || x.Sel.Name == "MakeCheck"):
			found = append(found, unfixed{x.Pos(), "rapid draws anew in every run: use draws.Check"})
		case imported[of.Name] == "math/rand" || imported[of.Name] == "math/rand/v2" && !slices.Contains(seeded, x.Sel.Name):
			found = append(found, unfixed{x.Pos(), "rand." + x.Sel.Name + " has no seed: use rand.New"})
		}
		return true
	})
	return found
}

// test is a file of tests, or of a suite.
type test struct {
	set    *token.FileSet
	syntax *ast.File
}

// tests parses every file of tests and suites, of both modules.
func tests(t *testing.T) map[string]test {
	t.Helper()
	all := map[string]test{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") {
			return err
		}
		if !strings.HasSuffix(path, "_test.go") && !suite(filepath.Base(filepath.Dir(path))) {
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		all[path] = test{set, file}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
