package shape

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/parallel"
)

// kind is a kind of device as its vendor's data sheet has it, recalled.
type kind struct {
	name      string
	memory    unit.MiB
	gbytes    float64               // per second, of its memory
	nvlink    float64               // GB/s to the others of its node, in each direction; 0 is none
	tflops    map[Precision]float64 // dense
	efficient map[Precision]float64
}

// kinds are those with presets. How efficient one is says what part of its dense peak and of
// its memory's bandwidth its kernels reach: one constant, fitted on the row that the comment names and on no other
// (TestFitted). A precision without such a row has the usual one.
var kinds = []kind{
	// A model of 1.2 billion parameters on one device of 32 GB, 62.4 TFLOP/s (Megatron-LM 1.0).
	{"V100-16GB", 16384, 900, 150, map[Precision]float64{Half: 125, Single: 15.7}, map[Precision]float64{Half: 0.764}},
	{"V100-32GB", 32768, 900, 150, map[Precision]float64{Half: 125, Single: 15.7}, map[Precision]float64{Half: 0.764}},
	{"T4", 15360, 320, 0, map[Precision]float64{Half: 65, Single: 8.1}, nil},
	// A block of 22 billion parameters on eight devices of 80 GB, 19.6 ms (Korthikanti et al. 2022, table 4).
	{"A100-40GB", 40378, 1555, 300, map[Precision]float64{Half: 312, TF32: 156, Single: 19.5}, map[Precision]float64{Half: 0.772}},
	{"A100-80GB", 81920, 2039, 300, map[Precision]float64{Half: 312, TF32: 156, Single: 19.5}, map[Precision]float64{Half: 0.772}},
	// Llama 3 405B on 8,192 devices, 430 TFLOP/s of each (Dubey et al. 2024, table 4).
	{"H100", 81920, 3350, 450, map[Precision]float64{Half: 989, TF32: 494, Single: 67}, map[Precision]float64{Half: 0.566}},
	// H800 is an H100 whose NVLink is slower.
	{"H800", 81920, 3350, 200, map[Precision]float64{Half: 989, TF32: 494, Single: 67}, map[Precision]float64{Half: 0.566}},
	{"H200", 143771, 4800, 450, map[Precision]float64{Half: 989, TF32: 494, Single: 67}, map[Precision]float64{Half: 0.566}},
	// OPT-350 on 64 devices, microbatches of 8 (Sailor's plan OPT-350_N16_D16).
	{"GH200-96GB", 97872, 4000, 450, map[Precision]float64{Half: 989, TF32: 494, Single: 67}, map[Precision]float64{TF32: 0.666}},
}

// usual is about what was fitted of the kinds before H100.
const usual = 0.77

// pcie is what a device has to the others of its node that has no NVLink, in GB/s.
const pcie = 16

// Efficiency is what part of its dense peak a kind of device reaches.
func Efficiency(device string, p Precision) float64 {
	for _, k := range kinds {
		if e, known := k.efficient[p]; known && k.name == device {
			return e
		}
	}
	return usual
}

// Device is a kind of device by its name, in some precision; or why there is none.
func Device(name string, p Precision) (parallel.Device, pipeline.Why) {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
	if i < 0 {
		return parallel.Device{}, whyf("there is no device %q: choose one of %v", name, Devices())
	}
	k := &kinds[i]
	if k.tflops[p] == 0 {
		return parallel.Device{}, whyf("%s does not compute in precision %q", name, p)
	}
	// Data sheets tell both directions together; a link is one of them.
	inside := cmp.Or(k.nvlink, pcie)
	return parallel.Device{Name: k.name, Memory: k.memory, TFlops: k.tflops[p], MemoryGBs: k.gbytes,
		Inside: parallel.Link{Bandwidth: unit.Mbps(inside * 8000)}}, ""
}

// Like is the kind of device that a name means, in some precision: its own, the beginning of it, as
// a100, or what the driver calls it, as NVIDIA A100-SXM4-80GB; case does not count. Of several it is the one whose memory is nearest to what is
// said of it, and without that the one with the most.
func Like(name string, memory unit.MiB, p Precision) (best parallel.Device, why pipeline.Why) {
	off, known := math.Inf(1), slices.ContainsFunc(kinds, func(k kind) bool { return k.begins(name) })
	for i := range kinds {
		k := &kinds[i]
		if known && !k.begins(name) || !known && !k.named(name) {
			continue
		}
		d, not := Device(k.name, p)
		// Two kinds of one name differ in their memory, and a cluster says how much its devices have.
		by := math.Abs(float64(k.memory - memory))
		if memory == 0 {
			by = -float64(k.memory)
		}
		if why = cmp.Or(why, not); not == "" && by < off {
			best, off = d, by
		}
	}
	if math.IsInf(off, 1) {
		return best, cmp.Or(why, whyf("there is no device %q: expected one of %v, or how one of them begins", name, Devices()))
	}
	if memory > 0 {
		best.Memory = memory
	}
	return best, ""
}

// begins reports whether a name is the beginning of the kind's.
func (k *kind) begins(name string) bool {
	return name != "" && strings.HasPrefix(strings.ToLower(k.name), strings.ToLower(name))
}

// named reports whether a name, as its driver says it, has the first word of the kind's among its words.
func (k *kind) named(name string) bool {
	first, _, _ := strings.Cut(k.name, "-")
	return slices.ContainsFunc(strings.FieldsFunc(name, func(r rune) bool { return r == ' ' || r == '-' }), func(word string) bool { return strings.EqualFold(word, first) })
}

// uplinks are what a device has of the network of the machine in which its vendor sells it, in
// Gbps: a DGX-1, a rented machine with four T4, a DGX A100, a DGX H100 and H200, machines of eight H800 as DeepSeek has them, and a node of Alps.
var uplinks = map[string]unit.Mbps{"V100-16GB": 50, "V100-32GB": 50, "T4": 12, "A100-40GB": 200, "A100-80GB": 200, "H100": 400, "H800": 400, "H200": 400, "GH200-96GB": 200}

// Uplink is the network of a machine with so many devices, where nothing else is said.
func Uplink(device string, devices int) unit.Mbps {
	return 1000 * uplinks[device] * unit.Mbps(devices)
}

// Devices are the names of those with presets.
func Devices() (names []string) {
	for i := range kinds {
		names = append(names, kinds[i].name)
	}
	return names
}
