// Package draws makes tests over random inputs repeatable: what passed yesterday is
// tried again today, and a failure is the change's own. MUSTER_HUNT=1 draws anew in
// every run, to look for what nobody has seen yet.
package draws

import (
	"flag"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Cases are those that a property is tried on.
type Cases struct {
	// Round is which hundred they are, where a test goes through several.
	Round int
	// Few is how many there are where MUSTER_LONG=1 does not ask for all of them; 0 is all.
	Few int
	// All is how many there are in all; 0 is a hundred.
	All int
}

// Once is what a history is played with of which nothing is drawn.
var Once = Cases{All: 1}

// Check fails the test where prop does not hold of a hundred drawn cases, and says the smallest one that
// it finds with the seed that draws it again: go test -run NAME -rapid.seed=SEED.
func Check(t rapid.TB, prop func(*rapid.T)) {
	t.Helper()
	Cases{}.Check(t, prop)
}

// flags are rapid's, which it reads before it draws the first case: whoever sets them has them until then.
var flags sync.Mutex

func init() {
	set("rapid.nofailfile", "true") // the seed says as much, and leaves nothing in the tree
}

// Check is the same for these cases.
func (c Cases) Check(t rapid.TB, prop func(*rapid.T)) {
	t.Helper()
	flags.Lock()
	seed, checks := value("rapid.seed"), value("rapid.checks")
	if seed == "0" && !hunting() { // nobody asked for another
		set("rapid.seed", strconv.Itoa(c.Round+1))
	}
	if c.Few > 0 && os.Getenv("MUSTER_LONG") == "" {
		set("rapid.checks", strconv.Itoa(c.Few))
	} else if c.All > 0 {
		set("rapid.checks", strconv.Itoa(c.All))
	}
	begin := sync.OnceFunc(func() {
		set("rapid.seed", seed)
		set("rapid.checks", checks)
		flags.Unlock()
	})
	defer begin()
	rapid.Check(t, func(t *rapid.T) {
		begin()
		prop(t)
	})
}

// Seed is what a test starts its own generator from.
func Seed(t testing.TB) uint64 {
	t.Helper()
	if !hunting() {
		return 1
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return seed
}

func hunting() bool { return os.Getenv("MUSTER_HUNT") != "" }

func value(name string) string { return flag.Lookup(name).Value.String() }

func set(name, to string) {
	if err := flag.Set(name, to); err != nil {
		panic(err) // rapid has no such flag any more
	}
}
