package snapshot

import (
	"archive/zip"
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/store"
)

// most bounds what is read of the small files of a snapshot into memory.
const most = 1 << 30

// ErrForeign says that a file is no snapshot, ErrDamaged that it is not what was written.
var (
	ErrForeign = errors.New("it is not a snapshot of Muster's")
	ErrDamaged = errors.New("the snapshot is damaged: take another copy of it")
)

// File is a snapshot that was found whole.
type File struct {
	Manifest Manifest
	path     string
	zip      *zip.ReadCloser
}

// Open opens a snapshot and checks all of it: the sums, the numbers of the batches, and
// that the state is legal.
func Open(path string) (*File, error) {
	f := &File{path: path}
	if err := f.open(); err != nil {
		if f.zip != nil {
			err = errors.Join(err, f.zip.Close())
		}
		return nil, fmt.Errorf("snapshot %s: %w", path, err)
	}
	return f, nil
}

func (f *File) open() (err error) {
	if f.zip, err = zip.OpenReader(f.path); err != nil {
		f.zip = nil
		var path *fs.PathError
		switch {
		case errors.As(err, &path):
			return err
		case errors.Is(err, zip.ErrFormat):
			return notZip(f.path)
		}
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if err := f.readManifest(); err != nil {
		return err
	}
	for _, sum := range f.Manifest.Files {
		if err := f.check(sum); err != nil {
			return err
		}
	}
	batches := int64(0)
	if err := f.each(func(store.Batch) error { batches++; return nil }); err != nil {
		return err
	}
	if batches != f.Manifest.Batches {
		return fmt.Errorf("%w: it has %d batches, its manifest says %d", ErrDamaged, batches, f.Manifest.Batches)
	}
	image, err := f.image()
	if err == nil {
		err = plane.CheckImage(image)
	}
	return err
}

// notZip tells a snapshot whose end is missing from a file of another kind.
func notZip(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	head := make([]byte, 30+len(readmeName))
	n, _ := io.ReadFull(file, head)
	if n == len(head) && string(head[:4]) == "PK\x03\x04" && string(head[30:]) == readmeName {
		return fmt.Errorf("%w: its end is missing", ErrDamaged)
	}
	return ErrForeign
}

func (f *File) readManifest() error {
	entry := f.find(manifestName)
	if entry == nil {
		return fmt.Errorf("%w: it has no %s", ErrForeign, manifestName)
	}
	data, err := read(entry)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, &f.Manifest); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrForeign, manifestName, err)
	}
	m := &f.Manifest
	switch {
	case m.Format != Format:
		return fmt.Errorf("%w: its format is %q, expected %q", ErrForeign, m.Format, Format)
	case m.Version != Version:
		return fmt.Errorf("its version is %d, this program reads %d: use the Muster that wrote it (%s)", m.Version, Version, m.Program)
	}
	listed := map[string]bool{}
	for _, sum := range m.Files {
		listed[sum.Name] = true
	}
	for _, name := range []string{readmeName, settingName, journalName, stateName} {
		if !listed[name] {
			return fmt.Errorf("%w: its manifest does not list %s", ErrDamaged, name)
		}
	}
	return nil
}

func (f *File) find(name string) *zip.File {
	for _, entry := range f.zip.File {
		if entry.Name == name {
			return entry
		}
	}
	return nil
}

// check reads a file to its end and compares it with its checksum.
func (f *File) check(want Sum) error {
	entry := f.find(want.Name)
	if entry == nil {
		return fmt.Errorf("%w: %s is missing", ErrDamaged, want.Name)
	}
	in, err := entry.Open()
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrDamaged, want.Name, err)
	}
	defer in.Close()
	sum := summing{hash: sha256.New()}
	// One byte more than there should be shows a file that is too long, whatever it
	// would unpack to.
	if _, err := io.Copy(&sum, io.LimitReader(in, want.Bytes+1)); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrDamaged, want.Name, err)
	}
	if found := sum.as(want.Name); found != want {
		return fmt.Errorf("%w: %s does not match its checksum", ErrDamaged, want.Name)
	}
	return nil
}

func read(entry *zip.File) ([]byte, error) {
	in, err := entry.Open()
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, entry.Name, err)
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, entry.Name, err)
	case len(data) > most:
		return nil, fmt.Errorf("%w: %s has more than %d bytes", ErrDamaged, entry.Name, most)
	}
	return data, nil
}

// image is the state as the control plane saves it.
func (f *File) image() ([]byte, error) { return read(f.find(stateName)) }

// Each calls fn with every batch in order.
func (f *File) Each(fn func(store.Batch) error) error {
	if err := f.each(fn); err != nil {
		return fmt.Errorf("snapshot %s: %w", f.path, err)
	}
	return nil
}

func (f *File) each(fn func(store.Batch) error) error {
	in, err := f.find(journalName).Open()
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrDamaged, journalName, err)
	}
	defer in.Close()
	lines := bufio.NewReaderSize(in, 1<<20)
	for next := store.Seq(1); ; next++ {
		text, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(text) == 0 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %s, line %d: %w", ErrDamaged, journalName, next, err)
		}
		b, err := parseLine(text)
		if err == nil && b.Seq != next {
			err = fmt.Errorf("it is batch %d, expected %d", b.Seq, next)
		}
		if err != nil {
			return fmt.Errorf("%w: %s, line %d: %w", ErrDamaged, journalName, next, err)
		}
		if err := fn(b); err != nil {
			return err
		}
	}
}

// Close closes the file.
func (f *File) Close() error { return f.zip.Close() }
