package objection

import "testing"

// What nobody said leaves no mark in the line.
func TestObjectionInALine(t *testing.T) {
	for want, o := range map[string]Objection{
		"workers: found 0, expected at least 1; raise it": {"workers", "0", "at least 1", "raise it"},
		"found a list, expected the fields of a job":      {Found: "a list", Expected: "the fields of a job"},
		"name: found \"a\" a second time; remove one":     {Field: "name", Found: `"a" a second time`, Do: "remove one"},
	} {
		if got := o.Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
