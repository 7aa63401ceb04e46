package driver

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterdl/muster/run/kube/apitest"
)

// TestModels: a job that names device models runs on no others, and waits where there
// are none.
func TestModels(t *testing.T) {
	w := apitest.New(apitest.Options{T: t})
	w.AddNodes(1, 8)
	w.AddNodes(1, 8, func(n *corev1.Node) { n.Labels["nvidia.com/gpu.product"] = "NVIDIA-H100-80GB-HBM3" })
	s := newStage(t, w, composed(t, "fifo"))
	for _, c := range []struct{ name, models, node string }{
		{"exact", "NVIDIA-H100-80GB-HBM3", "node-0001"}, {"part", "h100", "node-0001"}, {"either", "T4,A100", "node-0000"}, {"none", "B200", ""},
	} {
		w.AddJob(c.name, 1, 2, time.Hour, apitest.Annotated("muster.dev/devices", c.models))
		s.until(w.Since() + time.Minute)
		for _, p := range w.Pods() {
			if p.Labels["job-name"] == c.name && p.Spec.NodeName != c.node {
				t.Errorf("%s: on node %q, not %q", c.name, p.Spec.NodeName, c.node)
			}
		}
	}
	if words := w.Words(); len(words) == 0 || words[len(words)-1].Reason != "NothingOffersIt" {
		t.Errorf("the words are %v", words)
	}
}
