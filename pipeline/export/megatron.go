package export

import (
	"fmt"
	"slices"
	"strings"

	"github.com/musterdl/muster/pipeline/shape"
)

// Megatron writes a plan as arguments of Megatron-LM's training scripts, one a line. Where the
// blocks are not cut into equal numbers, a layout string says which stage has which.
func Megatron(m *Made) (string, error) {
	s, err := m.alike("Megatron-LM", []string{"1f1b", "interleaved"})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	say := func(name string, value any) { fmt.Fprintf(&b, "--%s %v\n", name, value) }
	// Of measured layers no shape is known: then the arguments say how to split them and nothing else.
	if p, shaped := m.Model.Profile.(*shape.Profile); shaped {
		if p.Shape().Encoder > 0 || p.Shape().Patch > 0 || p.Shape().Latent != nil {
			return "", unable(nil, "arguments are written for decoders with plain attention, and %s is none", m.Model.Name)
		}
		megatronModel(&b, p)
	}
	say("tensor-model-parallel-size", s.Tensor)
	if s.Experts > 1 {
		say("expert-model-parallel-size", s.Experts)
		say("moe-token-dispatcher-type", "alltoall")
	}
	say("pipeline-model-parallel-size", s.Ranks)
	if err := m.layout(&b, s.Ranks); err != nil {
		return "", err
	}
	say("micro-batch-size", s.Samples)
	say("global-batch-size", m.Model.Batch)
	// The profile divides the tokens where layers are not split, which is what this asks for.
	if s.Tensor > 1 {
		b.WriteString("--sequence-parallel\n")
	}
	if m.Model.State.Sharded {
		b.WriteString("--use-distributed-optimizer\n")
	}
	switch way, uniform := m.way(); {
	case !uniform:
		return "", unable(nil, "Megatron-LM computes all blocks again in one way, and the layers of %v run in several", &m.Plan)
	case way == "full":
		b.WriteString("--recompute-granularity full\n--recompute-method uniform\n--recompute-num-layers 1\n")
	case way == "selective":
		b.WriteString("--recompute-granularity selective\n")
	}
	return b.String(), nil
}

// megatronModel writes the shape of a decoder.
func megatronModel(b *strings.Builder, p *shape.Profile) {
	s := p.Shape()
	say := func(name string, value any) { fmt.Fprintf(b, "--%s %v\n", name, value) }
	// Embedding and head are no layers there, nor is the norm behind the last block.
	say("num-layers", s.Blocks)
	say("hidden-size", s.Hidden)
	say("ffn-hidden-size", s.FFN)
	say("num-attention-heads", s.Heads)
	if s.KVHeads > 0 && s.KVHeads != s.Heads {
		b.WriteString("--group-query-attention\n")
		say("num-query-groups", s.KVHeads)
	}
	if s.HeadWidth > 0 {
		say("kv-channels", s.HeadWidth)
	}
	say("seq-length", s.Sequence)
	// Positions that are not learned are turned into queries and keys, and Megatron-LM wants a most of
	// them all the same.
	say("max-position-embeddings", max(s.Positions, s.Sequence))
	if s.Positions == 0 {
		say("position-embedding-type", "rope")
	}
	for _, f := range []struct {
		flag string
		set  bool
	}{{"swiglu", s.Gated}, {"disable-bias-linear", !s.Bias}, {"untie-embeddings-and-output-weights", !s.Tied}, {"use-flash-attn", s.Fused}, {"bf16", p.Precision() == shape.Half}} {
		if f.set {
			b.WriteString("--" + f.flag + "\n")
		}
	}
	// Experts that every token passes, and blocks without experts, have arguments of their own which
	// depend on the version.
	if e := s.Experts; e != nil {
		say("num-experts", e.Count)
		say("moe-router-topk", e.Chosen)
		say("moe-ffn-hidden-size", e.FFN)
	}
}

// layout writes how the blocks are cut, where Megatron-LM would not cut them so by itself.
func (m *Made) layout(b *strings.Builder, ranks int) error {
	stages := m.stages()
	p, shaped := m.Model.Profile.(*shape.Profile)
	blocks := slices.Clone(stages)
	if shaped { // the first layer is the embedding, the last the head
		blocks[0]--
		blocks[len(blocks)-1]--
	}
	if len(stages) == 1 {
		return nil
	}
	// Megatron-LM itself puts as many blocks on each stage, the embedding before the first and the head
	// behind the last.
	if slices.Min(blocks) == slices.Max(blocks) {
		if len(stages) > ranks {
			fmt.Fprintf(b, "--num-layers-per-virtual-pipeline-stage %d\n", blocks[0])
		}
		return nil
	}
	if !shaped {
		return unable(nil, "a layout of Megatron-LM tells embedding, blocks and loss apart, and of measured layers it is not known which is which: expected stages of equal numbers of layers, as equal-layers cuts them")
	}
	// E stands for the embedding, t for a block and L for the head; stages are divided by bars, and those
	// of all ranks come before the second of the first.
	var text []string
	layer := 0
	for _, n := range stages {
		var stage strings.Builder
		count := 0
		for range n {
			switch p.Kind(layer) {
			case "embedding":
				stage.WriteByte('E')
			case "head":
				stage.WriteString(times(count) + "L")
				count = -1 << 30
			default:
				count++
			}
			layer++
		}
		if count > 0 {
			stage.WriteString(times(count))
		}
		text = append(text, stage.String())
	}
	fmt.Fprintf(b, "--pipeline-model-parallel-layout %s\n", strings.Join(text, "|"))
	return nil
}

// times are so many blocks.
func times(n int) string {
	switch {
	case n <= 0:
		return ""
	case n == 1:
		return "t"
	}
	return fmt.Sprintf("t*%d", n)
}
