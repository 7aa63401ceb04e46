package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestIdle: a group in the idle class is that, where the kernel has the class, and
// else weighs least; where CPU is nobody's affair it is unsupported.
func TestIdle(t *testing.T) {
	for _, c := range []struct {
		files      []string
		g          func(dir string) Group
		want, text string
	}{
		{[]string{"cpu.idle", "cpu.shares"}, func(d string) Group { return Group{CPU: d} }, "cpu.idle", "1"},
		{[]string{"cpu.shares"}, func(d string) Group { return Group{CPU: d} }, "cpu.shares", "2"},
		{[]string{"cpu.weight"}, func(d string) Group { return Group{Unified: d} }, "cpu.weight", "1"},
	} {
		dir := t.TempDir()
		for _, f := range c.files {
			if err := os.WriteFile(filepath.Join(dir, f), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.g(dir).SetIdle(); err != nil {
			t.Errorf("with %v: %v", c.files, err)
		}
		if got, err := os.ReadFile(filepath.Join(dir, c.want)); err != nil || string(got) != c.text {
			t.Errorf("with %v, %s is %q, %v", c.files, c.want, got, err)
		}
	}
	if err := (Group{}).SetIdle(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("without a controller: %v", err)
	}
	s := Probe()
	if !s.CPU {
		t.Skip(s)
	}
	g := group(t, Limits{CPU: 100})
	if err := g.SetIdle(); err != nil {
		t.Fatal(err)
	}
	if err := g.SetLimits(Limits{CPU: 200}); err != nil {
		t.Errorf("other limits in the idle class: %v", err)
	}
	if g.CPU != "" {
		idle, err := os.ReadFile(filepath.Join(g.CPU, "cpu.idle"))
		if quota, _ := os.ReadFile(filepath.Join(g.CPU, "cpu.cfs_quota_us")); err == nil && (strings.TrimSpace(string(idle)) != "1" || strings.TrimSpace(string(quota)) != "20000") {
			t.Errorf("the kernel has cpu.idle %s and a quota of %s", idle, quota)
		}
	}
}
