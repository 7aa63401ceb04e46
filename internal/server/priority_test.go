package server_test

import (
	"strings"
	"testing"

	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/workload"
)

// A priority is bounded by the queue, unless who asks administers it.
func TestPriorityIsBounded(t *testing.T) {
	w := share(t)
	fifty := int32(50)
	tree := queue.Flat("research", "ops")
	tree.Queues[1].MaxPriority = &fifty
	if _, err := w.as("olga").SetQueues(t.Context(), tree); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		who, tenant string
		priority    int32
		refused     string
	}{
		{"sue", "research/vision", 50, ""}, {"sue", "research/vision", 51, "above the 50 of its queue"}, {"sue", "research/vision", -5, ""},
		{"ada", "research/vision", 51, ""}, {"olga", "research", 2147483647, ""},
		{"fred", "ops", queue.DefaultMaxPriority, ""}, {"fred", "ops", queue.DefaultMaxPriority + 1, "above the 1000 of its queue"}, {"fay", "ops", 5000, ""},
	} {
		j := one("job-" + string(rune('a'+i)))
		j.Tenant, j.Priority = c.tenant, c.priority
		_, err := w.as(c.who).Submit(t.Context(), []workload.Job{j}, "")
		if c.refused == "" && err != nil || c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
			t.Errorf("%s asks for %d in %s: %v, expected %q", c.who, c.priority, c.tenant, err, c.refused)
		}
	}
}
