package tidy

import (
	"fmt"
	"go/ast"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A repeat is a pair of places, each of fewestLines or more consecutive lines of code in
// functions, that are the same but for names and values. Comments, blank lines and lone
// brackets do not count. What stands in more than mostPlaces places is an idiom of the
// language and no repeat.
const (
	fewestLines = 6
	mostPlaces  = 8
)

// codeLine is a line with names and values taken out.
type codeLine struct {
	number int
	shape  string
}

// codeLines are the lines of a file's functions.
func codeLines(s *source, text []byte) (lines []codeLine) {
	inFunction := map[int]bool{}
	for _, d := range s.file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			for line := s.set.Position(f.Pos()).Line; line <= s.set.Position(f.End()).Line; line++ {
				inFunction[line] = true
			}
		}
	}
	var words scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(text))
	words.Init(file, text, nil, 0)
	said := false // the line holds more than brackets
	end := func() {
		if n := len(lines); n > 0 && !said {
			lines = lines[:n-1]
		}
	}
	for {
		at, word, _ := words.Scan()
		number := file.Line(at)
		switch {
		case word == token.EOF:
			end()
			return lines
		case !inFunction[number] || word == token.SEMICOLON:
			continue
		case len(lines) == 0 || lines[len(lines)-1].number != number:
			end()
			lines, said = append(lines, codeLine{number: number}), false
		}
		shape := word.String()
		switch {
		case word == token.IDENT:
			shape = "name"
		case word.IsLiteral():
			shape = "value"
		}
		said = said || word.IsLiteral() || word.IsKeyword()
		lines[len(lines)-1].shape += shape + " "
	}
}

// repeats counts the pairs, the longest first.
func repeats(t *testing.T, all []source) (int, []string) {
	type place struct{ file, line int }
	files, places := make([][]codeLine, len(all)), map[string][]place{}
	for i := range all {
		text, err := os.ReadFile(filepath.Join("..", all[i].path))
		if err != nil {
			t.Fatal(err)
		}
		files[i] = codeLines(&all[i], text)
		for k := range len(files[i]) - fewestLines + 1 {
			run := ""
			for _, line := range files[i][k : k+fewestLines] {
				run += line.shape + "\n"
			}
			places[run] = append(places[run], place{i, k})
		}
	}
	length := func(a, b place) (n int) {
		x, y := files[a.file][a.line:], files[b.file][b.line:]
		for n < min(len(x), len(y)) && x[n].shape == y[n].shape {
			n++
		}
		return n
	}
	var pairs []string
	for _, at := range places {
		if len(at) > mostPlaces {
			continue
		}
		for i, a := range at {
			for _, b := range at[i+1:] {
				overlap := a.file == b.file && b.line-a.line < fewestLines
				longer := a.line > 0 && b.line > 0 && files[a.file][a.line-1].shape == files[b.file][b.line-1].shape
				if !overlap && !longer {
					pairs = append(pairs, fmt.Sprintf("%3d lines %s:%d ~ %s:%d", length(a, b),
						all[a.file].path, files[a.file][a.line].number, all[b.file].path, files[b.file][b.line].number))
				}
			}
		}
	}
	slices.Sort(pairs)
	slices.Reverse(pairs)
	return len(pairs), pairs
}

// TestRepeatsAreFound: names and values may differ, order and words may not.
func TestRepeatsAreFound(t *testing.T) {
	body := func(name, value, last string) string {
		return "package p\n\n// says something\nfunc " + name + "() {\n\ta := " + value + "\n\tif a > 1 {\n\t\ta--\n\t}\n\t// why\n\tfor range a {\n\t\tprintln(a)\n\t}\n\t" + last + "\n}\n"
	}
	for _, c := range []struct {
		first, second string
		same          bool
	}{
		{body("f", "3", "return"), body("g", "4", "return"), true},
		{body("f", "3", "return"), body("g", "4", "panic(a)"), true}, // six lines are enough
		{body("f", "3", "return"), strings.Replace(body("g", "4", "return"), "a--", "a++", 1), false},
	} {
		one, other := parsed(t, "p/one.go", []byte(c.first)), parsed(t, "p/other.go", []byte(c.second))
		x, y := codeLines(&one, []byte(c.first)), codeLines(&other, []byte(c.second))
		if len(x) != 7 || len(y) != 7 {
			t.Fatalf("%d and %d lines, expected 7 each: %+v", len(x), len(y), x)
		}
		same := slices.EqualFunc(x[:fewestLines], y[:fewestLines], func(a, b codeLine) bool { return a.shape == b.shape })
		if same != c.same {
			t.Errorf("the same: %t, expected %t: %+v %+v", same, c.same, x, y)
		}
	}
}
