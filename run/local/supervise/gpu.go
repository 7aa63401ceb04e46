package supervise

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// gpuMeter asks the driver's own tool what a worker's GPUs do. The tool takes tens
// of milliseconds, so it is asked at most every gpuEvery, and never again once it
// has failed: utilisation is good to know, not worth a worker's time.
type gpuMeter struct {
	devices string // as CUDA_VISIBLE_DEVICES names them; empty is none
	asked   time.Time
	broken  bool
}

const gpuEvery = 15 * time.Second

// visibleGPUs finds the devices in a worker's environment.
func visibleGPUs(env []string) string {
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "CUDA_VISIBLE_DEVICES="); ok {
			return v
		}
	}
	return ""
}

// measure returns the mean utilisation of the worker's GPUs in percent and the
// memory in use on them; ok is false where nothing new is known.
func (m *gpuMeter) measure(now time.Time) (percent int, memoryMiB int64, ok bool) {
	if m.devices == "" || m.broken || now.Sub(m.asked) < gpuEvery {
		return 0, 0, false
	}
	m.asked = now
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	// The supervisor reaps all its children, so how the tool ended may be gone by the
	// time it is asked for; what it said is what counts.
	out, _ := exec.CommandContext(ctx, "nvidia-smi", "-i", m.devices,
		"--query-gpu=utilization.gpu,memory.used", "--format=csv,noheader,nounits").Output()
	percent, memoryMiB, err := parseGPUs(string(out))
	m.broken = err != nil
	return percent, memoryMiB, err == nil
}

// parseGPUs reads a line "UTILISATION, MEMORY" per GPU.
func parseGPUs(text string) (percent int, memoryMiB int64, err error) {
	n := 0
	for line := range strings.Lines(text) {
		util, memory, found := strings.Cut(strings.TrimSpace(line), ",")
		u, err1 := strconv.Atoi(strings.TrimSpace(util))
		m, err2 := strconv.ParseInt(strings.TrimSpace(memory), 10, 64)
		if !found || err1 != nil || err2 != nil {
			return 0, 0, fmt.Errorf("nvidia-smi: line %q: expected utilisation and memory", line)
		}
		percent, memoryMiB, n = percent+u, memoryMiB+m, n+1
	}
	if n == 0 {
		return 0, 0, fmt.Errorf("nvidia-smi said nothing")
	}
	return percent / n, memoryMiB, nil
}
