package gang

import (
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// maxGang is the most pods of a gang, as in the files that Muster reads.
const maxGang = 1_000_000

// at returns what lies under a path of field names, nil where nothing does: objects
// of custom kinds may hold anything anywhere.
func at(v any, path ...string) any {
	for _, name := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[name]
	}
	return v
}

func textAt(v any, path ...string) string {
	s, _ := at(v, path...).(string)
	return s
}

func boolAt(v any, path ...string) bool {
	b, _ := at(v, path...).(bool)
	return b
}

func listAt(v any, path ...string) []any {
	l, _ := at(v, path...).([]any)
	return l
}

// wholeAt returns a whole number: set says that something is there, ok that it is one.
func wholeAt(v any, path ...string) (n int64, set, ok bool) {
	switch x := at(v, path...).(type) {
	case nil:
		return 0, false, true
	case int64:
		return x, true, true
	case int:
		return int64(x), true, true
	case int32:
		return int64(x), true, true
	case float64:
		if x == math.Trunc(x) && math.Abs(x) < 1<<53 {
			return int64(x), true, true
		}
	}
	return 0, true, false
}

// content is the fields of an object, nil for none.
func content(o *unstructured.Unstructured) map[string]any {
	if o == nil {
		return nil
	}
	return o.Object
}

// bounds is what a number may be.
type bounds struct{ least, most, otherwise int64 }

var (
	perObject = bounds{0, maxGang, 1}
	perGroup  = bounds{1, maxGang, 0}
)

// count reads a number of pods under a path of v, named field in messages. What is no
// such number holds the gang, as its size is not known then.
func (r *reader) count(v any, b bounds, field string, path ...string) int32 {
	n, set, ok := wholeAt(v, path...)
	if !set && b.otherwise >= b.least {
		return int32(b.otherwise)
	}
	if ok && set && n >= b.least && n <= b.most {
		return int32(n)
	}
	r.problem(Problem{Reason: ReasonSize, Field: field, Found: show(at(v, path...)),
		Expected: fmt.Sprintf("a number of pods from %d to %d", b.least, b.most), Do: "correct it: until then the gang waits", Holds: true})
	return 0
}
