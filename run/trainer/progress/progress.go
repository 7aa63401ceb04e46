// Package progress is the line protocol between a training program and whoever
// supervises it. A job appends lines such as "step=120 of=400 loss=2.31" to a
// file or descriptor named by MUSTER_PROGRESS, and finds requests such as
// "checkpoint" as lines in the file named by MUSTER_CONTROL. It is small enough
// to be written with echo; ../PROTOCOL.md describes it with examples.
//
// The reading side trusts nothing: unknown keys and verbs are skipped so that old
// supervisors read new jobs, malformed lines are counted and dropped, and no line
// may occupy more than LineLimit bytes of memory.
package progress

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// LineLimit is the longest line in bytes, without its newline.
const LineLimit = 4096

// countLimit bounds step and sample counts: below it a float64 holds every integer.
const countLimit = 1 << 53

// Kind says what a line reports.
type Kind int

// The kinds of events.
const (
	// Step is a finished training step.
	Step Kind = iota
	// Checkpoint is a saved state that a later attempt can resume from.
	Checkpoint
	// Phase is what the job does from now on: restore, train, or a word of its own.
	Phase
	// Planned answers a request for another pipeline plan: the job goes by it from now on or, with
	// a Why, refuses it and goes on by the one before.
	Planned
)

// Event is one line of a job's progress.
type Event struct {
	Kind Kind
	// Step is the number of finished steps, counted over all attempts.
	Step int64
	// Of is the number of steps the job will make; 0 is unknown.
	Of int64
	// Samples is the number of samples seen so far, over all workers.
	Samples int64
	// Sent is the number of bytes this worker has put on the wire in this attempt.
	Sent int64
	// Loss is meaningful where HasLoss is set.
	Loss    float64
	HasLoss bool
	// Rate is in steps per second; 0 is unknown.
	Rate float64
	// Path is where a checkpoint lies.
	Path string
	// Name is the name of a phase, one word.
	Name string
	// File is the name of a plan's file, one word without its folder.
	File string
	// Why is the reason of a refusal.
	Why string
}

// String returns the event as a line without its newline.
func (e Event) String() string {
	var b strings.Builder
	switch e.Kind {
	case Checkpoint:
		fmt.Fprintf(&b, "checkpoint step=%d", e.Step)
		if e.Path != "" {
			b.WriteString(" path=" + oneLine(e.Path))
		}
	case Phase:
		b.WriteString("phase name=" + oneWord(e.Name))
	case Planned:
		fmt.Fprintf(&b, "plan step=%d file=%s", e.Step, oneWord(e.File))
		if e.Why != "" {
			b.WriteString(" why=" + oneLine(e.Why))
		}
	default:
		fmt.Fprintf(&b, "step=%d", e.Step)
		if e.Of > 0 {
			fmt.Fprintf(&b, " of=%d", e.Of)
		}
		if e.HasLoss {
			b.WriteString(" loss=" + strconv.FormatFloat(e.Loss, 'g', -1, 64))
		}
		if e.Samples > 0 {
			fmt.Fprintf(&b, " samples=%d", e.Samples)
		}
		if e.Sent > 0 {
			fmt.Fprintf(&b, " sent=%d", e.Sent)
		}
		if e.Rate > 0 {
			b.WriteString(" rate=" + strconv.FormatFloat(e.Rate, 'g', 4, 64))
		}
	}
	return b.String()
}

// oneLine keeps a value from ending its line early.
func oneLine(s string) string {
	return strings.NewReplacer("\n", " ", "\r", " ").Replace(s)
}

// oneWord keeps a value from ending its field early.
func oneWord(s string) string { return strings.Join(strings.Fields(s), "-") }

// ParseLine reads one line. A line that is empty or starts with an unknown verb is
// no error and no event.
func ParseLine(line string) (event Event, ok bool, err error) {
	if len(line) > LineLimit {
		return Event{}, false, fmt.Errorf("line of %d bytes: at most %d are allowed", len(line), LineLimit)
	}
	rest := strings.TrimSpace(line)
	if rest == "" {
		return Event{}, false, nil
	}
	verb, _ := cutField(rest)
	if !strings.Contains(verb, "=") {
		switch verb {
		case "checkpoint":
			event.Kind = Checkpoint
		case "phase":
			event.Kind = Phase
		case "plan":
			event.Kind = Planned
		default:
			return Event{}, false, nil
		}
		_, rest = cutField(rest)
	}
	seen, err := event.setFields(rest)
	if err != nil {
		return Event{}, false, err
	}
	need := "step"
	switch event.Kind {
	case Phase:
		need = "name"
	case Planned:
		need = "file"
	}
	if !seen[need] {
		return Event{}, false, fmt.Errorf("line %.60q has no %s=", line, need)
	}
	return event, true, nil
}

// setFields reads key=value fields and returns which keys were there.
func (e *Event) setFields(rest string) (seen map[string]bool, err error) {
	seen = map[string]bool{}
	for rest != "" {
		var field string
		if strings.HasPrefix(rest, "path=") || strings.HasPrefix(rest, "why=") { // these may hold spaces: they are last
			field, rest = rest, ""
		} else {
			field, rest = cutField(rest)
		}
		key, value, found := strings.Cut(field, "=")
		if !found || key == "" {
			return nil, fmt.Errorf("field %.60q is not key=value", field)
		}
		if err := e.set(key, value); err != nil {
			return nil, err
		}
		seen[key] = true
	}
	return seen, nil
}

// set reads one field. What another kind of line would say is as unknown here as
// any other key.
func (e *Event) set(key, value string) (err error) {
	switch {
	case key == "step" && e.Kind != Phase:
		e.Step, err = count(key, value)
	case key == "path" && e.Kind == Checkpoint:
		e.Path = oneLine(value)
	case key == "why" && e.Kind == Planned:
		e.Why = oneLine(value)
	case key == "file" && e.Kind == Planned:
		if e.File = oneWord(value); e.File == "" {
			err = fmt.Errorf("file= is empty: expected the name of a plan's file")
		}
	case key == "name" && e.Kind == Phase:
		if e.Name = oneWord(value); e.Name == "" {
			err = fmt.Errorf("name= is empty: expected a word")
		}
	case e.Kind != Step:
	case key == "of":
		e.Of, err = count(key, value)
	case key == "samples":
		e.Samples, err = count(key, value)
	case key == "sent":
		e.Sent, err = count(key, value)
	case key == "loss":
		e.Loss, e.HasLoss, err = finite(key, value)
	case key == "rate":
		e.Rate, _, err = finite(key, value)
		e.Rate = max(e.Rate, 0)
	}
	return err
}

// cutField splits the first field from s and drops the space behind it.
func cutField(s string) (field, rest string) {
	i := strings.IndexAny(s, " \t")
	if i < 0 {
		return s, ""
	}
	return s[:i], strings.TrimLeft(s[i:], " \t")
}

func count(key, value string) (int64, error) {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 0 || n > countLimit {
		return 0, fmt.Errorf("%s=%.40q: expected a count from 0 to 2^53", key, value)
	}
	return n, nil
}

// finite reads a number. A job whose loss has become NaN still makes steps: what is
// not finite is left unset instead of costing the line.
func finite(key, value string) (v float64, ok bool, err error) {
	v, err = strconv.ParseFloat(value, 64)
	if err != nil && !math.IsInf(v, 0) {
		return 0, false, fmt.Errorf("%s=%.40q: expected a number", key, value)
	}
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, false, nil
	}
	return v, true, nil
}

// Parser turns the bytes of a progress file, in pieces of any size, into events.
// The zero value is ready.
type Parser struct {
	lines splitter
	// Malformed counts the lines that were dropped because they could not be read.
	Malformed int64
}

// Feed takes the next bytes and returns the events of the lines they complete.
func (p *Parser) Feed(b []byte) []Event {
	var events []Event
	p.lines.feed(b, func(line string, tooLong bool) {
		event, ok, err := ParseLine(line)
		if err != nil || tooLong {
			p.Malformed++
		} else if ok {
			events = append(events, event)
		}
	})
	return events
}

// splitter cuts a stream into lines and keeps at most LineLimit bytes of one.
type splitter struct {
	partial []byte
	tooLong bool
}

func (s *splitter) feed(b []byte, line func(text string, tooLong bool)) {
	for _, c := range b {
		switch {
		case c == '\n':
			line(string(s.partial), s.tooLong)
			s.partial, s.tooLong = s.partial[:0], false
		case len(s.partial) == LineLimit:
			s.tooLong = true
		default:
			s.partial = append(s.partial, c)
		}
	}
}
