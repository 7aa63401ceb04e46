package history

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/musterdl/muster/internal/spec"
	"github.com/musterdl/muster/model/unit"
)

// mapping is a file that says which columns of a table are what.
type mapping struct {
	// Delimiter stands between cells: one character, or tab; a comma.
	Delimiter string
	// Unit is that of spans and of times that are numbers: s, ms, m or h; s.
	Unit string
	// Columns are the table's columns by what they are.
	Columns columns
	// Only keeps rows in whose column one of some words stands, by column.
	Only map[string][]string
}

type columns struct {
	Name, Submit, Start, End, Duration string
	TimeLimit                          string
	Devices, Workers                   string
	DevicesPerWorker                   string
	CPU                                string
	HostMemory                         string
	Tenant, User, Class, Priority      string
}

// guesses are names that columns have, by what they would be in a mapping: so that whoever
// brings a table gets one to begin with.
var guesses = []struct{ field, names string }{
	{"name", "name job_id jobid id job_name job"},
	{"submit", "submit submit_time submitted submitted_at submission_time created_at created arrival arrival_time queued_at timestamp"},
	{"start", "start start_time started started_at begin"},
	{"end", "end end_time ended ended_at finished finished_at completed_at completion_time"},
	{"duration", "duration run_time runtime elapsed duration_s seconds wallclock"},
	{"devices", "gpus gpu_num num_gpus gpu_count gpus_requested ngpus devices n_gpus gpu"},
	{"workers", "workers nodes num_nodes node_num n_nodes nnodes"},
	{"tenant", "tenant account project group team vc queue partition"},
	{"user", "user username user_name owner"},
}

// unknown says what a file is that no reader takes, and what to do.
func unknown(file string, head []byte) error {
	header := strings.Split(firstLine(head), ",")
	has := func(name string) bool { return slices.Contains(header, name) }
	switch {
	case len(head) == 0:
		return fmt.Errorf("%s is empty", file)
	case has("submit_s") && has("duration_s"):
		return fmt.Errorf("%s is a trace of ours already: use it as muster:%s", file, file)
	case !utf8.Valid(head[:min(len(head), 512)]):
		return fmt.Errorf("%s is no text: expected one of %s, or a table", file, strings.Join(Kinds(), ", "))
	case len(header) < 3:
		return fmt.Errorf("%s is none of %s: name its kind with --kind, or say with --columns MAP.yaml what its columns are", file, strings.Join(Kinds(), ", "))
	}
	var b strings.Builder
	for _, g := range guesses {
		i := slices.IndexFunc(header, func(name string) bool {
			plain := strings.ReplaceAll(strings.ToLower(strings.TrimSpace(name)), " ", "_")
			return slices.Contains(strings.Fields(g.names), plain)
		})
		if i >= 0 {
			fmt.Fprintf(&b, "\n  %s: %q", g.field, header[i])
		}
	}
	return fmt.Errorf("%s is a table whose columns we do not know: say in MAP.yaml what they are, as follows, and give --columns MAP.yaml\n\ncolumns:%s", file, b.String())
}

// mapped is the reader of a table by a mapping.
func mapped(file string) (reader, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return reader{}, err
	}
	m := mapping{Delimiter: ",", Unit: "s"}
	if err := spec.Decode(file, data, &m); err != nil {
		return reader{}, err
	}
	t := table{mapping: m}
	switch {
	case m.Delimiter == "tab":
		t.comma = '\t'
	case utf8.RuneCountInString(m.Delimiter) == 1:
		t.comma, _ = utf8.DecodeRuneInString(m.Delimiter)
	default:
		return reader{}, fmt.Errorf("%s: delimiter: found %q, expected one character, or tab", file, m.Delimiter)
	}
	scales := map[string]unit.Duration{"ms": unit.Millisecond, "s": unit.Second, "m": unit.Minute, "h": unit.Hour}
	if t.scale = scales[m.Unit]; t.scale == 0 {
		return reader{}, fmt.Errorf("%s: unit: found %q, expected s, ms, m or h", file, m.Unit)
	}
	c := &m.Columns
	switch {
	case cmp.Or(c.Submit, c.Start) == "":
		return reader{}, fmt.Errorf("%s: columns.submit: found nothing, expected the column with the time of submission", file)
	case !tellsRan(c.Duration, c.Start, c.End):
		return reader{}, fmt.Errorf("%s: columns.duration: found nothing, expected the column with the run time, or start and end", file)
	case cmp.Or(c.Devices, c.Workers, c.DevicesPerWorker) == "":
		return reader{}, fmt.Errorf("%s: columns.devices: found nothing, expected the column with the number of devices", file)
	}
	return reader{kind: "csv", read: t.read}, nil
}

// table reads the rows of a table.
type table struct {
	mapping
	comma  rune
	scale  unit.Duration
	header []string
	row    []string
}

func (t *table) read(h *History, in *bufio.Reader, _ func(string) (io.ReadCloser, error)) error {
	cells := csv.NewReader(in)
	cells.Comma, cells.ReuseRecord, cells.FieldsPerRecord, cells.LazyQuotes = t.comma, true, -1, true
	header, err := cells.Read()
	if err != nil {
		return fmt.Errorf("reading the header: %w", err)
	}
	for _, name := range header {
		t.header = append(t.header, strings.Clone(strings.TrimSpace(name)))
	}
	if err := t.check(h); err != nil {
		return err
	}
	for {
		var syntax *csv.ParseError
		t.row, err = cells.Read()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.As(err, &syntax):
			h.wrong(syntax.Line, "", syntax.Err)
			continue
		case err != nil:
			return err
		}
		line, _ := cells.FieldPos(0)
		if len(t.row) != len(t.header) {
			h.wrong(line, "", fmt.Errorf("%d cells: expected %d, as in the header", len(t.row), len(t.header)))
			continue
		}
		t.job(h, line)
	}
}

// check wants every column that the mapping names, and tells what is taken for what.
func (t *table) check(h *History) error {
	c := &t.Columns
	for _, of := range []struct{ what, column string }{{"name", c.Name}, {"submit", c.Submit}, {"start", c.Start}, {"end", c.End}, {"duration", c.Duration},
		{"time-limit", c.TimeLimit}, {"devices", c.Devices}, {"workers", c.Workers}, {"devices-per-worker", c.DevicesPerWorker}, {"cpu", c.CPU},
		{"host-memory", c.HostMemory}, {"tenant", c.Tenant}, {"user", c.User}, {"class", c.Class}, {"priority", c.Priority}} {
		if of.column == "" {
			continue
		}
		if !slices.Contains(t.header, of.column) {
			return fmt.Errorf("columns.%s: there is no column %q: expected one of %s", of.what, of.column, strings.Join(t.header, ", "))
		}
		h.took("%s for %s", of.column, of.what)
	}
	for column := range t.Only {
		if !slices.Contains(t.header, column) {
			return fmt.Errorf("only.%s: there is no such column: expected one of %s", column, strings.Join(t.header, ", "))
		}
	}
	return nil
}

// cell is what stands in a column, "" where it is not mapped.
func (t *table) cell(column string) string {
	if column == "" {
		return ""
	}
	return strings.TrimSpace(t.row[slices.Index(t.header, column)])
}

func (t *table) job(h *History, line int) {
	w := row{line: line}
	for _, column := range slices.Sorted(maps.Keys(t.Only)) {
		words := t.Only[column]
		w.leave(!slices.Contains(words, t.cell(column)), column+" is none of "+strings.Join(words, ", "))
	}
	c := &t.Columns
	r := run{name: cmp.Or(t.cell(c.Name), "job-"+strconv.Itoa(line)), tenant: t.cell(c.Tenant), user: t.cell(c.User), class: t.cell(c.Class)}
	w.leave(!tellsRan(t.cell(c.Duration), t.cell(c.Start), t.cell(c.End)), "no run time")
	t.times(&w, &r)
	t.resources(&w, &r)
	h.keep(&w, r, false)
}

// tellsRan says whether a run time follows from what is there.
func tellsRan(duration, start, end string) bool { return duration != "" || start != "" && end != "" }

func (t *table) times(w *row, r *run) {
	c := &t.Columns
	r.start = readOr(w, c.Start, t.cell(c.Start), unit.Never, t.clock)
	if r.submit = r.start; c.Submit != "" {
		r.submit = read(w, c.Submit, t.cell(c.Submit), t.clock)
	}
	r.limit = readOr(w, c.TimeLimit, t.cell(c.TimeLimit), 0, t.span)
	if cell := t.cell(c.Duration); cell != "" {
		r.ran = read(w, c.Duration, cell, t.span)
		return
	}
	end := read(w, c.End, t.cell(c.End), t.clock)
	w.want(end >= r.start, c.End, "%q: lies before the start", t.cell(c.End))
	r.ran = end.Sub(r.start)
}

// clock reads a time: a date, or a number of the mapping's unit.
func (t *table) clock(cell string) (unit.Time, error) {
	if x, ok := within(cell, 0, math.MaxFloat64); ok {
		return clock(strconv.FormatFloat(x*t.scale.Seconds(), 'f', -1, 64))
	}
	return clock(cell)
}

// span reads a number of the mapping's unit, or a span with colons.
func (t *table) span(cell string) (unit.Duration, error) {
	if x, ok := within(cell, 0, mostSeconds/t.scale.Seconds()); ok {
		return unit.Seconds(x * t.scale.Seconds()), nil
	}
	if d, err := span(cell); err == nil && strings.Contains(cell, ":") {
		return d, nil
	}
	return 0, fmt.Errorf("%q: expected a span: a number, or as in 1-02:00:00", cell)
}

func (t *table) resources(w *row, r *run) {
	c := &t.Columns
	number := func(column string, otherwise int32) int32 { return readOr(w, column, t.cell(column), otherwise, whole) }
	workers, each := number(c.Workers, 1), number(c.DevicesPerWorker, 1)
	if c.Devices != "" {
		r.spread(number(c.Devices, 0), workers)
	} else {
		r.workers, r.devices, r.share = max(1, workers), each, unit.Whole
	}
	r.cpu, r.priority = unit.Milli(number(c.CPU, 0))*1000, number(c.Priority, 0)
	r.memory = readOr(w, c.HostMemory, t.cell(c.HostMemory), 0, unit.ParseMiB)
}
