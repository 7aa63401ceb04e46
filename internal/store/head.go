package store

import (
	"encoding/binary"
	"fmt"
	"os"
)

// headFile remembers the last acknowledged batch outside the database. SQLite drops a
// torn end of its log without a word; this file is how we notice. It is written after
// each commit and before the answer, without waiting for the disk: what survives
// kill -9 is then exact, and after a power cut it may lag behind the database, which
// costs nothing, but is never ahead of what was acknowledged.
//
// Two slots are written in turn, so that a torn write leaves the other one. They lie a
// page apart.
type headFile struct {
	file *os.File
	turn uint64
}

const (
	slotSpacing = 4096
	slotSize    = 8 + 8 + 32 + 32 // turn, sequence number, chain, sum of these
)

// openHead opens the head file, creating it empty.
func openHead(path string) (*headFile, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the journal's head file: %w", err)
	}
	return &headFile{file: f}, nil
}

// read returns the last acknowledged place; found is false where neither slot is whole.
func (h *headFile) read() (at link, found bool) {
	for slot := range int64(2) {
		b := make([]byte, slotSize)
		if n, _ := h.file.ReadAt(b, slot*slotSpacing); n < slotSize {
			continue
		}
		if digest(b[48:]) != sum("head", b[:48]) {
			continue
		}
		turn := binary.BigEndian.Uint64(b)
		if !found || turn > h.turn {
			h.turn, found = turn, true
			at = link{seq: Seq(binary.BigEndian.Uint64(b[8:])), chain: digest(b[16:48])}
		}
	}
	return at, found
}

// write records that everything up to at is acknowledged.
func (h *headFile) write(at link) error {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, slotSize), h.turn+1)
	b = append(append(b, number(int64(at.seq))...), at.chain[:]...)
	s := sum("head", b)
	if _, err := h.file.WriteAt(append(b, s[:]...), int64((h.turn+1)%2)*slotSpacing); err != nil {
		return fmt.Errorf("write the journal's head file: %w", err)
	}
	h.turn++
	return nil
}

// reset makes at the only thing the file remembers, and waits for the disk.
func (h *headFile) reset(at link) error {
	for range 2 {
		if err := h.write(at); err != nil {
			return err
		}
	}
	return h.sync()
}

func (h *headFile) sync() error {
	if err := h.file.Sync(); err != nil {
		return fmt.Errorf("sync the journal's head file: %w", err)
	}
	return nil
}
