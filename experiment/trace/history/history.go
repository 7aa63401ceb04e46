// Package history reads what other schedulers recorded of their jobs, and makes a trace of
// it: the Standard Workload Format, Slurm's accounting, lists of Kubernetes' and Kueue's jobs, the tables
// of Alibaba's PAI, and any table whose columns a mapping names.
//
// A reader keeps what it can. A row that does not read is told by its line and the others
// are kept; a row that is no run of a job (a step, a job that never started, one that still runs) is
// left out and counted by reason. Every reader says what it took for what, as none of these files
// says all that a trace holds.
package history

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/musterdl/muster/experiment/trace"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// maxLine is how long a line may be, most how many mistakes are kept to be shown.
const (
	maxLine = 1 << 20
	most    = 20
)

// run is one job as a log has it. It is small, as a log holds many.
type run struct {
	name, tenant, user, class string

	submit, start   unit.Time // start is unit.Never where nothing says it
	ran, limit      unit.Duration
	workers         int32
	devices         int32 // of each worker
	share           unit.Milli
	cpu             unit.Milli // of each worker
	memory          unit.MiB
	priority, after int32 // after: the job before it, by its place, from 1
}

func (r *run) milli() int64 { return int64(r.workers) * int64(r.devices) * int64(r.share) }

// Reason is why rows were left out.
type Reason struct {
	Why   string `json:"why"`
	Rows  int    `json:"rows"`
	First int    `json:"first_line"`
}

// History is what a file of another scheduler tells.
type History struct {
	File, Kind string
	// Took says what was taken for what, Left what was left out and why.
	Took []string
	Left []Reason
	// Bad are the first rows that did not read, Wrong is how many there are.
	Bad   []trace.Problem
	Wrong int

	runs  []run
	names map[string]int32 // to the place of the run, from 1
	words map[string]string
	next  int
	cores bool
	ours  *trace.Writer // says what a trace of ours cannot hold
}

// Options say how a file is read. The zero Options guess.
type Options struct {
	// Kind is what the file is, empty for what it looks like.
	Kind string
	// Columns is a file that says which columns of a table are what; the kind is csv then.
	Columns string
	// Cores keeps what a job held of cores and host memory. Without, a cluster that has enough devices is enough.
	Cores bool
}

// reader reads one kind of file.
type reader struct {
	kind, about string
	// looks says whether a file that begins so is of the kind.
	looks func(head []byte) bool
	read  func(h *History, in *bufio.Reader, open func(name string) (io.ReadCloser, error)) error
}

var readers = []reader{
	{"swf", "Standard Workload Format of the Parallel Workloads Archive", looksSWF, readSWF},
	{"sacct", "Slurm's accounting, as sacct -P prints it", looksSacct, readSacct},
	{"kube", "Jobs, Kubeflow's jobs, JobSets, RayJobs or Kueue's Workloads, as kubectl get -o json prints them", looksKube, readKube},
	{"pai", "Alibaba's PAI: pai_task_table.csv, and beside it pai_job_table.csv", looksPAI, readPAI},
}

// Kinds names the kinds of files that are read, besides csv.
func Kinds() (names []string) {
	for _, r := range readers {
		names = append(names, r.kind)
	}
	return names
}

// Read reads a file.
func Read(file string, opt Options) (*History, error) {
	in, err := trace.Plain(file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return from(file, in, opt)
}

// from reads what stands in a file.
func from(file string, in io.Reader, opt Options) (*History, error) {
	body := bufio.NewReaderSize(in, 1<<16)
	if bom, _ := body.Peek(3); bytes.Equal(bom, []byte("\xef\xbb\xbf")) {
		_, _ = body.Discard(3)
	}
	head, _ := body.Peek(1 << 14)
	var r reader
	var err error
	if opt.Columns != "" {
		r, err = mapped(opt.Columns)
	} else {
		r, err = readerFor(file, opt.Kind, head)
	}
	if err != nil {
		return nil, err
	}
	h := &History{File: file, Kind: r.kind, names: map[string]int32{}, words: map[string]string{}, cores: opt.Cores, ours: trace.NewWriter(io.Discard, trace.CSV)}
	beside := func(name string) (io.ReadCloser, error) { return trace.Plain(filepath.Join(filepath.Dir(file), name)) }
	if err := r.read(h, body, beside); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	h.close()
	if len(h.runs) == 0 {
		return h, fmt.Errorf("%s: no job in it ran and ended", file)
	}
	if err := trace.OneSpan(h.runs[0].submit, h.runs[len(h.runs)-1].submit); err != nil {
		return h, fmt.Errorf("%s: %w", file, err)
	}
	return h, nil
}

func readerFor(file, kind string, head []byte) (reader, error) {
	for _, r := range readers {
		if kind == r.kind || kind == "" && r.looks(head) {
			return r, nil
		}
	}
	if kind != "" {
		return reader{}, fmt.Errorf("there is no kind %q of history: expected one of %s, or --columns for any other table", kind, strings.Join(Kinds(), ", "))
	}
	return reader{}, unknown(file, head)
}

// add keeps a run that a trace of ours can hold; one whose name is there already is the same job, run once more, where
// again is true.
func (h *History) add(line int, r run, again bool) {
	r.name, r.tenant, r.user, r.class = cleaned(r.name), cleaned(r.tenant), cleaned(r.user), cleaned(r.class)
	at := h.names[r.name]
	once := at > 0 && again
	if once {
		first := &h.runs[at-1]
		r.submit, r.start, r.ran = min(first.submit, r.submit), min(first.start, r.start), first.ran+r.ran
	}
	for n, name := len(h.runs)+1, r.name; !once && h.names[r.name] > 0; n++ {
		r.name = name + "#" + strconv.Itoa(n)
	}
	if err := h.ours.Fill(r.job()); err != nil {
		h.wrong(line, "", err)
		return
	}
	if once {
		first := &h.runs[at-1]
		first.submit, first.start, first.ran = r.submit, r.start, r.ran
		h.took("several runs of a job that was started again for one, as long as all of them")
		return
	}
	r.name = strings.Clone(r.name)
	if (r.cpu > 0 || r.memory > 0) && !h.cores {
		r.cpu, r.memory = 0, 0
		h.took("no cores and no host memory: --cores keeps them, for a cluster file that has as many")
	}
	r.tenant, r.user, r.class = h.word(r.tenant), h.word(r.user), h.word(r.class)
	h.runs = append(h.runs, r)
	h.names[r.name] = int32(len(h.runs))
}

// cleaned leaves out of a name what a trace cannot hold.
func cleaned(name string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return '_'
		}
		return c
	}, strings.ToValidUTF8(name, "_"))
}

// word keeps one copy of what is said again and again.
func (h *History) word(s string) string {
	if kept, ok := h.words[s]; ok {
		return kept
	}
	s = strings.Clone(s)
	h.words[s] = s
	return s
}

// keep takes what a row came to.
func (h *History) keep(w *row, r run, again bool) {
	switch {
	case w.err != nil:
		h.wrong(w.line, w.field, w.err)
	case w.why != "":
		h.leave(w.line, w.why)
	default:
		h.add(w.line, r, again)
	}
}

func (h *History) wrong(line int, field string, err error) {
	h.Wrong++
	if len(h.Bad) < most {
		h.Bad = append(h.Bad, trace.Problem{Line: line, Field: field, Message: err.Error()})
	}
}

func (h *History) leave(line int, why string) {
	i := slices.IndexFunc(h.Left, func(r Reason) bool { return r.Why == why })
	if i < 0 {
		i, h.Left = len(h.Left), append(h.Left, Reason{Why: why, First: line})
	}
	h.Left[i].Rows++
}

func (h *History) took(format string, args ...any) {
	if s := fmt.Sprintf(format, args...); !slices.Contains(h.Took, s) {
		h.Took = append(h.Took, s)
	}
}

// close puts the runs in order of submission. Places of jobs that others come after move with them.
func (h *History) close() {
	order := make([]int32, len(h.runs))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(h.runs[a].submit, h.runs[b].submit) })
	sorted, place := make([]run, len(order)), make([]int32, len(order)+1)
	for i, from := range order {
		sorted[i], place[from+1] = h.runs[from], int32(i+1)
	}
	for i := range sorted {
		sorted[i].after = place[sorted[i].after]
	}
	h.runs, h.names, h.words = sorted, nil, nil
}

// Next hands out the next job, with its submission counted from the first.
func (h *History) Next() (workload.Job, workload.Truth, error) {
	if h.next == len(h.runs) {
		return workload.Job{}, workload.Truth{}, io.EOF
	}
	r := &h.runs[h.next]
	h.next++
	j, truth := r.job()
	j.Submit = unit.Time(r.submit.Sub(h.runs[0].submit))
	if r.after > 0 {
		j.After = []string{h.runs[r.after-1].name}
	}
	return j, truth, nil
}

// job is the run as a trace has it, but for when it came and after whom.
func (r *run) job() (workload.Job, workload.Truth) {
	j := workload.Job{Name: r.name, Tenant: r.tenant, User: r.user, Priority: r.priority, TimeLimit: r.limit}
	j.Gang, j.Devices, j.Share, j.CPU, j.HostMemory, j.Class = r.workers, r.devices, r.share, r.cpu, r.memory, r.class
	return j, workload.Truth{Duration: r.ran}
}

// Close is for whoever takes a history as any trace.
func (h *History) Close() error { return nil }

// Sum is what a history comes to.
type Sum struct {
	Jobs        int     `json:"jobs"`
	DeviceHours float64 `json:"device_hours"`
	// Peak is the most devices that were held at once, 0 where nothing says when jobs started.
	Peak int `json:"most_devices_at_once"`
	// Widest is the most devices of one worker.
	Widest int `json:"most_devices_of_a_worker"`
	// Cluster has as many devices as were held at once and room for each job by itself; it is empty where nothing says when
	// jobs started.
	Cluster     string    `json:"cluster"`
	First, Last unit.Time `json:"-"`
}

// Sum adds up.
func (h *History) Sum() Sum {
	s := Sum{Jobs: len(h.runs)}
	held := map[unit.Time]int64{} // by how much it changes
	for i := range h.runs {
		r := &h.runs[i]
		s.DeviceHours += float64(r.milli()) / 1000 * r.ran.Seconds() / 3600
		s.Widest = max(s.Widest, int(r.devices))
		if r.start != unit.Never {
			held[r.start] += r.milli()
			held[r.start.Add(r.ran)] -= r.milli()
		}
	}
	var now, peak int64
	for _, at := range slices.Sorted(maps.Keys(held)) {
		now += held[at]
		peak = max(peak, now)
	}
	s.Peak = int((peak + 999) / 1000)
	if s.Peak > 0 {
		s.Cluster = h.cluster(s.Peak, max(usualNode, s.Widest))
	}
	if len(h.runs) > 0 {
		s.First, s.Last = h.runs[0].submit, h.runs[len(h.runs)-1].submit
	}
	return s
}

// usualNode is how many devices a node has where no worker has more.
const usualNode = 8

// cluster names one of nodes of so many devices each.
func (h *History) cluster(devices, each int) string {
	nodes := (devices + each - 1) / each
	for i := range h.runs {
		if r := &h.runs[i]; r.milli() > 0 { // workers of five devices fill a node of eight
			room := each * int(unit.Whole) / (int(r.devices) * int(r.share))
			nodes = max(nodes, (int(r.workers)+room-1)/room)
		}
	}
	return fmt.Sprintf("gpus:%dx%d", nodes, each)
}

// Dated says whether a time is of a calendar, and not counted from the start of a log.
func Dated(t unit.Time) bool { return t > unit.Time(20*365*unit.Day) }

// lines hands every line of a file that is not empty to visit.
func lines(in io.Reader, visit func(line int, text string) error) error {
	s := bufio.NewScanner(in)
	s.Buffer(make([]byte, 0, 1<<16), maxLine)
	for line := 1; s.Scan(); line++ {
		if text := strings.TrimRight(s.Text(), "\r"); text != "" {
			if err := visit(line, text); err != nil {
				return err
			}
		}
	}
	return s.Err()
}

// firstLine is the first line of what a file begins with.
func firstLine(head []byte) string {
	line, _, _ := strings.Cut(string(head), "\n")
	return strings.TrimRight(line, "\r")
}

// within is the number of a cell that lies from low up to high, and false where it holds none.
func within(cell string, low, high float64) (float64, bool) {
	x, err := strconv.ParseFloat(cell, 64)
	return x, err == nil && x >= low && x <= high
}

// mostSeconds bounds times and spans that are numbers: more of them are of another unit.
const mostSeconds = 1e10

// clocks are the forms in which logs write a time.
var clocks = []string{"2006-01-02T15:04:05", "2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05-0700", "2006-01-02 15:04:05", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05-0700"}

// clock reads a date and time, or seconds since 1970. Where no offset stands behind it, it is taken as it stands.
func clock(cell string) (unit.Time, error) {
	if x, ok := within(cell, 0, mostSeconds); ok {
		return unit.Time(unit.Seconds(x)), nil
	}
	for _, form := range clocks {
		if t, err := time.Parse(form, cell); err == nil && t.Year() >= 1970 && t.Year() <= 2100 {
			return unit.Time(t.UnixMicro()), nil
		}
	}
	return 0, fmt.Errorf("%q: expected a time, as in 2026-11-27T09:30:00, with or without +01:00 behind it, or seconds", cell)
}

// whole reads a number of things.
func whole(cell string) (int32, error) {
	x, ok := within(cell, 0, 1_000_000)
	if !ok || x != math.Trunc(x) {
		return 0, fmt.Errorf("%q: expected a whole number from 0 to 1000000", cell)
	}
	return int32(x), nil
}

// spread puts devices on workers: as many on each of so many nodes, or, where they do not divide, one on each worker.
func (r *run) spread(devices, nodes int32) {
	r.share = unit.Whole
	switch nodes = max(1, nodes); {
	case devices%nodes == 0 && devices/nodes <= 1024:
		r.workers, r.devices = nodes, devices/nodes
	default:
		r.workers, r.devices = devices, 1
	}
}
