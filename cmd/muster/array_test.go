package main

import (
	"fmt"
	"strings"
	"testing"
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
