// Package cgrouptest helps tests that measure what control groups do on a machine that
// others use too.
package cgrouptest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/musterdl/muster/run/local/cgroup"
)

// Favour raises the weight of the group that all groups of Muster on this machine are
// in until the test ends: it then measures Muster, and not who else is here. What that
// takes from others is bounded by the limits of the groups below.
func Favour(t *testing.T, g *cgroup.Group) {
	t.Helper()
	file, much, usual := filepath.Join(filepath.Dir(g.CPU), "cpu.shares"), "102400", "1024"
	if g.CPU == "" {
		file, much, usual = filepath.Join(filepath.Dir(g.Unified), "cpu.weight"), "10000", "100"
	}
	if err := os.WriteFile(file, []byte(much), 0); err != nil {
		t.Logf("others on this machine count as much as what is measured: %v", err)
		return
	}
	t.Cleanup(func() { _ = os.WriteFile(file, []byte(usual), 0) }) // the group may have gone
}
