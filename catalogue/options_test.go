package catalogue

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write options.txt anew")

// TestMeanings: what options are said to mean is what the comments of their fields say.
func TestMeanings(t *testing.T) {
	var lines []string
	for _, e := range All {
		if e.options == nil {
			continue
		}
		of := reflect.TypeOf(e.options()).Elem()
		comments := commentsOf(t, of)
		for i, name := range fieldNames(of) {
			if meaning := comments[of.Field(i).Name]; name != "" && meaning != "" {
				lines = append(lines, fmt.Sprintf("%s %s: %s\n", e.Name, name, meaning))
			}
		}
	}
	slices.Sort(lines)
	if *update {
		if err := os.WriteFile("options.txt", []byte(strings.Join(lines, "")), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for said := range strings.Lines(optionsText) {
		if !slices.Contains(lines, said) {
			t.Errorf("options.txt says %q, and no comment does: go test ./catalogue -run Meanings -update", said)
		}
	}
	if len(lines) < 50 || !strings.HasPrefix(meaningOf(House, "refresh"), "how often") {
		t.Errorf("%d options have a comment; refresh of %s is %q", len(lines), House, meaningOf(House, "refresh"))
	}
}

// commentsOf reads what is said of the fields of a struct beside them, in one line each and without the name and "is".
func commentsOf(t *testing.T, of reflect.Type) map[string]string {
	t.Helper()
	folder := filepath.Join("..", strings.TrimPrefix(of.PkgPath(), "github.com/musterdl/muster/"))
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, is := n.(*ast.TypeSpec)
			if !is || spec.Name.Name != of.Name() {
				return true
			}
			if s, is := spec.Type.(*ast.StructType); is {
				for _, field := range s.Fields.List {
					for _, ident := range field.Names {
						words := strings.Join(strings.Fields(field.Doc.Text()+" "+field.Comment.Text()), " ")
						words = strings.TrimPrefix(strings.TrimPrefix(words, ident.Name+" "), "is ")
						said[ident.Name] = strings.TrimSuffix(words, ".")
					}
				}
			}
			return true
		})
	}
	return said
}
