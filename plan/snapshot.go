package plan

import (
	"bytes"
	"cmp"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"slices"
)

// snapshotVersion is bumped when a State can no longer be read as it was written.
const snapshotVersion = 6

type snapshot struct {
	Version int
	State   State
}

// Save writes the state. What follows from it (the index of free capacity, the
// marks on grants) or means nothing to another process (the stamps of caches) is
// left out, so that equal states give equal bytes.
func (s *State) Save(w io.Writer) error {
	c := *s
	c.Nodes = slices.Clone(s.Nodes)
	for i := range c.Nodes {
		c.Nodes[i].Stamp = 0
	}
	c.Pending = s.StillPending()
	if err := gob.NewEncoder(w).Encode(snapshot{snapshotVersion, c}); err != nil {
		return fmt.Errorf("saving the state: %w", err)
	}
	return nil
}

// ErrFormat says that a state was saved by a program of another format.
var ErrFormat = errors.New("use the program that wrote it")

// Load reads a state that Save wrote and proves it legal before handing it out.
func Load(data []byte) (*State, error) {
	var snap snapshot
	err := gob.NewDecoder(bytes.NewReader(data)).Decode(&snap)
	if err != nil { // in another format nothing but the version may be as expected
		var head struct{ Version int }
		if gob.NewDecoder(bytes.NewReader(data)).Decode(&head) != nil || head.Version == snapshotVersion {
			return nil, fmt.Errorf("reading a saved state: %w", err)
		}
		snap.Version = head.Version
	}
	if snap.Version != snapshotVersion {
		return nil, fmt.Errorf("the saved state has format %d, this program reads %d: %w", snap.Version, snapshotVersion, ErrFormat)
	}
	s := &snap.State
	if s.Cluster == nil || len(s.Nodes) != len(s.Cluster.Nodes) || len(s.Devices) != len(s.Cluster.Devices) {
		return nil, fmt.Errorf("the saved state and its cluster do not agree")
	}
	s.mark()
	s.room = newRoom(s)
	if err := cmp.Or(CountLinks(s), s.Check()); err != nil {
		return nil, fmt.Errorf("the saved state is not legal: %w", err)
	}
	return s, nil
}

// Clone saves and loads the state: the round trip that tests take at every event.
func (s *State) Clone() (*State, error) {
	var b bytes.Buffer
	if err := s.Save(&b); err != nil {
		return nil, err
	}
	return Load(b.Bytes())
}
