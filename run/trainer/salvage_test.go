package trainer

import (
	"maps"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"
)

// TestSalvage: of a job that saves nothing by itself a worker is killed at some moment. Where all
// of the model lives on elsewhere the next attempt begins behind the last step that was told, or
// behind the one after it, and goes on to the bit as one that was not disturbed.
func TestSalvage(t *testing.T) {
	c := tiny()
	c.Steps = 200
	for _, d := range []struct {
		division
		lives bool
	}{
		{division{"2 pipelines of 2 stages", 4, oneForwardOneBackward(3, 2)}, true},
		{division{"3 workers", 3, nil}, true},
		{division{"2 stages", 2, oneForwardOneBackward(3, 2)}, false},
		{division{"2 slices of 2 pipelines", 4, sliced(gpipe(1), 2)}, false}, // slices are not put together
	} {
		t.Run(d.name, func(t *testing.T) {
			want := attempt(t, d.workers, flags(c), d.env(t, "")).must(t, ExitDone).losses()
			ranks := []int{d.workers - 1, 0, 1}
			if !d.lives || os.Getenv("MUSTER_LONG") == "" {
				ranks = ranks[:1]
			}
			for _, rank := range ranks {
				env := d.env(t, t.TempDir())
				p := spawn(t, d.workers, flags(c), env)
				p.until(reached(10))
				time.Sleep(time.Duration(rank) * 1700 * time.Microsecond) // anywhere in a step
				p.signal(rank, syscall.SIGKILL)
				r := p.wait()
				told := int64(len(r.losses()))
				for other, code := range r.codes {
					if other != rank && code != ExitPeer {
						t.Fatalf("rank %d ended with %d:\n%s", other, code, r.logs[other])
					}
				}
				begins := int64(0)
				if saved := r.saved(); len(saved) > 0 {
					begins = slices.Max(saved)
				}
				if !d.lives {
					if begins > 0 {
						t.Errorf("rank %d was killed: step %d is said to be saved, and a part of it is lost", rank, begins)
					}
					continue
				}
				if begins < told || begins > told+1 {
					t.Errorf("rank %d was killed: saved at %d after %d steps were told", rank, begins, told)
				}
				next := spawn(t, d.workers, flags(c), env).wait().must(t, ExitDone)
				got := next.losses()
				if first := slices.Min(slices.Collect(maps.Keys(got))); first != begins+1 {
					t.Errorf("rank %d was killed: the next attempt begins with step %d, saved was %d", rank, first, begins)
				}
				for step, loss := range got {
					if want[step] != loss {
						t.Fatalf("rank %d was killed: step %d has loss %v, undisturbed %v", rank, step, loss, want[step])
					}
				}
			}
		})
	}
}

// TestFilesOfTwoAttemptsAreNoCheckpoint: what two attempts salvaged of a step, a stage each, may
// have come about in different ways.
func TestFilesOfTwoAttemptsAreNoCheckpoint(t *testing.T) {
	c, whole := checkpoints{dir: t.TempDir()}, wholeStage(20)
	for k, mark := range []uint32{5, 6, 5} {
		c.mark = mark
		if mustSave(t, c, stageOf(whole, 2*(k%2), 2*(k%2)+2), 20, k%2, 2); k == 2 {
			c.mark = 6
			mustSave(t, c, stageOf(whole, 0, 2), 20, 0, 2)
		}
		step, warnings := newestStep(t, c)
		if want := map[int][2]int{0: {0, 0}, 1: {0, 1}, 2: {20, 0}}[k]; step != want[0] || warnings != want[1] {
			t.Errorf("with %d files: resumes from %d with %d warnings, want %v", k+1, step, warnings, want)
		}
	}
}
