package export_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/internal/torchtest"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/export"
)

// unwritten are the orders that no file for PyTorch can hold (TestInexpressible says why).
var unwritten = []string{"pipedream", "hetpipe", "dualpipe", "chimera", "mixpipe", "swarm", "varuna"}

// TestPyTorchLoads: of every order that can be written for PyTorch its runtime loads both files,
// and its processes reach the losses and weights of one. MUSTER_LONG=1 takes four processes.
func TestPyTorchLoads(t *testing.T) {
	python, folder := torchtest.Python(t, "torch.distributed.pipelining.schedules"), t.TempDir()
	ranks, microbatches := 2, 6
	if os.Getenv("MUSTER_LONG") == "1" {
		ranks, microbatches = 4, 8
	}
	for _, name := range catalogue.Names(pipeline.SequencePart) {
		s, why := order(t, name).Schedule(ranks, microbatches, nil)
		if why != "" {
			t.Errorf("%s: %s", name, why)
			continue
		}
		for form, write := range map[string]func(*pipeline.Schedule) (string, error){".compute_only": export.CSV, ".compute_comms": comms, "-reduced.compute_comms": reduced} {
			text, err := write(&s)
			if slices.Contains(unwritten, name) != (err != nil) {
				t.Errorf("%s%s: %v, expected a file or one that is listed as unwritten", name, form, err)
			}
			if err != nil {
				continue
			}
			if err := os.WriteFile(filepath.Join(folder, name+form+".csv"), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	out, err := exec.Command(python, "testdata/load.py", folder).CombinedOutput()
	if err != nil {
		t.Errorf("%v", err)
	}
	t.Logf("%s", out)
}

// order is a sequence of the catalogue.
func order(t *testing.T, name string) pipeline.Ordering {
	t.Helper()
	c, err := catalogue.Parse("test", "sequence: "+name+"\n")
	if err != nil {
		t.Fatal(err)
	}
	filled, err := c.Fill(catalogue.Env{})
	if err != nil {
		t.Fatal(err)
	}
	return strategy.In[pipeline.Ordering](filled, pipeline.SequencePart)
}
