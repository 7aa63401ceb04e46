package supervise

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// The log of a worker keeps its beginning and its end. The file log holds the first
// half of the quota; what comes later goes to files log.N of a quarter each, where N
// is the position of their first byte in the whole output, and only the last two are
// kept. So a gap shows in the names and needs no bookkeeping.

// logWriter writes a log. A full disk costs output, never the worker.
type logWriter struct {
	mu    sync.Mutex
	dir   string
	quota int64
	at    int64 // bytes of output so far
	file  *os.File
	room  int64 // left in file
	tails []string
}

// newLogWriter begins a log, or goes on behind what there is of it.
func newLogWriter(dir string, quota int64) (*logWriter, error) {
	files, err := logFiles(dir)
	if err != nil {
		return nil, err
	}
	l := &logWriter{dir: dir, quota: quota}
	for i, f := range files {
		if l.at = f.end; i > 0 {
			l.tails = append(l.tails, f.path)
		}
	}
	if len(files) > 0 {
		return l, nil
	}
	if l.file, err = os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	l.room = quota / 2
	return l, nil
}

// copy writes everything from r until it ends.
func (l *logWriter) copy(r io.Reader) {
	b := make([]byte, 64<<10)
	for {
		n, err := r.Read(b)
		l.write(b[:n])
		if err != nil {
			return
		}
	}
}

func (l *logWriter) write(b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(b) > 0 {
		if l.room <= 0 || l.file == nil {
			l.next()
		}
		n := min(int64(len(b)), max(l.room, 1))
		if l.file != nil {
			if _, err := l.file.Write(b[:n]); err != nil {
				// What was half written would shift what follows: go on in a new file.
				l.file.Close()
				l.file = nil
			}
		}
		l.at, l.room, b = l.at+n, l.room-n, b[n:]
	}
}

// next begins a new file at the present position and removes the oldest of three.
func (l *logWriter) next() {
	if l.file != nil {
		l.file.Close()
	}
	if len(l.tails) == 2 {
		os.Remove(l.tails[0])
		l.tails = l.tails[1:]
	}
	path := filepath.Join(l.dir, fmt.Sprintf("log.%d", l.at))
	l.room = max(l.quota/4, 1)
	var err error
	if l.file, err = os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600); err == nil {
		l.tails = append(l.tails, path)
	}
}

func (l *logWriter) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

// LogChunk is a piece of a worker's output.
type LogChunk struct {
	Data []byte
	// Dropped is the number of bytes that the quota cost just before Data.
	Dropped int64
	// Next is the position behind Data in the whole output.
	Next int64
}

// ReadLog returns at most limit bytes of output from a position on. Positions count
// all output ever, also what was dropped; an empty chunk means that there is no more yet.
func ReadLog(dir string, from int64, limit int) (LogChunk, error) {
	for range 3 { // a file may be dropped between being listed and opened
		chunk, err := readLog(dir, from, limit)
		if !errors.Is(err, fs.ErrNotExist) {
			return chunk, err
		}
	}
	return LogChunk{Next: from}, nil
}

// logFile is one file of a log: output from byte first up to byte end.
type logFile struct {
	path       string
	first, end int64
}

func readLog(dir string, from int64, limit int) (LogChunk, error) {
	files, err := logFiles(dir)
	if err != nil {
		return LogChunk{}, err
	}
	for _, f := range files {
		if from >= f.end {
			continue
		}
		at := max(from, f.first)
		file, err := os.Open(f.path)
		if err != nil {
			return LogChunk{}, fmt.Errorf("read log: %w", err)
		}
		defer file.Close()
		b := make([]byte, min(int64(limit), f.end-at))
		n, err := file.ReadAt(b, at-f.first)
		if err != nil && !errors.Is(err, io.EOF) {
			return LogChunk{}, fmt.Errorf("read log: %w", err)
		}
		return LogChunk{Data: b[:n], Dropped: at - from, Next: at + int64(n)}, nil
	}
	return LogChunk{Next: from}, nil
}

// logFiles lists the files of a log in the order of the output.
func logFiles(dir string) (files []logFile, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read log: %w", err)
	}
	for _, e := range entries {
		var first int64
		if e.Name() != "log" {
			rest, ok := strings.CutPrefix(e.Name(), "log.")
			if !ok {
				continue
			}
			if first, err = strconv.ParseInt(rest, 10, 64); err != nil {
				continue
			}
		}
		info, err := e.Info()
		if err != nil {
			return nil, fmt.Errorf("read log: %w", err)
		}
		files = append(files, logFile{filepath.Join(dir, e.Name()), first, first + info.Size()})
	}
	slices.SortFunc(files, func(a, b logFile) int { return cmp.Compare(a.first, b.first) })
	return files, nil
}
