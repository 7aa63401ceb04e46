package profiles

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline"
)

const published = "../../../shared/data/pipeline-profiles/"

// TestPublished reads every profile that is there. The sums of PipeDream's are those of its
// graphs, less the loading of data.
func TestPublished(t *testing.T) {
	type sums struct{ forward, backward, params float64 } // ms and MiB
	known := map[string]sums{"vgg16": {251.9, 438.6, 527.8}, "gnmt": {33.5, 55.9, 739.2}, "resnet50": {201.5, 260.9, 97.5}}
	loading := map[string]float64{}
	read := 0
	for _, pattern := range []string{"pipedream/*.txt", "dapple/*.txt", "sailor/*/*/profile.json"} {
		files, err := filepath.Glob(published + pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			layers, is, err := Read(file, data)
			if err != nil || !is || len(layers) < 10 {
				t.Errorf("%s: %d layers, known %v, %v", file, len(layers), is, err)
				continue
			}
			read++
			if why := (&pipeline.Params{}).Check(layers, 1, 1); why != "" {
				t.Errorf("%s: %s", file, why)
			}
			name := strings.TrimSuffix(filepath.Base(file), ".graph.txt")
			want, has := known[name]
			if !has || !strings.Contains(file, "pipedream/") {
				continue
			}
			for line := range strings.Lines(string(data)) {
				if strings.Contains(line, "-- Input") {
					_, after, _ := strings.Cut(line, "forward_compute_time=")
					ms, _, _ := strings.Cut(after, ",")
					n, err := parseNode("", "forward_compute_time="+ms)
					if err != nil {
						t.Fatal(err)
					}
					loading[name] += n.layer.Forward.Seconds() * 1000
				}
			}
			var got sums
			for _, l := range layers {
				got.forward += l.Forward.Seconds() * 1000
				got.backward += l.Backward.Seconds() * 1000
				got.params += float64(l.ParamKiB) / 1024
			}
			if math.Abs(got.forward+loading[name]-want.forward) > .1 || math.Abs(got.backward-want.backward) > .1 || math.Abs(got.params-want.params) > .2 {
				t.Errorf("%s: %+v and %g ms of loading: expected %+v", name, got, loading[name], want)
			}
		}
	}
	if read == 0 {
		t.Skip("no ../shared/data/pipeline-profiles: the profiles are not in the repository")
	}
	if read != 33 {
		t.Errorf("%d profiles are read: expected 9 of PipeDream, 11 of DAPPLE and 13 of Sailor", read)
	}
}

const small = `node1 -- Input0 -- forward_compute_time=9.000, backward_compute_time=0.000, activation_size=1024.0, parameter_size=0.000
node2 -- Linear -- forward_compute_time=1.500, backward_compute_time=2.000, activation_size=[2048.0; 1024.0], parameter_size=4096.000
node4 -- Add -- forward_compute_time=0.250, backward_compute_time=0.000, activation_size=512.0, parameter_size=0.000
node3 -- Linear -- forward_compute_time=1.000, backward_compute_time=1.000, activation_size=1024.0, parameter_size=10
	node1 -- node2
	node2 -- node3
	node2 -- node4
	node3 -- node4
`

// TestSmall: nodes stand behind those that they wait for, and a shortcut is sent over the border
// that it crosses.
func TestSmall(t *testing.T) {
	got, _, err := Read("small.txt", []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	want := []workload.Layer{
		{Name: "Linear", Forward: 1500, Backward: 2000, ParamKiB: 4, OutputKiB: 3, ActivationKiB: 3},
		{Name: "Linear", Forward: 1000, Backward: 1000, ParamKiB: 1, OutputKiB: 4, ActivationKiB: 1},
		{Name: "Add", Forward: 250, OutputKiB: 0, ActivationKiB: 1},
	}
	if len(got) != len(want) {
		t.Fatalf("%d layers: expected %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("layer %d is %+v: expected %+v", i, got[i], want[i])
		}
	}
	table := `{"2": {"4": {"0": [9, 9, 9]}}, "1": {"1": {"0": [0.001, 0.002, 0], "1": [0.003, 0.004, 0]}}}`
	got, _, err = Read("profile.json", []byte(table))
	if err != nil || len(got) != 2 || got[1].Forward != 3000 || got[1].Backward != 4000 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestMistakes: each is named with file and line; what is in no format is not known.
func TestMistakes(t *testing.T) {
	for _, c := range [][3]string{
		{"time=1.500", "time=-1", `p:2: node2: forward_compute_time is "-1": expected a number from 0`},
		{"parameter_size=10", "parameters=10", `p:4: node3: "parameters": expected forward_compute_time`},
		{"node3 -- Linear", "node2 -- Linear", "p:4: node2 is there already"},
		{"node2 -- node4", "node2 -- node5", "p:7: from node2 to node5: expected nodes"},
		{"node2 -- node4", "node2", `p:7: "node2": expected NODE -- LAYER`},
		{"node2 -- node4", "node4 -- node2", "p:1: the nodes wait for each other in a circle"},
	} {
		if _, is, err := Read("p", []byte(strings.Replace(small, c[0], c[1], 1))); !is || err == nil || !strings.HasPrefix(err.Error(), c[2]) {
			t.Errorf("%s for %s: %v: expected %q", c[1], c[0], err, c[2])
		}
	}
	for text, want := range map[string]string{
		"{\"1\": {\n\"1\": {\"0\": [1, 2,}}}": "p:2: ", "{\"1\": {}}": "p:1: microbatch 1 has no", `{"1": {"1": {"1": [1, 2]}}}`: "p:1: microbatch 1, tensor degree 1, layer 0",
		`{"1": {"1": {"0": [1, -2]}}}`: "layer 0 is [1 -2]", `{"1": 5}`: "p:1: ",
	} {
		if _, is, err := Read("p", []byte(text)); !is || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v: expected %q", text, err, want)
		}
	}
	for _, text := range []string{"", "{", "{   ", "{}", "name: gpt", "nodes: 3"} {
		if _, is, err := Read("p", []byte(text)); is || err != nil {
			t.Errorf("%q is taken for a profile, %v", text, err)
		}
	}
}
