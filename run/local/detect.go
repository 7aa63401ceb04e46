package local

import (
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run"
	"github.com/musterdl/muster/run/local/cgroup"
)

// Machine is what was found on this machine, or declared for it.
type Machine struct {
	Cluster *cluster.Cluster
	GPUs    bool
	// GPU is, by device, what the driver's tools and CUDA call the GPU: by its UUID, which
	// stays its own, or where there is none by its number.
	GPU []string
	// Slot is what each declared device is; zero where devices are GPUs.
	SlotCPU    unit.Milli
	SlotMemory unit.MiB
	// Ability is what can be done with runs here.
	Ability strategy.Ability
	// Limits says in words what shares can be enforced.
	Limits string
	// NotHeld says which limits that jobs ask for are none here, and why; "" is none of them.
	NotHeld string
}

// Slots declares devices that are parts of this machine's cores and memory.
type Slots struct {
	Count  int
	CPU    unit.Milli
	Memory unit.MiB
}

// Detect finds the NVIDIA GPUs that the driver's own tool reports, or declares the
// slots where there are none.
func Detect(s Slots) (Machine, error) {
	support := cgroup.Probe()
	gpus, names, err := nvidia()
	if err != nil {
		return Machine{}, fmt.Errorf("looking for GPUs: %w", err)
	}
	c := &cluster.Cluster{Name: "local"}
	rack := c.AddRack(cluster.Rack{Name: "here"})
	if len(gpus) > 0 {
		model := c.AddModel(gpus[0])
		c.AddNode(cluster.Node{Name: "here", Rack: rack, Model: model, CPU: cores(), Memory: hostMemory()}, len(gpus))
		return Machine{Cluster: c, GPUs: true, GPU: names, Ability: ofGPUs(), Limits: support.String(), NotHeld: support.NotHeld()}, nil
	}
	if s.Count < 1 || s.CPU < 1 {
		return Machine{}, fmt.Errorf("%d slots of %s cores: expected at least one slot of at least 1m", s.Count, s.CPU)
	}
	model := c.AddModel(cluster.Model{Name: "slot", Memory: s.Memory, Speed: 1})
	// A slot's cores and memory come with it, so the node has none besides to ask for.
	c.AddNode(cluster.Node{Name: "here", Rack: rack, Model: model, CPU: cores(), Memory: hostMemory()}, s.Count)
	able := run.Slots
	if !support.CPU {
		able = run.Bare
	}
	return Machine{Cluster: c, SlotCPU: s.CPU, SlotMemory: s.Memory, Ability: able, Limits: support.String(), NotHeld: support.NotHeld()}, nil
}

// ofGPUs is what can be done with GPUs here: more where the pipe is through which
// programs find the daemon of NVIDIA's MPS.
func ofGPUs() strategy.Ability {
	pipes := cmp.Or(os.Getenv("CUDA_MPS_PIPE_DIRECTORY"), "/tmp/nvidia-mps")
	if _, err := os.Stat(filepath.Join(pipes, "control")); err != nil {
		return run.GPUs
	}
	return run.WithMPS
}

// smi is the part of nvidia-smi's account that is used.
type smi struct {
	GPUs []struct {
		Name   string `xml:"product_name"`
		UUID   string `xml:"uuid"`
		MIG    string `xml:"mig_mode>current_mig"`
		Memory struct {
			Total string `xml:"total"`
		} `xml:"fb_memory_usage"`
	} `xml:"gpu"`
}

// nvidia asks the driver's tool for the GPUs; without the tool there are none.
func nvidia() ([]cluster.Model, []string, error) {
	out, err := exec.Command("nvidia-smi", "-q", "-x").Output()
	if err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return nil, nil, nil
		}
		return nil, nil, fmt.Errorf("nvidia-smi: %w", err)
	}
	return parseSMI(out)
}

// parseSMI reads the tool's XML: a model per device, and the GPU's name. GPUs of
// another model than the first are left out: a node has devices of one model. So are
// those in MIG mode, which no job can have whole; where there are no others that is an
// error, since their instances are not handed out here.
func parseSMI(out []byte) ([]cluster.Model, []string, error) {
	var s smi
	if err := xml.Unmarshal(out, &s); err != nil {
		return nil, nil, fmt.Errorf("reading nvidia-smi's answer: %w", err)
	}
	var models []cluster.Model
	var names []string
	for i, g := range s.GPUs {
		if g.MIG == "Enabled" {
			continue
		}
		var mib int64
		if _, err := fmt.Sscanf(g.Memory.Total, "%d MiB", &mib); err != nil {
			return nil, nil, fmt.Errorf("nvidia-smi: memory of %s is %q: expected MiB", g.Name, g.Memory.Total)
		}
		m := cluster.Model{Name: strings.ReplaceAll(strings.ToLower(g.Name), " ", "-"), Memory: unit.MiB(mib), Speed: 1}
		if len(models) == 0 || m.Name == models[0].Name {
			models, names = append(models, m), append(names, cmp.Or(g.UUID, strconv.Itoa(i)))
		}
	}
	if len(models) == 0 && len(s.GPUs) > 0 {
		return nil, nil, errors.New("all GPUs are in MIG mode: turn it off for one (nvidia-smi -i 0 -mig 0), or hide the driver's tools to use slots")
	}
	return models, names, nil
}
