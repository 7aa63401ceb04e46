package catalogue

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSkeletonsWork generates a strategy of every part, lays the files over this module
// without touching it, adds the printed lines to the catalogue, and lets the compiler, the
// generated tests and texts and the test of acts judge.
func TestSkeletonsWork(t *testing.T) {
	if os.Getenv("MUSTER_LONG") == "" {
		t.Skip("compiles what stands on the catalogue anew; set MUSTER_LONG=1")
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	temp := t.TempDir()
	writeFile(t, filepath.Join(temp, "go.mod"), "module "+module+"\n")
	list := copyList(t, temp)
	over := map[string]string{filepath.Join(root, "catalogue", "all.go"): list}
	parts, judges := Stubs(), []string{"./strategies", "./catalogue"}
	var made []string // the folders
	for _, part := range parts {
		if err := os.MkdirAll(filepath.Join(temp, "strategies", stepOf(part)), 0o777); err != nil {
			t.Fatal(err)
		}
		s, err := NewStrategy(temp, part, "", "made-for-"+part)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range s.Files {
			over[filepath.Join(root, strings.TrimPrefix(f, temp))] = f
		}
		made = append(made, "./strategies/"+stepOf(part)+"/madefor"+part)
	}
	checkSorted(t, list)
	overlay, err := json.Marshal(map[string]any{"Replace": over})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(temp, "overlay.json")
	writeFile(t, file, string(overlay))
	asked := map[string][]string{"./strategies": {"Texts/.*/madefor", "Conform/made-for"}, "./catalogue": {"Acts/made-for"}}
	for _, folder := range made {
		asked[folder] = []string{""}
	}
	for _, folder := range append(made, judges...) {
		// Neither go vet nor go test can enter a folder that is only laid over.
		test := filepath.Join(temp, filepath.Base(folder)+".test")
		command(t, root, "go", "test", "-c", "-vet=off", "-overlay", file, "-o", test, folder)
		for _, which := range asked[folder] {
			said := command(t, filepath.Join(temp, "strategies"), test, "-test.v", "-test.failfast", "-test.run", which)
			if played := strings.Count(said, "--- PASS: TestTexts/"); strings.HasPrefix(which, "Texts") && played != len(parts) {
				t.Errorf("%d texts of %d new strategies were played", played, len(parts))
			}
		}
	}
}

// copyList copies the list of strategies below another root.
func copyList(t *testing.T, root string) string {
	t.Helper()
	text, err := os.ReadFile("all.go")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(root, "catalogue"), 0o777); err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(root, "catalogue", "all.go")
	writeFile(t, list, string(text))
	return list
}

// checkSorted says which lines of a list are not in the order of the alphabet: those who add strategies
// beside each other touch other lines.
func checkSorted(t *testing.T, list string) {
	t.Helper()
	text, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	last, lines := "", 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "var ") {
			last = ""
		}
		if key := lineKey.FindStringSubmatch(line); key != nil {
			if lines++; key[1] <= last {
				t.Errorf("%s: the line of %s stands after that of %s, expected the order of the alphabet", list, key[1], last)
			}
			last = key[1]
		}
	}
	if expected := len(All) + len(ForPlans); lines < expected {
		t.Errorf("%s: %d lines are of strategies, expected %d", list, lines, expected)
	}
}

// TestListIsSorted: each strategy has its place in the list.
func TestListIsSorted(t *testing.T) { checkSorted(t, "all.go") }

// stepOf is the step that a part's skeleton is written for.
func stepOf(part string) string {
	for _, p := range Parts() {
		if p.Name == part && p.Step != "" {
			return p.Step
		}
	}
	return "schedule"
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func command(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	c := exec.Command(name, args...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", c, err, out)
	}
	return string(out)
}

// TestEveryPartHasAStub: only the part that no strategy fills has none.
func TestEveryPartHasAStub(t *testing.T) {
	for _, p := range Parts() {
		if _, ok := stubs[p.Name]; ok == (p.Words != nil) {
			t.Errorf("part %s: has a stub: %t", p.Name, ok)
		}
	}
}

func TestNewStrategyMistakes(t *testing.T) {
	here := t.TempDir()
	writeFile(t, filepath.Join(here, "go.mod"), "module "+module+"\n")
	copyList(t, here)
	bare := t.TempDir()
	writeFile(t, filepath.Join(bare, "go.mod"), "module "+module+"\n")
	if err := os.MkdirAll(filepath.Join(here, "strategies", "schedule", "fortests"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ root, part, step, name, say string }{
		{here, "sleep", "", "for-tests", "no skeleton"},
		{here, "restart", "", "for-tests", "no skeleton"},
		{here, "place", "sleep", "for-tests", "no strategies of step"},
		{here, "place", "run", "for-tests", "no strategies of step"},
		{here, "order", "", "Mine", "no name"},
		{here, "order", "", "../mine", "no name"},
		{here, "order", "", "", "no name"},
		{here, "order", "", "fifo", "already"},
		{here, "order", "", "for-tests", "exists"},
		{bare, "order", "", "for-tests", "no such file"},
		{here, "order", "", "calendar", "imports a package calendar already"},
		{t.TempDir(), "order", "", "for-tests", "not the root"},
	} {
		if _, err := NewStrategy(c.root, c.part, c.step, c.name); err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s %q: expected an error about %q, got %v", c.part, c.name, c.say, err)
		}
	}
}
