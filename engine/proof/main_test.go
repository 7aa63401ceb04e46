package proof

import (
	"flag"
	"os"
	"testing"
)

// TestMain keeps random failures out of testdata: what one finds becomes a scenario.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.nofailfile", "true"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
