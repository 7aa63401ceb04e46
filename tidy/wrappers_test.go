package tidy

import (
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

// TestWrappersForward: what stands around another strategy, or around a Scheduler, embeds
// strategy.Around, through which strategy.Can sees what the inner one can do besides; and
// nobody looks for an ability but by strategy.Can, which sees through wrappers.
func TestWrappersForward(t *testing.T) {
	all := sources(t)
	contracts := contractsOf(all)
	if len(contracts) < 10 {
		t.Fatalf("only the contracts %q were found", contracts)
	}
	found := 0
	for _, s := range all {
		if s.path == "catalogue/break.go" {
			continue // it takes away what the inner one can do
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.TypeAssertExpr:
				if is, ok := x.Type.(*ast.SelectorExpr); ok && declaresAbilities(typeName(is)) {
					t.Errorf("%s: .(%s) does not see through what stands around a strategy: use strategy.Can", s.set.Position(x.Pos()), typeName(is))
				}
			case *ast.TypeSpec:
				if st, ok := x.Type.(*ast.StructType); ok && around(all, s, x.Name.Name, st, contracts) {
					t.Errorf("%s: %s keeps another strategy and has its methods: it embeds strategy.Around, or what the other can do besides is lost", s.set.Position(x.Pos()), x.Name.Name)
				} else if ok && slices.ContainsFunc(st.Fields.List, func(f *ast.Field) bool { return isAround(f.Type) }) {
					found++
				}
			}
			return true
		})
	}
	if found < 3 {
		t.Errorf("only %d wrappers were found: the order with a lane, the order that sheds and the one that is watched are three", found)
	}
}

// declaresAbilities reports whether a type is declared beside the contract of a part.
func declaresAbilities(name string) bool {
	in, _, _ := strings.Cut(name, ".")
	return slices.Contains([]string{"profile", "allocate", "schedule", "pipeline", "flow", "serve", "strategy"}, in)
}

// contractsOf lists the contracts of parts, and the Scheduler that they make together.
func contractsOf(all []source) map[string]string {
	first := map[string]string{} // by contract: its first method
	wanted := []string{"schedule.Scheduler"}
	for _, s := range all {
		ast.Inspect(s.file, func(n ast.Node) bool {
			if x, ok := n.(*ast.IndexExpr); ok && typeName(x.X) == "strategy.NewPart" {
				wanted = append(wanted, path.Base(s.folder)+"."+typeName(x.Index))
			}
			return true
		})
	}
	for _, s := range all {
		ast.Inspect(s.file, func(n ast.Node) bool {
			if x, ok := n.(*ast.TypeSpec); ok && slices.Contains(wanted, path.Base(s.folder)+"."+x.Name.Name) {
				if i, ok := x.Type.(*ast.InterfaceType); ok {
					first[path.Base(s.folder)+"."+x.Name.Name] = i.Methods.List[0].Names[0].Name
				}
			}
			return true
		})
	}
	return first
}

// around reports whether a struct keeps something of a contract and fulfils the contract,
// by its own methods or by embedding, and does not embed strategy.Around.
func around(all []source, s source, name string, st *ast.StructType, contracts map[string]string) bool {
	for _, f := range st.Fields.List {
		contract := typeName(f.Type)
		if !strings.Contains(contract, ".") {
			contract = path.Base(s.folder) + "." + contract
		}
		if method, is := contracts[contract]; is && (len(f.Names) == 0 || hasMethod(all, s.folder, name, method)) {
			return true
		}
	}
	return false
}

// hasMethod reports whether a type of a folder has a method.
func hasMethod(all []source, folder, typ, method string) bool {
	for _, s := range all {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && s.folder == folder && f.Recv != nil && f.Name.Name == method && typeName(f.Recv.List[0].Type) == typ {
				return true
			}
		}
	}
	return false
}

func isAround(x ast.Expr) bool {
	i, ok := x.(*ast.IndexExpr)
	return ok && typeName(i.X) == "strategy.Around"
}

// typeName writes a type's name, without its pointer, as "package.Name" or "Name".
func typeName(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.StarExpr:
		return typeName(x.X)
	case *ast.SelectorExpr:
		return typeName(x.X) + "." + x.Sel.Name
	}
	return ""
}
