package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/shape"
	"github.com/musterdl/muster/pipeline/spread"
	"github.com/musterdl/muster/run/trainer"
)

// slotFile in the state directory holds what a core of this machine was measured to do, so that a
// plan made again is the one that was made. Who removes it has it measured anew.
const slotFile = "slot.json"

// Kinds are the devices of this machine that no vendor's data sheet describes, for planners: slots. What
// one does is measured when the first job names a model, by the trainer itself, in a process of its own.
func (m *Machine) Kinds(state, exe string) map[string]func() (spread.Kind, parallel.Why) {
	if m.GPUs {
		return nil
	}
	var mu sync.Mutex
	var known *trainer.Figures
	measured := func() (spread.Kind, parallel.Why) {
		mu.Lock()
		defer mu.Unlock()
		if known == nil {
			f, err := figures(filepath.Join(state, slotFile), exe)
			if err != nil {
				return spread.Kind{}, parallel.Why(fmt.Sprintf("measuring a slot: %v", err))
			}
			known = &f
		}
		return m.slot(known), ""
	}
	return map[string]func() (spread.Kind, parallel.Why){m.Cluster.Models[0].Name: measured}
}

// slot is a slot whose core does what was measured. The trainer computes in single precision, with one
// thread for most of what it does, and keeps all activations.
func (m *Machine) slot(f *trainer.Figures) spread.Kind {
	part := min(unit.Whole, m.SlotCPU)
	if m.Ability.Means[strategy.Share] == "" { // nobody holds a slot to its cores: they are there for all
		part = min(unit.Whole, cores()/unit.Milli(max(1, m.Cluster.Nodes[0].Count)))
	}
	of := float64(part) / float64(unit.Whole)
	return spread.Kind{Precision: shape.Single, State: parallel.State{Weights: 1, Gradients: 1, Optimizer: 2}, Keeps: true,
		Device: parallel.Device{TFlops: of * f.GFLOPS / 1e3, MemoryGBs: of * f.MemoryGBs,
			Inside: parallel.Link{Bandwidth: f.LinkMbps, Latency: unit.Duration(f.LinkUs)}}}
}

// figures are those of a file or, where there is none, those that the trainer then measures and
// writes there.
func figures(file, exe string) (f trainer.Figures, err error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		// On one core, as most slots have no more; to have several would only tell how many were idle.
		cmd := exec.Command(exe, "trainer", "--measure", file)
		cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
		if said, err := cmd.CombinedOutput(); err != nil {
			return f, fmt.Errorf("%w: %s", err, said)
		}
		data, err = os.ReadFile(file)
	}
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(data, &f); err != nil || !(f.GFLOPS > 0 && f.MemoryGBs > 0) || f.LinkMbps < 1 || f.LinkUs < 0 {
		return f, fmt.Errorf("%s holds %q: expected gflops, memory_gbs, link_mbps and link_us above 0; remove it to have them measured again", file, data)
	}
	return f, nil
}
