package plan

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"io"
	"slices"
)

// snapshotVersion is bumped when a State can no longer be read as it was written.
const snapshotVersion = 3

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
	c.Pending = slices.DeleteFunc(slices.Clone(s.Pending), func(p Pending) bool { return p.Gone })
	if err := gob.NewEncoder(w).Encode(snapshot{snapshotVersion, c}); err != nil {
		return fmt.Errorf("saving the state: %w", err)
	}
	return nil
}

// Load reads a state that Save wrote and proves it legal before handing it out.
func Load(r io.Reader) (*State, error) {
	var snap snapshot
	if err := gob.NewDecoder(r).Decode(&snap); err != nil {
		return nil, fmt.Errorf("reading a saved state: %w", err)
	}
	if snap.Version != snapshotVersion {
		return nil, fmt.Errorf("the saved state has format %d, this program reads %d: use the program that wrote it", snap.Version, snapshotVersion)
	}
	s := &snap.State
	if s.Cluster == nil || len(s.Nodes) != len(s.Cluster.Nodes) || len(s.Devices) != len(s.Cluster.Devices) {
		return nil, fmt.Errorf("the saved state and its cluster do not agree")
	}
	for i := range s.Grants {
		if run := s.Grants[i].Run; run != None && int(run) < len(s.Runs) {
			s.Grants[i].freed = s.Runs[run].Status == Stopping
			s.Grants[i].reserved = s.Runs[run].Status == Promised
		}
	}
	s.room = newRoom(s)
	if err := s.Check(); err != nil {
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
	return Load(&b)
}
