package supervise

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run/local/cgroup"
)

// TestLawGivesWay: an opportunistic worker's quota falls while the machine is busy.
func TestLawGivesWay(t *testing.T) {
	s := &supervisor{spec: Spec{Law: "give-way", Limits: cgroup.Limits{CPU: unit.Whole}}, sampler: &sampler{}}
	dir := t.TempDir()
	for _, f := range []string{"cpu.cfs_period_us", "cpu.cfs_quota_us"} {
		if err := os.WriteFile(filepath.Join(dir, f), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s.group.CPU = dir
	s.stepLaw()
	if s.law.set != 1000 {
		t.Fatalf("it begins with %s cores, want all of its limit", s.law.set)
	}
	var stop atomic.Bool
	defer stop.Store(true)
	for range 64 { // keep every processor busy
		go func() {
			for !stop.Load() {
			}
		}()
	}
	deadline := time.Now().Add(time.Minute)
	for s.law.set > 500 && time.Now().Before(deadline) {
		time.Sleep(200 * time.Millisecond)
		s.stepLaw()
	}
	if s.law.set > 500 {
		t.Errorf("on a busy machine it still has %s cores", s.law.set)
	}
	quota, err := os.ReadFile(filepath.Join(dir, "cpu.cfs_quota_us"))
	if err != nil || len(quota) == 0 {
		t.Errorf("the group's quota is %q, %v", quota, err)
	}
}
