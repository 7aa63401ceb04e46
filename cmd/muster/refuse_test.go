package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/run"
)

// TestUnableStrategies: of all strategies those that need what this machine cannot do are
// refused, with the reason, by muster up and by a switch.
func TestUnableStrategies(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.start()
	for _, e := range catalogue.All {
		act := run.Slots.Lacks(e.Acts)
		if act == "" {
			continue
		}
		why := "its " + e.Part.Name + " " + e.Name + " " + act.Does() + " (" + string(act) + "), and " + run.Slots.Why[act]
		if out, err := muster(t, "up", "--state", t.TempDir(), "--strategy", e.Name); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("muster up --strategy %s: %v, expected that %s\n%s", e.Name, err, why, out)
		}
		if code, said := p.mutter("strategies", "switch", e.Name); code == 0 || !strings.Contains(said, why) {
			t.Errorf("a switch to %s: exit code %d, %s", e.Name, code, said)
		}
	}
	if code, said := p.mutter("strategies", "switch", "salus"); code != 0 {
		t.Errorf("a switch to salus: exit code %d, %s", code, said)
	}
}

// TestNoSharingOfGPUs: where devices are GPUs, here one that is made up, muster up refuses that jobs live beside others, with
// the reason.
func TestNoSharingOfGPUs(t *testing.T) {
	tools := t.TempDir()
	answer := "<nvidia_smi_log><gpu><product_name>A100</product_name><fb_memory_usage><total>40960 MiB</total></fb_memory_usage></gpu></nvidia_smi_log>"
	strategy := filepath.Join(tools, "strategy.yaml")
	if err := errors.Join(os.WriteFile(filepath.Join(tools, "nvidia-smi"), fmt.Appendf(nil, "#!/bin/sh\necho '%s'\n", answer), 0o755),
		os.WriteFile(strategy, []byte(sharing), 0o644)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", tools+":"+os.Getenv("PATH"))
	t.Setenv("CUDA_MPS_PIPE_DIRECTORY", tools)
	const why = "cannot be obeyed on this machine's GPUs: its share colocate lets a guest compute in what its host leaves of a device, so that the host hardly notices " +
		"(filler), and a GPU has no idle class, and no law reaches into it; leave the part out, or ask muster simulate"
	if out, err := muster(t, "up", "--state", t.TempDir(), "--strategy", strategy); err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("muster up: %v, expected that it %s\n%s", err, why, out)
	}
}
