// Package cgrouptest helps tests that measure what control groups do on a machine that
// others use too.
package cgrouptest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Favour raises the weight of the group of all groups of Muster on this machine, above one
// that is given by its directories in version 1 of the CPU controller or in version 2,
// until the test ends. What is measured is then Muster, and not who else is here; what
// that takes from others is bounded by the limits of the groups below.
func Favour(t *testing.T, cpu, unified string) {
	t.Helper()
	file, much, usual := filepath.Join(above(cpu), "cpu.shares"), "102400", "1024"
	if cpu == "" {
		file, much, usual = filepath.Join(above(unified), "cpu.weight"), "10000", "100"
	}
	// A group of our own keeps the one above from going with the last of the others.
	ours := filepath.Join(filepath.Dir(file), fmt.Sprintf("favoured-%d", os.Getpid()))
	err := os.MkdirAll(ours, 0o755)
	if err == nil {
		err = os.WriteFile(file, []byte(much), 0)
	}
	if err != nil {
		t.Logf("others on this machine count as much as what is measured: %v", err)
	}
	t.Cleanup(func() {
		_ = os.WriteFile(file, []byte(usual), 0) // neither is there where it failed above
		_ = os.Remove(ours)
	})
}

// above is the directory of all groups of Muster; a group may be in a pool there.
func above(dir string) string {
	for dir = filepath.Dir(dir); filepath.Base(dir) != "muster" && len(dir) > 1; {
		dir = filepath.Dir(dir)
	}
	return dir
}
