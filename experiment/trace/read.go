package trace

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// survey is what the first pass over a file learns.
type survey struct {
	sorted bool
	work   // of the jobs that the limit keeps, where the file is sorted
}

// work sums what a run of jobs asks for.
type work struct {
	jobs        int
	first, last unit.Time
	area        float64 // thousandths of devices times microseconds
	endless     int     // jobs on devices without a duration
}

func (w *work) add(r *record) {
	if w.jobs == 0 {
		w.first = r.job.Submit
	}
	w.jobs++
	w.last = r.job.Submit
	switch need := r.job.Workers(); {
	case r.truth.Duration != NoDuration:
		w.area += float64(need) * float64(r.truth.Duration)
	case need > 0:
		w.endless++
	}
}

// openFile checks a whole file and opens it for reading in order.
func openFile(f *format, src source, opt Options) (Reader, error) {
	seen, err := check(f, src, opt.Limit)
	if err != nil {
		return nil, err
	}
	r := &fileReader{file: src.name, left: seen.jobs}
	if !seen.sorted {
		if r.held, err = readSorted(f, src); err != nil {
			return nil, err
		}
		if opt.Limit > 0 {
			r.held = r.held[:min(opt.Limit, len(r.held))]
		}
		seen.work, r.left = work{}, len(r.held)
		for i := range r.held {
			seen.add(&r.held[i])
		}
	}
	if err := OneSpan(seen.first, seen.last); err != nil {
		return nil, &Problems{File: src.name, List: []Problem{{Message: err.Error()}}}
	}
	r.origin = seen.first
	if r.stretch, err = seen.stretch(opt); err != nil {
		return nil, fmt.Errorf("%s: %w", src.name, err)
	}
	if seen.sorted {
		if r.rows, err = openRows(f, src); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// OneSpan refuses submissions that lie too far apart for one trace.
func OneSpan(first, last unit.Time) error {
	if d := last.Sub(first); d > maxSpan {
		return fmt.Errorf("%.0f years from the first submission to the last: expected at most 100", d.Seconds()/(365*86400))
	}
	return nil
}

// stretch is the factor on the times between submissions that brings the offered
// load to what the options ask.
func (w *work) stretch(opt Options) (float64, error) {
	if opt.Load == 0 {
		return 1, nil
	}
	switch {
	case opt.Devices == 0:
		return 0, errors.New("a load needs the number of devices it is offered to")
	case w.endless > 0:
		return 0, fmt.Errorf("cannot set a load: %d jobs have no duration", w.endless)
	case w.area == 0:
		return 0, errors.New("cannot set a load: the jobs do no work on devices")
	case w.last == w.first:
		return 0, errors.New("cannot set a load: all jobs are submitted at once")
	}
	want := w.area / (opt.Load * float64(opt.Devices) * float64(unit.Whole)) // span in microseconds
	if want > float64(maxSpan) {
		return 0, fmt.Errorf("load %g on %d devices would take more than 100 years", opt.Load, opt.Devices)
	}
	return want / float64(w.last.Sub(w.first)), nil
}

// check reads a file from end to end, reports its mistakes and sums the jobs that
// limit keeps.
func check(f *format, src source, limit int) (survey, error) {
	seen := survey{sorted: true}
	names := map[string]int{} // to the line that used it
	last := unit.Time(math.MinInt64)
	err := each(f, src, func(r *record) (string, error) {
		if line, ok := names[r.job.Name]; ok {
			return "", fmt.Errorf("job %s is on line %d already", shown(r.job.Name), line)
		}
		names[r.job.Name] = r.line
		if r.job.Submit < last {
			seen.sorted = false
		}
		last = r.job.Submit
		if limit == 0 || seen.jobs < limit {
			seen.add(r)
		}
		return "", nil
	})
	return seen, err
}

// readSorted holds a file in memory, in order of submission.
func readSorted(f *format, src source) ([]record, error) {
	all, err := readAll(f, src)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b record) int { return cmp.Compare(a.job.Submit, b.job.Submit) })
	return all, nil
}

func readAll(f *format, src source) ([]record, error) {
	var all []record
	err := each(f, src, func(r *record) (string, error) {
		if len(all) == maxHeld {
			return "", fmt.Errorf("more than %d rows that are not in order of submission: sort them first", maxHeld)
		}
		all = append(all, *r)
		return "", nil
	})
	return all, err
}

// each calls visit for every row that reads and collects the mistakes, those that
// visit finds among them.
func each(f *format, src source, visit func(*record) (field string, err error)) error {
	s, err := openRows(f, src)
	if err != nil {
		return err
	}
	defer s.close.Close()
	problems := &Problems{File: src.name}
	var r record
	for !problems.full() {
		bad, more := s.next(&r)
		problems.add(bad...)
		if !more {
			break
		}
		if len(bad) > 0 {
			continue
		}
		if field, err := visit(&r); err != nil {
			problems.add(Problem{Line: r.line, Field: field, Message: err.Error()})
		}
	}
	return problems.orNil()
}

// fileReader reads a checked file: from the file itself where it is sorted,
// otherwise from memory.
type fileReader struct {
	file    string
	rows    *rows    // nil where held is used
	row     record   // of them, the last
	held    []record // what is left of it
	left    int
	origin  unit.Time
	stretch float64
}

// Next returns the next job with its submission counted from the first one.
func (f *fileReader) Next() (workload.Job, workload.Truth, error) {
	if f.left == 0 {
		return workload.Job{}, workload.Truth{}, io.EOF
	}
	f.left--
	r := &f.row
	if f.rows == nil {
		r, f.held = &f.held[0], f.held[1:]
	} else if bad, more := f.rows.next(r); len(bad) > 0 || !more {
		return workload.Job{}, workload.Truth{}, fmt.Errorf("%s: changed while it was read", f.file)
	}
	since := r.job.Submit.Sub(f.origin)
	if f.stretch != 1 {
		since = unit.Duration(math.Round(float64(since) * f.stretch))
	}
	r.job.Submit = unit.Time(since)
	return r.job, r.truth, nil
}

// Left is how many jobs are still to come.
func (f *fileReader) Left() int { return f.left }

// Close closes the file.
func (f *fileReader) Close() error {
	f.left, f.held = 0, nil
	if f.rows == nil {
		return nil
	}
	return f.rows.close.Close()
}
