package local

import (
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

func TestParseSMI(t *testing.T) {
	h100 := cluster.Model{Name: "nvidia-h100-80gb-hbm3", Memory: 81559, Speed: 1}
	for _, c := range []struct {
		name, xml string
		want      []cluster.Model
		wrong     string
	}{
		{"two alike", answer(gpu("NVIDIA H100 80GB HBM3", "81559 MiB") + gpu("NVIDIA H100 80GB HBM3", "81559 MiB")), []cluster.Model{h100, h100}, ""},
		{"another model is left out", answer(gpu("NVIDIA H100 80GB HBM3", "81559 MiB") + gpu("Tesla T4", "15360 MiB")), []cluster.Model{h100}, ""},
		{"none", answer(""), nil, ""},
		{"one in MIG mode is left out", answer(mig(gpu("NVIDIA H100 80GB HBM3", "81559 MiB")) + gpu("NVIDIA H100 80GB HBM3", "81559 MiB")), []cluster.Model{h100}, ""},
		{"all in MIG mode", answer(mig(gpu("NVIDIA H100 80GB HBM3", "81559 MiB"))), nil, "all GPUs are in MIG mode"},
		{"no memory", answer(gpu("Tesla T4", "N/A")), nil, `memory of Tesla T4 is "N/A": expected MiB`},
		{"not XML", "NVIDIA-SMI has failed", nil, "reading nvidia-smi's answer"},
		{"cut off", strings.TrimSuffix(answer(gpu("Tesla T4", "15360 MiB")), "</nvidia_smi_log>\n"), nil, "reading nvidia-smi's answer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, index, err := parseSMI([]byte(c.xml))
			if len(index) != len(got) || strings.Contains(c.name, "one in MIG") && index[0] != 1 {
				t.Errorf("the GPUs found are numbers %v", index)
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
