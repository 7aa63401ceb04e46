package apitest

import "fmt"

// judge notes what must never be done.
type judge struct {
	clock      *clock
	t          T // nil: it is noted only
	violations []string
}

// violate notes that somebody did what must never be done, and fails the test.
func (jd *judge) violate(format string, args ...any) {
	words := fmt.Sprintf("at %v: ", jd.clock.since()) + fmt.Sprintf(format, args...)
	jd.violations = append(jd.violations, words)
	if t := jd.t; t != nil {
		t.Helper()
		t.Errorf("%s", words)
	}
}

// must reports what only a mistake of a test can bring about.
func (jd *judge) must(err error) {
	if err != nil {
		jd.violate("%v", err)
	}
}
