package export_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/export"
	"github.com/musterdl/muster/strategies/pipeline/gpipe"
	"github.com/musterdl/muster/strategies/pipeline/onefoneb"
	"github.com/musterdl/muster/strategies/pipeline/zbv"
	"github.com/musterdl/muster/strategies/pipeline/zerobubble"
)

// TestPyTorchLoads: PyTorch's runtime loads each file, and its processes reach the loss of one.
func TestPyTorchLoads(t *testing.T) {
	python := "python3"
	if _, err := os.Stat("/usr/bin/python3"); err == nil {
		python = "/usr/bin/python3" // Debian's torch is seen from Debian's Python alone
	}
	const asks = "import torch\nprint(torch.__version__)\nimport torch.distributed.pipelining.schedules"
	if out, err := exec.Command(python, "-c", asks).CombinedOutput(); err != nil {
		version, _, _ := strings.Cut(string(out), "\n")
		t.Skipf("no PyTorch with torch.distributed.pipelining is at hand: %s", version)
	}
	for name, ord := range map[string]pipeline.Ordering{"gpipe": gpipe.Ordering{}, "1f1b": onefoneb.Ordering{}, "zb-h1": zerobubble.H1{}, "zbv": zbv.V{}} {
		for form, write := range map[string]func(*pipeline.Schedule) (string, error){"compute_only": export.CSV, "compute_comms": export.Comms} {
			t.Run(name+"/"+form, func(t *testing.T) {
				const ranks, microbatches = 2, 6
				s, why := ord.Schedule(ranks, microbatches, nil)
				if why != "" {
					t.Fatal(why)
				}
				text, err := write(&s)
				file := filepath.Join(t.TempDir(), "plan.csv")
				if err == nil {
					err = os.WriteFile(file, []byte(text), 0o644)
				}
				if err != nil {
					t.Fatal(err)
				}
				out, err := exec.Command(python, "testdata/load.py", file, form, strconv.Itoa(ranks), strconv.Itoa(s.Stages()), strconv.Itoa(microbatches)).CombinedOutput()
				if err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				t.Logf("%s", out)
			})
		}
	}
}
