package local_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/musterdl/muster/model/workload"
)

// No other account of the machine reads what a job left, or finds out what the jobs are
// called; the folders that workers pass through can be passed and not listed.
func TestOnlyTheOwnerReads(t *testing.T) {
	state := stateDir(t)
	h := start(t, state, "fifo")
	id := h.submit(workload.Job{Name: "weights", Program: workload.Program{Env: []string{"API_TOKEN=hush"},
		Command: shell(`echo w >"$MUSTER_CHECKPOINT_DIR/w"; echo done; : >"$MUSTER_PROGRESS"; touch here`)}})
	h.wait(id, "to end", over)
	h.stop()
	seen := 0
	err := filepath.WalkDir(state, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == state {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		short, _ := filepath.Rel(state, path)
		seen++
		switch in := filepath.Base(filepath.Dir(path)); {
		case d.IsDir() && (d.Name() == "checkpoints" || d.Name() == "work"):
			if info.Mode().Perm() != 0o700 {
				t.Errorf("%s is %v, expected to be its owner's alone", short, info.Mode())
			}
		case d.IsDir():
			if info.Mode().Perm()&0o066 != 0 && short != "journal" { // which its group may read
				t.Errorf("%s is %v: others can list it", short, info.Mode())
			}
		case in == "checkpoints" || in == "work": // the job's own, behind a closed folder
		case filepath.Dir(short) == "journal": // likewise
		case info.Mode().Perm()&0o027 != 0 || info.Mode().Perm()&0o040 != 0 && d.Name() != "control":
			t.Errorf("%s is %v: others can read it", short, info.Mode())
		}
		return nil
	})
	if err != nil || seen < 10 {
		t.Errorf("%d files and folders, %v", seen, err)
	}
	// What an earlier version left open is closed, but for what is the user's.
	old := filepath.Join(state, "jobs", "older", "checkpoints")
	for _, dir := range []string{filepath.Dir(filepath.Dir(old)), filepath.Dir(old), old} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	h = start(t, state, "fifo")
	h.wait(h.submit(workload.Job{Name: "older", Program: workload.Program{Command: shell("true")}}), "to end", over)
	h.stop()
	for dir, want := range map[string]os.FileMode{old: 0o755, filepath.Dir(old): 0o711, filepath.Dir(filepath.Dir(old)): 0o711} {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s is %v, expected %v (%v)", dir, info.Mode(), want, err)
		}
	}
}
