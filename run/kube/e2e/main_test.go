// Package e2e runs muster-kube as a process of its own against a real API server with
// its etcd, the controller manager, the JobSet controller and nodes that kwok plays,
// under the very rights that the manifests give it.
//
// The scenarios share a control plane, one after the other; each has a namespace, a
// scheduler name and nodes of its own. An observer watches the pods during all of them:
// no node is ever over-committed, no pod moves, and no gang has more members bound than
// it has. Without MUSTER_LONG=1 only the scenarios of the objects and of why run.
package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// built are the programs under test, made once for all tests where one needs them.
var built struct {
	once        sync.Once
	dir         string
	kube, plain string // muster-kube and muster
	err         error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// programs builds muster-kube and muster.
func programs(t *testing.T) (kube, plain string) {
	t.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "muster-e2e-"); built.err != nil {
			return
		}
		built.kube, built.plain = filepath.Join(built.dir, "muster-kube"), filepath.Join(built.dir, "muster")
		for _, b := range []struct{ dir, pkg, out string }{{"..", "./cmd/muster-kube", built.kube}, {"../../..", "./cmd/muster", built.plain}} {
			cmd := exec.Command("go", "build", "-o", b.out, b.pkg)
			cmd.Dir = b.dir
			if out, err := cmd.CombinedOutput(); err != nil {
				built.err = fmt.Errorf("building %s: %w\n%s", b.pkg, err, out)
				return
			}
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.kube, built.plain
}

// scenario is one thing that must hold.
type scenario struct {
	name string
	long bool
	play func(*site)
	site options
}

func TestEndToEnd(t *testing.T) {
	t.Parallel()
	play(t, []scenario{
		{"Objects", false, (*site).objects, options{nodes: 6, claims: 2}},
		{"Why", false, (*site).why, options{nodes: 2}},
		{"Deadline", true, (*site).deadline, options{nodes: 2, strategy: "fifo+feasible"}},
		{"Bad", true, (*site).bad, options{nodes: 2}},
		{"Preempted", true, (*site).preempted, options{nodes: 1, strategy: "srtf"}},
		{"Killed", true, (*site).killed, options{nodes: 50}},
		{"Leaders", true, (*site).leaders, options{nodes: 20}},
		{"NodeLoss", true, (*site).nodeLoss, options{nodes: 8}},
		{"Outage", true, (*site).outage, options{nodes: 20, outage: true}}, // controllers take a minute to find back
	})
}

// TestElastic has a control plane of its own: it waits most of its time, as running
// jobs are looked at once a minute.
func TestElastic(t *testing.T) {
	t.Parallel()
	long(t)
	play(t, []scenario{{"Grows", true, (*site).elastic, options{nodes: 2, strategy: "fifo+equal-share"}}})
}

func play(t *testing.T, scenarios []scenario) {
	p := newPlane(t)
	for _, scenario := range scenarios {
		t.Run(scenario.name, func(t *testing.T) {
			if scenario.long {
				long(t)
			}
			scenario.play(p.open(t, scenario.name, scenario.site))
		})
	}
}

func long(t *testing.T) {
	t.Helper()
	if os.Getenv("MUSTER_LONG") != "1" {
		t.Skip("takes up to some minutes against a real API server: set MUSTER_LONG=1")
	}
}
