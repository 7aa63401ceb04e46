package filter

import (
	"slices"
	"testing"

	fwk "k8s.io/kube-scheduler/framework"

	"github.com/musterdl/muster/run/kube/filter/filtertest"
)

// Every constraint of the table, three ways: the upstream scheduler, our node set, our last check.
func TestEveryConstraintIsUpstreams(t *testing.T) {
	for _, c := range filtertest.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			h, _ := hostOf(t, c.Objects...)
			u := upstreamOf(t, c.Objects...)
			theirs, fit := u.schedule(t, c.Pod)
			if !slices.Equal(theirs, c.Allowed) {
				t.Fatalf("upstream allows %v, the table says %v", theirs, c.Allowed)
			}
			open := c.Open
			if open == nil {
				open = c.Allowed
			}
			set, err := h.Nodes(t.Context(), c.Pod)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(set.Allowed, open) {
				t.Errorf("Nodes allows %v, want %v: %s", set.Allowed, open, set.Words())
			}
			if fit != nil && c.Open == nil && set.Words() != fit.Error() {
				t.Errorf("Nodes says\n%s\nupstream says\n%s", set.Words(), fit.Error())
			}
			for _, node := range h.names {
				refusal, err := h.Check(t.Context(), []Placed{{Pod: c.Pod, Node: node}})
				if err != nil {
					t.Fatal(err)
				}
				if allowed := slices.Contains(theirs, node); allowed != (refusal == nil) {
					t.Errorf("Check on %s: %v, upstream allows: %v", node, refusal, allowed)
				}
				if fit == nil || refusal == nil {
					continue
				}
				status := fit.Diagnosis.NodeToStatus.Get(node)
				if want := verdictOf(status).reasons; !slices.Equal(refusal.Reasons, want) {
					t.Errorf("Check on %s: reasons %q, upstream's %q", node, refusal.Reasons, want)
				}
				crowded := status.Code() == fwk.Unschedulable
				if c.Open == nil && slices.Contains(set.Crowded, node) != crowded {
					t.Errorf("crowded nodes are %v, upstream says of %s: %v", set.Crowded, node, status.Code())
				}
			}
		})
	}
}
