package trainer

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// wholeStage is a model whose every float says which step it is from.
func wholeStage(step int) *stage {
	c := tiny()
	s := newStage(c, 0, c.depth(), &ring{world: 1})
	for i := range s.w {
		s.w[i], s.m[i], s.v[i] = float32(step), float32(2*step+i), float32(3*step-i)
	}
	return s
}

// stageOf cuts layers from..to-1 out of a whole stage.
func stageOf(whole *stage, from, to int) *stage {
	c := tiny()
	s := newStage(c, from, to, &ring{world: 1})
	at := whole.starts[from]
	copy(s.w, whole.w[at:])
	copy(s.m, whole.m[at:])
	copy(s.v, whole.v[at:])
	return s
}

func mustSave(t *testing.T, c checkpoints, s *stage, step, k, of int) {
	t.Helper()
	if err := c.save(s, step, k, of); err != nil {
		t.Fatal(err)
	}
}

// newestStep returns the step that a job would resume from, 0 for none, after
// checking that the restored model is that of this step.
func newestStep(t *testing.T, c checkpoints) (step, warnings int) {
	t.Helper()
	f, ok, err := c.newest(tiny().Shape, func(error) { warnings++ })
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		return 0, warnings
	}
	got, want := newStage(tiny(), 0, tiny().depth(), &ring{world: 1}), wholeStage(f.step)
	if err := f.load(got); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.w, want.w) || !slices.Equal(got.m, want.m) || !slices.Equal(got.v, want.v) {
		t.Errorf("the model restored from step %d is not the one saved", f.step)
	}
	return f.step, warnings
}

func TestADamagedCheckpointFallsBackToTheOneBefore(t *testing.T) {
	file := stageFile(0, 1)
	for name, damage := range map[string]func(path string, b []byte) error{
		"torn":          func(path string, b []byte) error { return os.WriteFile(path, b[:len(b)/2], 0o644) },
		"empty":         func(path string, b []byte) error { return os.WriteFile(path, nil, 0o644) },
		"a bit flipped": func(path string, b []byte) error { b[len(b)/3] ^= 4; return os.WriteFile(path, b, 0o644) },
		"longer":        func(path string, b []byte) error { return os.WriteFile(path, append(b, 0), 0o644) },
		"of another step": func(path string, _ []byte) error {
			other, err := encode(wholeStage(7), 7, 0)
			return errors.Join(err, os.WriteFile(path, other, 0o644))
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := checkpoints{dir: t.TempDir()}
			mustSave(t, c, wholeStage(10), 10, 0, 1)
			mustSave(t, c, wholeStage(20), 20, 0, 1)
			if step, warnings := newestStep(t, c); step != 20 || warnings != 0 {
				t.Fatalf("resumes from %d with %d warnings", step, warnings)
			}
			path := filepath.Join(c.folder(20), file)
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := damage(path, b); err != nil {
				t.Fatal(err)
			}
			if step, warnings := newestStep(t, c); step != 10 || warnings != 1 {
				t.Errorf("resumes from %d with %d warnings, want 10 with 1", step, warnings)
			}
		})
	}
}

func TestASetOfStagesIsValidOnlyWhenWhole(t *testing.T) {
	c := checkpoints{dir: t.TempDir()}
	mustSave(t, c, wholeStage(10), 10, 0, 1)
	whole := wholeStage(20)
	mustSave(t, c, stageOf(whole, 0, 2), 20, 0, 2)
	if step, _ := newestStep(t, c); step != 10 {
		t.Errorf("resumes from %d while a stage is missing", step)
	}
	mustSave(t, c, stageOf(whole, 3, 4), 20, 1, 2)
	if step, warnings := newestStep(t, c); step != 10 || warnings != 1 {
		t.Errorf("resumes from %d while layer 2 is missing", step)
	}
	mustSave(t, c, stageOf(whole, 2, 4), 20, 1, 2)
	if step, _ := newestStep(t, c); step != 20 {
		t.Errorf("resumes from %d, want 20", step)
	}
	// A process killed while saving leaves a temporary file: it is nobody's.
	if err := os.WriteFile(filepath.Join(c.folder(20), stageFile(0, 1)+".tmp"), []byte("torn"), 0o644); err != nil {
		t.Fatal(err)
	}
	if step, warnings := newestStep(t, c); step != 20 || warnings != 0 {
		t.Errorf("resumes from %d with %d warnings beside a temporary file", step, warnings)
	}
}

func TestPruneKeepsTheLastTwo(t *testing.T) {
	c := checkpoints{dir: t.TempDir()}
	for _, step := range []int{10, 20, 30} {
		mustSave(t, c, wholeStage(step), step, 0, 1)
	}
	mustSave(t, c, stageOf(wholeStage(25), 0, 2), 25, 0, 2) // incomplete: does not count
	mustSave(t, c, wholeStage(40), 40, 0, 1)                // damaged, or we were not at 30
	if err := c.prune(30); err != nil {
		t.Fatal(err)
	}
	steps, err := c.steps()
	if want := []int{20, 25, 30, 40}; err != nil || !slices.Equal(steps, want) {
		t.Errorf("%v are left (%v), want %v", steps, err, want)
	}
}

func TestCheckpointsOfOtherModelsAndVersionsAreNotSkipped(t *testing.T) {
	c := checkpoints{dir: t.TempDir()}
	mustSave(t, c, wholeStage(10), 10, 0, 1)
	wide := tiny().Shape
	wide.Dim *= 2
	_, _, err := c.newest(wide, func(error) {})
	if !errors.Is(err, errUsage) || !strings.Contains(err.Error(), "Dim:16") {
		t.Errorf("another model: %v", err)
	}
	path := filepath.Join(c.folder(10), stageFile(0, 1))
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b = []byte(strings.Replace(string(b), `"version":1`, `"version":2`, 1))
	n := len(b) - 4
	sum := checksum(b[:n])
	copy(b[n:], []byte{byte(sum), byte(sum >> 8), byte(sum >> 16), byte(sum >> 24)})
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.newest(tiny().Shape, func(error) {}); err == nil || !strings.Contains(err.Error(), "has version 2") {
		t.Errorf("a newer version: %v", err)
	}
}

func TestNoFolderIsNoCheckpoint(t *testing.T) {
	if step, warnings := newestStep(t, checkpoints{dir: filepath.Join(t.TempDir(), "none")}); step != 0 || warnings != 0 {
		t.Errorf("step %d, %d warnings", step, warnings)
	}
}

func TestAFolderThatIsNoneIsAFailure(t *testing.T) {
	c := tiny()
	file := filepath.Join(t.TempDir(), "file") // no folder can be made below a file
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	r := attempt(t, 1, flags(c), map[string]string{"MUSTER_CHECKPOINT_DIR": file})
	if r.must(t, ExitFailed); !strings.Contains(r.logs[0], "list checkpoints") {
		t.Errorf("the log says %s", r.logs[0])
	}
}

func FuzzDecode(f *testing.F) {
	c := tiny()
	good, err := encode(newStage(c, 3, 4, &ring{world: 1}), 5, 0)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:20])
	f.Add([]byte(checkpointMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, floats, err := decode(b)
		if err == nil && len(floats) != 4*h.Floats {
			t.Errorf("%d bytes for %d floats", len(floats), h.Floats)
		}
	})
}
