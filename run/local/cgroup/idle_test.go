package cgroup

import (
	"cmp"
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

// TestPool: groups in a pool lie below one group with the pool's cores, which goes with the
// last of them.
func TestPool(t *testing.T) {
	if support := Probe(); !support.CPU {
		t.Skip(support)
	}
	pool := Pool{Name: "pool-test", CPU: 500}
	var groups [2]Group
	var around string
	for i, name := range []string{"one", "two"} {
		g, err := pool.Create(name, Limits{CPU: 500, Weight: 300})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Remove()
		if found, err := pool.Find(name); err != nil || found.dirs()[0] != g.dirs()[0] {
			t.Errorf("%s is found at %v, %v", name, found.dirs(), err)
		}
		groups[i], around = g, filepath.Dir(cmp.Or(g.CPU, g.Unified))
	}
	read := func(dir string, files ...string) (text string) {
		for _, f := range files {
			b, _ := os.ReadFile(filepath.Join(dir, f))
			text += strings.TrimSpace(string(b)) + " "
		}
		return text
	}
	all, own := "cpu.max", "cpu.weight"
	want := [2]string{"50000 100000 ", "30 "}
	if groups[0].CPU != "" {
		all, own, want = "cpu.cfs_quota_us", "cpu.shares", [2]string{"50000 ", "307 "}
	}
	if got := [2]string{read(around, all), read(cmp.Or(groups[1].CPU, groups[1].Unified), own)}; got != want {
		t.Errorf("the pool and the group inside have %q, expected %q", got, want)
	}
	for i := range groups {
		if _, err := os.Stat(around); err != nil {
			t.Errorf("the pool went before group %d: %v", i, err)
		}
		if err := groups[i].Remove(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(around); err == nil {
		t.Errorf("%s is left", around)
	}
}
