package tidy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// method is one with a name for its receiver, which it may change.
type method struct {
	of   string // the folder and type
	decl *ast.FuncDecl
}

// changingQuestions are the methods whose comment begins NAME reports whether, and that assign to a field of their receiver or
// call a method of it that does.
func changingQuestions(_ *testing.T, all []source) (int, []string) {
	var methods []method
	for _, s := range all {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil && f.Body != nil && len(f.Recv.List[0].Names) == 1 {
				methods = append(methods, method{s.folder + "." + nameOf(receiver(f)), f})
			}
		}
	}
	changes := map[string]bool{} // by type and name
	for more := true; more; {
		more = false
		for _, m := range methods {
			if name := m.of + "." + m.decl.Name.Name; !changes[name] && m.changes(changes) {
				changes[name], more = true, true
			}
		}
	}
	var where []string
	for _, m := range methods {
		if name := m.of + "." + m.decl.Name.Name; changes[name] && asks(m.decl) {
			where = append(where, name)
		}
	}
	slices.Sort(where)
	return len(where), where
}

// asks reports whether a function's comment says that this is all it does: NAME reports whether. One that says what it
// changes before it reports is no question.
func asks(f *ast.FuncDecl) bool {
	words := strings.Fields(f.Doc.Text())
	return len(words) > 2 && words[0] == f.Name.Name && words[1] == "reports" && strings.HasPrefix(words[2], "whether")
}

// changes reports whether a method changes what its receiver points to, given which methods do.
func (m method) changes(known map[string]bool) (found bool) {
	if _, pointer := m.decl.Recv.List[0].Type.(*ast.StarExpr); !pointer {
		return false // it has a copy
	}
	self := m.decl.Recv.List[0].Names[0].Name
	ast.Inspect(m.decl.Body, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.AssignStmt:
			found = found || x.Tok != token.DEFINE && slices.ContainsFunc(x.Lhs, func(e ast.Expr) bool { return fieldOf(e, self) })
		case *ast.IncDecStmt:
			found = found || fieldOf(x.X, self)
		case *ast.CallExpr:
			switch f := x.Fun.(type) {
			case *ast.Ident:
				found = found || (f.Name == "delete" || f.Name == "clear") && fieldOf(x.Args[0], self)
			case *ast.SelectorExpr:
				of, ok := f.X.(*ast.Ident)
				found = found || ok && of.Name == self && known[m.of+"."+f.Sel.Name]
			}
		}
		return true
	})
	return found
}

// fieldOf reports whether an expression is a field of what a name means, or lies in one.
func fieldOf(e ast.Expr, name string) bool {
	for within := false; ; within = true {
		switch x := e.(type) {
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.Ident:
			return within && x.Name == name
		default:
			return false
		}
	}
}

// TestQuestionsThatChangeAreFound: the count finds what it looks for, and nothing else.
func TestQuestionsThatChangeAreFound(t *testing.T) {
	const text = `package p
type T struct { n int; m map[int]int; s []T }
// A reports whether; it writes a field.
func (t *T) A() bool { t.n = 3; return true }
// B reports
// whether; it calls what writes.
func (t *T) B() bool { return t.deep() }
func (t *T) deep() bool { return t.write() }
func (t *T) write() bool { t.s[0].n++; return true }
// C reports whether; it takes out.
func (t *T) C() bool { delete(t.m, 1); return true }
// D reports whether; it has a copy.
func (t T) D() bool { t.n = 3; return true }
// E reports whether; it reads.
func (t *T) E() bool { n := t.n; n++; other := T{}; other.n = n; return t.read() && other.n > 0 }
func (t *T) read() bool { return t.n > 0 }
// F writes and reports whether it did.
func (t *T) F() bool { t.n = 3; return true }
`
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "p.go", text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	if _, found := changingQuestions(t, []source{{folder: "p", file: file, set: set}}); !slices.Equal(found, []string{"p.T.A", "p.T.B", "p.T.C"}) {
		t.Errorf("found %v, expected A, B and C", found)
	}
}
