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
		if field, err := s.job(line); err != nil {
			s.wrong(line, field, err)
		}
		return nil
	})
	if err == nil && s.columns == nil {
		err = errors.New("empty: expected what sacct -P prints, with its header")
	}
	return err
}

func (s *sacct) has(name string) bool { return slices.Contains(s.columns, name) }

// header wants the columns without which nothing can be known, and says what the others are for.
func (s *sacct) header() error {
	const advice = "sacct -aPX -o JobID,User,Account,State,Submit,Start,End,ElapsedRaw,Timelimit,NNodes,AllocCPUS,ReqMem,AllocTRES,JobName"
	var missing []string
	if !s.has("Submit") && !s.has("Start") {
		missing = append(missing, "Submit")
	}
	if !s.has("ElapsedRaw") && !s.has("Elapsed") && !(s.has("Start") && s.has("End")) {
		missing = append(missing, "ElapsedRaw")
	}
	if !s.has("AllocTRES") && !s.has("AllocGRES") && !s.has("ReqTRES") && !s.has("ReqGRES") && !s.has("AllocCPUS") {
		missing = append(missing, "AllocTRES")
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

// first is the first of some columns that has something in it.
func (s *sacct) first(names ...string) string {
	for _, name := range names {
		if cell := s.row[name]; cell != "" && cell != "Unknown" && cell != "None" {
			return cell
		}
	}
	return ""
}

// job takes one row; the string is the column that an error is about.
func (s *sacct) job(line int) (string, error) {
	id := s.first("JobID", "JobIDRaw")
	state, _, _ := strings.Cut(s.row["State"], " ") // CANCELLED by 1000
	start, ended := s.first("Start"), s.row["End"]
	switch {
	case id == "":
		return "JobID", errors.New("empty: expected a number")
	case strings.Contains(id, "."):
		s.leave(line, "a step of a job")
		return "", nil
	case strings.Contains(id, "["):
		s.leave(line, "the part of an array that has not started")
		return "", nil
	case state == "RUNNING" || state == "SUSPENDED" || state == "COMPLETING" || ended == "Unknown" && start != "":
		s.leave(line, "still running")
		return "", nil
	case state == "PENDING" || s.has("Start") && start == "":
		s.leave(line, "never started")
		return "", nil
	}
	r := run{start: unit.Never}
	if field, err := s.times(&r, start); err != nil {
		return field, err
	}
	if r.ran == 0 && state == "CANCELLED" {
		s.leave(line, "never started")
		return "", nil
	}
	if field, err := s.resources(&r); err != nil {
		return field, err
	}
	r.class = s.row["JobName"]
	r.name = strings.TrimPrefix(cleaned(r.class)+"-"+id, "-")
	r.user, r.tenant = s.row["User"], cmp.Or(s.row["Account"], s.row["Partition"])
	if s.names[r.name] > 0 {
		s.took("several runs of a job that was started again for one, as long as all of them")
	}
	s.add(r, true)
	return "", nil
}

// times fills when a job was submitted, when it started, how long it ran and might have run.
func (s *sacct) times(r *run, start string) (field string, err error) {
	if start != "" {
		if r.start, err = clock(start); err != nil {
			return "Start", err
		}
	}
	r.submit = r.start
	if cell := s.first("Submit"); cell != "" {
		if r.submit, err = clock(cell); err != nil {
			return "Submit", err
		}
	}
	if r.submit == unit.Never {
		return "Submit", errors.New("empty: expected a time")
	}
	switch raw, elapsed, end := s.first("ElapsedRaw"), s.first("Elapsed"), s.first("End"); {
	case raw != "":
		seconds, err := whole64(raw)
		if err != nil {
			return "ElapsedRaw", err
		}
		r.ran = seconds
	case elapsed != "":
		var endless bool
		if r.ran, endless, err = slurm.Span(elapsed); err != nil || endless {
			return "Elapsed", cmp.Or(err, fmt.Errorf("%q: expected a span, as in 1-02:00:00", elapsed))
		}
	default:
		at, err := clock(end)
		if err == nil && at < r.start {
			err = fmt.Errorf("%q: lies before Start", end)
		}
		if err != nil {
			return "End", err
		}
		r.ran = at.Sub(r.start)
	}
	r.limit, _, err = slurm.Span(s.row["Timelimit"])
	return "Timelimit", err
}

func whole64(cell string) (unit.Duration, error) {
	d, _, err := slurm.Span("0-00:00:" + cell)
	if err != nil {
		return 0, fmt.Errorf("%q: expected seconds", cell)
	}
	return d, nil
}

// resources fills what a job held.
func (s *sacct) resources(r *run) (string, error) {
	tres := s.first("AllocTRES", "ReqTRES")
	devices, _, err := slurm.GPUs(cmp.Or(tres, s.first("AllocGRES", "ReqGRES", "ReqTRES")))
	if err != nil {
		return "AllocTRES", err
	}
	nodes, cores := int32(1), int32(0)
	if cell := cmp.Or(s.first("NNodes", "AllocNodes", "ReqNodes"), slurm.Amount(tres, "node")); cell != "" {
		if nodes, err = whole(cell, 0); err != nil {
			return "NNodes", err
		}
	}
	if cell := cmp.Or(s.first("AllocCPUS", "NCPUS", "ReqCPUS"), slurm.Amount(tres, "cpu")); cell != "" {
		if cores, err = whole(cell, 0); err != nil {
			return "AllocCPUS", err
		}
	}
	// Without TRES, generic resources are of each node.
	if tres == "" && devices > 0 {
		devices *= int(max(1, nodes))
	}
	r.spread(int32(devices), nodes)
	r.cpu = unit.Milli(cores) * 1000 / unit.Milli(r.workers)
	memory, per := unit.MiB(0), byte(0)
	if cell := cmp.Or(slurm.Amount(tres, "mem"), s.first("ReqMem")); cell != "" {
		if memory, per, err = slurm.Memory(cell); err != nil {
			return "ReqMem", err
		}
	}
	switch per {
	case 'c':
		memory *= unit.MiB(cores)
	case 'n':
		memory *= unit.MiB(max(1, nodes))
	}
	r.memory = memory / unit.MiB(r.workers)
	return "", nil
}

// cleaned leaves out of a name what a trace cannot hold.
func cleaned(name string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return '_'
		}
		return c
	}, strings.ToValidUTF8(name, "_"))
}
