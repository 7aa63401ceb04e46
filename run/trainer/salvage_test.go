package trainer

import (
	"cmp"
	"errors"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/musterdl/muster/pipeline"
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

// TestNobodyIsFurtherThanTheOthersCanGo: whoever is killed while a step is settled, or another plan is
// taken before that, and whatever is lost on the way then, all stages of a step that somebody is behind
// are with those who live, or can be made there.
func TestNobodyIsFurtherThanTheOthersCanGo(t *testing.T) {
	for _, d := range []struct {
		division
		next *pipeline.Plan
	}{
		{division{"3 workers", 3, nil}, nil},
		{division{"2 pipelines of 2 stages", 4, gpipe(3, 1)}, nil},
		{division{"2 pipelines that go by another plan", 4, gpipe(3, 1)}, gpipe(3, 2)},
	} {
		t.Run(d.name, func(t *testing.T) {
			meshes, wires := wired(d.division, nil)
			most := 4 * (meshes[0].data.world - 1) // frames over a wire in a step
			if d.next != nil {
				if os.Getenv("MUSTER_LONG") == "" {
					t.Skip("tries 5,000 losses: set MUSTER_LONG=1 to run it")
				}
				most += 2
			}
			losses := make(chan loss)
			var all sync.WaitGroup
			for range 32 {
				all.Go(func() {
					for l := range losses {
						survive(t, d.division, d.next, l)
					}
				})
			}
			for victim := range d.workers {
				for one := range wires {
					for other := range one {
						for k := range (most + 1) * (most + 1) {
							losses <- loss{victim, map[int]int{one: k / (most + 1), other: k % (most + 1)}}
						}
					}
				}
			}
			close(losses)
			all.Wait()
		})
	}
}

// loss is what happens to one step: somebody is killed, and of what some wires were given only the
// first frames arrive.
type loss struct {
	victim int
	frames map[int]int // by wire
}

// survive has all workers settle their first step, by another plan if there is one, and kills one of
// them in the midst of it.
func survive(t *testing.T, d division, next *pipeline.Plan, l loss) {
	c := tiny()
	c.Shape = Shape{Vocab: 2, Dim: 1, Layers: 1, Heads: 1, Seq: 1}
	meshes, _ := wired(d, l.frames)
	workers := make([]*worker, d.workers)
	var all sync.WaitGroup
	for rank, m := range meshes {
		w := newWorker(c, corpus, d.plan, m)
		workers[rank] = w
		all.Go(func() {
			var err error
			if next != nil {
				err = w.goBy(next)
			}
			if err == nil {
				_, err = w.settleStep()
			}
			if err == nil {
				m.links()[0].recv(tag{kind: kindForward}, nil) // as in the next step
			}
			m.drop()
		})
	}
	time.Sleep(time.Millisecond) // as far as they can go, most of them
	meshes[l.victim].links()[0].fail(errors.New("killed"))
	all.Wait()
	alive := slices.Delete(workers, l.victim, l.victim+1)
	if !slices.ContainsFunc(alive, func(w *worker) bool { return w.done == 1 }) {
		for _, w := range alive {
			if cmp.Or(w.was, w).plan != d.plan {
				t.Errorf("%+v: nobody is behind the step, and somebody has no more what he had by the plan before", l)
			}
		}
		return
	}
	stages := map[int32]bool{}
	for _, w := range alive {
		if w.done == 1 || w.summed {
			stages[w.held[0]] = true
		}
	}
	if len(stages) < alive[0].division() {
		t.Errorf("%+v: somebody is behind the step, and only the stages %v can be had of it", l, stages)
	}
}

// wired connects a world in memory, and says by how many wires. Only so many frames as frames
// says come out of a wire; where it says nothing, all.
func wired(d division, frames map[int]int) (all []*mesh, wires int) {
	for rank := range d.workers {
		at := place{rank: rank, world: d.workers}
		if d.plan != nil {
			at.pipe = len(d.plan.Orders)
		}
		all = append(all, newMesh(at))
	}
	for rank, m := range all {
		for i, r := range m.rings() {
			here, there := net.Pipe()
			left, cut := frames[wires]
			r.next = newLink(&wire{Conn: here, cut: cut, left: left}, defaultPatience)
			all[r.at(rank, 1)].rings()[i].prev = newLink(there, defaultPatience)
			wires++
		}
	}
	for _, m := range all {
		for _, l := range m.links() {
			l.all = m.links()
			l.start()
		}
	}
	return all, wires
}

// wire is one direction of a connection.
type wire struct {
	net.Conn
	cut  bool
	left int // frames that still arrive
}

func (w *wire) Write(frame []byte) (int, error) {
	if w.cut && w.left == 0 {
		return len(frame), nil
	}
	w.left--
	return w.Conn.Write(frame)
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
