package supervise

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestLastLines: the end of a log is found whatever the quota cost of it, and reads as it did
// on a terminal.
func TestLastLines(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&many, "line %d of a log that is long\n", i)
	}
	for _, c := range []struct {
		name, printed string
		quota         int64
		last          []string // the last of them
		count         int
	}{
		{"nothing", "", 1 << 20, nil, 0},
		{"one", "no data", 1 << 20, []string{"no data"}, 1},
		{"few", "a\n\nb\n", 1 << 20, []string{"a", "", "b"}, 3},
		{"many", many.String(), 1 << 20, []string{"line 4998 of a log that is long", "line 4999 of a log that is long"}, lastLines},
		{"cut", many.String(), 1 << 12, []string{"line 4999 of a log that is long"}, lastLines},
		{"terminal", "\x1b[31mred\x1b[0m \x1b]0;title\x07x\u202ey\a\n10%\r20%\r30%\r\n", 1 << 20, []string{"red x\u202ey\a", "30%"}, 2},
		{"long", strings.Repeat("é", 3000), 1 << 20, []string{strings.Repeat("é", lastColumn) + "…"}, 1},
	} {
		dir := t.TempDir()
		l, err := newLogWriter(dir, c.quota)
		if err != nil {
			t.Fatal(err)
		}
		l.write([]byte(c.printed))
		if err := l.close(); err != nil {
			t.Fatal(err)
		}
		got, err := LastLines(dir)
		if err != nil || len(got) != c.count || !slices.Equal(got[max(0, len(got)-len(c.last)):], c.last) {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
	}
	if got, err := LastLines(t.TempDir() + "/none"); err == nil || got != nil {
		t.Errorf("of no log: %q, %v", got, err)
	}
}
