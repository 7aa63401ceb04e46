package supervise

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/musterdl/muster/run/local/cgroup"
)

// Member is a worker as its directory tells.
type Member struct {
	Dir     string
	Spec    Spec // zero if Err
	Alive   bool // its supervisor is
	Started bool
	Last    Record // zero if there is none
	Torn    bool   // the record ends in half a line
	// Err is why the directory could not be read; the other members are no worse for it.
	Err error
}

// Scan reads all member directories below state, in the order of their names, so
// that a restarted control plane finds running work again.
func Scan(state string) (members []Member, err error) {
	dirs, err := memberDirs(state)
	if err != nil {
		return nil, fmt.Errorf("scan %s: %w", state, err)
	}
	for _, dir := range dirs {
		members = append(members, Look(dir))
	}
	return members, nil
}

// Look reads one member directory.
func Look(dir string) Member {
	m := Member{Dir: dir}
	// First: what is read after a supervisor ended is final.
	alive, errAlive := Alive(dir)
	records, torn, errRecord := ReadRecords(dir, 0)
	spec, errSpec := readSpec(dir)
	m.Alive, m.Torn, m.Spec, m.Err = alive, torn, spec, errors.Join(errAlive, errRecord, errSpec)
	m.Started = slices.ContainsFunc(records, func(r Record) bool { return r.Kind == Started })
	if n := len(records); n > 0 {
		m.Last = records[n-1]
	}
	return m
}

// memberDirs lists the member directories below state.
func memberDirs(state string) (dirs []string, err error) {
	root := filepath.Join(state, "attempts")
	attempts, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, a := range attempts {
		if !a.IsDir() {
			continue
		}
		ranks, err := os.ReadDir(filepath.Join(root, a.Name()))
		if err != nil {
			return nil, err
		}
		for _, r := range ranks {
			// What Launch did not complete, or Trim left of it, is no member.
			dir := filepath.Join(root, a.Name(), r.Name())
			if exists(filepath.Join(dir, "spec.json")) || exists(filepath.Join(dir, "record")) {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Reap settles a member whose supervisor died: it ends what is left of the worker
// and records it as lost, or as it exited where that was recorded, once. It returns the
// ended record, the old one if there was one. With ErrAlive nothing was done. A supervisor that was launched and has not
// come to begin is settled too, and will find its attempt used.
func Reap(dir string) (Record, error) {
	held, err := lock(dir)
	if err != nil {
		return Record{}, fmt.Errorf("reap %s: %w", dir, err)
	}
	defer held.Close()
	w, records, err := openRecord(dir)
	if err != nil {
		return Record{}, fmt.Errorf("reap %s: %w", dir, err)
	}
	defer w.file.Close()
	end := Record{Class: Lost, Why: "its supervisor died"}
	var prepared Record
	for _, r := range records {
		switch r.Kind {
		case Ended:
			return r, nil
		case Prepared:
			prepared = r
		case Progress:
			end.Report, end.Usage = r.Report, r.Usage
		case Exited:
			end = r
		}
	}
	end.Kind = Ended
	if err := endLeftovers(dir, prepared); err != nil {
		return Record{}, fmt.Errorf("reap %s: %w", dir, err)
	}
	if err := os.Remove(filepath.Join(dir, "secrets")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Record{}, fmt.Errorf("reap: %w", err)
	}
	if err := w.add(end); err != nil {
		return Record{}, fmt.Errorf("reap %s: %w", dir, err)
	}
	records, _, err = ReadRecords(dir, 0)
	if err != nil || len(records) == 0 {
		return Record{}, fmt.Errorf("reap %s: read back: %w", dir, err)
	}
	return records[len(records)-1], nil
}

// endLeftovers ends what a dead supervisor's worker left. One that died before it
// was prepared may have left an empty control group.
func endLeftovers(dir string, prepared Record) error {
	var group cgroup.Group
	if prepared.Group != nil {
		group = *prepared.Group
	} else if spec, err := readSpec(dir); err == nil {
		if group, err = spec.Pool.Find(spec.groupName()); err != nil {
			return err
		}
	}
	if err := group.Kill(); err != nil {
		return err
	}
	defer group.Remove() // what stays is an empty directory
	return killLeftovers(dir, prepared)
}

// Clean removes what only a running worker needs from the folder of a member that has
// ended. The record, the spec and the log stay, and so does everything Muster did not
// make, such as checkpoints. The supervisors may still be on their way out: once they
// have recorded the end, they neither make nor read any of these files.
func Clean(dir string) error {
	records, _, err := ReadRecords(dir, 0)
	if err != nil {
		return fmt.Errorf("clean %s: %w", dir, err)
	}
	if n := len(records); n == 0 || records[n-1].Kind != Ended {
		return fmt.Errorf("clean %s: it has not ended", dir)
	}
	// A start that failed, on a busy machine above all, may have left its control group when it ended.
	if spec, err := readSpec(dir); err == nil {
		if group, err := spec.Pool.Find(spec.groupName()); err == nil {
			_ = group.Remove() // what stays is an empty directory
		}
	}
	for _, name := range []string{"orders", "control", "progress", "secrets"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("clean: %w", err)
		}
	}
	return nil
}
