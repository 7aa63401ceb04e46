// Package trace turns published traces, our own format and generators into a
// stream of jobs. Each job comes with its truth apart: what its owner declares in
// workload.Job, what only a simulated world may know (above all how long it
// really runs) in workload.Truth.
//
// A trace is named by a reference, FORMAT:PATH or gen:NAME?key=value&key=value:
//
//	philly:../data/philly                      the well-known file of a data set
//	muster:jobs.jsonl                          our own format, see FORMAT.md
//	pollux:w.tar.gz#workloads/workload-6.csv   one member of a tar archive
//	gen:rw-a?jobs=1000&load=0.9                a generator
//
// A generator knows the keys jobs, devices, load, seed, days (in place of jobs or
// load: the span to fill), restart (what a resume loses) and estimate (exact or
// noisy: a declared run time). Neither generators nor published traces say how jobs
// save; WithSaving puts what is assumed in that place.
//
// A gang of n devices becomes n workers of one device each, since the published
// traces say no more; a pod of openb stays one worker with all its devices.
//
// Files are read twice. The first pass checks every row, so that all mistakes are
// reported before the first job is handed out, finds the first submission and
// sums the work; the second streams. A file whose rows are not in order of
// submission is held and sorted in memory instead; otherwise only the names are
// held, during the first pass, to find repeated ones.
package trace

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// NoDuration is the duration of a job whose trace does not give one (pollux, and
// the openb lists without times).
const NoDuration = unit.Forever

// Reader hands out jobs in order of submission, ties as in the file, with the
// first at time 0.
type Reader interface {
	// Next returns the next job, or io.EOF after the last.
	Next() (workload.Job, workload.Truth, error)
	Close() error
}

// Left is how many jobs a reader still has, 0 where it does not know.
func Left(r Reader) int {
	if of, ok := r.(interface{ Left() int }); ok {
		return of.Left()
	}
	return 0
}

// Options change what a reference yields. A generator's own keys win over them.
type Options struct {
	// Load stretches or squeezes the times between submissions so that the work of
	// all jobs is this part of what Devices could do between the first and the last
	// submission; 0 leaves the times alone. A generator aims its rate at it.
	Load float64
	// Devices is the size of the cluster that Load speaks of.
	Devices int
	// Limit keeps the first jobs only; 0 keeps all. Load then speaks of those.
	Limit int
	// Seed starts a generator.
	Seed uint64
}

func (o Options) validate() error {
	switch {
	case math.IsNaN(o.Load) || o.Load < 0 || o.Load > maxLoad:
		return fmt.Errorf("load %v: expected a number above 0 and at most %d", o.Load, maxLoad)
	case o.Devices < 0 || o.Devices > maxDevices:
		return fmt.Errorf("devices %d: expected 1 to %d", o.Devices, maxDevices)
	case o.Limit < 0:
		return fmt.Errorf("limit %d: expected a number of jobs", o.Limit)
	}
	return nil
}

// Open finds the trace that ref names and checks all of it.
func Open(ref string, opt Options) (Reader, error) {
	kind, rest, ok := strings.Cut(ref, ":")
	if !ok {
		return nil, fmt.Errorf("trace %q: expected FORMAT:PATH or gen:NAME; formats are %s", ref, formatNames())
	}
	if err := opt.validate(); err != nil {
		return nil, fmt.Errorf("trace %s: %w", ref, err)
	}
	if kind == "gen" {
		r, err := openGenerator(rest, opt)
		if err != nil {
			return nil, fmt.Errorf("trace %s: %w", ref, err)
		}
		return r, nil
	}
	f := formatNamed(kind)
	if f == nil {
		return nil, fmt.Errorf("trace %q: unknown format %q, expected gen or one of %s", ref, kind, formatNames())
	}
	src, err := locate(rest, f.file)
	if err != nil {
		return nil, fmt.Errorf("trace %s: %w", ref, err)
	}
	return openFile(f, src, opt)
}

// OpenFrom checks and opens a published trace whose bytes a function gives, as often as it
// is asked for them; NAME#MEMBER is a member of an archive. An error of the function comes back as it is.
func OpenFrom(format, name string, file func() (io.ReadCloser, error), opt Options) (Reader, error) {
	f := formatNamed(format)
	if f == nil {
		return nil, fmt.Errorf("unknown trace format %q: expected one of %s", format, formatNames())
	}
	if err := opt.validate(); err != nil {
		return nil, fmt.Errorf("trace %s: %w", name, err)
	}
	there, err := file()
	if err != nil {
		return nil, err
	}
	there.Close()
	_, member, _ := strings.Cut(name, "#")
	return openFile(f, source{name: name, member: member, file: file}, opt)
}

// Kind is one thing that the left of a reference can name.
type Kind struct {
	Ref   string // how to write it
	About string
}

// Kinds lists the formats and the generators.
func Kinds() []Kind {
	var kinds []Kind
	for _, f := range formats {
		kinds = append(kinds, Kind{Ref: f.name + ":PATH", About: f.about})
	}
	for _, s := range shapes {
		kinds = append(kinds, Kind{Ref: "gen:" + s.name, About: s.about})
	}
	return kinds
}
