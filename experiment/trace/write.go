package trace

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/musterdl/muster/model/workload"
)

// Encoding is how our own format lies in a file.
type Encoding int

// The encodings: a header and comma-separated rows, or one JSON object per line.
const (
	CSV Encoding = iota
	JSONL
)

// Writer writes jobs in our own format.
type Writer struct {
	encoding Encoding
	out      *bufio.Writer
	cells    *csv.Writer
	row      []string
	count    int
}

// NewWriter returns a writer; Flush ends it.
func NewWriter(w io.Writer, encoding Encoding) *Writer {
	out := bufio.NewWriterSize(w, 1<<16)
	return &Writer{encoding: encoding, out: out, cells: csv.NewWriter(out),
		row: make([]string, len(musterFormat.columns))}
}

// Write appends one job. What the format cannot carry is an error that says so,
// and so is a job that would not read back.
func (w *Writer) Write(job workload.Job, truth workload.Truth) error {
	w.count++
	if err := w.Fill(job, truth); err != nil {
		return fmt.Errorf("writing job %s: %w", shown(job.Name), err)
	}
	if w.count == 1 {
		if err := w.header(); err != nil {
			return err
		}
	}
	if w.encoding == CSV {
		return w.cells.Write(w.row)
	}
	return w.object()
}

// Fill fills the row in hand and writes nothing: its error is that of Write, for whoever asks first.
func (w *Writer) Fill(job workload.Job, truth workload.Truth) error {
	r := record{job: job, truth: truth, row: w.count}
	if err := carries(&r); err != nil {
		return err
	}
	for i := range musterFormat.columns {
		w.row[i] = musterFormat.columns[i].get(&r)
	}
	// Reading the row back is the one check that cannot fall behind the reader.
	var back record
	back.reset(w.count, 0)
	for i := range musterFormat.columns {
		c := &musterFormat.columns[i]
		if err := c.apply(&back, w.row[i]); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	if field, err := musterFormat.complete(&back); err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	return nil
}

func carries(r *record) error {
	j := &r.job
	switch {
	case j.Name == "":
		return errors.New("the job has no name")
	case j.Array > 1:
		return errors.New("the format has no arrays: write the jobs one by one")
	case j.Pipeline.Stages != 0 || len(j.Pipeline.Layers) > 0:
		return errors.New("the format has no pipelines")
	case len(j.Command) > 0 || j.Dir != "" || len(j.Env) > 0:
		return errors.New("the format has no commands")
	}
	for _, list := range [][]string{j.Models, j.After} {
		if _, err := joinLabels(list); err != nil {
			return err
		}
	}
	return nil
}

func (w *Writer) header() error {
	if w.encoding == JSONL {
		return nil
	}
	names := make([]string, len(musterFormat.columns))
	for i, c := range musterFormat.columns {
		names[i] = c.name
	}
	return w.cells.Write(names)
}

// object writes the row in hand as JSON, without the keys that have their default.
func (w *Writer) object() error {
	separator := byte('{')
	for i := range musterFormat.columns {
		c := &musterFormat.columns[i]
		if w.row[i] == "" && !c.required {
			continue
		}
		value, err := c.kind.json(w.row[i])
		if err != nil {
			return err
		}
		w.out.WriteByte(separator)
		fmt.Fprintf(w.out, "%q:%s", c.name, value)
		separator = ','
	}
	_, err := w.out.WriteString("}\n")
	return err
}

// json turns a cell of this kind into a JSON value.
func (k kind) json(cell string) (string, error) {
	var value any
	switch {
	case cell == "":
		return "null", nil
	case k == label:
		value = cell
	case k == labels:
		value = strings.Split(cell, "|")
	case k == numbers:
		return "[" + strings.ReplaceAll(cell, "|", ",") + "]", nil
	default: // numbers and booleans look the same in both
		return cell, nil
	}
	b, err := json.Marshal(value)
	return string(b), err
}

// Flush writes what is still held, and the header of a trace without jobs.
func (w *Writer) Flush() error {
	if w.count == 0 {
		if err := w.header(); err != nil {
			return err
		}
	}
	w.cells.Flush()
	if err := w.cells.Error(); err != nil {
		return err
	}
	return w.out.Flush()
}

// Copy writes all jobs of a reader and flushes; it returns how many there were.
func Copy(w *Writer, r Reader) (int, error) {
	for n := 0; ; n++ {
		job, truth, err := r.Next()
		if errors.Is(err, io.EOF) {
			return n, w.Flush()
		}
		if err != nil {
			return n, err
		}
		if err := w.Write(job, truth); err != nil {
			return n, err
		}
	}
}
