package driver

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterdl/muster/run/kube/apitest"
)

// TestLostObjects loses the ledger, or the records, of a scheduler that is killed, on
// nodes that joined out of the order of their names: nothing is over-committed, and all
// jobs come to their ends.
func TestLostObjects(t *testing.T) {
	for _, what := range []string{"ledger", "records"} {
		t.Run(what, func(t *testing.T) {
			w := apitest.New(apitest.Options{T: t})
			w.AddNodes(2, 8, func(n *corev1.Node) { n.Name = "z" + n.Name; n.Labels["kubernetes.io/hostname"] = n.Name })
			s := newStage(t, w, composed(t, "tiresias"))
			for i := range 3 {
				w.AddJob(fmt.Sprintf("a%d", i), 2, 4, time.Hour)
			}
			s.until(time.Minute)
			w.AddNodes(2, 8)
			s.until(2 * time.Minute)
			for i := range 3 {
				w.AddJob(fmt.Sprintf("b%d", i), 2, 4, time.Hour)
			}
			s.until(3 * time.Minute)
			ctx := context.Background()
			if what == "ledger" {
				l, _, err := w.GetLedger(ctx, "muster")
				if err != nil {
					t.Fatal(err)
				}
				l.Status.Exact = ""
				if _, err := w.PutLedger(ctx, &l); err != nil {
					t.Fatal(err)
				}
			} else {
				jobs, err := w.ListJobs(ctx)
				if err != nil {
					t.Fatal(err)
				}
				for _, j := range jobs {
					if err := w.DeleteJob(ctx, j.Namespace, j.Name); err != nil {
						t.Fatal(err)
					}
				}
			}
			s.crash()
			s.until(24 * time.Hour)
			if !w.Settled() {
				t.Errorf("waiting at the end: %v\n%s", w.Waiting(), s.show())
			}
		})
	}
}
