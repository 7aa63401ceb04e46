package export_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/musterdl/muster/pipeline/export"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/shape"
	"github.com/musterdl/muster/strategies/pipeline/interleaved"
	"github.com/musterdl/muster/strategies/pipeline/onefoneb"
	"github.com/musterdl/muster/strategies/pipeline/zbv"
)

// made is a plan of a published model on four nodes of eight A100, cut by hand where cuts are given.
func made(t *testing.T, model string, s parallel.Shape, way int8) *export.Made {
	t.Helper()
	of, why := shape.Find(model)
	if why != "" {
		t.Fatal(why)
	}
	p, wrong := shape.New(of, shape.Half)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	d, _ := shape.Device("A100-80GB", shape.Half)
	m := &parallel.Model{Name: model, Profile: p, Batch: s.Samples * s.Microbatches * s.Copies, State: parallel.ShardedAdam}
	x := parallel.NewSimulator(m, parallel.Even(d, 4, 8, 1_600_000))
	s.Ways = x.AllIn(way, s.Tensor)
	if s.Cuts == nil {
		if s.Cuts, why = x.Cuts(&s, nil); why != "" {
			t.Fatal(why)
		}
	}
	plan := s.Plan()
	r, why := x.Simulate(&plan)
	if why != "" {
		t.Fatal(why)
	}
	return &export.Made{Model: m, On: x.On, Hosts: []string{"a", "b", "c", "d"}, Candidate: &parallel.Candidate{Plan: plan, Result: r}}
}

func ordered(name string) parallel.Sequence {
	switch name {
	case "interleaved":
		return parallel.Sequence{Name: name, Order: interleaved.New(interleaved.Default())}
	case "zbv":
		return parallel.Sequence{Name: name, Order: zbv.V{}}
	}
	return parallel.Sequence{Name: "1f1b", Order: onefoneb.Ordering{}}
}

// TestMegatron: sizes and shape come as arguments; a layout string where blocks are cut unevenly,
// with the embedding, every block and the head in it once.
func TestMegatron(t *testing.T) {
	even := made(t, "llama-3-8b", parallel.Shape{Sequence: ordered("1f1b"), Samples: 2, Microbatches: 8, Tensor: 2, Ranks: 4, Copies: 4, Cuts: []int32{9, 17, 25}}, 2)
	text, err := export.Megatron(even)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(text, "\n")
	for _, want := range []string{"--num-layers 32", "--hidden-size 4096", "--num-query-groups 8", "--swiglu", "--bf16", "--tensor-model-parallel-size 2", "--pipeline-model-parallel-size 4",
		"--micro-batch-size 2", "--global-batch-size 64", "--sequence-parallel", "--use-distributed-optimizer", "--recompute-granularity full"} {
		if !slices.Contains(lines, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "layout") || strings.Contains(text, "virtual") {
		t.Errorf("a layout for as many blocks on each stage:\n%s", text)
	}
	folded := made(t, "llama-3-8b", parallel.Shape{Sequence: ordered("interleaved"), Samples: 1, Microbatches: 8, Tensor: 2, Ranks: 4, Copies: 4}, 0)
	if text, err = export.Megatron(folded); err != nil {
		t.Fatal(err)
	}
	_, layout, found := strings.Cut(text, "--pipeline-model-parallel-layout ")
	layout, _, _ = strings.Cut(layout, "\n")
	stages := strings.Split(layout, "|")
	if !found || len(stages) != len(folded.Plan.Pipelines[0].Cuts)+1 || !strings.HasPrefix(layout, "E") || !strings.HasSuffix(layout, "L") {
		t.Fatalf("layout %q of %d stages", layout, len(folded.Plan.Pipelines[0].Cuts)+1)
	}
	for i, n := range blocks(t, stages) {
		first, end := int32(0), int32(34)
		if i > 0 {
			first = folded.Plan.Pipelines[0].Cuts[i-1]
		}
		if i < len(stages)-1 {
			end = folded.Plan.Pipelines[0].Cuts[i]
		}
		if n != int(end-first) {
			t.Errorf("stage %d of %q has %d layers, the plan %d", i, layout, n, end-first)
		}
	}
}

// blocks counts the layers of each stage of a layout as Megatron-LM's reader does: x*n is n times x.
func blocks(t *testing.T, stages []string) (all []int) {
	t.Helper()
	for _, stage := range stages {
		n := 0
		for i := 0; i < len(stage); i++ {
			times := 1
			if i+1 < len(stage) && stage[i+1] == '*' {
				end := i + 2
				for end < len(stage) && stage[end] >= '0' && stage[end] <= '9' {
					end++
				}
				if err := json.Unmarshal([]byte(stage[i+2:end]), &times); err != nil {
					t.Fatal(err)
				}
				i = end - 1
			}
			n += times
		}
		all = append(all, n)
	}
	return all
}

// TestExperts: over how many copies experts are spread is an argument of Megatron-LM, and the rank map says
// which processes have them together; of other plans neither says a word.
func TestExperts(t *testing.T) {
	one := made(t, "mixtral", parallel.Shape{Sequence: ordered("1f1b"), Samples: 1, Microbatches: 2, Tensor: 2, Ranks: 4, Copies: 4, Experts: 2, Cuts: []int32{9, 17, 25}}, 2)
	text, err := export.Megatron(one)
	if err != nil || !strings.Contains(text, "--expert-model-parallel-size 2\n") {
		t.Errorf("%v, expected the size 2 in\n%s", err, text)
	}
	lines := strings.Split(strings.TrimSpace(export.Ranks(one)), "\n")
	if len(lines) != 33 || lines[0] != "process,host,device,rank,copy,replica,tensor,expert_group,expert" || lines[5] != "4,a,4,0,2,0,0,1,0" || lines[8] != "7,a,7,0,3,0,1,1,1" {
		t.Errorf("%d lines: %s", len(lines), strings.Join(lines[:9], " "))
	}
	if text := export.NCCL(one); !strings.Contains(text, "groups of 2 processes: 0, 2,") {
		t.Errorf("no groups in\n%s", text)
	}
	one = made(t, "mixtral", parallel.Shape{Sequence: ordered("1f1b"), Samples: 1, Microbatches: 2, Tensor: 8, Ranks: 4, Copies: 1, Cuts: []int32{9, 17, 25}}, 2)
	if text, err = export.Megatron(one); err != nil || strings.Contains(text+export.Ranks(one)+export.NCCL(one), "expert-model") || strings.Contains(export.Ranks(one), "expert") {
		t.Errorf("%v, expected nothing about where experts are in\n%s", err, text)
	}
}

// TestDeepSpeed: what it can express it gets, and what not is refused with what would do.
func TestDeepSpeed(t *testing.T) {
	text, err := export.DeepSpeed(made(t, "llama-3-8b", parallel.Shape{Sequence: ordered("1f1b"), Samples: 2, Microbatches: 8, Tensor: 2, Ranks: 2, Copies: 8, Cuts: []int32{17}}, 2))
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Batch  int `json:"train_batch_size"`
		Micro  int `json:"train_micro_batch_size_per_gpu"`
		Steps  int `json:"gradient_accumulation_steps"`
		Stages struct {
			Stages     int
			Partition  string
			Checkpoint int `json:"activation_checkpoint_interval"`
		} `json:"pipeline"`
		Zero struct{ Stage int } `json:"zero_optimization"`
	}
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	if c.Batch != 128 || c.Micro*c.Steps*8 != c.Batch || c.Stages.Stages != 2 || c.Stages.Partition != "uniform" || c.Stages.Checkpoint != 1 || c.Zero.Stage != 1 {
		t.Errorf("%+v", c)
	}
	for name, one := range map[string]*export.Made{
		"no sequence zbv":    made(t, "llama-3-8b", parallel.Shape{Sequence: ordered("zbv"), Samples: 1, Microbatches: 16, Tensor: 2, Ranks: 4, Copies: 4}, 0),
		"expected equal":     made(t, "llama-3-8b", parallel.Shape{Sequence: ordered("1f1b"), Samples: 1, Microbatches: 8, Tensor: 2, Ranks: 4, Copies: 4, Cuts: []int32{9, 17, 25}}, 0),
		"whole layers again": made(t, "gpt-2", parallel.Shape{Sequence: ordered("1f1b"), Samples: 1, Microbatches: 8, Tensor: 1, Ranks: 2, Copies: 16, Cuts: []int32{25}}, 1),
	} {
		if _, err := export.DeepSpeed(one); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v: expected %q", err, name)
		}
	}
	if _, err := export.Megatron(made(t, "vit-h", parallel.Shape{Sequence: ordered("1f1b"), Samples: 1, Microbatches: 8, Tensor: 1, Ranks: 2, Copies: 16}, 0)); err == nil {
		t.Error("images are a decoder")
	}
}

// TestRanks: each device is one process; those of a tensor group follow each other in one host,
// then come the copies, then the next rank of the pipeline.
func TestRanks(t *testing.T) {
	one := made(t, "llama-3-8b", parallel.Shape{Sequence: ordered("1f1b"), Samples: 1, Microbatches: 8, Tensor: 2, Ranks: 4, Copies: 4}, 0)
	lines := strings.Split(strings.TrimSpace(export.Ranks(one)), "\n")
	if len(lines) != 33 || lines[1] != "0,a,0,0,0,0,0" || lines[2] != "1,a,1,0,0,0,1" || lines[3] != "2,a,2,0,1,0,0" || lines[9] != "8,b,0,1,0,0,0" || lines[32] != "31,d,7,3,3,0,1" {
		t.Errorf("%q", lines)
	}
	env := export.NCCL(one)
	for _, want := range []string{"MASTER_ADDR=a\n", "WORLD_SIZE=32\n", "NCCL_ALGO=Ring\n", "NCCL_P2P_LEVEL=NVL\n"} {
		if !strings.Contains(env, want) {
			t.Errorf("no %q in\n%s", want, env)
		}
	}
}
