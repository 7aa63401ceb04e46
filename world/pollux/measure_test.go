package pollux

import (
	"io"
	"os"
	"path/filepath"
	"testing"
)

func openData(path string) (io.ReadCloser, error) { return os.Open(filepath.Join(data, "..", path)) }

// TestMeasureOptimus: the figures of the claim of Optimus, from the files as they are.
func TestMeasureOptimus(t *testing.T) {
	loaded(t)
	m, err := MeasureOptimus(openData, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(m)
	if d := m["optimus_jct_s_w6"]/5301.875 - 1; d > .001 || d < -.001 {
		t.Errorf("workload 6: %v s", m["optimus_jct_s_w6"])
	}
	if m["sync_error"] > .1 || m["async_error"] > .1 {
		t.Errorf("models are recovered with errors of %v and %v", m["sync_error"], m["async_error"])
	}
}

// TestMeasure: the figures of the claim of Pollux.
func TestMeasure(t *testing.T) {
	loaded(t)
	if os.Getenv("MUSTER_LONG") != "1" {
		t.Skip("long; set MUSTER_LONG=1")
	}
	m, err := Measure(openData, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(m)
	if m["in_order"] != 8 {
		t.Errorf("the three are in the published order on %v of 8 workloads", m["in_order"])
	}
}
