package tidy

import (
	"flag"
	"fmt"
	"go/ast"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write lower counts into testdata/ceilings.txt; none is ever raised")

// measure is something that a reviewer would count. Most may only fall; a floor may only
// rise.
type measure struct {
	name  string
	floor bool
	// slack is how much better the figure may be before the file has to say so: figures
	// over all files change with every commit.
	slack  int
	advice string
	of     func(t *testing.T, all []source) (count int, where []string)
}

var measures = []measure{
	{name: "repeats", advice: "let one piece of code serve where the logic is the same", of: repeats},
	{name: "without-scenario", advice: "put a scenario text that shows the one idea into testdata beside the strategy", of: withoutScenario},
	{name: "strategy-p90-lines", slack: 20, advice: "move what only a claim uses to the claim, and what others could use to a mechanism", of: strategyP90},
	{name: "median-file-lines", slack: 5, advice: "split what says two things", of: medianFile},
	{name: "median-function-lines", advice: "split what does two things", of: medianFunction},
	{name: "bare-verbs", advice: "say what it changes; CONTRIBUTING.md has the words", of: bareVerbs},
	{name: "long-conditions", slack: 1, advice: "give each question a name", of: longConditions},
	{name: "questions-that-change", advice: "let a question change nothing, or let its name and its comment say what it changes", of: changingQuestions},
	{name: "core-comments-per-mille", floor: true, slack: 5, advice: "say why", of: coreComments},
}

// TestCeilings holds every measure to its line in testdata/ceilings.txt. A figure that is
// better than its line has to lower the line, so that nobody spends what others gained.
func TestCeilings(t *testing.T) {
	const file = "testdata/ceilings.txt"
	limits, all := readSizes(t, file), sources(t)
	for _, m := range measures {
		count, where := m.of(t, all)
		limit, listed := limits[m.name]
		worse, better := count-limit, limit-count
		if m.floor {
			worse, better = better, worse
		}
		switch {
		case !listed:
			t.Errorf("%s: has no line %q; today it would say %d", file, m.name, count)
		case worse > 0:
			t.Errorf("%s: %d, and %s allows %d: %s\n%s", m.name, count, file, limit, m.advice, strings.Join(where, "\n"))
		case better > m.slack && *update:
			setLine(t, file, m.name, fmt.Sprintf("%s %d", m.name, count))
		case better > m.slack:
			t.Errorf("%s: %d is better than the %d of %s: go test ./tidy -run Ceilings -update", m.name, count, limit, file)
		default:
			t.Logf("%s %d\n%s", m.name, count, strings.Join(where, "\n"))
		}
	}
}

// setLine replaces the line of a name, or takes it out where the new one is empty.
func setLine(t *testing.T, file, name, line string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for old := range strings.Lines(string(text)) {
		switch {
		case !strings.HasPrefix(old, name+" "):
			kept = append(kept, old)
		case line != "":
			kept = append(kept, line+"\n")
		}
	}
	if err := os.WriteFile(file, []byte(strings.Join(kept, "")), 0o644); err != nil {
		t.Fatal(err)
	}
}

// withoutScenario counts strategies with no text in testdata.
func withoutScenario(_ *testing.T, all []source) (int, []string) {
	var without []string
	for _, folder := range folders(all) {
		if systemOf(folder) != folder {
			continue // it lies below a strategy
		}
		if entries, err := os.ReadDir(filepath.Join("..", folder, "testdata")); in(folder, "strategies") && (err != nil || !slices.ContainsFunc(entries, isText)) {
			without = append(without, folder)
		}
	}
	return len(without), without
}

func isText(e os.DirEntry) bool { return filepath.Ext(e.Name()) == ".txt" }

func folders(all []source) (list []string) {
	for _, s := range all {
		list = append(list, s.folder)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// strategyP90 is how many lines of code that decides a strategy has, with what it alone uses, comments and what
// only a claim uses left out, which nine of ten do not pass.
func strategyP90(_ *testing.T, all []source) (int, []string) {
	lines := map[string]int{}
	for _, s := range all {
		if in(s.folder, "strategies") && !experiment(&s) {
			lines[systemOf(s.folder)] += s.code
		}
	}
	var sizes []int
	var where []string
	for folder, n := range lines {
		sizes = append(sizes, n)
		where = append(where, fmt.Sprintf("%5d %s", n, folder))
	}
	slices.Sort(where)
	slices.Reverse(where)
	return quantile(sizes, .9), where[:min(12, len(where))]
}

func medianFile(_ *testing.T, all []source) (int, []string) {
	var sizes []int
	for _, s := range all {
		sizes = append(sizes, s.lines)
	}
	return quantile(sizes, .5), nil
}

func medianFunction(_ *testing.T, all []source) (int, []string) {
	var sizes []int
	for _, s := range all {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				sizes = append(sizes, s.set.Position(f.End()).Line-s.set.Position(f.Pos()).Line+1)
			}
		}
	}
	return quantile(sizes, .5), nil
}

// bareVerbs counts the functions whose name is one of the verbs that once meant everything.
func bareVerbs(_ *testing.T, all []source) (int, []string) {
	var where []string
	for _, s := range all {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && slices.Contains([]string{"settle", "look", "take"}, f.Name.Name) {
				where = append(where, s.folder+" "+f.Name.Name)
			}
		}
	}
	return len(where), where
}

// quantile is the smallest size that so large a part of all does not pass.
func quantile(sizes []int, part float64) int {
	slices.Sort(sizes)
	return sizes[max(0, int(math.Ceil(part*float64(len(sizes))))-1)]
}

// coreComments is the lines of comment for a thousand lines of code in what decides.
func coreComments(_ *testing.T, all []source) (int, []string) {
	comments, code := 0, 0
	of := map[string][2]int{}
	for _, s := range all {
		if in(s.folder, core...) && !suite(s.folder) {
			room, _, _ := strings.Cut(s.folder, "/")
			comments, code = comments+s.comments, code+s.code
			of[room] = [2]int{of[room][0] + s.comments, of[room][1] + s.code}
		}
	}
	var where []string
	for room, n := range of {
		where = append(where, fmt.Sprintf("%4d %s", 1000*n[0]/max(1, n[1]), room))
	}
	slices.Sort(where)
	return 1000 * comments / max(1, code), where
}

// readSizes reads lines NAME SIZE; a name may be of several words.
func readSizes(t *testing.T, file string) map[string]int {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[string]int{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		at := strings.LastIndex(line, " ")
		if at < 0 || strings.HasPrefix(line, "#") {
			continue
		}
		name := line[:at]
		if sizes[name], err = strconv.Atoi(line[at+1:]); err != nil {
			t.Fatalf("%s: %q: %v", file, line, err)
		}
	}
	return sizes
}

// countLines tells lines of comment from lines of code; a comment behind code is both.
func (s *source) countLines(text string) {
	commented := map[int]bool{}
	for _, group := range s.file.Comments {
		for line := s.set.Position(group.Pos()).Line; line <= s.set.Position(group.End()).Line; line++ {
			commented[line] = true
		}
	}
	n := 0
	for line := range strings.Lines(text) {
		n++
		if commented[n] {
			s.comments++
		}
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			s.code++
		}
	}
	s.lines = n
}
