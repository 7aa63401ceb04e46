package trace

import (
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxProblems is how many mistakes of one file are reported.
const maxProblems = 20

// Problem is one mistake in a file.
type Problem struct {
	Line    int    // counted from 1; 0 where the whole file is meant
	Field   string // "" where the whole line is meant
	Message string
}

// Problems is the error of a file that does not read: its first mistakes.
type Problems struct {
	File string
	List []Problem
}

// Error writes one line per problem: FILE:LINE: FIELD: MESSAGE.
func (p *Problems) Error() string {
	var b strings.Builder
	for i, q := range p.List {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(p.File)
		if q.Line > 0 {
			fmt.Fprintf(&b, ":%d", q.Line)
		}
		if q.Field != "" {
			fmt.Fprintf(&b, ": %s", q.Field)
		}
		fmt.Fprintf(&b, ": %s", q.Message)
	}
	if len(p.List) == maxProblems {
		fmt.Fprintf(&b, "\n%s: stopped after %d problems", p.File, maxProblems)
	}
	return b.String()
}

func (p *Problems) add(more ...Problem) {
	p.List = append(p.List, more[:min(len(more), maxProblems-len(p.List))]...)
}

func (p *Problems) full() bool { return len(p.List) >= maxProblems }

func (p *Problems) orNil() error {
	if len(p.List) == 0 {
		return nil
	}
	return p
}

var errLongRow = fmt.Errorf("the row is longer than %d bytes", maxRowBytes)

// broken words an error of the stream underneath, after which no row can follow.
func broken(err error, line int) Problem {
	var corrupt flate.CorruptInputError
	message := err.Error()
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		message = "the gzip data ends early: is the file cut off?"
	case errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader), errors.As(err, &corrupt):
		message = "the gzip data is damaged: " + err.Error()
	}
	return Problem{Line: line, Message: message}
}
