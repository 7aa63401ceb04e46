package reproduce

import (
	"bytes"
	"strings"
	"testing"
)

func TestVerify(t *testing.T) {
	s := Defaults()
	s.Trace, s.Strategy = "gen:rw-a-prime", "tiresias"
	var b bytes.Buffer
	s.Decisions = &b
	o, err := Simulate(s)
	if err != nil {
		t.Fatal(err)
	}
	recorded := b.String()
	lines := strings.SplitAfter(recorded, "\n")
	lines = lines[:len(lines)-1]
	commits := int64(len(lines))
	if commits != o.Result.Commits {
		t.Fatalf("%d lines for %d commits", commits, o.Result.Commits)
	}
	changed := strings.Replace(lines[9], `"verb":"start"`, `"verb":"stop"`, 1)
	for _, c := range []struct {
		name     string
		recorded string
		line     int64 // 0 is no difference
	}{
		{"the same", recorded, 0},
		{"one commit changed", strings.Join(lines[:9], "") + changed + strings.Join(lines[10:], ""), 10},
		{"one commit left out", strings.Join(lines[:9], "") + strings.Join(lines[10:], ""), 10},
		{"the last commit missing", strings.Join(lines[:commits-1], ""), commits},
		{"one commit more", recorded + lines[0], commits + 1},
		{"cut in the middle of a line", recorded[:len(recorded)-5], commits},
		{"nothing", "", 1},
	} {
		same, d, err := Verify(s, strings.NewReader(c.recorded))
		switch {
		case err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.line == 0 && (d != nil || same != commits):
			t.Errorf("%s: %d the same, difference %+v", c.name, same, d)
		case c.line > 0 && (d == nil || d.Line != c.line || same != c.line-1):
			t.Errorf("%s: %d the same, difference %+v, expected in commit %d", c.name, same, d, c.line)
		}
	}
	s.Seed = 2
	if _, d, err := Verify(s, strings.NewReader(recorded)); err != nil || d == nil {
		t.Errorf("another seed: difference %+v, %v", d, err)
	}
}
