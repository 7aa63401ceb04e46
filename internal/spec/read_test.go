package spec

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// example returns the example of FORMAT.md of this kind, so that the page cannot
// drift from the code.
func example(t testing.TB, kind string) []byte {
	t.Helper()
	page, err := os.ReadFile("FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)```yaml " + kind + "\n(.*?)```").FindSubmatch(page)
	if m == nil {
		t.Fatalf("FORMAT.md has no example of %s", kind)
	}
	return m[1]
}

func TestExampleCluster(t *testing.T) {
	c, err := Cluster("lab.yaml", example(t, "cluster"))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Nodes) != 22 || len(c.Devices) != 17*8+4*4 || len(c.Racks) != 2 || c.Racks[1].Name != "rack1" || c.Racks[0].Uplink != 400_000 {
		t.Fatalf("%d nodes, %d devices, racks %v", len(c.Nodes), len(c.Devices), c.Racks)
	}
	want := map[int]cluster.Node{
		1:  {Name: "node01", Rack: 0, Model: 0, First: 8, Count: 8, CPU: 96_000, Memory: 1 << 20, Uplink: 100_000, MilliPerHour: 12_500},
		16: {Name: "node20", Rack: 0, Model: 0, First: 128, Count: 8, CPU: 96_000, Memory: 1 << 20, Uplink: 100_000, MilliPerHour: 12_500},
		17: {Name: "old0", Rack: 1, Model: 1, First: 136, Count: 4, CPU: 48_000, Memory: 256 << 10},
		21: {Name: "login", Rack: 1, Model: 0, First: 152, Count: 0, CPU: 32_000, Memory: 128 << 10},
	}
	for i, node := range want {
		if c.Nodes[i] != node {
			t.Errorf("node %d is %+v, expected %+v", i, c.Nodes[i], node)
		}
	}
	if last := c.Devices[len(c.Devices)-1]; last != (cluster.Device{Node: 20, Memory: 32 << 10}) {
		t.Errorf("the last device is %+v", last)
	}
	whole := cluster.Geometry{Name: "whole", Parts: []cluster.Part{{Milli: 1000, Memory: 40 << 10}}}
	if a := c.Models[0]; a.Speed != 2.5 || len(a.Geometries) != 3 || !reflect.DeepEqual(a.Geometries[0], whole) ||
		a.Geometries[1].Parts[1] != (cluster.Part{Milli: 571, Memory: 20 << 10, Start: 4}) {
		t.Errorf("A100 is %+v", a)
	}
	if v := c.Models[1]; v.Speed != 1 || v.Geometries != nil {
		t.Errorf("V100 is %+v", v)
	}
}

func TestExampleJobs(t *testing.T) {
	jobs, err := Jobs("jobs.yaml", example(t, "jobs"))
	if err != nil {
		t.Fatal(err)
	}
	layer := workload.Layer{Name: "block", Forward: 3500, Backward: 7000, ParamKiB: 512, OutputKiB: 1024, ActivationKiB: 2048}
	want := []workload.Job{{
		Name: "resnet", Tenant: "vision", User: "u17", Priority: 10, Resources: workload.Resources{Gang: 2, Sizes: []int32{1, 2, 4}, Devices: 1, Share: 500,
			Models: []string{"A100", "V100"}, Memory: 16 << 10, CPU: 4000, HostMemory: 32 << 10}, Estimate: 150 * unit.Minute,
		TimeLimit: unit.Day, Deadline: 12 * unit.Hour,
		Checkpoint: workload.Checkpoint{Every: 30 * unit.Minute, OnRequest: true, Save: 20 * unit.Second, Load: 45 * unit.Second},
		Retries:    3, After: []string{"prepare"}, Traits: workload.Traits{Class: "resnet50/64", Skew: 120, Traffic: 2000}, Program: workload.Program{Law: "give-way",
			Command: []string{"python", "train.py", "--lr", "0.1"}, Dir: "/data/resnet", Env: []string{"OMP_NUM_THREADS=8", "MODE=fast", "STORE=s3://reader:word@store"}, Secrets: []string{"STORE"}},
	}, {
		Name: "sweep", Resources: workload.Resources{Gang: 1, Devices: 1, Share: 1000}, Array: 8,
		Program: workload.Program{Command: []string{"sh", "-c", "./try.sh && echo done"}},
	}, {
		Name: "gpt", Resources: workload.Resources{Gang: 8, Devices: 1, Share: 1000},
		Traits: workload.Traits{Pipeline: workload.Pipeline{Stages: 2, Microbatches: 8, Tensor: 2, Layers: []workload.Layer{
			{Name: "embed", Forward: 3000, Backward: 6000, ParamKiB: 4096, OutputKiB: 1024, ActivationKiB: 2048}, layer}}},
	}, {
		Name: "tiny", Resources: workload.Resources{Gang: 4, Devices: 1, Share: 1000}, Traits: workload.Traits{Pipeline: workload.Pipeline{Model: "tiny", Batch: 16}},
	}, {
		Name: "mine", Resources: workload.Resources{Gang: 4, Devices: 1, Share: 1000}, Traits: workload.Traits{Pipeline: workload.Pipeline{Model: "mine", Batch: 16,
			Shape: `{"name":"mine","blocks":2,"hidden":32,"ffn":128,"heads":2,"sequence":16,"vocabulary":256}`}},
	}, {
		Name: "lora", Resources: workload.Resources{Gang: 2, Devices: 1, Share: 1000, Memory: 20 << 10},
		Traits: workload.Traits{Persistent: 2 << 10, Opportunistic: true, TargetLoss: 0.35, Group: "sweep-7", Base: "llama-7b",
			Servers: 1, Phase: workload.Phase{Compute: 60 * unit.Millisecond, Communicate: 40 * unit.Millisecond},
			Menu: []workload.Offer{{Workers: 1, Rate: 0.55}, {Model: "A100", Workers: 4, Nodes: 2, Batch: 512, Rate: 3.1}}},
	}, {
		Name: "chat", Resources: workload.Resources{Gang: 1, Devices: 1, Share: 1000},
		Traits: workload.Traits{Service: workload.Service{RatePerSec: 40, SLO: 200 * unit.Millisecond}},
	}}
	if !reflect.DeepEqual(jobs, want) {
		t.Errorf("got  %+v\nwant %+v", jobs, want)
	}
}

// TestOwnModel: the model of a job is its shape and nothing else, and what else the file says is a mistake, at its
// line; so is a shape that the job itself says wrongly.
func TestOwnModel(t *testing.T) {
	const good = "name: mine\nblocks: 2\nhidden: 32\nffn: 128\nheads: 2\nsequence: 16\nvocabulary: 256\n"
	s, err := Own("m.yaml", []byte(good))
	if err != nil || s.Name != "mine" || s.Blocks != 2 || s.Hidden != 32 {
		t.Errorf("%+v, %v", s, err)
	}
	for _, c := range []struct{ text, says string }{
		{good + "batch: 4\n", "m.yaml:8:8: batch: found a field of a model that a job trains"}, {good + "precision: half\n", "slots compute in single precision"},
		{good + "state: {weights: 1}\n", "remove it"}, {"layers: [{forward: 1ms, backward: 2ms}]\n", "measured layers stand in the job"},
		{good + "depth: 3\n", "unknown field"}, {"name: mine\n", "blocks"}, {good + "kv-heads: 3\n", "do not divide"},
	} {
		if _, err := Own("m.yaml", []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v, want %q in it", c.text, err, c.says)
		}
	}
	for _, c := range []struct{ pipeline, says string }{
		{"{model: mine, batch: 4, shape: '{\"blocks\":2}'}", "jobs.yaml:1:"}, {"{model: mine, batch: 4, shape: '{'}", "cannot be read"}, {"{model: mine, batch: 4, shape: '{\"depth\":2}'}", "unknown field"},
		{"{model: mine, batch: 4, shape: ''}", "cannot be read"}, {"{model: a b, batch: 4, shape: '{}'}", "letters, digits"},
		{"{stages: 2, microbatches: 2, shape: '{}'}", "expected a model"},
	} {
		if _, err := Jobs("jobs.yaml", []byte("{name: j, workers: 2, pipeline: "+c.pipeline+"}")); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q in it", c.pipeline, err, c.says)
		}
	}
}

// TestExampleNamesEveryField fails when a noun gets a field that the page and its
// example do not mention.
func TestExampleNamesEveryField(t *testing.T) {
	for kind, types := range map[string][]reflect.Type{
		"jobs": {reflect.TypeFor[workload.Job](), reflect.TypeFor[workload.Checkpoint](), reflect.TypeFor[workload.Pipeline](), reflect.TypeFor[workload.Layer](),
			reflect.TypeFor[workload.Offer](), reflect.TypeFor[workload.Phase](), reflect.TypeFor[workload.Service]()},
		"cluster": {reflect.TypeFor[clusterFile](), reflect.TypeFor[siteFile](), reflect.TypeFor[siteLinkFile](), reflect.TypeFor[cluster.Model](), reflect.TypeFor[rackFile](), reflect.TypeFor[nodeFile](), reflect.TypeFor[cluster.Geometry](), reflect.TypeFor[cluster.Part]()},
	} {
		text := string(example(t, kind))
		if kind == "cluster" {
			text += string(example(t, "sites"))
		}
		for _, typ := range types {
			for _, f := range fieldsOf(typ) {
				if !regexp.MustCompile(`\b` + f.name + ":").MatchString(text) {
					t.Errorf("the example of %s lacks %s of %s", kind, f.name, typ)
				}
			}
		}
	}
}

func TestAnchorsAndMerge(t *testing.T) {
	jobs, err := Jobs("f.yaml", []byte(`
jobs:
  - &base {name: a, memory: 8GiB, env: &env {A: 1, B: 2}}
  - {<<: *base, name: b, env: {<<: *env, B: 3}}
  - {<<: [{memory: 1GiB, class: x}, *base], name: c}
---
name: d
env: &env {C: 4}
`))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []workload.Job{
		{Name: "a", Resources: workload.Resources{Memory: 8 << 10}, Program: workload.Program{Env: []string{"A=1", "B=2"}}},
		{Name: "b", Resources: workload.Resources{Memory: 8 << 10}, Program: workload.Program{Env: []string{"B=3", "A=1"}}},
		{Name: "c", Resources: workload.Resources{Memory: 1 << 10}, Traits: workload.Traits{Class: "x"}, Program: workload.Program{Env: []string{"A=1", "B=2"}}},
		{Name: "d", Program: workload.Program{Env: []string{"C=4"}}},
	} {
		want.Gang, want.Devices, want.Share = 1, 1, 1000
		if !reflect.DeepEqual(jobs[i], want) {
			t.Errorf("job %d is %+v, expected %+v", i, jobs[i], want)
		}
	}
}

func TestDecodeKeepsDefaults(t *testing.T) {
	c := config{Queues: 5, Mode: "las", Name: "x", unexported: 3}
	if err := Decode("f.yaml", []byte("half-life: 90s\nweights: {a: 1, b.c: 2.5}\nlimit: 7\nnested: {level: -3}\nname: 007\n"), &c); err != nil {
		t.Fatal(err)
	}
	want := config{Queues: 5, Mode: "las", Name: "007", unexported: 3, HalfLife: 90 * unit.Second, Weights: map[string]float64{"a": 1, "b.c": 2.5}, Limit: new(int64)}
	*want.Limit, want.Nested.Level = 7, -3
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got %+v", c)
	}
	if err := Decode("f.yaml", nil, &c); err != nil {
		t.Errorf("an empty file: %v", err)
	}
	if err := Decode("f.yaml", nil, c); err == nil || errors.As(err, new(Problems)) {
		t.Errorf("reading into a value that is not a pointer: %v", err)
	}
}

func TestPresets(t *testing.T) {
	for _, c := range []struct {
		name                  string
		nodes, devices, racks int
		broken, none          bool
	}{
		{name: "gpus:20x4", nodes: 20, devices: 80, racks: 2},
		{name: "philly", nodes: 552, devices: 2490, racks: 15 + 21},
		{name: "venus", nodes: 133, devices: 1064, racks: 9},
		{name: "gpus:0x4", broken: true},
		{name: "gpus:4", broken: true},
		{name: "gpus:2000001x1", broken: true},
		{name: "gpus:-1x4", broken: true},
		{name: "gpu", none: true},
	} {
		got, ok, err := Preset(c.name)
		switch {
		case ok == c.none || (err != nil) != c.broken:
			t.Errorf("%s: ok %v, error %v", c.name, ok, err)
		case got == nil:
		case len(got.Nodes) != c.nodes || len(got.Devices) != c.devices || len(got.Racks) != c.racks:
			t.Errorf("%s: %d nodes, %d devices, %d racks", c.name, len(got.Nodes), len(got.Devices), len(got.Racks))
		}
	}
	c, _, _ := Preset("philly")
	names := map[string]bool{}
	for _, n := range c.Nodes {
		names[n.Name] = true
		if c.Devices[n.First].Memory != map[int32]unit.MiB{8: 24 << 10, 2: 12 << 10}[n.Count] {
			t.Fatalf("%+v has devices of %v", n, c.Devices[n.First].Memory)
		}
	}
	if len(names) != len(c.Nodes) {
		t.Errorf("%d names for %d nodes", len(names), len(c.Nodes))
	}
}

func TestResolve(t *testing.T) {
	lab := example(t, "cluster")
	t.Chdir(t.TempDir())
	t.Setenv("MUSTER_DATA", "")
	var asked string
	options := ResolveOptions{Openb: func(folder string) (*cluster.Cluster, error) {
		asked = folder
		return &cluster.Cluster{Name: "openb"}, nil
	}}
	try := func(ref, name, wrong string) {
		t.Helper()
		switch c, err := Resolve(ref, options); {
		case wrong != "" && (err == nil || !strings.Contains(err.Error(), wrong)):
			t.Errorf("%s: got %v, expected an error with %s", ref, err, wrong)
		case wrong == "" && err != nil:
			t.Errorf("%s: %v", ref, err)
		case wrong == "" && c.Name != name:
			t.Errorf("%s is the cluster %s", ref, c.Name)
		}
	}
	write := func(name string, data []byte) {
		t.Helper()
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("lab.yaml", lab)
	write("bad.yaml", []byte("nmae: x"))
	write("large.yaml", make([]byte, maxFileBytes+1))
	try("venus", "venus", "")
	try("lab.yaml", "lab", "")
	try("phily", "", `no such file or preset; did you mean "philly"?`)
	try("gpus:x", "", "expected gpus:NxM")
	try("bad.yaml", "", `bad.yaml:1:1: nmae: found an unknown field; did you mean "name"?`)
	try("large.yaml", "", "a file of 4194305 bytes, expected at most 4194304")
	try(".", "", "read cluster file: ")
	try("openb", "", "set MUSTER_DATA to the folder that holds openb2023")
	if err := os.MkdirAll("data/openb2023", 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("MUSTER_DATA", "data")
	try("openb", "openb", "")
	if asked != filepath.Join("data", "openb2023") {
		t.Errorf("openb was read from %s", asked)
	}
	options.Openb = nil
	try("openb", "", "no reader")
}
