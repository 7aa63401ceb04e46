package export

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/musterdl/muster/pipeline/shape"
)

// DeepSpeed writes a plan as DeepSpeed's configuration. Its pipeline is 1F1B over stages of
// equal numbers of layers; the size of a tensor group is no part of it, and goes to the model.
func DeepSpeed(m *Made) (string, error) {
	s, err := m.alike("DeepSpeed", []string{"1f1b"})
	if err != nil {
		return "", err
	}
	if stages := m.stages(); slices.Max(stages) != slices.Min(stages) {
		return "", unable(nil, "DeepSpeed cuts %d layers into %d stages by itself, and here they have %d to %d: expected equal numbers, as --strategy equal-layers+1f1b cuts them where --pp divides the layers",
			m.Model.Profile.Layers(), len(stages), slices.Min(stages), slices.Max(stages))
	}
	// Its checkpoints are of whole layers: what attention alone computes again it cannot say.
	way, uniform := m.way()
	if !uniform || way == "selective" {
		return "", unable(nil, "DeepSpeed computes whole layers again or none, and the layers of %v run %q", &m.Plan, way)
	}
	config := map[string]any{
		"train_batch_size":               m.Model.Batch,
		"train_micro_batch_size_per_gpu": s.Samples,
		"gradient_accumulation_steps":    s.Microbatches,
		"pipeline":                       map[string]any{"stages": s.Ranks, "partition": "uniform", "activation_checkpoint_interval": one(way == "full")},
		"zero_optimization":              map[string]any{"stage": one(m.Model.State.Sharded && s.Copies > 1)},
	}
	if p, shaped := m.Model.Profile.(*shape.Profile); shaped && p.Precision() == shape.Half {
		config["bf16"] = map[string]any{"enabled": true}
	}
	text, err := json.MarshalIndent(config, "", "  ") // keys are sorted
	return string(text) + "\n", err
}

// one is 1 where something is so, and 0 where not.
func one(so bool) int {
	if so {
		return 1
	}
	return 0
}

// Ranks maps each process to its host and device, in the order in which Megatron-LM numbers
// processes: tensor, then copies, then ranks of the pipeline. Columns: the number of the process, host,
// device of the host, rank in the pipeline, copy, replica within it, place in the tensor group.
func Ranks(m *Made) string {
	var b strings.Builder
	head, spread := "process,host,device,rank,copy,replica,tensor", m.Plan.Experts() > 1
	if spread {
		head += ",expert_group,expert"
	}
	b.WriteString(head + "\n")
	first := make([]int32, len(m.On.Nodes)) // device of each node
	for i := range m.On.Nodes {
		if i > 0 {
			first[i] = first[i-1] + m.On.Nodes[i-1].Count
		}
	}
	most := 0
	for _, one := range m.Plan.Pipelines {
		most = max(most, len(one.Ranks))
	}
	process := 0
	// The ranks of all copies go side by side, as they stand on the devices.
	for r := range most {
		for c, one := range m.Plan.Pipelines {
			if r >= len(one.Ranks) {
				continue
			}
			for i, device := range one.Ranks[r].Devices {
				node, tensor := m.On.NodeOf(device), one.Ranks[r].Tensor
				fmt.Fprintf(&b, "%d,%s,%d,%d,%d,%d,%d", process, m.host(node), device-first[node], r, c, i/tensor, i%tensor)
				if e := max(1, one.Ranks[r].Experts); spread {
					fmt.Fprintf(&b, ",%d,%d", c/e, c%e)
				}
				b.WriteByte('\n')
				process++
			}
		}
	}
	return b.String()
}

func (m *Made) host(node int32) string {
	if int(node) < len(m.Hosts) {
		return m.Hosts[node]
	}
	return fmt.Sprintf("node%d", node)
}

// NCCL writes an environment file for the processes of a plan: what was simulated (rings, and
// tensor groups that stay in a node), and what every process has to know of the others.
func NCCL(m *Made) string {
	var b strings.Builder
	say := func(name string, value any, why string) { fmt.Fprintf(&b, "# %s\n%s=%v\n", why, name, value) }
	// Whatever NCCL finds out by itself (interfaces, adapters) is left to it: the plan does not know it.
	first := m.Plan.Pipelines[0].Ranks[0]
	say("MASTER_ADDR", m.host(m.On.NodeOf(first.Devices[0])), "The host of process 0.")
	say("WORLD_SIZE", len(m.Plan.Devices()), "All processes; ranks:FILE says which stands where.")
	say("NCCL_ALGO", "Ring", "Sums were simulated in rings.")
	if first.Experts > 1 {
		// A communicator is made by the trainer, of the processes that it is told; NCCL reads no groups.
		fmt.Fprintf(&b, "# Tokens go to experts within groups of %d processes: 0, %d, ... %d, and so on (expert_group of ranks:FILE).\n",
			first.Experts, first.Tensor, (first.Experts-1)*first.Tensor)
		say("NCCL_PXN_DISABLE", 0, "What several devices of a node send to one of another goes over the device that has the same adapter.")
	}
	if first.Tensor > 1 {
		// Without NVLink devices talk over the host, and NCCL finds its way by itself.
		const nvlink = 160_000 // Mbps; slower links are those of PCIe
		if m.On.Kind(first.Devices[0]).Inside.Bandwidth >= nvlink {
			say("NCCL_P2P_LEVEL", "NVL", "The devices of a tensor group talk over NVLink, and others not directly.")
		}
		say("CUDA_DEVICE_MAX_CONNECTIONS", 1, "Megatron-LM asks for it where layers are split: sums begin in the order in which they were written.")
	}
	return b.String()
}
