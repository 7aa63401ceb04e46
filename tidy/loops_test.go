package tidy

import (
	"bufio"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// clocks are names under which simulated time is kept, movers of what moves it.
var (
	clocks = []string{"now", "nowSec", "nowSeconds", "clock"}
	movers = []string{"advance", "tick"}
)

// TestEventLoops: simulated time passes in the driver run/simulated, in its oracle and in
// world, and nowhere else: who plays jobs in a loop of his own measures a copy of what
// decides. testdata/loops.txt lists the files that still do, with the reason; it may only
// shrink.
func TestEventLoops(t *testing.T) {
	allowed := reasons(t, "testdata/loops.txt")
	for _, s := range sources(t) {
		if !in(s.folder, "strategies", "mechanism/control", "run/simulated/world", "experiment/reproduce/stand") && !in(s.folder, steps...) {
			continue
		}
		line := loop(&s)
		if _, listed := allowed[s.path]; line > 0 && !listed {
			t.Errorf("%s:%d moves a simulated clock in a loop: let the engine decide and run/simulated act (reproduce/stand)", s.path, line)
		}
		if line > 0 {
			delete(allowed, s.path)
		}
	}
	for path := range allowed {
		t.Errorf("testdata/loops.txt: %s has no such loop any more: take it out", path)
	}
}

// loop is the line of the first loop that moves a clock; 0 where there is none.
func loop(s *source) (line int) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		f, ok := n.(*ast.ForStmt)
		if !ok || line > 0 {
			return line == 0
		}
		ast.Inspect(f, func(n ast.Node) bool {
			var moves bool
			switch x := n.(type) {
			case *ast.AssignStmt:
				moves = x.Tok != token.DEFINE && slices.ContainsFunc(x.Lhs, func(left ast.Expr) bool { return slices.Contains(clocks, nameOf(left)) })
			case *ast.CallExpr:
				moves = slices.Contains(movers, strings.ToLower(nameOf(x.Fun)))
			}
			if moves && line == 0 {
				line = s.set.Position(n.Pos()).Line
			}
			return true
		})
		return line == 0
	})
	return line
}

func nameOf(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return x.Sel.Name
	}
	return ""
}

// reasons reads lines NAME | REASON.
func reasons(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := os.Open(filepath.FromSlash(file))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	list := map[string]string{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, reason, ok := strings.Cut(line, " | ")
		if !ok || len(reason) < 10 {
			t.Errorf("%s: %q: expected NAME | REASON", file, line)
		}
		list[name] = reason
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// TestClaimsUseWhatStrategiesUse: what only an experiment imports decides nothing, so that a
// figure about it says nothing of the strategy. testdata/unused.txt lists what is so, with
// the reason; it may only shrink.
func TestClaimsUseWhatStrategiesUse(t *testing.T) {
	allowed := reasons(t, "testdata/unused.txt")
	measured, used := map[string]string{}, map[string]bool{}
	for _, s := range sources(t) {
		for _, imp := range s.imports {
			if !mechanism(imp) || imp == s.folder {
				continue
			}
			if experiment(&s) {
				measured[imp] = s.path
			} else if !suite(s.folder) && s.folder != "catalogue" {
				used[imp] = true
			}
		}
	}
	for imp, path := range measured {
		if _, listed := allowed[imp]; !used[imp] && !listed {
			t.Errorf("%s is imported by %s and by nothing that decides: a claim may call only what the strategy itself calls", imp, path)
		}
		if !used[imp] {
			delete(allowed, imp)
		}
	}
	for imp := range allowed {
		t.Errorf("testdata/unused.txt: %s is used, or gone: take it out", imp)
	}
}

// experiment reports whether a file belongs to a claim: a Measure, or a stand.
func experiment(s *source) bool {
	return in(s.folder, "experiment/reproduce/stand") || strings.HasPrefix(filepath.Base(s.path), "measure")
}
