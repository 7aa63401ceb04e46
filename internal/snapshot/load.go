package snapshot

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/musterdl/muster/internal/store"
)

// Load makes a state directory of a snapshot, which a control plane recovers from. The
// directory must not be there, or be empty.
func Load(f *File, dir string) (err error) {
	entries, err := os.ReadDir(dir)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("loading a snapshot: %w", err)
	case len(entries) > 0:
		return fmt.Errorf("loading a snapshot: %s is not empty: name a directory that is not there yet", dir)
	}
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return fmt.Errorf("loading a snapshot: %w", err)
	}
	image, err := f.image()
	if err != nil {
		return fmt.Errorf("loading a snapshot: %w", err)
	}
	journal := filepath.Join(dir, "journal")
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(journal)) // it was not there before
		}
	}()
	s, err := store.Open(journal, store.Options{})
	if err != nil {
		return fmt.Errorf("loading a snapshot: %w", err)
	}
	err = s.Import(f.Each)
	if err == nil {
		err = s.SaveSnapshot(store.Seq(f.Manifest.Batches), image)
	}
	if err := errors.Join(err, s.Close()); err != nil {
		return fmt.Errorf("loading a snapshot: %w", err)
	}
	return nil
}
