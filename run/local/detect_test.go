package local

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/musterdl/muster/model/cluster"
)

// answer is what nvidia-smi -q -x says, cut down to a few of its lines.
func answer(gpus string) string {
	return `<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
	<timestamp>Mon Jan  5 12:00:00 2026</timestamp>
	<driver_version>570.00</driver_version>
	<attached_gpus>2</attached_gpus>
` + gpus + `</nvidia_smi_log>
`
}

func gpu(name, total string) string {
	return `	<gpu id="00000000:17:00.0">
		<product_name>` + name + `</product_name>
		<mig_mode><current_mig>Disabled</current_mig></mig_mode>
		<fb_memory_usage>
			<total>` + total + `</total>
			<reserved>600 MiB</reserved>
			<used>0 MiB</used>
		</fb_memory_usage>
		<bar1_memory_usage><total>131072 MiB</total></bar1_memory_usage>
	</gpu>
`
}

func mig(gpu string) string { return strings.Replace(gpu, "Disabled", "Enabled", 1) }

func called(uuid, gpu string) string {
	return strings.Replace(gpu, "		<mig_mode>", "		<uuid>"+uuid+"</uuid>\n		<mig_mode>", 1)
}

// TestPlacesAreKept: a GPU keeps its place while others are lost, come back or join, also in
// another order.
func TestPlacesAreKept(t *testing.T) {
	state := t.TempDir()
	for _, c := range []struct{ there, places, absent string }{
		{"a b c", "a b c", "[]"},
		{"a c", "a b c", "[1]"},
		{"c a", "a b c", "[1]"},
		{"d c b", "a b c d", "[0]"},
		{"b d a c", "a b c d", "[]"},
		{"e", "a b c d e", "[0 1 2 3]"},
	} {
		m := Machine{GPUs: true, GPU: strings.Fields(c.there), Cluster: cluster.Uniform("here", 1, len(strings.Fields(c.there)), cluster.Model{Name: "gpu"}, 1)}
		absent, err := m.KeepPlaces(state)
		if got := strings.Join(m.GPU, " "); err != nil || got != c.places || fmt.Sprint(absent) != c.absent || len(m.Cluster.Devices) != len(m.GPU) {
			t.Errorf("with %s: places %s, absent %v (%v), want %s and %s; %d devices", c.there, got, absent, err, c.places, c.absent, len(m.Cluster.Devices))
		}
	}
	slots := Machine{Cluster: cluster.Uniform("here", 1, 2, cluster.Model{Name: "slot"}, 1)}
	if absent, err := slots.KeepPlaces(t.TempDir()); err != nil || absent != nil || len(slots.Cluster.Devices) != 2 {
		t.Errorf("slots: %v, %v", absent, err)
	}
}

func TestParseSMI(t *testing.T) {
	h100 := cluster.Model{Name: "nvidia-h100-80gb-hbm3", Memory: 81559, Speed: 1}
	for _, c := range []struct {
		name, xml string
		want      []cluster.Model
		wrong     string
	}{
		{"two alike", answer(gpu("NVIDIA H100 80GB HBM3", "81559 MiB") + gpu("NVIDIA H100 80GB HBM3", "81559 MiB")), []cluster.Model{h100, h100}, ""},
		{"by their UUIDs", answer(called("GPU-a", gpu("NVIDIA H100 80GB HBM3", "81559 MiB")) + called("GPU-b", gpu("NVIDIA H100 80GB HBM3", "81559 MiB"))), []cluster.Model{h100, h100}, ""},
		{"another model is left out", answer(gpu("NVIDIA H100 80GB HBM3", "81559 MiB") + gpu("Tesla T4", "15360 MiB")), []cluster.Model{h100}, ""},
		{"none", answer(""), nil, ""},
		{"one in MIG mode is left out", answer(mig(gpu("NVIDIA H100 80GB HBM3", "81559 MiB")) + gpu("NVIDIA H100 80GB HBM3", "81559 MiB")), []cluster.Model{h100}, ""},
		{"all in MIG mode", answer(mig(gpu("NVIDIA H100 80GB HBM3", "81559 MiB"))), nil, "all GPUs are in MIG mode"},
		{"no memory", answer(gpu("Tesla T4", "N/A")), nil, `memory of Tesla T4 is "N/A": expected MiB`},
		{"not XML", "NVIDIA-SMI has failed", nil, "reading nvidia-smi's answer"},
		{"cut off", strings.TrimSuffix(answer(gpu("Tesla T4", "15360 MiB")), "</nvidia_smi_log>\n"), nil, "reading nvidia-smi's answer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, names, err := parseSMI([]byte(c.xml))
			if len(names) != len(got) || strings.Contains(c.name, "one in MIG") && names[0] != "1" || c.name == "by their UUIDs" && strings.Join(names, " ") != "GPU-a GPU-b" {
				t.Errorf("the GPUs found are %v", names)
			}
			if !reflect.DeepEqual(got, c.want) || (err == nil) != (c.wrong == "") {
				t.Fatalf("found %+v, %v", got, err)
			}
			if err != nil && !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("the error is %q, expected %q in it", err, c.wrong)
			}
		})
	}
}
