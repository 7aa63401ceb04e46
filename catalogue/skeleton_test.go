package catalogue

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSkeletonsWork generates a strategy of every step, lays the files over this
// module without touching it, adds the printed lines to the catalogue, and lets the
// compiler and the generated tests judge.
func TestSkeletonsWork(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	temp := t.TempDir()
	writeFile(t, filepath.Join(temp, "go.mod"), "module "+module+"\n")
	all, err := os.ReadFile("all.go")
	if err != nil {
		t.Fatal(err)
	}
	list := string(all)
	over := map[string]string{filepath.Join(root, "catalogue", "all.go"): filepath.Join(temp, "all.go")}
	for step := range skeletonLines {
		if err := os.MkdirAll(filepath.Join(temp, "strategies", step), 0o777); err != nil {
			t.Fatal(err)
		}
		s, err := NewStrategy(temp, step, "made-for-"+step)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range s.Files {
			over[filepath.Join(root, strings.TrimPrefix(f, temp))] = f
		}
		list = strings.Replace(list, "import (\n", "import (\n\t"+s.Import+"\n", 1)
		list = strings.Replace(list, "All = []Entry{\n", "All = []Entry{\n\t"+s.Line+"\n", 1)
		if strings.Count(list, "madefor"+step) < 2 {
			t.Fatal("all.go has another form than this test and the command expect")
		}
	}
	writeFile(t, filepath.Join(temp, "all.go"), list)
	overlay, err := json.Marshal(map[string]any{"Replace": over})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(temp, "overlay.json")
	writeFile(t, file, string(overlay))
	command(t, root, "go", "build", "-overlay", file, "./catalogue")
	for step := range skeletonLines {
		// Neither go vet nor go test can enter a folder that is only laid over.
		test := filepath.Join(temp, step+".test")
		command(t, root, "go", "test", "-c", "-vet=off", "-overlay", file, "-o", test, "./strategies/"+step+"/madefor"+step)
		command(t, temp, test, "-test.failfast")
	}
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func command(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	c := exec.Command(name, args...)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", c, err, out)
	}
}

func TestNewStrategyMistakes(t *testing.T) {
	here := t.TempDir()
	writeFile(t, filepath.Join(here, "go.mod"), "module "+module+"\n")
	if err := os.MkdirAll(filepath.Join(here, "strategies", "schedule", "mine"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ root, step, name, say string }{
		{here, "sleep", "mine", "no skeleton"},
		{here, "run", "mine", "no skeleton"},
		{here, "schedule", "Mine", "no name"},
		{here, "schedule", "../mine", "no name"},
		{here, "schedule", "", "no name"},
		{here, "schedule", "fifo", "already"},
		{here, "schedule", "mine", "exists"},
		{t.TempDir(), "schedule", "mine", "not the root"},
	} {
		if _, err := NewStrategy(c.root, c.step, c.name); err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s %q: expected an error about %q, got %v", c.step, c.name, c.say, err)
		}
	}
}
