package history

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/musterdl/muster/internal/foreign/slurm"
	"github.com/musterdl/muster/model/unit"
)

func looksSacct(head []byte) bool {
	cells := strings.Split(firstLine(head), "|")
	return len(cells) > 1 && (slices.Contains(cells, "JobID") || slices.Contains(cells, "JobIDRaw"))
}

// sacct reads the rows below a header.
type sacct struct {
	*History
	columns []string
	row     map[string]string
}

func readSacct(h *History, in *bufio.Reader, _ func(string) (io.ReadCloser, error)) error {
	s := sacct{History: h, row: map[string]string{}}
	err := lines(in, func(line int, text string) error {
		cells := strings.Split(text, "|")
		if s.columns == nil {
			s.columns = cells
			return s.header()
		}
		// Slurm puts no mark before a | in a name: where the name stands last, it is found all the same.
		if n := len(s.columns); len(cells) > n && s.columns[n-1] == "JobName" {
			cells = append(cells[:n-1:n-1], strings.Join(cells[n-1:], "|"))
		}
		if len(cells) != len(s.columns) {
			s.wrong(line, "", fmt.Errorf("%d cells: expected %d, as in the header; put JobName last in -o if names have a | in them", len(cells), len(s.columns)))
			return nil
		}
		for i, name := range s.columns {
			s.row[name] = cells[i]
		}
		s.job(line)
		return nil
	})
	if err == nil && s.columns == nil {
		err = errors.New("empty: expected what sacct -P prints, with its header")
	}
	return err
}

func (s *sacct) has(name string) bool { return slices.Contains(s.columns, name) }

// hasAll says whether the columns of these words are there.
func (s *sacct) hasAll(names string) bool {
	return !slices.ContainsFunc(strings.Fields(names), func(name string) bool { return !s.has(name) })
}

// sacctWanted are the columns without which nothing can be known: of each line the first, or what else tells as much.
var sacctWanted = [][]string{
	{"Submit", "Start"},
	{"ElapsedRaw", "Elapsed", "Start End"},
	{"AllocTRES", "AllocGRES", "ReqTRES", "ReqGRES", "AllocCPUS"},
}

// header wants the columns without which nothing can be known, and says what the others are for.
func (s *sacct) header() error {
	const advice = "sacct -aXP -o JobID,User,Account,State,Submit,Start,End,ElapsedRaw,Timelimit,NNodes,AllocCPUS,ReqMem,AllocTRES,JobName"
	var missing []string
	for _, ways := range sacctWanted {
		if !slices.ContainsFunc(ways, s.hasAll) {
			missing = append(missing, ways[0])
		}
	}
	if missing != nil {
		return fmt.Errorf("the columns %s are missing: expected those of %s", strings.Join(missing, ", "), advice)
	}
	s.took("gres/gpu for devices, as many on each node where they divide; accounts for tenants, job names for kinds of work")
	s.took("times without an offset as they stand")
	if !s.has("Submit") {
		s.took("Start for the submission, as there is no Submit: waiting is already inside it")
	}
	return nil
}

// sacctEmpty are the words for nothing.
var sacctEmpty = []string{"", "Unknown", "None"}

// first is the first of some columns that has something in it.
func (s *sacct) first(names ...string) string {
	for _, name := range names {
		if cell := s.row[name]; !slices.Contains(sacctEmpty, cell) {
			return cell
		}
	}
	return ""
}

// sacctLive are the states of jobs that had not ended, with why those are left out.
var sacctLive = map[string]string{"RUNNING": "still running", "SUSPENDED": "still running", "COMPLETING": "still running", "PENDING": "never started"}

// job takes one row.
func (s *sacct) job(line int) {
	w := row{line: line}
	id := s.first("JobID", "JobIDRaw")
	state, _, _ := strings.Cut(s.row["State"], " ") // CANCELLED by 1000
	start := s.first("Start")
	w.want(id != "", "JobID", "empty: expected a number")
	w.leave(strings.Contains(id, "."), "a step of a job")
	w.leave(strings.Contains(id, "["), "the part of an array that has not started")
	w.leave(sacctLive[state] != "", sacctLive[state])
	w.leave(s.has("Start") && start == "", "never started")
	w.leave(s.row["End"] == "Unknown", "still running")
	r := run{class: s.row["JobName"], user: s.row["User"], tenant: cmp.Or(s.row["Account"], s.row["Partition"])}
	r.name = strings.TrimPrefix(r.class+"-"+id, "-")
	s.times(&w, &r, start)
	w.leave(r.ran == 0 && state == "CANCELLED", "never started")
	s.resources(&w, &r)
	s.keep(&w, r, true)
}

// times fills when a job was submitted, when it started, how long it ran and might have run.
func (s *sacct) times(w *row, r *run, start string) {
	r.start = readOr(w, "Start", start, unit.Never, clock)
	r.submit = readOr(w, "Submit", s.first("Submit"), r.start, clock)
	w.want(r.submit != unit.Never, "Submit", "empty: expected a time")
	switch raw, elapsed, end := s.first("ElapsedRaw"), s.first("Elapsed"), s.first("End"); {
	case raw != "":
		r.ran = read(w, "ElapsedRaw", raw, seconds)
	case elapsed != "":
		r.ran = read(w, "Elapsed", elapsed, span)
	default:
		over := read(w, "End", end, clock)
		w.want(over >= r.start, "End", "%q: lies before Start", end)
		r.ran = over.Sub(r.start)
	}
	r.limit = read(w, "Timelimit", s.row["Timelimit"], bound)
}

// span reads a span as Slurm writes it.
func span(cell string) (unit.Duration, error) {
	d, endless, err := slurm.Span(cell)
	if endless {
		err = fmt.Errorf("%q: expected a span, as in 1-02:00:00", cell)
	}
	return d, err
}

// seconds reads a span that is written as a number of seconds.
func seconds(cell string) (unit.Duration, error) {
	x, ok := within(cell, 0, mostSeconds)
	if !ok {
		return 0, fmt.Errorf("%q: expected seconds", cell)
	}
	return unit.Seconds(x), nil
}

// bound reads a limit, 0 where it bounds nothing.
func bound(cell string) (unit.Duration, error) {
	d, _, err := slurm.Span(cell)
	return d, err
}

// resources fills what a job held.
func (s *sacct) resources(w *row, r *run) {
	tres := s.first("AllocTRES", "ReqTRES")
	devices := read(w, "AllocTRES", cmp.Or(tres, s.first("AllocGRES", "ReqGRES", "ReqTRES")), func(cell string) (int, error) {
		n, _, err := slurm.GPUs(cell)
		return n, err
	})
	nodes := readOr(w, "NNodes", cmp.Or(s.first("NNodes", "AllocNodes", "ReqNodes"), slurm.Amount(tres, "node")), 1, whole)
	cores := readOr(w, "AllocCPUS", cmp.Or(s.first("AllocCPUS", "NCPUS", "ReqCPUS"), slurm.Amount(tres, "cpu")), 0, whole)
	if tres == "" { // generic resources are of each node
		devices *= int(max(1, nodes))
	}
	r.spread(int32(devices), nodes)
	r.cpu = unit.Milli(cores) * 1000 / unit.Milli(r.workers)
	memory := readOr(w, "ReqMem", cmp.Or(slurm.Amount(tres, "mem"), s.first("ReqMem")), 0, func(cell string) (unit.MiB, error) {
		amount, per, err := slurm.Memory(cell)
		times := map[byte]int32{0: 1, 'c': cores, 'n': max(1, nodes)}
		return amount * unit.MiB(times[per]), err
	})
	r.memory = memory / unit.MiB(r.workers)
}
