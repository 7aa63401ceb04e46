package history

import "fmt"

// row is a row of a log while it is read. It keeps what is first found against it: a mistake in a
// field, or why it is left out. So a reader reads on, and asks once, at the end.
type row struct {
	line  int
	field string
	err   error
	why   string
}

// over says whether something stands against the row already.
func (w *row) over() bool { return w.err != nil || w.why != "" }

// wrong keeps what is wrong with a field.
func (w *row) wrong(field string, err error) {
	if !w.over() {
		w.field, w.err = field, err
	}
}

// want keeps a mistake in a field unless what must be is so.
func (w *row) want(so bool, field, format string, args ...any) {
	if !so {
		w.wrong(field, fmt.Errorf(format, args...))
	}
}

// leave keeps why the row is no run of a job, where that is so.
func (w *row) leave(so bool, why string) {
	if so && !w.over() {
		w.why = why
	}
}

// read reads the cell of a field, where nothing stands against the row yet.
func read[T any](w *row, field, cell string, as func(cell string) (T, error)) T {
	var none T
	if w.over() {
		return none
	}
	x, err := as(cell)
	if err != nil {
		w.wrong(field, err)
	}
	return x
}

// readOr reads the cell of a field that may be empty.
func readOr[T any](w *row, field, cell string, otherwise T, as func(cell string) (T, error)) T {
	if cell == "" {
		return otherwise
	}
	return read(w, field, cell, as)
}
