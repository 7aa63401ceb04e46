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
// its memory's bandwidth programs reach: one constant, fitted on the step that the comment names and on no other
// (TestConstants of experiment/measured). A precision without such a step has the usual one.
var kinds = []kind{
	// A model of 1.2 billion parameters on one device of 32 GB, 62.4 TFLOP/s (Megatron-LM 1.0).
	{"V100-16GB", 16384, 900, 150, map[Precision]float64{Half: 125, Single: 15.7}, map[Precision]float64{Half: 0.84}},
	{"V100-32GB", 32768, 900, 150, map[Precision]float64{Half: 125, Single: 15.7}, map[Precision]float64{Half: 0.84}},
	{"T4", 15360, 320, 0, map[Precision]float64{Half: 65, Single: 8.1}, nil},
	// A model of 22 billion parameters on eight devices of 80 GB, 1.10 s (Korthikanti et al. 2022, table 5).
	{"A100-40GB", 40378, 1555, 300, map[Precision]float64{Half: 312, TF32: 156, Single: 19.5}, map[Precision]float64{Half: 0.757}},
	{"A100-80GB", 81920, 2039, 300, map[Precision]float64{Half: 312, TF32: 156, Single: 19.5}, map[Precision]float64{Half: 0.757}},
	// Llama 3 405B on 8,192 devices, 430 TFLOP/s of each (Dubey et al. 2024, table 4).
	{"H100", 81920, 3350, 450, map[Precision]float64{Half: 989, TF32: 494, Single: 67}, map[Precision]float64{Half: 0.628}},
	// H800 is an H100 whose NVLink is slower.
	{"H800", 81920, 3350, 200, map[Precision]float64{Half: 989, TF32: 494, Single: 67}, map[Precision]float64{Half: 0.628}},
	{"H200", 143771, 4800, 450, map[Precision]float64{Half: 989, TF32: 494, Single: 67}, map[Precision]float64{Half: 0.628}},
	// OPT-350 on 64 devices, microbatches of 8 (Sailor's plan OPT-350_N16_D16).
	{"GH200-96GB", 97872, 4000, 450, map[Precision]float64{Half: 989, TF32: 494, Single: 67}, map[Precision]float64{TF32: 0.621}},
	// What people have at home and in laboratories. A sum of GeForce in single precision halves its rate in half.
	{"RTX-2080-Ti", 11264, 616, 0, map[Precision]float64{Half: 53.8, Single: 13.4}, nil},
	{"RTX-3090", 24576, 936, 0, map[Precision]float64{Half: 71, TF32: 35.6, Single: 35.6}, nil},
	{"Titan-RTX", 24576, 672, 0, map[Precision]float64{Half: 130, Single: 16.3}, nil},
}

// usual is about what was fitted of the kinds before H100.
const usual = 0.77

// pcie is what a device has to the others of its node that has no NVLink, in GB/s.
const pcie = 16

// launch is what each pass of a block takes besides, as a program that does not capture its kernels has to
// start them one by one. It is fitted on OPT-350 over four GH200, microbatches of 1 (Sailor's plan OPT-350_N1_D1_M4_G32), and on
// nothing of any other device, where it holds as well (docs/plan.md).
const launch = 992 * unit.Microsecond

// reserved is what part of its memory a program holds besides what plans count: its context, buffers to send from, what
// its allocator cannot use. It is fitted on the plan OPT-350_N1_D1_M4_G1, whose devices held 4,429 MiB more.
const reserved = 4429. / 97872

// Reserve is what of so much memory no plan may count on, where nobody says how much.
func Reserve(memory unit.MiB) unit.MiB { return unit.MiB(math.Round(reserved * float64(memory))) }

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
	return parallel.Device{Name: k.name, Memory: k.memory, TFlops: k.tflops[p], MemoryGBs: k.gbytes, Reach: cmp.Or(k.efficient[p], usual),
		Inside: parallel.Link{Bandwidth: unit.Mbps(inside * 8000)}, Launch: launch, Reserve: Reserve(k.memory)}, ""
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
		best.Memory, best.Reserve = memory, Reserve(memory)
	}
	return best, ""
}

// begins reports whether a name is the beginning of the kind's.
func (k *kind) begins(name string) bool {
	return name != "" && strings.HasPrefix(strings.ToLower(k.name), strings.ToLower(name))
}

// named reports whether a name, as its driver says it, has all words of the kind's among its own; which memory it has is
// said apart.
func (k *kind) named(name string) bool {
	words := strings.FieldsFunc(name, func(r rune) bool { return r == ' ' || r == '-' })
	for word := range strings.SplitSeq(k.name, "-") {
		if !strings.HasSuffix(word, "GB") && !slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, word) }) {
			return false
		}
	}
	return true
}

// uplinks are what a device has of the network of the machine in which its vendor sells it, in
// Gbps: a DGX-1, a rented machine with four T4, a DGX A100, a DGX H100 and H200, machines of eight H800 as DeepSeek has them, a node of Alps, and for cards of eight in a machine one of 100.
var uplinks = map[string]unit.Mbps{"V100-16GB": 50, "V100-32GB": 50, "T4": 12, "A100-40GB": 200, "A100-80GB": 200, "H100": 400, "H800": 400, "H200": 400, "GH200-96GB": 200,
	"RTX-2080-Ti": 10, "RTX-3090": 10, "Titan-RTX": 10}

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
