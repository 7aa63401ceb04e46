package gang

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/musterdl/muster/model/objection"
)

// Problem is one thing that an object says wrongly: where, what, and what to do. It
// becomes an event of the object's pods.
type Problem struct {
	// Reason is the event's reason, one of the Reason constants.
	Reason string
	Object string // such as Job team/bert
	Field  string // such as spec.parallelism or annotation muster.dev/work
	Found  string
	// Expected is empty where Found says it all.
	Expected string
	Do       string
	// Holds keeps the gang from being scheduled until it is mended; what does not hold
	// is left out of account.
	Holds bool
}

// Reasons of events.
const (
	ReasonAnnotation    = "InvalidAnnotation"
	ReasonSize          = "GangSizeUnknown"
	ReasonOwner         = "OwnerMissing"
	ReasonCycle         = "OwnerCycle"
	ReasonContradiction = "GangContradiction"
	ReasonTemplate      = "TemplateInvalid"
	ReasonUnknownOwner  = "OwnerUnknown"
)

// String writes the problem as one sentence for an event.
func (p Problem) String() string {
	return p.Object + ": " + objection.Objection{Field: p.Field, Found: p.Found, Expected: p.Expected, Do: p.Do}.Error()
}

// Holds reports whether one of the problems keeps the gang from being scheduled.
func Holds(problems []Problem) bool {
	for _, p := range problems {
		if p.Holds {
			return true
		}
	}
	return false
}

// quote shows a user's text in a message, cut where it is long.
func quote(s string) string {
	if r := []rune(s); len(r) > 60 {
		s = string(r[:60]) + "..."
	}
	return strconv.Quote(s)
}

// show describes a value of an object in a message.
func show(v any) string {
	switch x := v.(type) {
	case nil:
		return "nothing"
	case string:
		return quote(x)
	case map[string]any:
		return "fields"
	case []any:
		return fmt.Sprintf("a list of %d", len(x))
	}
	return strings.Trim(quote(fmt.Sprint(v)), `"`)
}
