package main

import (
	"net/http"
	"time"

	"k8s.io/client-go/rest"

	"github.com/musterdl/muster/run/kube/driver"
	"github.com/musterdl/muster/run/kube/lead"
)

// within is the scheduler as it is during a term. Who asks before a call whether the
// term is valid asks too early: the call may wait for its turn, and the process may
// hang meanwhile while another leads. So it is asked again where requests leave.
func (s *scheduler) within(term lead.Term) *scheduler {
	now := *s
	now.config = rest.CopyConfig(s.config)
	now.config.Wrap(func(next http.RoundTripper) http.RoundTripper { return fenced{next, term} })
	return &now
}

// fenced lets no write through after a term.
type fenced struct {
	next http.RoundTripper
	term lead.Term
}

// RoundTrip implements http.RoundTripper.
func (f fenced) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && !f.term.Valid(time.Now()) {
		return nil, driver.ErrDeposed
	}
	return f.next.RoundTrip(r)
}
