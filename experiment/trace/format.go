package trace

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// Bounds beyond which a value is a mistake.
const (
	maxDevices  = 1_000_000
	maxLoad     = 1000
	maxSpan     = 100 * 365 * unit.Day // of one duration, or of all submissions
	maxRowBytes = 1 << 20
	maxTextSize = 1024
	maxHeld     = 10_000_000 // rows of an unsorted file

	maxNodeDevices = 1024    // and of one worker
	maxMilli       = 1 << 40 // cores of one worker, in thousandths
	maxMiB         = 1 << 40
)

// record is one row on its way to a job and its truth.
type record struct {
	job   workload.Job
	truth workload.Truth

	row   int // counted from 1, without the header
	line  int
	end   unit.Time // openb: when the pod went; Never where the list has no times
	best  bool      // chronus: best effort, without a deadline
	batch string    // pollux: the batch size, part of the class
}

func (r *record) reset(row, line int) {
	*r = record{row: row, line: line, end: unit.Never}
	r.job.Gang, r.job.Devices, r.job.Share = 1, 1, unit.Whole
	r.truth.Duration = NoDuration
}

// kind is how a cell is written in JSON.
type kind int

const (
	number  kind = iota
	label        // a string
	labels       // a list of strings, in CSV joined by |
	numbers      // a list of numbers, in CSV joined by |
	boolean      // true or false
)

// column is one column of a format. Columns of published traces that we have no
// use for are listed without set, so that only unknown ones are refused.
type column struct {
	name     string
	required bool // the header must have it
	blank    bool // a required column may have empty cells
	kind     kind
	set      func(r *record, cell string) error
	get      func(r *record) string // our own format only; "" is the default
}

// format is one kind of file.
type format struct {
	name  string
	about string
	file  string // the well-known file in a directory of the data set
	// columns may stand in any order in a file.
	columns []column
	// finish completes a row once all its cells are set; the string is the field
	// that the error is about.
	finish func(r *record) (string, error)
}

var formats = []*format{&phillyFormat, &heliosFormat, &paiFormat, &openbFormat, &polluxFormat,
	&tiresiasFormat, &chronusFormat, &musterFormat}

func formatNamed(name string) *format {
	for _, f := range formats {
		if f.name == name {
			return f
		}
	}
	return nil
}

func formatNames() string {
	var names []string
	for _, f := range formats {
		names = append(names, f.name)
	}
	return strings.Join(names, ", ")
}

// requiredNames lists what a header needs, for messages.
func (f *format) requiredNames() string {
	var names []string
	for _, c := range f.columns {
		if c.required {
			names = append(names, c.name)
		}
	}
	return strings.Join(names, ",")
}

// complete finishes and checks a row whose cells are set.
func (f *format) complete(r *record) (string, error) {
	if r.job.Name == "" {
		r.job.Name = f.name + "-" + strconv.Itoa(r.row)
	}
	if f.finish != nil {
		if field, err := f.finish(r); err != nil {
			return field, err
		}
	}
	if total := int64(r.job.Gang) * int64(r.job.Devices); total > maxDevices {
		return "", fmt.Errorf("a job of %d devices: expected at most %d", total, maxDevices)
	}
	return "", nil
}

// Cell parsers. Their errors say what was found and what was expected.

func whole(cell string, low, high int64) (int64, error) {
	n, err := strconv.ParseInt(cell, 10, 64)
	if err != nil || n < low || n > high {
		return 0, fmt.Errorf("%s: expected a whole number from %d to %d", shown(cell), low, high)
	}
	return n, nil
}

func numeric(cell string, low, high float64) (float64, error) {
	x, err := strconv.ParseFloat(cell, 64)
	if err != nil || !(x >= low && x <= high) {
		return 0, fmt.Errorf("%s: expected a number from %g to %g", shown(cell), low, high)
	}
	return x, nil
}

func seconds(cell string) (unit.Duration, error) { return span(cell, unit.Second) }

// span reads a decimal count of a unit of time. Up to six decimals are exact:
// what the writer wrote reads back to the microsecond.
func span(cell string, of unit.Duration) (unit.Duration, error) {
	d, ok := exact(cell, of)
	if !ok {
		x, err := strconv.ParseFloat(cell, 64)
		if err != nil || math.IsNaN(x) {
			d = -1
		} else {
			d = unit.Seconds(x * of.Seconds())
		}
	}
	if d < 0 || d > maxSpan {
		name := map[unit.Duration]string{unit.Second: "seconds", unit.Minute: "minutes"}[of]
		return 0, fmt.Errorf("%s: expected %s from 0 to %d (100 years)", shown(cell), name, maxSpan/of)
	}
	return d, nil
}

// exact reads digits[.digits] of at most six decimals in integers.
func exact(cell string, of unit.Duration) (unit.Duration, bool) {
	const most = 11 // digits of a whole part, so that nothing overflows
	var whole, part int64
	scale := int64(1)
	point := -1
	for i := range len(cell) {
		c := cell[i]
		switch {
		case c >= '0' && c <= '9' && point < 0:
			whole = whole*10 + int64(c-'0')
		case c >= '0' && c <= '9':
			part, scale = part*10+int64(c-'0'), scale*10
		case c == '.' && point < 0:
			point = i
		default:
			return 0, false
		}
		if i-point > most || scale > 1_000_000 || whole > int64(maxSpan/of) {
			return 0, false
		}
	}
	if cell == "" || cell == "." {
		return 0, false
	}
	return unit.Duration(whole)*of + unit.Duration(part)*(of/unit.Duration(scale)), true
}

// wallClock reads a local date and time; zones are not given, so none is applied.
func wallClock(cell string) (unit.Time, error) {
	if t, plain := plainClock(cell); plain {
		return t, nil
	}
	t, err := time.Parse(time.DateTime, cell)
	if err != nil || t.Year() < 1970 || t.Year() > 2100 {
		return 0, fmt.Errorf("%s: expected a time like 2017-09-04 10:30:41", shown(cell))
	}
	return unit.Time(t.UnixMicro()), nil
}

// plainClock reads what most cells are, a time of the first 28 days of a month to the second,
// in a fraction of the time; plain is false of all others.
func plainClock(cell string) (at unit.Time, plain bool) {
	const form = "0000-00-00 00:00:00"
	if len(cell) != len(form) {
		return 0, false
	}
	var figures [6]int
	field := 0
	for i := range len(form) {
		switch c := cell[i]; {
		case form[i] != '0':
			if c != form[i] {
				return 0, false
			}
			field++
		case c < '0' || c > '9':
			return 0, false
		default:
			figures[field] = 10*figures[field] + int(c-'0')
		}
	}
	year, month, day, hour, minute, second := figures[0], figures[1], figures[2], figures[3], figures[4], figures[5]
	if year < 1970 || year > 2100 || month < 1 || month > 12 || day < 1 || day > 28 || hour > 23 || minute > 59 || second > 59 {
		return 0, false
	}
	return unit.Time(time.Date(year, time.Month(month), day, hour, minute, second, 0, time.UTC).UnixMicro()), true
}

// text reads a name: short, and without control characters.
func text(cell string) (string, error) {
	if len(cell) > maxTextSize {
		return "", fmt.Errorf("%d bytes long: expected at most %d", len(cell), maxTextSize)
	}
	for i := range len(cell) {
		if cell[i] < ' ' || cell[i] >= utf8.RuneSelf {
			return cell, printable(cell)
		}
	}
	return cell, nil
}

func printable(cell string) error {
	for _, c := range cell {
		if unicode.IsControl(c) {
			return fmt.Errorf("%s: expected no control characters", shown(cell))
		}
	}
	return nil
}

// shown quotes a cell for a message, cut where it is long.
func shown(cell string) string {
	const most = 40
	if len(cell) > most {
		return strconv.Quote(cell[:most]) + "..."
	}
	return strconv.Quote(cell)
}
