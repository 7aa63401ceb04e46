package supervise

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterdl/muster/mechanism/control"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run/local/cgroup"
	"github.com/musterdl/muster/run/trainer/progress"
)

// sampler measures a worker and reads what it reports.
type sampler struct {
	group  cgroup.Group
	reaper *reaper
	tail   *progress.Tail
	parser progress.Parser

	gpus gpuMeter

	report      Report
	pace        control.Blocks  // of the worker's steps
	blocks      []control.Block // since the last progress record
	usage       Usage
	io          map[int]storage // of living processes
	ended       storage         // of those that ended
	checkpoints int             // reported so far
}

// storage is traffic with storage.
type storage struct{ read, written int64 }

func newSampler(dir string, group cgroup.Group, r *reaper) *sampler {
	return &sampler{group: group, reaper: r, tail: progress.NewTail(ProgressPath(dir)), io: map[int]storage{},
		pace: control.Blocks{Over: blockOver}}
}

// blockOver is the least time of a block of steps. A record has as many as fit since the last, so
// that who reads it sees how much they differ.
const blockOver = unit.Second / 2

// Of a progress file that is flooded no more is kept than one read takes in.
const (
	progressPieces = 8
	mostProgress   = progressPieces * progress.MostRead
)

// bound gives up what is too much in the progress file; one that cannot be bounded now
// is looked at again soon.
func (s *sampler) bound() { _ = s.tail.Bound(mostProgress) }

// read takes in what the worker reported since the last time and returns records of its newest
// checkpoint and of its newest answer about a plan, where there are new ones: older ones are
// superseded.
func (s *sampler) read() (said []Record) {
	newest := func(r Record) {
		said = append(slices.DeleteFunc(said, func(o Record) bool { return o.Kind == r.Kind }), r)
	}
	for range progressPieces {
		s.bound() // before each piece: a flood goes on while one is taken in
		b, err := s.tail.Read()
		events := s.parser.Feed(b)
		if block, ok := lastStep(events, s.tail, &s.pace); ok {
			s.blocks = append(s.blocks, block)
		}
		for _, e := range events {
			switch e.Kind {
			case progress.Checkpoint:
				newest(Record{Kind: Checkpoint, Report: Report{Step: e.Step, Path: e.Path}})
				s.checkpoints++
			case progress.Planned:
				newest(Record{Kind: Planned, Why: e.Why, Report: Report{Step: e.Step, Path: e.File}})
			case progress.Phase:
				s.report.Phase = e.Name
			default:
				s.report = Report{Step: e.Step, Of: max(e.Of, s.report.Of), Samples: e.Samples, Sent: e.Sent, Loss: e.Loss, Rate: e.Rate,
					Phase: s.report.Phase}
			}
		}
		if err != nil || len(b) == 0 {
			break
		}
	}
	s.report.Malformed = s.parser.Malformed
	return said
}

// lastStep takes the step that ends what was read into blocks, where it is known when that was.
func lastStep(events []progress.Event, from *progress.Tail, into *control.Blocks) (control.Block, bool) {
	n, at := len(events), from.Wrote()
	if n == 0 || events[n-1].Kind != progress.Step || at.IsZero() {
		return control.Block{}, false
	}
	return into.Seen(events[n-1].Step, unit.Time(at.UnixMicro()))
}

// measure takes in what the worker and its children use.
func (s *sampler) measure() {
	gpu, gpuMemory := s.usage.GPU, s.usage.GPUMemory
	if percent, memory, ok := s.gpus.measure(time.Now()); ok {
		gpu, gpuMemory = percent, unit.MiB(memory)
	}
	var total process
	living := map[int]storage{}
	for _, p := range s.processes() {
		total.cpu, total.rss = total.cpu+p.cpu, total.rss+p.rss
		if io, ok := readStorage(p.pid); ok {
			living[p.pid] = io
		} else if io, ok := s.io[p.pid]; ok {
			living[p.pid] = io
		}
	}
	for pid, io := range s.io {
		if _, ok := living[pid]; !ok {
			s.ended.read, s.ended.written = s.ended.read+io.read, s.ended.written+io.written
		}
	}
	s.io = living
	sum := s.ended
	for _, io := range living {
		sum.read, sum.written = sum.read+io.read, sum.written+io.written
	}
	u, _ := s.group.Usage() // what a group does not measure is 0 and summed up instead
	if u.CPU == 0 {
		u.CPU = total.cpu + unit.Duration(s.reaper.cpuUs.Load())
	}
	if u.Memory == 0 {
		u.Memory = total.rss
	}
	s.usage = Usage{CPU: max(u.CPU, s.usage.CPU), Memory: u.Memory, Peak: max(u.Memory, s.usage.Peak), Read: sum.read, Written: sum.written,
		GPU: gpu, GPUMemory: gpuMemory}
}

// processes are the worker's: from its group, or by descent.
func (s *sampler) processes() (all []process) {
	pids, err := s.group.Processes()
	if err != nil || s.group.Empty() {
		return descendants(os.Getpid())
	}
	for _, pid := range pids {
		if p, ok := readProcess(pid); ok {
			all = append(all, p)
		}
	}
	return all
}

// readStorage reads what a process itself read and wrote; the kernel may not tell.
func readStorage(pid int) (s storage, ok bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		return storage{}, false
	}
	for line := range bytes.Lines(b) {
		key, value, _ := strings.Cut(strings.TrimSpace(string(line)), ": ")
		n, _ := strconv.ParseInt(value, 10, 64)
		switch key {
		case "read_bytes":
			s.read = n
		case "write_bytes":
			s.written = n
		}
	}
	return s, true
}

// sampleShare bounds the part of one core that measuring may take: one in so many.
const sampleShare = 200

// pause is how long to wait until the next measurement, given what the last one
// cost: workers of very many processes are measured less often.
func pause(every unit.Duration, cost time.Duration) time.Duration {
	return max(time.Duration(every)*time.Microsecond, sampleShare*cost)
}

// threadTime is the CPU time this thread has used.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// summaryPause is the least time between two progress records: long runs have less
// news, and their records are read as a whole when the control plane restarts.
func summaryPause(every unit.Duration, running time.Duration) time.Duration {
	const most = time.Minute
	least := time.Duration(every) * time.Microsecond
	return max(least, min(running/1000, most))
}
