package supervise

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/musterdl/muster/internal/steady"
	"github.com/musterdl/muster/mechanism/control"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run/local/cgroup"
)

// Kind says what a record is about.
type Kind string

// The kinds of records, in the order in which they may come.
const (
	Prepared      Kind = "prepared" // only has to be told go
	Started       Kind = "started"
	Progress      Kind = "progress"
	Checkpoint    Kind = "checkpoint"
	Planned       Kind = "planned" // it answered what it was told of another pipeline plan
	Suspended     Kind = "suspended"
	Resumed       Kind = "resumed"
	StopRequested Kind = "stop-requested"
	TakenOver     Kind = "taken-over" // its supervisor was killed, another one goes on; orders may be lost
	Exited        Kind = "exited"     // as Ended will say; what the worker left behind is still to be ended
	Ended         Kind = "ended"
)

// Class says why a worker ended.
type Class string

// The classes.
const (
	Done      Class = "done"       // exit code 0
	User      Class = "user"       // the job's own: another exit code, a signal, no such command or directory
	Node      Class = "node"       // this machine could not run it
	Memory    Class = "memory"     // the kernel ended it for want of memory
	TimeLimit Class = "time-limit" // it ran as long as it may
	Preempted Class = "preempted"  // stopped because it was asked for
	Temporary Class = "temporary"  // try again: exit code 75 says that a peer went away; or what passes kept it from starting
	Aborted   Class = "aborted"    // never started: told not to
	Abandoned Class = "abandoned"  // never started: nobody said go in time
	Lost      Class = "lost"       // its supervisors died
)

// Report is the latest the worker said of itself.
type Report struct {
	Step    int64   `json:"step,omitempty"`
	Of      int64   `json:"of,omitempty"`
	Samples int64   `json:"samples,omitempty"`
	Sent    int64   `json:"sent_bytes,omitempty"` // put on the wire in this attempt
	Loss    float64 `json:"loss,omitempty"`
	Rate    float64 `json:"rate,omitempty"` // steps per second
	Phase   string  `json:"phase,omitempty"`
	Path    string  `json:"path,omitempty"` // of a checkpoint, or the name of a plan's file
	// Malformed counts lines that could not be read.
	Malformed int64 `json:"malformed,omitempty"`
}

// Usage is what the worker and all its children have used.
type Usage struct {
	CPU     unit.Duration `json:"cpu_us,omitempty"`
	Memory  unit.MiB      `json:"memory_mib,omitempty"` // now
	Peak    unit.MiB      `json:"peak_mib,omitempty"`   // the most of any sample
	Read    int64         `json:"read_bytes,omitempty"` // from storage
	Written int64         `json:"written_bytes,omitempty"`
	// GPU is the mean utilisation of its GPUs in percent, GPUMemory what is in use on them.
	GPU       int      `json:"gpu_percent,omitempty"`
	GPUMemory unit.MiB `json:"gpu_memory_mib,omitempty"`
}

// Record is one line of a record file. Which fields are set depends on Kind.
type Record struct {
	Kind Kind      `json:"kind"`
	At   unit.Time `json:"at_us"` // since the Unix epoch
	// Prepared: the process that becomes the worker, when it was born (in clock
	// ticks of this boot), and its control group. Started repeats PID.
	PID   int           `json:"pid,omitempty"`
	Birth int64         `json:"birth,omitempty"`
	Boot  string        `json:"boot,omitempty"`
	Group *cgroup.Group `json:"group,omitempty"`
	// Exited, Ended and StopRequested: why. Planned: why it refuses the plan; empty where it goes by it.
	Class  Class  `json:"class,omitempty"`
	Code   int    `json:"code,omitempty"`   // exit code, or what a shell's would be; 0 with a Signal
	Signal string `json:"signal,omitempty"` // that ended it
	Why    string `json:"why,omitempty"`
	// Limit is what memory it might use, where it was ended for using more.
	Limit unit.MiB `json:"limit_mib,omitempty"`

	Report Report `json:"report,omitzero"`
	// Progress: the blocks of steps since the last such record.
	Blocks []control.Block `json:"blocks,omitempty"`
	Usage  Usage           `json:"usage,omitzero"`

	// Next is the position behind this record, to read on from.
	Next int64 `json:"-"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encode is the line of a record: checksum, space, JSON.
func encode(r Record) ([]byte, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode record: %w", err)
	}
	return fmt.Appendf(nil, "%08x %s\n", crc32.Checksum(b, castagnoli), b), nil
}

// decode reads the line of a record without its newline.
func decode(line []byte) (r Record, ok bool) {
	if len(line) < 10 || line[8] != ' ' || string(line[:8]) != fmt.Sprintf("%08x", crc32.Checksum(line[9:], castagnoli)) {
		return Record{}, false
	}
	return r, json.Unmarshal(line[9:], &r) == nil
}

// ErrDamaged is returned for a record file that was changed behind its end.
var ErrDamaged = errors.New("record is damaged")

// ReadRecords returns the records from a position on. What is not yet or not
// wholly written at the end is torn and left out: it is read when it is complete,
// or cut off by Reap. A file that does not exist yet has no records.
func ReadRecords(dir string, from int64) (records []Record, torn bool, err error) {
	path := filepath.Join(dir, "record")
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read record: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.NewSectionReader(f, from, 1<<62-from))
	if err != nil {
		return nil, false, fmt.Errorf("read record: %w", err)
	}
	for at := from; len(b) > 0; {
		line, rest, whole := bytes.Cut(b, []byte("\n"))
		r, ok := decode(line)
		if !whole || !ok {
			if whole && followed(rest) {
				return records, false, fmt.Errorf("%w: %s at byte %d", ErrDamaged, path, at)
			}
			return records, true, nil
		}
		at += int64(len(line)) + 1
		r.Next, b = at, rest
		records = append(records, r)
	}
	return records, false, nil
}

// followed reports whether a valid record is among what follows a bad line: then
// that line is no torn tail.
func followed(b []byte) bool {
	for line := range bytes.Lines(b) {
		if _, ok := decode(bytes.TrimSuffix(line, []byte("\n"))); ok {
			return true
		}
	}
	return false
}

// recorder appends to a record file; only the holder of the lock has one.
type recorder struct {
	file *os.File
	now  func() unit.Time // does not leap
	last unit.Time        // of the latest record: no other writer's clock goes back behind it
}

// openRecord opens the record file of dir for appending and cuts off a torn tail.
func openRecord(dir string) (*recorder, []Record, error) {
	records, _, err := ReadRecords(dir, 0)
	if err != nil {
		return nil, nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "record"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("open record: %w", err)
	}
	size, last := int64(0), unit.Time(0)
	if n := len(records); n > 0 {
		size, last = records[n-1].Next, records[n-1].At
	}
	if err := errors.Join(f.Truncate(size), syncDir(dir)); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("open record: %w", err), f.Close())
	}
	return &recorder{file: f, last: last, now: steady.New(steady.Machine, slog.New(slog.DiscardHandler)).Now}, records, nil
}

// add appends a record and returns once it is durable. After a failure the file
// ends where it did.
func (w *recorder) add(r Record) error {
	r.At = max(w.last, w.now())
	w.last = r.At
	line, err := encode(r)
	if err != nil {
		return err
	}
	info, err := w.file.Stat()
	if err != nil {
		return fmt.Errorf("add record: %w", err)
	}
	if _, err := w.file.Write(line); err != nil {
		return errors.Join(fmt.Errorf("add record: %w", err), w.file.Truncate(info.Size()))
	}
	if err := w.file.Sync(); err != nil {
		return fmt.Errorf("add record: %w", err)
	}
	return nil
}

// syncDir makes the entries of a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
