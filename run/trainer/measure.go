package trainer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/musterdl/muster/model/unit"
)

// Figures are what a worker was measured to do on this machine: a planner makes plans of them.
type Figures struct {
	// GFLOPS is what passes compute on one core, in 10^9 operations per second, counted as Profile
	// counts them; what moving their figures takes is in it.
	GFLOPS float64 `json:"gflops"`
	// MemoryGBs is what the optimiser reads and writes in a second, in 10^9 bytes.
	MemoryGBs float64 `json:"memory_gbs"`
	// LinkMbps and LinkUs are those of the way from one worker to another.
	LinkMbps unit.Mbps `json:"link_mbps"`
	LinkUs   int64     `json:"link_us"`
}

// writeFigures measures, and writes what it found.
func writeFigures(file string) error {
	f, err := measure()
	if err != nil {
		return fmt.Errorf("measuring: %w", err)
	}
	text, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("measuring: %w", err)
	}
	return os.WriteFile(file, append(text, '\n'), 0o600)
}

// measured is how often each thing is done. The shortest time counts: what is longer was disturbed.
const measured = 8

// best is the shortest of several times that something took.
func best(do func() error) (least time.Duration, err error) {
	for i := range measured {
		began := time.Now()
		if err := do(); err != nil {
			return 0, err
		}
		if took := time.Since(began); i == 0 || took < least {
			least = took
		}
	}
	return max(least, time.Nanosecond), nil
}

// measure has one worker pass a microbatch through a model and update it, and two sum up.
func measure() (f Figures, err error) {
	c := Default()
	s := newStage(c, 0, c.depth(), &ring{world: 1})
	batch, flop := draw(corpus, c, 1), 0.
	for i := range c.depth() {
		forward, _ := layerCost(c.Shape, i, c.Batch*c.Seq)
		flop += 3 * forward
	}
	pass, _ := best(func() error {
		m := s.begin(batch, 1/float32(c.Batch*c.Seq))
		s.backward(m, s.forward(m, nil))
		s.finish(m)
		return nil
	})
	update, _ := best(func() error { s.update(1, c.LR); return nil })
	f.GFLOPS = flop / pass.Seconds() / 1e9
	// As planners count it: weights, gradients and two moments, each read and written once.
	f.MemoryGBs = 2 * 4 * 4 * float64(len(s.w)) / update.Seconds() / 1e9
	return f, f.link()
}

// link measures how long two workers take to sum up one figure, and many. A sum of two takes two ways,
// and on each goes half.
func (f *Figures) link() error {
	const floats = 1 << 18
	var times [2]time.Duration
	err := pair(func(m *mesh) error {
		for i, n := range []int{1, floats} {
			x := make([]float32, n)
			took, err := best(func() error { return m.sum(x) })
			if err != nil {
				return err
			}
			if m.data.rank == 0 {
				times[i] = took
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	f.LinkUs = max(1, times[0].Microseconds()/2)
	f.LinkMbps = unit.Mbps(max(1, 4*8*floats/max(1, (times[1]-times[0]).Microseconds())))
	return nil
}

// pair has two workers that are connected over the loopback do something.
func pair(do func(*mesh) error) error {
	door, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	at := door.Addr().String() // free for the first of the two
	if err := door.Close(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var wait sync.WaitGroup
	var errs [2]error
	for rank := range errs {
		wait.Go(func() {
			var m *mesh
			if m, errs[rank] = join(ctx, place{rank: rank, world: 2, master: at, digest: "measure", patience: defaultPatience}); errs[rank] != nil {
				return
			}
			if errs[rank] = do(m); errs[rank] != nil {
				m.drop()
				return
			}
			m.leave()
		})
	}
	wait.Wait()
	return errors.Join(errs[:]...)
}
