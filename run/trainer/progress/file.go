package progress

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Writer appends a job's events to the place named by MUSTER_PROGRESS. A nil Writer
// drops them, so a job need not ask whether anybody listens.
type Writer struct {
	file *os.File
	err  error
}

// Open returns the writer that MUSTER_PROGRESS asks for, a path or "fd:N"; nil if
// the variable is empty.
func Open(env func(string) string) (*Writer, error) {
	target := env("MUSTER_PROGRESS")
	if target == "" {
		return nil, nil
	}
	if number, ok := strings.CutPrefix(target, "fd:"); ok {
		fd, err := strconv.Atoi(number)
		if err != nil || fd < 0 {
			return nil, fmt.Errorf("MUSTER_PROGRESS=%q: expected a path or fd:N", target)
		}
		return &Writer{file: os.NewFile(uintptr(fd), target)}, nil
	}
	file, err := os.OpenFile(target, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open MUSTER_PROGRESS: %w", err)
	}
	return &Writer{file: file}, nil
}

// Write appends one event. Progress is worth less than the training it reports, so
// a failure is kept for Close instead of being returned to every step.
func (w *Writer) Write(e Event) {
	if w == nil {
		return
	}
	// One write per line: appends of several processes do not mix within a line.
	if _, err := w.file.WriteString(e.String() + "\n"); err != nil && w.err == nil {
		w.err = fmt.Errorf("write progress: %w", err)
	}
}

// Close closes the target and returns the first error of any write.
func (w *Writer) Close() error {
	if w == nil {
		return nil
	}
	return errors.Join(w.err, w.file.Close())
}

// Tail reads what others append to a file. A file that does not exist yet is empty.
type Tail struct {
	path   string
	offset int64
	given  int64 // how much of the file has been given up
	cut    bool  // what comes next does not go on where the last ended
	wrote  time.Time
}

// NewTail returns a tail that starts at the beginning of path.
func NewTail(path string) *Tail { return &Tail{path: path} }

// MostRead bounds one Read, in bytes: the rest comes with the next.
const MostRead = 1 << 20

// Read returns what was appended since the last call. A file that became shorter
// was begun anew and is read from its start.
func (t *Tail) Read() ([]byte, error) {
	file, err := os.Open(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("tail: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("tail: %w", err)
	}
	if info.Size() < t.offset {
		t.offset, t.given = 0, 0
	}
	b, err := io.ReadAll(io.NewSectionReader(file, t.offset, MostRead))
	t.offset += int64(len(b))
	t.wrote = time.Time{}
	if info, err := file.Stat(); err == nil && info.Size() == t.offset {
		t.wrote = info.ModTime()
	}
	if t.cut {
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			return nil, err // still of a line whose beginning is gone
		}
		t.cut, b = false, append([]byte{0}, b[end:]...) // which makes what was begun no line either
	}
	if err != nil {
		return b, fmt.Errorf("tail %s: %w", t.path, err)
	}
	return b, nil
}

// Wrote is when the last of what was read was written, by the file's own time; zero where that is
// not known, since more has come meanwhile.
func (t *Tail) Wrote() time.Time { return t.wrote }

// Bound gives up the beginning of what the file holds where that is more than most bytes:
// what was read and, of a flood, what was not, all but its end. The file keeps its length
// and the writer its place in it; only what it takes of the disk is freed.
func (t *Tail) Bound(most int64) error {
	info, err := os.Lstat(t.path)
	if err != nil || !info.Mode().IsRegular() || info.Size()-t.given <= most {
		return nil // what is not there takes no room
	}
	file, err := os.OpenFile(t.path, os.O_WRONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("bounding progress: %w", err)
	}
	end := info.Size() - min(MostRead, most/2) // what is newest is kept
	if err = unix.Fallocate(int(file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, end); err != nil {
		err, end = file.Truncate(0), 0 // the file system knows no holes
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("bounding progress: %w", err)
	}
	if t.given = end; end == 0 || t.offset < end {
		t.offset, t.cut = end, true
	}
	return nil
}
