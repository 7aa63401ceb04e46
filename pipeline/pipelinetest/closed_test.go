package pipelinetest_test

import (
	"testing"

	"github.com/musterdl/muster/pipeline/pipelinetest"
	"github.com/musterdl/muster/strategies/pipeline/gpipe"
)

// TestRange: drawn cases are those of their seed, GPipe is idle in each for (p-1)T, and a range
// notices what is not as expected.
func TestRange(t *testing.T) {
	var first []pipelinetest.Case
	pipelinetest.Draw(3, 20, func(c pipelinetest.Case) { first = append(first, c) })
	r := pipelinetest.Range{}
	pipelinetest.Draw(3, 20, func(c pipelinetest.Case) {
		if c != first[0] || c.Ranks < 2 || c.Microbatches < 2*c.Ranks {
			t.Errorf("%+v, before %+v", c, first[0])
		}
		first = first[1:]
		r.Ranks(c, gpipe.Ordering{}, func(int) int { return c.Microbatches + 1 })
	})
	if r["idle_least"] != 1 || r["idle_most"] != 1 || r["kept_most"] >= 1 || r["kept_least"] >= r["kept_most"] {
		t.Error(r)
	}
}
