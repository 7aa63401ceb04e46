package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterdl/muster/internal/view"
)

// TestArraysFromTheCommandLine: a copy knows its index and has the secrets of its array, and
// the commands take the array's name, also when the control plane was killed meanwhile.
func TestArraysFromTheCommandLine(t *testing.T) {
	t.Parallel()
	p, _, _ := toKill(t, 4, 1, 1)
	name := p.muster("submit", "--name", "sweep", "--array", "8", "--env", "MY_TOKEN=hush", "--", "sh", "-c", "echo index $MUSTER_ARRAY_INDEX $MY_TOKEN; sleep 0.3")
	if name != "sweep\n" {
		t.Errorf("submit said %q", name)
	}
	p.kill()
	p.start()
	if out := p.muster("wait", "sweep"); !strings.HasPrefix(out, "sweep finished") {
		t.Errorf("wait said %q", out)
	}
	want := ""
	for i := range 8 {
		want += fmt.Sprintf("==> sweep-%d <==\nindex %d hush\n", i, i)
	}
	if out := p.muster("logs", "sweep"); out != want {
		t.Errorf("logs said %q, expected %q", out, want)
	}
	p.muster("submit", "--name", "long", "--array", "9", "--", "sleep", "100")
	if out := p.muster("cancel", "long"); !strings.HasPrefix(out, "long: 9 cancelled") {
		t.Errorf("cancel said %q", out)
	}
	for _, verb := range []string{"show", "why", "when"} {
		if out := p.muster(verb, "long"); !strings.Contains(out, "long") {
			t.Errorf("%s said %q", verb, out)
		}
	}
}

// TestArraysComeAfter: the name of an array that another job comes after stands for all its copies, in the same file too;
// and when the one that had failed is run again and finishes, who came after it goes on.
func TestArraysComeAfter(t *testing.T) {
	t.Parallel()
	p, _, _ := toKill(t, 4, 1, 1)
	mended, order := filepath.Join(p.state, "mended"), filepath.Join(p.state, "order")
	file := filepath.Join(p.state, "jobs.yaml")
	text := fmt.Sprintf(`jobs:
  - {name: sweep, array: 3, command: 'test $MUSTER_ARRAY_INDEX != 1 || test -e %[1]s && echo sweep >> %[2]s'}
  - {name: well, after: [sweep], command: echo well >> %[2]s}
  - {name: either, after: ["any:sweep"], array: 1, command: echo either >> %[2]s}
  - {name: mend, after: ["failed:sweep"], command: touch %[1]s}
  - {name: idle, after: ["failed:mend"], command: echo idle >> %[2]s}
`, mended, order)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	p.muster("submit", file)
	p.muster("wait", "mend", "either")
	for name, phase := range map[string]string{"sweep-1": "failed", "well": "failed", "either-0": "finished", "idle": "cancelled"} {
		p.until(name, phase, func(j view.Job) bool { return j.Phase == phase })
	}
	p.kill()
	p.start()
	p.muster("requeue", "sweep-1")
	p.muster("wait", "sweep", "well")
	told, err := os.ReadFile(order)
	if want := "sweep\nsweep\neither\nsweep\nwell\n"; err != nil || string(told) != want {
		t.Errorf("%v; what ran is %q, expected %q", err, told, want)
	}
	for _, wrong := range [][]string{{"--array", "0"}, {"--array", "-1"}, {"--after", "nobody"}, {"--after", "any:nobody"}} {
		cmd := p.command(append([]string{"submit", "--name", "x"}, append(wrong, "--", "true")...)...)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "expected 1 or more") && !strings.Contains(string(out), `"nobody", which does not exist`) {
			t.Errorf("%v: %v: %s", wrong, err, out)
		}
	}
}
