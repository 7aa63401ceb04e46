package workload

import "strings"

// When says at which end of a job another starts that comes after it.
type When uint8

const (
	Well   When = iota // it has finished
	Any                // it has ended in any way
	Failed             // it has ended in another way than well
)

// ParseAfter reads what a job comes after: NAME, any:NAME or failed:NAME. The name of an array stands for all its copies.
func ParseAfter(text string) (name string, when When) {
	if name, is := strings.CutPrefix(text, "any:"); is {
		return name, Any
	}
	if name, is := strings.CutPrefix(text, "failed:"); is {
		return name, Failed
	}
	return text, Well
}

// AfterOf is the same of another name.
func AfterOf(text, name string) string {
	was, _ := ParseAfter(text)
	return strings.TrimSuffix(text, was) + name
}
