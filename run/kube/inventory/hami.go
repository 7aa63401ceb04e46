package inventory

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/musterdl/muster/model/unit"

	corev1 "k8s.io/api/core/v1"
)

// The annotations and resources by which HAMi's scheduler and device plugin talk. The
// plugin lists a node's devices in hami.io/node-nvidia-register; the scheduler writes
// the chosen devices on the pod and binds it; the plugin then looks for the pod that
// is "allocating" on its node, the one named by the node's lock if it is locked.
const (
	hamiRegister  = "hami.io/node-nvidia-register"
	hamiCordon    = "hami.io/device-cordon"
	hamiToGive    = "hami.io/vgpu-devices-to-allocate"
	hamiGiven     = "hami.io/vgpu-devices-allocated"
	hamiNode      = "hami.io/vgpu-node"
	hamiTime      = "hami.io/vgpu-time"
	hamiBindTime  = "hami.io/bind-time"
	hamiBindPhase = "hami.io/bind-phase"

	gpuMemory  = "nvidia.com/gpumem"
	gpuPercent = "nvidia.com/gpumem-percentage"
	gpuCores   = "nvidia.com/gpucores"
	useType    = "nvidia.com/use-gputype"
	noUseType  = "nvidia.com/nouse-gputype"
)

// IgnoredResources are resources that pods ask for and no node offers: a fraction's
// memory and compute, which only HAMi's annotations account for. A resource filter
// has to pass over them.
func IgnoredResources() []string { return []string{gpuMemory, gpuPercent, gpuCores} }

// registration is one device as HAMi's plugin registers it. Memory is in MiB, and
// Count is how often it may be shared.
type registration struct {
	ID     string `json:"id"`
	Count  int64  `json:"count"`
	Devmem int64  `json:"devmem"`
	Type   string `json:"type"`
	Numa   int    `json:"numa"`
	Health bool   `json:"health"`
}

func (r *registration) memory() unit.MiB {
	return min(max(unit.MiB(r.Devmem), 0), mostMemory)
}

func (r *registration) slots() int { return int(min(max(r.Count, 1), 1000)) }

// parseRegister reads a registration: a JSON list, or in older versions fields
// between commas and devices between colons (uuid, count, MiB, cores, type, numa,
// healthy, and in some index and mode).
func parseRegister(node, text string) ([]registration, Problem) {
	var devices []registration
	if strings.HasPrefix(strings.TrimSpace(text), "[") {
		if err := json.Unmarshal([]byte(text), &devices); err != nil {
			return nil, wrong("node %s: annotation %s: expected a JSON list of devices: %v", node, hamiRegister, err)
		}
	} else {
		for item := range strings.SplitSeq(text, ":") {
			if strings.TrimSpace(item) == "" {
				continue
			}
			d, ok := parseDevice(strings.Split(item, ","))
			if !ok {
				return nil, wrong("node %s: annotation %s: %q: expected uuid,count,MiB,cores,type,numa,healthy", node, hamiRegister, item)
			}
			devices = append(devices, d)
		}
	}
	seen := map[string]bool{}
	devices = slices.DeleteFunc(devices, func(d registration) bool {
		again := seen[d.ID]
		seen[d.ID] = true
		return again
	})
	if len(devices) > mostDevices {
		return nil, wrong("node %s: annotation %s lists %d devices: expected at most 10,000", node, hamiRegister, len(devices))
	}
	return devices, Problem{}
}

func parseDevice(f []string) (d registration, ok bool) {
	if len(f) != 7 && len(f) != 9 {
		return d, false
	}
	var errs [4]error
	d.ID, d.Type = f[0], f[4]
	d.Count, errs[0] = strconv.ParseInt(f[1], 10, 32)
	d.Devmem, errs[1] = strconv.ParseInt(f[2], 10, 32)
	d.Numa, errs[2] = strconv.Atoi(f[5])
	d.Health, errs[3] = strconv.ParseBool(f[6])
	return d, errs == [4]error{}
}

// slice is what one container asks of each of its devices.
type slice struct {
	count   int64
	memory  unit.MiB // 0 is by percentage
	percent int64    // of the memory; 100 unless asked
	cores   int64    // percent of the compute; 0 is no limit
}

func (s *slice) whole() bool { return s.cores >= 100 || s.memory == 0 && s.percent >= 100 }

// container reads a container's wish for fractions, in HAMi's terms: without memory
// or percentage it is the whole memory, and then without compute the whole device.
func (r *Rules) container(c *corev1.Container) (s slice, p Problem) {
	read := func(name string, most int64) (int64, bool) {
		q, ok := asked(c, name)
		if !ok {
			return 0, false
		}
		if q.Sign() < 0 || q.CmpInt64(most) > 0 || q.MilliValue()%1000 != 0 {
			p = wrong("container %s: %s is %s: expected a whole number, 0 to %d", c.Name, name, q.String(), most)
			return 0, false
		}
		return q.Value(), true
	}
	factor := max(r.MemoryFactor, 1)
	s.count, _ = read(nvidiaGPU, mostDevices)
	s.percent = 100
	memory, _ := read(gpuMemory, int64(mostMemory)/factor)
	s.memory = unit.MiB(memory * factor)
	percent, byPercent := read(gpuPercent, 100)
	if byPercent && percent > 0 && s.memory == 0 {
		s.percent = percent
	}
	cores, limited := read(gpuCores, 100)
	s.cores = cores
	if !limited && s.memory == 0 && s.percent == 100 {
		s.cores = 100
	}
	if p.None() && s.count == 0 && (memory > 0 || byPercent || limited) {
		p = wrong("container %s: %s, %s and %s are per %s: ask for %s too", c.Name, gpuMemory, gpuPercent, gpuCores, nvidiaGPU, nvidiaGPU)
	}
	return s, p
}

// BindAnnotations are the annotations that a pod must have before it is bound to
// machine m with these devices (positions in m.Devices), where m's plugin gives out
// fractions; nil where it does not. Init containers come first, as in the plugin,
// and use the same devices as the containers after them; with one device for the pod
// all its containers share it.
func (r Rules) BindAnnotations(m Machine, pod *corev1.Pod, devices []int, now unit.Time) (map[string]string, Problem) {
	if !m.Fractions {
		return nil, Problem{}
	}
	for _, i := range devices {
		if i < 0 || i >= len(m.Devices) {
			return nil, wrong("machine %s has no device %d: expected 0 to %d", m.Name, i, len(m.Devices)-1)
		}
	}
	var text strings.Builder
	next := 0
	for _, c := range containers(pod) {
		s, p := r.container(c.Container)
		if !p.None() {
			return nil, p
		}
		if s.count > int64(len(devices)) {
			return nil, wrong("container %s asks for %d of %s and the pod was given %d devices", c.Name, s.count, nvidiaGPU, len(devices))
		}
		from, count := 0, int(s.count)
		if c.alongside && next+count <= len(devices) {
			from = next
			next += count
		}
		for _, i := range devices[from : from+count] {
			memory := s.memory
			if memory == 0 {
				memory = m.DeviceMemory(i) * unit.MiB(s.percent) / 100
			}
			fmt.Fprintf(&text, "%s,NVIDIA,%d,%d:", m.Devices[i].UUID, memory, s.cores)
		}
		text.WriteByte(';')
	}
	if !strings.Contains(text.String(), ",") {
		return nil, Problem{} // none of its containers has devices
	}
	seconds := strconv.FormatInt(int64(now)/int64(unit.Second), 10)
	return map[string]string{
		hamiToGive: text.String(), hamiGiven: text.String(), hamiNode: m.KubeNode, hamiTime: seconds,
		hamiBindTime: seconds, hamiBindPhase: "allocating",
	}, Problem{}
}
