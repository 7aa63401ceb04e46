// Package objection is the one sentence in which everybody says what is wrong with what
// somebody gave: a file, a flag, a request, an object of Kubernetes.
package objection

// Objection is one thing that is wrong: where, what stands there, and what to do.
type Objection struct {
	Field    string // empty where it is the whole
	Found    string
	Expected string // empty where Found says it all
	Do       string // empty where Expected says it all
}

// Error puts the objection in a line.
func (o Objection) Error() string {
	s := "found " + o.Found
	if o.Field != "" {
		s = o.Field + ": " + s
	}
	if o.Expected != "" {
		s += ", expected " + o.Expected
	}
	if o.Do != "" {
		s += "; " + o.Do
	}
	return s
}
