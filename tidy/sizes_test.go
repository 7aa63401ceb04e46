package tidy

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strings"
	"testing"
)

// A limit is how large anything of a kind may be. What is larger today is listed with its
// figure in testdata/sizes.txt and may only shrink.
type limit struct {
	most int
	// slack is how far a figure may be from its line, which is not raised: one that is a rate
	// changes with every commit, and rises where what had few branches moves elsewhere.
	slack  int
	advice string
}

var limits = map[string]limit{
	"file-lines":        {most: 500, advice: "split what says two things"},
	"function-lines":    {most: 80, advice: "split what does two things"},
	"interface-methods": {most: 5, advice: "let each caller ask for what it needs"},
	"parameters":        {most: 6, advice: "what belongs together is a struct"},
	// How code is laid out changes none of these.
	"fields":             {most: 30, advice: "let each part own its state: a type with methods of its own, and a package where others need it too"},
	"methods":            {most: 40, advice: "methods that touch two or three fields of their own are an owner: a type, or a package"},
	"branches":           {most: 15, advice: "split it where it asks something else, and give each question a name"},
	"branches-per-mille": {most: 250, slack: 5, advice: "ask once, make the case a value, and let what is true for all stand without a condition"},
}

// TestSizes applies the limits.
func TestSizes(t *testing.T) {
	const file = "testdata/sizes.txt"
	allowed := readSizes(t, file)
	found := sizesOf(sources(t))
	for _, what := range slices.Sorted(maps.Keys(found)) {
		l := limits[what[strings.LastIndex(what, " ")+1:]]
		most := l.most
		if line, listed := allowed[what]; listed {
			most = max(most, line+l.slack)
		}
		if found[what] > most {
			t.Errorf("%s %d: at most %d: %s", what, found[what], most, l.advice)
		}
	}
	for what, size := range allowed {
		l, known := limits[what[strings.LastIndex(what, " ")+1:]]
		now := found[what]
		switch {
		case !known:
			t.Errorf("%s: %q: expected NAME KIND FIGURE, with one of the kinds %q", file, what, slices.Sorted(maps.Keys(limits)))
		case now > l.most && size-now <= l.slack:
		case *update && now > l.most:
			setLine(t, file, what, fmt.Sprintf("%s %d", what, now))
		case *update:
			setLine(t, file, what, "")
		default:
			t.Errorf("%s: %s is %d now, and the line says %d: go test ./tidy -run Sizes -update", file, what, now, size)
		}
	}
}

// fewestCode is how many lines of code a package has before its branches are told as a rate:
// in one of a few functions it says nothing. Functions that only say something are not counted.
const fewestCode = 100

// sizesOf measures everything, by name and kind. Of two that are called alike the larger
// counts.
func sizesOf(all []source) map[string]int {
	found := map[string]int{}
	count := func(name, kind string, size int) {
		found[name+" "+kind] = max(size, found[name+" "+kind])
	}
	structs := structsOf(all)
	code, branching := map[string]int{}, map[string]int{}
	for _, s := range all {
		count(s.path, "file-lines", s.lines)
		code[s.folder] += s.code
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			name := s.folder + "." + f.Name.Name
			if f.Recv != nil {
				on := s.folder + "." + nameOf(receiver(f))
				found[on+" methods"]++
				name = on + "." + f.Name.Name
			}
			count(name, "function-lines", s.set.Position(f.End()).Line-s.set.Position(f.Pos()).Line+1)
			count(name, "parameters", f.Type.Params.NumFields())
			count(name, "branches", branches(f))
			if ways := branches(f); ways > 1 {
				branching[s.folder] += ways
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if x, ok := n.(*ast.TypeSpec); ok {
				name := s.folder + "." + x.Name.Name
				switch body := x.Type.(type) {
				case *ast.InterfaceType:
					count(name, "interface-methods", body.Methods.NumFields())
				case *ast.StructType:
					count(name, "fields", opened(structs, s.folder, body))
				}
			}
			return true
		})
	}
	for folder, lines := range code {
		if lines >= fewestCode {
			count(folder, "branches-per-mille", 1000*branching[folder]/lines)
		}
	}
	return found
}

// structsOf are the structs that packages declare, by FOLDER.NAME.
func structsOf(all []source) map[string]*ast.StructType {
	structs := map[string]*ast.StructType{}
	for _, s := range all {
		for _, d := range s.file.Decls {
			g, ok := d.(*ast.GenDecl)
			for i := 0; ok && i < len(g.Specs); i++ {
				if x, ok := g.Specs[i].(*ast.TypeSpec); ok {
					if body, ok := x.Type.(*ast.StructType); ok {
						structs[s.folder+"."+x.Name.Name] = body
					}
				}
			}
		}
	}
	return structs
}

// opened counts the fields of a struct, and in place of a part that is an unexported struct
// of its package the fields of that: who cuts a struct by embedding has won nothing. A part
// behind a pointer lives for itself and is one field.
func opened(structs map[string]*ast.StructType, folder string, body *ast.StructType) (fields int) {
	for _, f := range body.Fields.List {
		part, _ := f.Type.(*ast.StructType)
		if name := typeName(f.Type); !ast.IsExported(name) {
			if _, pointer := f.Type.(*ast.StarExpr); !pointer && structs[folder+"."+name] != nil {
				part = structs[folder+"."+name]
			}
		}
		each := 1
		if part != nil {
			each = opened(structs, folder, part)
		}
		fields += max(1, len(f.Names)) * each
	}
	return fields
}

// branches counts the ways through a function: one, and one more for each if, for, case, &&
// and || in it.
func branches(f *ast.FuncDecl) int {
	ways := 1
	ast.Inspect(f, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			ways++
		case *ast.CaseClause:
			if x.List != nil {
				ways++
			}
		case *ast.CommClause:
			if x.Comm != nil {
				ways++
			}
		case *ast.BinaryExpr:
			if joins(x) {
				ways++
			}
		}
		return true
	})
	return ways
}

func joins(x *ast.BinaryExpr) bool { return x.Op == token.LAND || x.Op == token.LOR }

// mostJoined is how many && and || a condition may have before it is long.
const mostJoined = 3

// longConditions counts the conditions that have more.
func longConditions(_ *testing.T, all []source) (int, []string) {
	var where []string
	for _, s := range all {
		seen := map[ast.Expr]bool{} // as a part of a condition
		ast.Inspect(s.file, func(n ast.Node) bool {
			if x, ok := n.(*ast.BinaryExpr); ok && joins(x) && !seen[x] {
				if joined := joined(x, seen); joined > mostJoined {
					where = append(where, fmt.Sprintf("%3d %s", joined, s.set.Position(x.Pos())))
				}
			}
			return true
		})
	}
	slices.Sort(where)
	slices.Reverse(where)
	return len(where), where
}

// joined counts the && and || of a condition, through brackets and negations, and marks them
// as seen.
func joined(x ast.Expr, seen map[ast.Expr]bool) int {
	switch x := x.(type) {
	case *ast.BinaryExpr:
		if joins(x) {
			seen[x] = true
			return 1 + joined(x.X, seen) + joined(x.Y, seen)
		}
	case *ast.ParenExpr:
		return joined(x.X, seen)
	case *ast.UnaryExpr:
		return joined(x.X, seen)
	}
	return 0
}

// TestWhatIsCounted: parts behind names are opened, and layout changes no count.
func TestWhatIsCounted(t *testing.T) {
	s := parsed(t, "p/p.go", []byte(`package p

type whole struct {
	a, b int
	part
	named part
	other *part
	Public
}

type part struct{ x, y, z int }

// Public is counted where it stands.
type Public struct{ q, r int }

type list[T any] struct{}

func (w *whole) one() { for range w.a { switch { case w.b > 1: default: } } }

func (l *list[T]) two() {}

func long(a, b, c bool) bool {
	if a && b {
		return func() bool { return a || !(b && (c || a) && b) }()
	}
	return false
}
`))
	found := sizesOf([]source{s})
	for what, want := range map[string]int{
		"p.whole fields": 2 + 3 + 3 + 1 + 1, "p.part fields": 3, "p.Public fields": 2,
		"p.whole methods": 1, "p.list methods": 1,
		"p.whole.one branches": 3, "p.list.two branches": 1, "p.long branches": 1 + 2 + 4,
		"p.long parameters": 3, "p.long function-lines": 6,
	} {
		if found[what] != want {
			t.Errorf("%s: %d, expected %d", what, found[what], want)
		}
	}
	if _, told := found["p branches-per-mille"]; told {
		t.Errorf("a package of %d lines has a rate", s.code)
	}
	s.code = 100
	if rate := sizesOf([]source{s})["p branches-per-mille"]; rate != 1000*10/100 {
		t.Errorf("%d branches for a thousand lines, expected 10 on 100", rate)
	}
	if n, where := longConditions(t, []source{s}); n != 1 {
		t.Errorf("%d long conditions, expected the one of four: %q", n, where)
	}
}
