package terminal

import "testing"

func TestCut(t *testing.T) {
	for _, c := range []struct {
		text    string
		columns int
		want    string
	}{{"größer", 0, "größer"}, {"größer", 6, "größer"}, {"größer", 5, "größ…"}, {"größer", 1, "…"}, {"", 1, ""}, {"größer", -1, "größer"}} {
		if got := Cut(c.text, c.columns); got != c.want {
			t.Errorf("%q in %d columns: %q, want %q", c.text, c.columns, got, c.want)
		}
	}
}

// Who has no colours gets none, and nothing is painted where there is nothing.
func TestPaint(t *testing.T) {
	on := Options{Color: true}
	if got := on.Paint(Red, "no"); got != "\x1b[31mno\x1b[0m" {
		t.Errorf("%q", got)
	}
	if plain := (Options{}).Paint(Red, "no") + on.Paint("", "no") + on.Paint(Red, ""); plain != "nono" {
		t.Errorf("%q", plain)
	}
}
