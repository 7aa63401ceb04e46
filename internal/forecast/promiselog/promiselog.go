// Package promiselog keeps promises and what became of them in a file of one JSON
// object per line that is only ever appended to.
package promiselog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/musterdl/muster/internal/forecast"
)

// mostLine is the longest line that is believed to be an entry.
const mostLine = 1 << 20

// Damage is what a file holds that is no entry: it is passed over, and stays there.
type Damage struct {
	Line   int
	Offset int64
	Why    string
}

// String says where the damage is and what it is.
func (d Damage) String() string { return fmt.Sprintf("line %d, byte %d: %s", d.Line, d.Offset, d.Why) }

// Log is a file open for appending.
type Log struct {
	file *os.File
	torn bool // the file does not end with a line's end
}

// Open opens a log for appending and makes it where there is none. What was there
// before is never changed: behind a line that was cut off in the writing the first
// entry begins a new one.
func Open(path string) (*Log, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of promises: %w", err)
	}
	l := &Log{file: file}
	size, err := file.Seek(0, io.SeekEnd)
	if err == nil && size > 0 {
		last := make([]byte, 1)
		_, err = file.ReadAt(last, size-1)
		l.torn = last[0] != '\n'
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("looking at the end of the log of promises: %w", err), file.Close())
	}
	return l, nil
}

// Append writes entries behind all others, in one write, and returns once they are on
// the disk. After an error the file may hold a part of them.
func (l *Log) Append(entries ...forecast.Entry) error {
	var b bytes.Buffer
	if l.torn {
		b.WriteByte('\n')
	}
	for i := range entries {
		if err := check(entries[i]); err != nil {
			return err
		}
		line, err := json.Marshal(entries[i])
		if err != nil {
			return fmt.Errorf("writing a promise: %w", err)
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	if len(entries) == 0 {
		return nil
	}
	l.torn = true
	if _, err := l.file.Write(b.Bytes()); err != nil {
		return fmt.Errorf("appending to the log of promises: %w", err)
	}
	if err := l.file.Sync(); err != nil {
		return fmt.Errorf("appending to the log of promises: %w", err)
	}
	l.torn = false
	return nil
}

// Close closes the file.
func (l *Log) Close() error { return l.file.Close() }

func check(e forecast.Entry) error {
	if (e.Promise == nil) == (e.Outcome == nil) {
		return errors.New("an entry of the log of promises is a promise or an outcome: expected one of the two")
	}
	return nil
}

// Read returns the entries of a file and what else is in it; a file that is not there
// has none.
func Read(path string) ([]forecast.Entry, []Damage, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading the log of promises: %w", err)
	}
	defer file.Close()
	var entries []forecast.Entry
	var damage []Damage
	lines, offset := bufio.NewReaderSize(file, mostLine), int64(0)
	for n := 1; ; n++ {
		line, err := lines.ReadSlice('\n')
		length := len(line)
		for errors.Is(err, bufio.ErrBufferFull) {
			var more []byte
			more, err = lines.ReadSlice('\n')
			length += len(more)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, nil, fmt.Errorf("reading the log of promises: %w", err)
		}
		if length > 0 && string(line) != "\n" { // an empty line stands behind a write that failed
			e, why := parse(line, length)
			if why != "" {
				damage = append(damage, Damage{n, offset, why})
			} else {
				entries = append(entries, e)
			}
		}
		if offset += int64(length); err != nil {
			return entries, damage, nil
		}
	}
}

// parse reads one line, of which length bytes were there.
func parse(line []byte, length int) (e forecast.Entry, why string) {
	switch {
	case length > mostLine:
		return e, fmt.Sprintf("%d bytes without a line's end: expected at most %d", length, mostLine)
	case line[len(line)-1] != '\n':
		return e, "cut off: expected a line's end"
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return e, err.Error()
	}
	if err := check(e); err != nil {
		return e, err.Error()
	}
	return e, ""
}
