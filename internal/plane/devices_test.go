package plane

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// usable counts the devices of a plane that are not lost.
func (w *bench) usable() (n int) {
	v := w.plane.engine.View()
	for d := range plan.DeviceID(len(v.Cluster().Devices)) {
		if v.Device(d).Status != plan.Lost {
			n++
		}
	}
	return n
}

// TestDevicesComeAndGo: a plane starts whatever devices there are, with those of them that its
// journal knows or can be told of; what ran on others is stopped and kept, and goes on where
// there is room.
func TestDevicesComeAndGo(t *testing.T) {
	w := newBench(t, t.TempDir(), "fifo")
	defer func() { w.close() }()
	var jobs []plan.JobID
	for i := range 4 {
		jobs = append(jobs, w.submit(fmt.Sprint("j", i), 1))
	}
	w.settle()
	other := devices(2, 2)
	other.Models[0].Name = "another"
	for _, c := range []struct {
		now     *cluster.Cluster
		usable  int // by jobs of this journal
		running int
	}{{devices(2, 2), 4, 4}, {devices(2, 1), 2, 2}, {devices(2, 2), 4, 4}, {devices(1, 1), 1, 1}, {devices(2, 4), 6, 4},
		{devices(3, 2), 6, 4}, {other, 0, 0}, {devices(3, 8), 14, 4}, {devices(2, 8), 6, 4}} {
		w.config.Cluster = c.now
		w.start()
		w.settle()
		running := 0
		for _, id := range jobs {
			if w.phase(id) == plan.Active {
				running++
			}
		}
		if err := w.plane.engine.State().Check(); err != nil || w.usable() != c.usable || running != c.running {
			t.Errorf("with %d nodes of %d: %d devices can be used and %d jobs run, expected %d and %d (%v)",
				len(c.now.Nodes), c.now.Nodes[0].Count, w.usable(), running, c.usable, c.running, err)
		}
	}
	// One in the middle is lost: the others keep their places.
	w.config.Cluster, w.config.Absent = devices(2, 8), []plan.DeviceID{1}
	w.start()
	w.settle()
	if v := w.plane.engine.View(); v.Device(1).Status != plan.Lost || v.Device(2).Status == plan.Lost || v.Device(0).Status == plan.Lost {
		t.Error("without device 1 it is not device 1 that is lost")
	}
	w.config.Absent = nil
	config := devices(2, 8)
	config.Nodes[0].Memory += 3 // a new kernel takes less
	w.config.Cluster = config
	w.start()
	w.finishAll()
	w.verify()
}

// TestDevicesComeAndGoAtRandom: the same over many starts, with a snapshot and without, while
// jobs come and end.
func TestDevicesComeAndGoAtRandom(t *testing.T) {
	for seed := range uint64(20) {
		chance := rand.New(rand.NewPCG(seed, 1))
		w := newBench(t, t.TempDir(), []string{"fifo", "tiresias", "srtf"}[seed%3])
		for round := range 12 {
			w.submit(fmt.Sprint("j", round), 1+int32(chance.IntN(2)))
			w.clock = w.clock.Add(unit.Minute)
			if w.settle(); chance.IntN(2) == 0 {
				if m := w.nature.members(); len(m) > 0 {
					w.exit(m[chance.IntN(len(m))], plan.NoFailure)
				}
			}
			if chance.IntN(3) == 0 {
				w.plane.lastSnapshot()
			}
			w.config.Cluster = devices(1+chance.IntN(3), 1+chance.IntN(4))
			w.start()
			if err := w.plane.engine.State().Check(); err != nil {
				t.Fatalf("seed %d, round %d: %v", seed, round, err)
			}
		}
		w.config.Cluster = devices(2, 4)
		w.start()
		w.finishAll()
		w.verify()
		w.close()
	}
}
