package plan

import (
	"fmt"

	"github.com/musterdl/muster/model/unit"
)

// Failure is how an attempt failed, as its driver tells it: which worker was the cause, and
// how that one ended.
type Failure struct {
	Attempt int32        `json:"-"` // this and Class are the event's that brings it
	Class   FailureClass `json:"-"`
	Rank    int32        `json:"rank"` // -1 where it was no worker's, or nobody knows
	Node    NodeID       `json:"node"` // None where nobody knows
	// Code is its exit code, 0 without one, and Signal what ended it otherwise. Of what could
	// not be run Code is what a shell would exit with: 126, or 127 where it is not there.
	Code   int      `json:"code,omitempty"`
	Signal string   `json:"signal,omitempty"`
	Why    string   `json:"why"`                        // in words
	Limit  unit.MiB `json:"memory_limit_mib,omitempty"` // of memory, where that was the cause
	Peak   unit.MiB `json:"memory_peak_mib,omitempty"`  // the most memory it was seen to use
}

// Words say what happened and where; every view tells a failure by them.
func (f *Failure) Words(v View) string {
	node := v.s.nodeName(int64(f.Node))
	switch {
	case f.Node == None:
		return f.Why
	case f.Rank < 0:
		return fmt.Sprintf("%s (on %s)", f.Why, node)
	}
	return fmt.Sprintf("%s (rank %d on %s)", f.Why, f.Rank, node)
}

// Veiled is the failure for those who may not see what the job runs and where: what names
// its program or its directory is left out.
func (f Failure) Veiled() *Failure {
	switch {
	case f.Signal != "" || f.Class == MemoryFailure:
	case f.Code != 0:
		f.Why = fmt.Sprintf("exit code %d", f.Code)
	default:
		f.Why = "it could not be run to its end"
	}
	return &f
}
