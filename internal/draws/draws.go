// Package draws makes tests over random inputs repeatable: what passed yesterday is
// tried again today, and a failure is the change's own. MUSTER_HUNT=1 draws anew in
// every run, to look for what nobody has seen yet.
package draws

import (
	"flag"
	"os"
	"strconv"
	"testing"
)

// Seed fixes what rapid draws in this test from here on, by the round where a test
// goes through several of them.
func Seed(t *testing.T, round int) {
	t.Helper()
	if os.Getenv("MUSTER_HUNT") != "" {
		return
	}
	if err := flag.Set("rapid.seed", strconv.Itoa(round+1)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = flag.Set("rapid.seed", "0") })
}

// Few has rapid try only so many cases in this test, where MUSTER_LONG=1 does not ask for
// all hundred.
func Few(t *testing.T, cases int) {
	t.Helper()
	if os.Getenv("MUSTER_LONG") != "" {
		return
	}
	if err := flag.Set("rapid.checks", strconv.Itoa(cases)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = flag.Set("rapid.checks", "100") })
}
