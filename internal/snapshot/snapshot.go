// Package snapshot keeps a live cluster's whole state and history in one file: for bug
// reports, for replays under any strategy, for tests. The file is a zip that any tool
// opens:
//
//	README.txt      what this is
//	setting.json    the newest setting: strategy, seed, policy, cluster
//	journal.jsonl   the history, one batch of events, commits and asides per line
//	state.gob       the state after the last batch, as the control plane saves it
//	manifest.json   format, version, counts, and the SHA-256 of the others
//
// The cut is consistent because it is a prefix of the journal: nobody is asked to hold
// still, and the state is not copied from the live one but made by folding exactly the
// batches that are in the file. That is also why nothing can be in the state that is not
// in the history that was written: what is left out of the events, or is given another
// name, is left out of everything.
//
// No variables of jobs' environments and no idempotency keys are ever in a snapshot; see
// docs/decisions/0014-snapshots.md.
package snapshot

import (
	"archive/zip"
	"bufio"
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"time"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/store"
	"github.com/musterdl/muster/model/unit"
)

// Format and Version are what a manifest begins with.
const (
	Format  = "muster-snapshot"
	Version = 1
)

// The files in a snapshot.
const (
	readmeName   = "README.txt"
	settingName  = "setting.json"
	journalName  = "journal.jsonl"
	stateName    = "state.gob"
	manifestName = "manifest.json"
)

// Manifest says what is in a snapshot.
type Manifest struct {
	Format     string    `json:"format"`
	Version    int       `json:"version"`
	Program    string    `json:"program"` // that wrote it
	MadeAt     unit.Time `json:"made_at_us"`
	Anonymised bool      `json:"anonymised"`
	Batches    int64     `json:"batches"`
	Events     int64     `json:"events"`
	Commits    int64     `json:"commits"`
	Jobs       int64     `json:"jobs"`
	Devices    int64     `json:"devices"`
	Strategy   string    `json:"strategy"` // the newest
	From       unit.Time `json:"from_us"`  // of the first batch
	To         unit.Time `json:"to_us"`    // of the last
	Files      []Sum     `json:"files"`
}

// Sum is the checksum of one file.
type Sum struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Options say how a snapshot is made.
type Options struct {
	// Anonymise gives all names and texts pseudonyms.
	Anonymise bool
	// Program and MadeAt go into the manifest.
	Program string
	MadeAt  unit.Time
}

// History calls a function with the batches of a journal from the first on, as
// store.Replay and plane.History do.
type History func(each func(store.Batch) error) error

// Save writes the snapshot of a history. The journal is read, never held up.
func Save(w io.Writer, history History, o Options) (Manifest, error) {
	s := saver{zip: zip.NewWriter(w), manifest: Manifest{Format: Format, Version: Version, Program: o.Program, MadeAt: o.MadeAt, Anonymised: o.Anonymise}}
	// The journal is most of the file, and its lines resemble each other: the fastest
	// setting makes it little larger than the best does.
	s.zip.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestSpeed) })
	if o.Anonymise {
		s.names = newNames()
	}
	for _, write := range []func() error{s.readme, func() error { return s.journal(history) }, s.setting, s.state, s.finish} {
		if err := write(); err != nil {
			return s.manifest, fmt.Errorf("writing a snapshot: %w", err)
		}
	}
	return s.manifest, nil
}

// saver is a snapshot being written.
type saver struct {
	zip      *zip.Writer
	names    *names // nil keeps them
	manifest Manifest
	past     plane.Past
	line     []byte
}

// file writes one file of the snapshot and notes its checksum.
func (s *saver) file(name string, fill func(io.Writer) error) error {
	entry, err := s.zip.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: time.UnixMicro(int64(s.manifest.MadeAt)).UTC()})
	if err != nil {
		return err
	}
	sum := summing{hash: sha256.New()}
	out := bufio.NewWriterSize(io.MultiWriter(entry, &sum), 1<<16)
	if err := fill(out); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return err
	}
	s.manifest.Files = append(s.manifest.Files, sum.as(name))
	return nil
}

// summing counts and hashes what passes.
type summing struct {
	hash  hash.Hash
	bytes int64
}

// Write adds to the sum and counts the bytes.
func (s *summing) Write(b []byte) (int, error) {
	s.bytes += int64(len(b))
	return s.hash.Write(b)
}

func (s *summing) as(name string) Sum { return Sum{name, s.bytes, hex.EncodeToString(s.hash.Sum(nil))} }

const readme = `This is a snapshot of a Muster control plane: its setting, its whole history and
its newest state.

  setting.json    the newest setting: strategy, seed, policy, cluster
  journal.jsonl   one line per batch: its events, the commit they caused, and asides
                  (times are microseconds since the Unix epoch)
  state.gob       the state after the last batch, for the program
  manifest.json   format, version, counts and SHA-256 sums

  muster snapshot replay FILE --strategy NAME    what another strategy would have done
  muster snapshot load FILE --state DIR          a state directory, for
  muster replay --verify --state DIR             deciding the history again

Variables of jobs' environments are not in it.
`

func (s *saver) readme() error {
	return s.file(readmeName, func(w io.Writer) error {
		text := readme
		if s.names != nil {
			text += "\nNames and texts are pseudonyms. Times and sizes are as they were.\n"
		}
		_, err := io.WriteString(w, text)
		return err
	})
}

// journal writes the history and follows it.
func (s *saver) journal(history History) error {
	return s.file(journalName, func(w io.Writer) error {
		return history(func(b store.Batch) error {
			b, err := s.batch(b)
			if err != nil {
				return err
			}
			if s.manifest.Batches++; s.manifest.Batches == 1 {
				s.manifest.From = at(b)
			}
			s.manifest.To = max(s.manifest.To, at(b))
			s.manifest.Events += int64(len(b.Events))
			s.line = appendLine(s.line[:0], b)
			_, err = w.Write(s.line)
			return err
		})
	})
}

// at is when a batch was decided.
func at(b store.Batch) unit.Time {
	for _, list := range [][]store.Record{b.Commits, b.Events} {
		if len(list) > 0 {
			return list[0].At
		}
	}
	return 0
}

// batch is what the snapshot holds of a batch. With other names the history is decided
// again, so that what comes out cannot hold an old one.
func (s *saver) batch(b store.Batch) (store.Batch, error) {
	b, err := change(b, func(e *engine.Event) (changed bool, err error) {
		if e.Spec != nil && len(e.Spec.Env)+len(e.Spec.Secrets) > 0 {
			e.Spec.Env, e.Spec.Secrets, changed = nil, nil, true
		}
		if s.names != nil {
			changed, err = true, s.names.event(e)
		}
		return changed, err
	})
	if err != nil {
		return b, fmt.Errorf("batch %d: %w", b.Seq, err)
	}
	if s.names == nil {
		_, err = s.past.Fold(b)
	} else if b, err = s.past.Decide(b); err != nil {
		err = fmt.Errorf("with other names: %w", err)
	}
	for _, r := range b.Commits {
		if r.Kind == plane.RecordCommit {
			s.manifest.Commits++
		}
	}
	return b, err
}

// change returns a batch without keys and with its events changed; what f leaves as it
// is stays to the byte.
func change(b store.Batch, f func(e *engine.Event) (changed bool, err error)) (store.Batch, error) {
	out := store.Batch{Seq: b.Seq, Events: make([]store.Record, len(b.Events)), Commits: b.Commits}
	copy(out.Events, b.Events)
	for i := range out.Events {
		var e engine.Event
		if err := json.Unmarshal(out.Events[i].Data, &e); err != nil {
			return b, fmt.Errorf("decoding an event of kind %s: %w", out.Events[i].Kind, err)
		}
		changed, err := f(&e)
		if err != nil {
			return b, err
		}
		if changed {
			if out.Events[i].Data, err = json.Marshal(&e); err != nil {
				return b, fmt.Errorf("encoding an event of kind %s: %w", out.Events[i].Kind, err)
			}
		}
	}
	return out, nil
}

func (s *saver) setting() error {
	var indented bytes.Buffer
	if err := json.Indent(&indented, s.past.Setting(), "", "  "); err != nil {
		return fmt.Errorf("the history has no setting: %w", err)
	}
	setting, err := plane.ReadSetting(s.past.Setting())
	if err != nil {
		return err
	}
	s.manifest.Strategy, s.manifest.Devices = setting.Strategy, int64(len(setting.Cluster.Devices))
	s.manifest.Jobs = int64(s.past.View().Jobs())
	return s.file(settingName, func(w io.Writer) error {
		indented.WriteByte('\n')
		_, err := indented.WriteTo(w)
		return err
	})
}

func (s *saver) state() error {
	image, err := s.past.Image()
	if err != nil {
		return err
	}
	return s.file(stateName, func(w io.Writer) error {
		_, err := w.Write(image)
		return err
	})
}

// finish writes the manifest, last: who finds it finds everything.
func (s *saver) finish() error {
	manifest := s.manifest
	err := s.file(manifestName, func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(manifest)
	})
	s.manifest = manifest
	if err != nil {
		return err
	}
	return s.zip.Close()
}
