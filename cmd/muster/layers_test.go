package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/musterdl/muster/internal/spec"
	"github.com/musterdl/muster/internal/torchtest"
	"github.com/musterdl/muster/model/workload"
)

// TestLayers: what muster layers prints is a job with the layers of the profile.
func TestLayers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "small.graph.txt")
	text := `node1 -- Conv2d(3, 64, kernel_size=(3, 3)) "a" -- forward_compute_time=1.5, backward_compute_time=2, activation_size=2048, parameter_size=4096
node2 -- Linear -- forward_compute_time=1, backward_compute_time=1.25, activation_size=1024, parameter_size=10
	node1 -- node2
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (string, error) {
		cmd := root()
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetArgs(append([]string{"layers"}, args...))
		err := cmd.Execute()
		return out.String(), err
	}
	out, err := run(file, "--stages", "2", "--microbatches", "4")
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := spec.Jobs("job.yaml", []byte(out))
	if err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	want := workload.Pipeline{Stages: 2, Microbatches: 4, Layers: []workload.Layer{
		{Name: `Conv2d(3, 64, kernel_size=(3, 3)) "a"`, Forward: 1500, Backward: 2000, ParamKiB: 4, OutputKiB: 2, ActivationKiB: 2},
		{Name: "Linear", Forward: 1000, Backward: 1250, ParamKiB: 1, ActivationKiB: 1}}}
	if got := jobs[0].Pipeline; jobs[0].Name != "small" || got.Stages != 2 || got.Microbatches != 4 || !slices.Equal(got.Layers, want.Layers) {
		t.Errorf("%+v: expected %+v", got, want)
	}
	for _, args := range [][]string{{file, "--stages", "3"}, {file, "--microbatches", "0"}, {"layers_test.go"}, {"none"}} {
		if _, err := run(args...); err == nil {
			t.Errorf("%v is taken", args)
		}
	}
}

// TestMeasured: what the script measures of a PyTorch model is a job, with the sizes that its
// layers have, and muster plan cuts it so that the large layer is not with most others.
func TestMeasured(t *testing.T) {
	python := torchtest.Python(t, "torch.autograd.graph")
	const measure = `import sys
sys.path.insert(0, sys.argv[1])
import torch
from layers import measure
torch.set_num_threads(1)
wide = [torch.nn.Linear(256, 256) for _ in range(5)] + [torch.nn.Linear(256, 4096)]
print(measure(torch.nn.Sequential(*wide), torch.randn(64, 256), name="mine", stages=2, microbatches=4))`
	out, err := exec.Command(python, "-c", measure, "../../docs/examples/measure").Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	file := filepath.Join(t.TempDir(), "job.yaml")
	if err := os.WriteFile(file, out, 0o600); err != nil {
		t.Fatal(err)
	}
	jobs, err := spec.Jobs(file, out)
	if err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	layers := jobs[0].Pipeline.Layers
	if len(layers) != 6 {
		t.Fatalf("%d layers in\n%s", len(layers), out)
	}
	for i, l := range layers {
		params, output := int64(257), int64(64)
		if i == 5 {
			params, output = 4112, 1024
		}
		if l.ParamKiB != params || l.OutputKiB != output && i < 5 || l.ActivationKiB != 64 || l.Forward <= 0 || l.Backward <= 0 {
			t.Errorf("%+v: expected %d KiB of weights, %d KiB of output, its input kept, and a time for both passes", l, params, output)
		}
	}
	if layers[5].Forward+layers[5].Backward < 3*(layers[1].Forward+layers[1].Backward) {
		t.Errorf("%+v takes less than three times %+v", layers[5], layers[1])
	}
	var plan bytes.Buffer
	cmd := root()
	cmd.SetOut(&plan)
	cmd.SetArgs([]string{"plan", file, "--bandwidth", "10Gbps"})
	if err := cmd.Execute(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	first, _, _ := strings.Cut(plan.String(), "\n\n")
	t.Logf("%s\n%s", out, first)
}

// TestMeasuringScript: the script compiles, and what it prints of layers is a job. PyTorch, which
// it measures with, is not needed for that.
func TestMeasuringScript(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	const script = "../../docs/examples/measure/layers.py"
	try := `import importlib.util, sys
sys.dont_write_bytecode = True
spec = importlib.util.spec_from_file_location("layers", sys.argv[1])
layers = importlib.util.module_from_spec(spec)
spec.loader.exec_module(layers)
print(layers.job("mine", [{"name": 'a "b" (c, d)', "forward": 0.0015, "backward": 0.00325, "params": 4097, "output": 1024, "activations": 0},
    {"name": "0", "forward": 1e-7, "backward": 2.0, "params": 0, "output": 0, "activations": 1}], 2, 8))`
	out, err := exec.Command(python, "-c", try, script).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	jobs, err := spec.Jobs("job.yaml", out)
	if err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	want := []workload.Layer{{Name: `a "b" (c, d)`, Forward: 1500, Backward: 3250, ParamKiB: 5, OutputKiB: 1}, {Name: "0", Backward: 2000000, ActivationKiB: 1}}
	if got := jobs[0].Pipeline; got.Stages != 2 || got.Microbatches != 8 || !slices.Equal(got.Layers, want) {
		t.Errorf("%+v: expected %+v", got, want)
	}
	if text, err := os.ReadFile(script); err != nil || !strings.Contains(string(text), "muster plan") {
		t.Error("the script does not say what takes its output")
	}
}
