package lead

import (
	"fmt"
	"strconv"
	"strings"
)

// Annotation is where objects without a field for it carry the fence of the leader
// that wrote them last.
const Annotation = "muster.dev/fence"

// Fence names one term of leadership, and goes into what the leader writes. Numbers
// grow from term to term. The zero Fence is older than all; it is that of a record
// no leader wrote.
type Fence struct {
	// Number counts how often the lease changed hands.
	Number int64
	// Holder is the identity that held the lease, unique among processes.
	Holder string
}

// Newer reports whether f is of a later term than other. Who reads a fence newer
// than its own has been deposed and stops.
func (f Fence) Newer(other Fence) bool { return f.Number > other.Number }

// String is how records carry a fence: NUMBER/HOLDER, nothing for the zero Fence.
func (f Fence) String() string {
	if f == (Fence{}) {
		return ""
	}
	return strconv.FormatInt(f.Number, 10) + "/" + f.Holder
}

// ParseFence reads what String wrote.
func ParseFence(s string) (Fence, error) {
	if s == "" {
		return Fence{}, nil
	}
	number, holder, ok := strings.Cut(s, "/")
	n, err := strconv.ParseInt(number, 10, 32) // as the Lease has it
	if !ok || err != nil || n < 1 {
		return Fence{}, fmt.Errorf("fence %q: expected NUMBER/HOLDER with a number from 1", s)
	}
	return Fence{Number: n, Holder: holder}, nil
}
