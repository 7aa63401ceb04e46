package kubetest

import (
	"os"
	"slices"
	"testing"
)

// farm is the cluster of the comparisons.
var farm = Setting{Nodes: 1000, Node: NodeTemplate{Devices: 8}, Kwok: true}

func long(t *testing.T) {
	t.Helper()
	if os.Getenv("MUSTER_FULL") != "1" {
		t.Skip("measures other schedulers for some minutes; set MUSTER_FULL=1")
	}
}

func TestGangSizesHoldExactlyThePods(t *testing.T) {
	sizes := GangSizes(5000, 64, 1)
	sum := 0
	for _, size := range sizes {
		sum += size
	}
	if sum != 5000 || slices.Min(sizes) != 1 || slices.Max(sizes) != 64 {
		t.Fatalf("%d pods in gangs of %d to %d, want 5000 in 1 to 64", sum, slices.Min(sizes), slices.Max(sizes))
	}
	if slices.Equal(sizes, GangSizes(5000, 64, 2)) {
		t.Fatal("another seed gives the same gangs")
	}
}

// measure runs a load on a contender and fails where not every pod was bound, once and within capacity.
func measure(t *testing.T, contender Contender, load Load) Measured {
	t.Helper()
	m, err := farm.StartFor(t, contender).Measure(contender, load)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(m)
	if m.Bound != m.Pods || m.OvercommittedNodes+m.MovedPods+m.PartialGangs > 0 {
		t.Error("not every pod was bound, once, whole and within capacity")
	}
	return m
}

func TestUpstreamSingles(t *testing.T) {
	long(t)
	measure(t, UpstreamScheduler(), Load{Pods: 5000})
}

func TestUpstreamSinglesAtARate(t *testing.T) {
	long(t)
	measure(t, UpstreamScheduler(), Load{Pods: 2000, PerSecond: 100})
}

func TestUpstreamBacklog(t *testing.T) {
	long(t)
	measure(t, UpstreamScheduler(), Load{Pods: 5000, Backlog: true})
}

// TestFakeClient is quick enough to run always at a tenth of the size.
func TestFakeClient(t *testing.T) {
	setting, load := farm, Load{Pods: 5000}
	if os.Getenv("MUSTER_FULL") != "1" {
		setting.Nodes, load.Pods = 100, 500
	}
	d, err := MeasureFake(setting, load, "kube-scheduler", "default-scheduler", UpstreamOnFake)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(d)
	if d.Bound != load.Pods || d.OvercommittedNodes+d.MovedPods > 0 {
		t.Error("not every pod was bound once and within capacity")
	}
}

func TestUpstreamGangs(t *testing.T) {
	long(t)
	measure(t, UpstreamGangs(), Load{Gangs: GangSizes(5000, 64, 1)})
}

func TestVolcanoGangs(t *testing.T) {
	long(t)
	ctx, cancel := testContext(t)
	defer cancel()
	components, err := BuildVolcano(ctx)
	if err != nil {
		t.Skipf("Volcano cannot be built on this machine: %v", err)
	}
	measure(t, VolcanoGangs(components), Load{Gangs: GangSizes(5000, 64, 1)})
}
