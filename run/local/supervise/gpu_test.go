package supervise

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestGPUMeter asks a stand-in for the driver's tool: it is told the worker's devices,
// asked no more often than allowed, and given up on once it fails.
func TestGPUMeter(t *testing.T) {
	dir := t.TempDir()
	tool := filepath.Join(dir, "nvidia-smi")
	script := "#!/bin/sh\necho asked >> " + dir + "/calls\n[ \"$2\" = 0,2 ] || exit 1\necho '80, 1000'\necho '40, 500'\n"
	if err := os.WriteFile(tool, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	m := gpuMeter{devices: visibleGPUs([]string{"A=b", "CUDA_VISIBLE_DEVICES=0,2"})}
	now := time.Now()
	if percent, memory, ok := m.measure(now); !ok || percent != 60 || memory != 1500 {
		t.Errorf("it measured %d %% and %d MiB, %v", percent, memory, ok)
	}
	if _, _, ok := m.measure(now.Add(time.Second)); ok {
		t.Error("it was asked again after a second")
	}
	m.devices = "7" // the tool refuses
	for i := range 3 {
		if _, _, ok := m.measure(now.Add(time.Duration(1+i) * time.Minute)); ok {
			t.Error("a refusal was taken for an answer")
		}
	}
	if calls, _ := os.ReadFile(filepath.Join(dir, "calls")); string(calls) != "asked\nasked\n" {
		t.Errorf("calls: %q, want one answer and one refusal", calls)
	}
	if _, _, ok := (&gpuMeter{}).measure(now); ok {
		t.Error("a worker without GPUs has some")
	}
	if _, _, err := parseGPUs("80\n"); err == nil {
		t.Error("a line without memory was read")
	}
}
