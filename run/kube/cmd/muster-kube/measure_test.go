package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/musterdl/muster/run/kube/deploy"
	"github.com/musterdl/muster/run/kube/gang"
	"github.com/musterdl/muster/run/kube/kubetest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// contender is muster-kube in a comparison.
func contender(t *testing.T, args ...string) kubetest.Contender {
	bin := filepath.Join(t.TempDir(), "muster-kube")
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("building muster-kube: %v\n%s", err, out)
	}
	return kubetest.Contender{Name: "muster", SchedulerName: "muster", Program: "muster-kube",
		Start: func(c *kubetest.Cluster, limits kubetest.ClientLimits) error {
			for _, crd := range deploy.CRDs() {
				c.Apply(string(crd))
			}
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			address := l.Addr().String()
			l.Close()
			all := append([]string{"--kubeconfig=" + c.Kubeconfig(), "--strategy=fifo", "--listen=" + address, "--data=" + t.TempDir(), "--profiling",
				"--kube-api-qps=" + strconv.Itoa(limits.QPS), "--kube-api-burst=" + strconv.Itoa(limits.Burst)}, args...)
			t.Log("profile at http://" + address + "/debug/pprof/profile")
			c.Run(kubetest.Program{Name: "muster-kube", Path: bin, Args: all})
			time.Sleep(4 * time.Second)
			return nil
		},
		Join: func(pod *corev1.Pod, g kubetest.Gang) {
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, gang.AnnotationGangSize, strconv.Itoa(g.Size))
			metav1.SetMetaDataLabel(&pod.ObjectMeta, gang.AnnotationGang, g.Name)
		}}
}

// farm is what all are measured on.
var farm = kubetest.Setting{Nodes: 1000, Node: kubetest.NodeTemplate{Devices: 8}, Limits: kubetest.ClientLimits{QPS: 5000, Burst: 5000}, Kwok: true}

// compare measures contenders one after the other with the same load.
func compare(t *testing.T, load kubetest.Load, contenders ...kubetest.Contender) (all []kubetest.Measured) {
	if os.Getenv("MUSTER_LONG") == "" {
		t.Skip("set MUSTER_LONG=1 to measure with a real API server")
	}
	for _, x := range contenders {
		t.Run(x.Name, func(t *testing.T) {
			m, err := farm.StartFor(t, x).Measure(x, load)
			if err != nil {
				t.Fatal(err)
			}
			t.Log(m)
			if m.OvercommittedNodes+m.MovedPods+m.PartialGangs > 0 {
				t.Error("over-committed nodes, moved pods or partial gangs")
			}
			all = append(all, m)
		})
	}
	if len(all) < len(contenders) {
		t.FailNow()
	}
	return all
}

// TestSingles measures Muster beside kube-scheduler on single pods, in one run, under
// equal client limits. All pods are there when the clock starts: else it is how fast
// they are made that is measured.
func TestSingles(t *testing.T) {
	all := compare(t, kubetest.Load{Pods: size(t), Backlog: true, Limit: 4 * time.Minute}, contender(t), kubetest.UpstreamScheduler())
	ours, theirs := all[0], all[1]
	if ours.Bound != ours.Pods {
		t.Errorf("%d of %d pods were bound", ours.Bound, ours.Pods)
	}
	if r := ours.BoundPerSecond / theirs.BoundPerSecond; r < 1.2 {
		t.Errorf("%.2f times kube-scheduler's pods per second, want 1.2", r)
	}
	if r := float64(ours.CPUPerPod()) / float64(theirs.CPUPerPod()); r > 1 {
		t.Errorf("%.2f times kube-scheduler's CPU per pod, want 1 at most", r)
	}
}

// TestGangs measures Muster beside gang schedulers: the one of Kubernetes 1.36, which is
// alpha there, and, with MUSTER_FULL=1, Volcano. All pods are there when the clock
// starts, as in TestSingles.
func TestGangs(t *testing.T) {
	peers := []kubetest.Contender{contender(t), kubetest.UpstreamGangs()}
	if os.Getenv("MUSTER_FULL") != "" {
		components, err := kubetest.BuildVolcano(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		peers = append(peers, kubetest.VolcanoGangs(components))
	}
	all := compare(t, kubetest.Load{Gangs: kubetest.GangSizes(size(t), 64, 1), Backlog: true, Limit: 5 * time.Minute}, peers...)
	for _, theirs := range all[1:] {
		if r := float64(all[0].Last) / float64(theirs.Last); r > .5 || all[0].WholeGangs != all[0].Gangs {
			t.Errorf("%d of %d gangs are whole; the last was bound after %.2f times as long as with %s, want half", all[0].WholeGangs, all[0].Gangs, r, theirs.Contender)
		}
	}
}

// size is how many pods are created.
func size(t *testing.T) int {
	text := os.Getenv("MUSTER_PODS")
	if text == "" {
		return 5000
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
