package view

import (
	"fmt"
	"io"

	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/report/terminal"
)

// Failure says how the latest attempt of a job that failed did so.
type Failure struct {
	Words   string `json:"words"`
	Attempt int32  `json:"attempt"`
	Class   string `json:"class"` // whose failure it was
	Rank    int32  `json:"rank"`  // of the worker that was the cause; -1 is none
	Node    string `json:"node,omitempty"`
	// ExitCode is left out where Signal ended it. Of what could not be run it is what a shell
	// would exit with: 126, or 127 where it is not there.
	ExitCode       int    `json:"exit_code,omitempty"`
	Signal         string `json:"signal,omitempty"`
	MemoryLimitMiB int64  `json:"memory_limit_mib,omitempty"`
	MemoryPeakMiB  int64  `json:"memory_peak_mib,omitempty"`
	// LastLines are the last that the worker printed, for those who may read its log.
	LastLines []string `json:"last_lines,omitempty"`
}

// failureOf describes a job's failure; nil is none.
func failureOf(v plan.View, info plane.JobInfo) *Failure {
	f := info.Failure
	if f == nil {
		return nil
	}
	out := &Failure{Words: f.Words(v), Attempt: f.Attempt, Class: f.Class.String(), Rank: f.Rank, ExitCode: f.Code, Signal: f.Signal,
		MemoryLimitMiB: int64(f.Limit), MemoryPeakMiB: int64(f.Peak)}
	if c := v.Cluster(); f.Node >= 0 && int(f.Node) < len(c.Nodes) {
		out.Node = c.Nodes[f.Node].Name
	}
	return out
}

// withFailure puts how a job failed into what is said of where it stands, where that is
// because it failed.
func withFailure(v plan.View, info plane.JobInfo, id plan.JobID, words string) string {
	j := v.Job(id)
	if info.Failure == nil {
		return words
	}
	switch j.Reason.Code {
	case plan.RunFailed, plan.StartBroke:
		if j.Phase == plan.Failed {
			return info.Failure.Words(v)
		}
	case plan.BackingOff, plan.CrashLoop:
		return info.Failure.Words(v) + "; " + words
	}
	return words
}

// WriteLastLines writes what a worker that failed printed last.
func (f *Failure) WriteLastLines(w io.Writer, o TextOptions) {
	if f == nil || len(f.LastLines) == 0 {
		return
	}
	fmt.Fprintln(w, o.Paint(terminal.Dim, fmt.Sprintf("the last that rank %d printed", f.Rank)))
	for _, line := range f.LastLines {
		fmt.Fprintln(w, "  "+line)
	}
}
