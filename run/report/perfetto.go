package report

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/musterdl/muster/model/unit"
)

// Perfetto writes a run as a Chrome trace, which ui.perfetto.dev opens: one
// track per lane, lanes of a node together, and counters. It streams: nothing is
// kept but what the writer below it buffers. The first error ends the writing
// and is returned by Close.
type Perfetto struct {
	out    *bufio.Writer
	nodes  []int // per lane, the process that stands for its node
	events int64
	err    error
}

// clusterProcess is the process that carries the counters.
const clusterProcess = 1

// NewPerfetto returns a writer; Begin comes first, Close last.
func NewPerfetto(w io.Writer) *Perfetto {
	return &Perfetto{out: bufio.NewWriterSize(w, 1<<16)}
}

// traceEvent is one event of the format. Fields that do not apply are left out;
// ts and pid are always written.
type traceEvent struct {
	Phase    string         `json:"ph"`
	Name     string         `json:"name"`
	Category string         `json:"cat,omitempty"`
	At       unit.Time      `json:"ts"`
	Duration *unit.Duration `json:"dur,omitempty"`
	Process  int            `json:"pid"`
	Thread   int            `json:"tid,omitempty"`
	Args     any            `json:"args,omitempty"`
}

type nameArgs struct {
	Name string `json:"name"`
}

type reasonArgs struct {
	Reason string `json:"reason"`
}

type valueArgs struct {
	Value json.RawMessage `json:"value"`
}

// Begin writes the head and names the lanes. Neighbouring lanes of one node form
// a group.
func (p *Perfetto) Begin(lanes []Lane) {
	p.text("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n")
	p.event(traceEvent{Phase: "M", Name: "process_name", Process: clusterProcess, Args: nameArgs{"cluster"}})
	process := clusterProcess
	for i, lane := range lanes {
		if i == 0 || lane.Node != lanes[i-1].Node {
			process++
			p.event(traceEvent{Phase: "M", Name: "process_name", Process: process, Args: nameArgs{lane.Node}})
		}
		p.nodes = append(p.nodes, process)
		p.event(traceEvent{Phase: "M", Name: "thread_name", Process: process, Thread: i + 1, Args: nameArgs{lane.Name}})
	}
}

// Span writes a stretch of time on each of its lanes.
func (p *Perfetto) Span(s Span) {
	for lane := s.Lane; lane < s.Lane+max(1, s.Lanes); lane++ {
		if lane < 0 || int(lane) >= len(p.nodes) {
			p.fail(fmt.Errorf("span of job %s is on lane %d of %d", s.Job, lane, len(p.nodes)))
			return
		}
		d := s.To.Sub(s.From)
		e := traceEvent{Phase: "X", Name: s.Job, Category: s.Kind.String(), At: s.From, Duration: &d,
			Process: p.nodes[lane], Thread: int(lane) + 1}
		if s.Reason != "" {
			e.Args = reasonArgs{s.Reason}
		}
		p.event(e)
	}
}

// Counter writes the value of a counter from this instant on, such as the number
// of waiting jobs.
func (p *Perfetto) Counter(at unit.Time, name string, value float64) {
	text := strconv.FormatFloat(value, 'g', -1, 64)
	p.event(traceEvent{Phase: "C", Name: name, At: at, Process: clusterProcess, Args: valueArgs{json.RawMessage(text)}})
}

// Close writes the end and returns the first error.
func (p *Perfetto) Close() error {
	p.text("\n]}\n")
	if p.err == nil {
		p.fail(p.out.Flush())
	}
	if p.err != nil {
		return fmt.Errorf("writing the trace: %w", p.err)
	}
	return nil
}

func (p *Perfetto) event(e traceEvent) {
	line, err := json.Marshal(e)
	p.fail(err)
	if p.events > 0 {
		p.text(",\n")
	}
	p.events++
	p.text(string(line))
}

func (p *Perfetto) text(s string) {
	if p.err == nil {
		_, err := p.out.WriteString(s)
		p.fail(err)
	}
}

func (p *Perfetto) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}
