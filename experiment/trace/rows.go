package trace

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// rows parses one file, row by row.
type rows struct {
	format *format
	close  io.Closer
	parse  func(r *record) (bad []Problem, more bool)
	row    int
}

// next fills r with the next row and says what is wrong with it. At the end of
// the file there is no more; a file that breaks off ends with a problem.
func (s *rows) next(r *record) (bad []Problem, more bool) {
	s.row++
	bad, more = s.parse(r)
	if more && len(bad) == 0 {
		if field, err := s.format.complete(r); err != nil {
			bad = []Problem{{Line: r.line, Field: field, Message: err.Error()}}
		}
	}
	return bad, more
}

// openRows starts a file at its first row: of CSV below its header, of JSONL,
// which only our own format may be, at once.
func openRows(f *format, src source) (*rows, error) {
	fail := func(p ...Problem) (*rows, error) { return nil, &Problems{File: src.name, List: p} }
	body, err := src.open()
	if err != nil {
		return fail(broken(err, 0))
	}
	s := &rows{format: f, close: body}
	in := bufio.NewReaderSize(body, 1<<16)
	if bom, _ := in.Peek(3); bytes.Equal(bom, []byte("\xef\xbb\xbf")) {
		in.Discard(3)
	}
	if first, _ := in.Peek(1); f == &musterFormat && len(first) == 1 && first[0] == '{' {
		s.parse = s.jsonParser(in)
		return s, nil
	}
	var bad []Problem
	if s.parse, bad = s.csvParser(in); len(bad) > 0 {
		body.Close()
		return fail(bad...)
	}
	return s, nil
}

// rowLimit refuses a row without end; left is set anew for every row.
type rowLimit struct {
	in   io.Reader
	left int
}

// Read fails once a row has had its bytes.
func (l *rowLimit) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errLongRow
	}
	n, err := l.in.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}

// csvParser reads the header and returns the parser of the rows below it.
func (s *rows) csvParser(in io.Reader) (func(*record) ([]Problem, bool), []Problem) {
	limit := &rowLimit{in: in, left: maxRowBytes}
	cells := csv.NewReader(limit)
	cells.ReuseRecord, cells.FieldsPerRecord = true, -1
	header, err := cells.Read()
	if errors.Is(err, io.EOF) {
		return nil, []Problem{{Message: "empty: expected a header line with " + s.format.requiredNames()}}
	}
	if err != nil {
		return nil, []Problem{csvProblem(err, 1)}
	}
	columns, bad := s.format.match(header)
	if len(bad) > 0 {
		return nil, bad
	}
	line := 1
	return func(r *record) ([]Problem, bool) {
		limit.left = maxRowBytes
		row, err := cells.Read()
		if errors.Is(err, io.EOF) {
			return nil, false
		}
		if err != nil {
			var syntax *csv.ParseError
			return []Problem{csvProblem(err, line+1)}, errors.As(err, &syntax)
		}
		line, _ = cells.FieldPos(0)
		r.reset(s.row, line)
		if len(row) != len(columns) {
			return []Problem{{Line: line, Message: fmt.Sprintf("%d cells: expected %d, as in the header",
				len(row), len(columns))}}, true
		}
		return setRow(r, columns, row), true
	}, nil
}

func csvProblem(err error, line int) Problem {
	var syntax *csv.ParseError
	if errors.As(err, &syntax) {
		return Problem{Line: syntax.Line, Message: fmt.Sprintf("%v: expected comma-separated values", syntax.Err)}
	}
	return broken(err, line)
}

// match finds the column of each cell of the header.
func (f *format) match(header []string) ([]*column, []Problem) {
	var bad []Problem
	columns := make([]*column, len(header))
	for i, name := range header {
		k := slices.IndexFunc(f.columns, func(c column) bool { return c.name == strings.TrimSpace(name) })
		switch {
		case k < 0:
			bad = append(bad, Problem{Line: 1, Field: shown(name), Message: "unknown column: expected a header with " + f.requiredNames()})
		case slices.Contains(columns, &f.columns[k]):
			bad = append(bad, Problem{Line: 1, Field: shown(name), Message: "the column is there twice"})
		default:
			columns[i] = &f.columns[k]
		}
	}
	for i := range f.columns {
		if c := &f.columns[i]; c.required && !slices.Contains(columns, c) {
			bad = append(bad, Problem{Line: 1, Field: c.name, Message: "the column is missing from the header"})
		}
	}
	return columns, bad[:min(len(bad), maxProblems)]
}

func setRow(r *record, columns []*column, row []string) (bad []Problem) {
	for i, c := range columns {
		if err := c.apply(r, row[i]); err != nil {
			bad = append(bad, Problem{Line: r.line, Field: c.name, Message: err.Error()})
		}
	}
	return bad
}

func (c *column) apply(r *record, cell string) error {
	switch {
	case c.set == nil:
		return nil
	case cell == "" && c.required && !c.blank:
		return errors.New("empty: expected a value")
	case cell == "":
		return nil
	case !utf8.ValidString(cell):
		return fmt.Errorf("%s: expected UTF-8 text", shown(cell))
	}
	return c.set(r, cell)
}

// jsonParser returns the parser of one object per line.
func (s *rows) jsonParser(in io.Reader) func(*record) ([]Problem, bool) {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 1<<16), maxRowBytes)
	line := 0
	return func(r *record) ([]Problem, bool) {
		for {
			if !lines.Scan() {
				return jsonEnd(lines.Err(), line+1), false
			}
			line++
			if len(bytes.TrimSpace(lines.Bytes())) > 0 {
				break
			}
		}
		r.reset(s.row, line)
		return s.format.setObject(r, lines.Bytes()), true
	}
}

func jsonEnd(err error, line int) []Problem {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, bufio.ErrTooLong):
		err = errLongRow
	}
	return []Problem{broken(err, line)}
}

// setObject sets the cells of a JSON object in the order of the columns.
func (f *format) setObject(r *record, object []byte) (bad []Problem) {
	fail := func(field, message string) { bad = append(bad, Problem{Line: r.line, Field: field, Message: message}) }
	values, err := members(object)
	if err != nil {
		fail("", err.Error())
		return bad
	}
	for i := range f.columns {
		c := &f.columns[i]
		k := slices.IndexFunc(values, func(m member) bool { return m.key == c.name })
		if k < 0 {
			if c.required {
				fail(c.name, "the key is missing")
			}
			continue
		}
		cell, err := c.kind.cell(values[k].value)
		values = slices.Delete(values, k, k+1)
		if err == nil {
			err = c.apply(r, cell)
		}
		if err != nil {
			fail(c.name, err.Error())
		}
	}
	for _, m := range values {
		fail(shown(m.key), "an unknown key, or one that is there twice")
	}
	return bad
}

type member struct {
	key   string
	value json.RawMessage
}

// members splits an object into its keys and values, in the order of the text.
func members(object []byte) ([]member, error) {
	if !utf8.Valid(object) {
		return nil, errors.New("not UTF-8 text")
	}
	in := json.NewDecoder(bytes.NewReader(object))
	if open, err := in.Token(); err != nil || open != json.Delim('{') {
		return nil, errors.New("expected one JSON object on the line")
	}
	var all []member
	for in.More() {
		key, err := in.Token()
		name, ok := key.(string)
		if err != nil || !ok {
			return nil, fmt.Errorf("not JSON: %v", err)
		}
		m := member{key: name}
		if err := in.Decode(&m.value); err != nil {
			return nil, fmt.Errorf("not JSON after key %s: %v", shown(name), err)
		}
		all = append(all, m)
	}
	if _, err := in.Token(); err != nil {
		return nil, errors.New("the JSON object is not closed")
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("expected nothing behind the JSON object")
	}
	return all, nil
}

// cell turns a JSON value of this kind into what would stand in a CSV cell.
func (k kind) cell(value json.RawMessage) (string, error) {
	s := string(value)
	switch {
	case s == "null":
		return "", nil
	case k == number && (s[0] == '-' || s[0] >= '0' && s[0] <= '9'), k == boolean && (s == "true" || s == "false"):
		return s, nil
	case k == label:
		var v string
		if json.Unmarshal(value, &v) == nil {
			return v, nil
		}
	case k == labels:
		var v []string
		if json.Unmarshal(value, &v) == nil {
			return joinLabels(v)
		}
	case k == numbers:
		var v []json.Number
		if json.Unmarshal(value, &v) == nil && !strings.Contains(s, `"`) {
			return joinNumbers(v), nil
		}
	}
	want := map[kind]string{number: "a number", label: "a string", labels: "a list of strings",
		numbers: "a list of numbers", boolean: "true or false"}[k]
	return "", fmt.Errorf("%s: expected %s", shown(s), want)
}

func joinNumbers(v []json.Number) string {
	parts := make([]string, len(v))
	for i, n := range v {
		parts[i] = n.String()
	}
	return strings.Join(parts, "|")
}

func joinLabels(v []string) (string, error) {
	for _, s := range v {
		if s == "" || strings.Contains(s, "|") {
			return "", fmt.Errorf("%s: expected names that are not empty and have no |", shown(s))
		}
	}
	return strings.Join(v, "|"), nil
}
