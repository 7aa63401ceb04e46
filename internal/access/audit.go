package access

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Entry is a line of the audit log: a call that changed something, or was refused.
type Entry struct {
	AtUs    int64  `json:"at_us"`
	Who     string `json:"who"`  // empty: it did not say, or nobody it claimed to be
	How     string `json:"how"`  // who vouches: the token of an id, or the kernel with a uid
	From    string `json:"from"` // an address, or the socket
	Method  string `json:"method"`
	Path    string `json:"path"`  // without the query
	Right   string `json:"right"` // that it takes; empty where it was refused before that was asked
	Allowed bool   `json:"allowed"`
	Status  int    `json:"status"`         // that was answered: what was allowed may have failed
	Why     string `json:"why,omitempty"`  // it was refused
	Note    string `json:"note,omitempty"` // what it did, where method and path do not say
	Request string `json:"request"`        // the id in the answer and in the server's log
}

// Log is the audit log: files of JSON lines that are only ever added to. A line is
// with the kernel before the call is answered, so it survives a kill, and on the disk
// within a second, which is what a power failure may take. A nil Log keeps nothing.
type Log struct {
	dir  string
	most int64 // bytes of one file

	mu     sync.Mutex
	file   *os.File
	size   int64
	broken error // of the last write
	dirty  bool
	stop   chan struct{}
	ended  chan struct{}
}

const (
	logName   = "audit.jsonl"
	awayName  = "audit-%08d.jsonl"
	mostLog   = 64 << 20
	syncEvery = time.Second
	mostText  = 512 // bytes of what a caller chose
)

// OpenLog opens the audit log of a directory.
func OpenLog(dir string) (*Log, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the directory of the audit log: %w", err)
	}
	l := &Log{dir: dir, most: mostLog, stop: make(chan struct{}), ended: make(chan struct{})}
	if err := l.open(); err != nil {
		return nil, fmt.Errorf("opening the audit log: %w", err)
	}
	go l.sync()
	return l, nil
}

// open opens the present file and ends a line that a crash cut off.
func (l *Log) open() error {
	f, err := os.OpenFile(filepath.Join(l.dir, logName), os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	size, err := f.Seek(0, 2)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	last := []byte{'\n'}
	if size > 0 {
		if _, err := f.ReadAt(last, size-1); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	l.file, l.size = f, size
	if last[0] != '\n' {
		return l.append([]byte{'\n'})
	}
	return nil
}

func (l *Log) append(line []byte) error {
	n, err := l.file.Write(line)
	l.size += int64(n)
	l.dirty = true
	if err != nil && n > 0 { // so that the next line is one
		_, _ = l.file.Write([]byte{'\n'})
	}
	l.broken = err
	return err
}

// Write adds a line.
func (l *Log) Write(e Entry) error {
	if l == nil {
		return nil
	}
	for _, text := range []*string{&e.Who, &e.Path, &e.Why, &e.Note} {
		if len(*text) > mostText {
			*text = strings.ToValidUTF8((*text)[:mostText], "") + "..."
		}
	}
	line, err := json.Marshal(&e)
	if err != nil {
		return fmt.Errorf("encoding a line of the audit log: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size+int64(len(line)) > l.most {
		if err := l.rotate(); err != nil {
			l.broken = err
			return fmt.Errorf("beginning another file of the audit log: %w", err)
		}
	}
	if err := l.append(append(line, '\n')); err != nil {
		return fmt.Errorf("writing the audit log: %w", err)
	}
	return nil
}

// rotate puts the present file away. Nothing deletes it: that is the operator's.
func (l *Log) rotate() error {
	files, err := l.away()
	if err != nil {
		return err
	}
	n := 1
	if len(files) > 0 { // the operator may have taken the first ones away
		if _, err := fmt.Sscanf(filepath.Base(files[len(files)-1]), awayName, &n); err != nil {
			return fmt.Errorf("%s: %w", files[len(files)-1], err)
		}
		n++
	}
	away := filepath.Join(l.dir, fmt.Sprintf(awayName, n))
	if err := os.Rename(filepath.Join(l.dir, logName), away); err != nil {
		return err
	}
	old := l.file
	if err := l.open(); err != nil { // the old one goes on
		return err
	}
	return errors.Join(old.Sync(), old.Close())
}

// away are the files put away, the oldest first.
func (l *Log) away() ([]string, error) {
	files, err := filepath.Glob(filepath.Join(l.dir, "audit-*.jsonl"))
	slices.Sort(files)
	return files, err
}

// Ready reports whether the log can be written, so that nothing is done that it would
// not tell of. After a failure it tries again.
func (l *Log) Ready() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken == nil {
		return nil
	}
	return l.append([]byte{'\n'}) // an empty line is none
}

// sync puts on the disk, now and then, what was written.
func (l *Log) sync() {
	defer close(l.ended)
	for tick := time.NewTicker(syncEvery); ; {
		select {
		case <-tick.C:
		case <-l.stop:
			tick.Stop()
			return
		}
		l.mu.Lock()
		file, dirty := l.file, l.dirty
		l.dirty = false
		l.mu.Unlock()
		if dirty {
			if err := file.Sync(); err != nil && !errors.Is(err, fs.ErrClosed) { // a file put away was synced
				l.mu.Lock()
				l.broken = err
				l.mu.Unlock()
			}
		}
	}
}

// Close puts what was written on the disk and closes the log.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	close(l.stop)
	<-l.ended
	return errors.Join(l.file.Sync(), l.file.Close())
}

// Query chooses lines of the log.
type Query struct {
	Who     string // empty is anybody
	Refused bool   // only what was refused
	SinceUs int64
	Limit   int // the latest so many
}

// Read returns the lines that a query asks for, the latest last.
func (l *Log) Read(q Query) ([]Entry, error) {
	out := []Entry{}
	if l == nil {
		return out, nil
	}
	files, err := l.away()
	if err != nil {
		return nil, fmt.Errorf("listing the audit log: %w", err)
	}
	files = append(files, filepath.Join(l.dir, logName))
	for _, name := range slices.Backward(files) {
		found, err := q.read(name)
		if err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		out = append(found, out...)
		if len(out) >= q.Limit {
			break
		}
	}
	return out[max(0, len(out)-q.Limit):], nil
}

func (q *Query) read(name string) (found []Entry, err error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) { // it is put away at this moment
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e Entry
		if len(bytes.TrimSpace(lines.Bytes())) == 0 || json.Unmarshal(lines.Bytes(), &e) != nil {
			continue // cut off by a crash
		}
		if (q.Who == "" || q.Who == e.Who) && !(q.Refused && e.Allowed) && e.AtUs >= q.SinceUs {
			if found = append(found, e); len(found) > 2*q.Limit {
				found = append(found[:0], found[len(found)-q.Limit:]...)
			}
		}
	}
	return found, lines.Err()
}
