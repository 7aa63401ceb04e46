package reproduce

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/musterdl/muster/experiment/trace"
	"github.com/musterdl/muster/internal/rightstest"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// crowd is fifty jobs that come within two hours and ask for three times as much as sixty
// devices can do in that time.
type crowd struct {
	rng *rand.Rand
	n   int
	now unit.Time
}

// Next returns the next job.
func (c *crowd) Next() (workload.Job, workload.Truth, error) {
	if c.n++; c.n > 50 {
		return workload.Job{}, workload.Truth{}, io.EOF
	}
	c.now = c.now.Add(unit.Duration(c.rng.IntN(180)) * unit.Second)
	truth := workload.Truth{Duration: unit.Duration(600+c.rng.IntN(7200)) * unit.Second}
	j := workload.Job{Name: fmt.Sprint("j", c.n), Submit: c.now, Resources: workload.Resources{Gang: 1 << c.rng.IntN(4), Devices: 1, Share: unit.Whole}, Estimate: truth.Duration,
		Checkpoint: workload.Checkpoint{OnRequest: true, Load: 20 * unit.Second}}
	j.Tenant = []string{"a", "b"}[c.n%2]
	if c.rng.IntN(3) == 0 {
		j.Gang, j.Sizes = 2, []int32{1, 2, 4}
	}
	return j, truth, nil
}

// Close does nothing.
func (c *crowd) Close() error { return nil }

// TestLimitHoldsUnderEveryDecider: where an operator says that 30 of 60 devices may be
// used, no strategy ever uses more, whether it ranks jobs or decides for all at once.
func TestLimitHoldsUnderEveryDecider(t *testing.T) {
	tree := filepath.Join(t.TempDir(), "half.yaml")
	if err := os.WriteFile(tree, []byte("limit: 30\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range rightstest.Deciders() {
		t.Run(name, func(t *testing.T) {
			s := Defaults()
			s.Strategy, s.Queues = searching(name), tree
			s.Jobs = func(uint64) (trace.Reader, error) { return &crowd{rng: rand.New(rand.NewPCG(1, 0))}, nil }
			most := int64(0)
			s.Commit = func(v plan.View, _ *plan.Commit) {
				most = max(most, rightstest.Held(v, func(plan.JobID) bool { return true }))
			}
			if _, err := Simulate(s); err != nil {
				t.Fatal(err)
			}
			if most > 30_000 {
				t.Errorf("%d thousandths of a device were held under a limit of 30 devices", most)
			}
			if most < 20_000 {
				t.Errorf("no more than %d thousandths of a device were ever held: the limit was not put to the test", most)
			}
		})
	}
}

// searching is the composition of a decider; one that searches for long searches briefly.
func searching(name string) string {
	if name == "pollux" && os.Getenv("MUSTER_LONG") != "1" {
		return "joint: pollux\noptions: {pollux: {generations: 10}}\n"
	}
	return name
}

// TestNobodyEndsInVain: on whatever cluster a crowd comes, with and without a limit, every
// commit of every decider keeps the law that nobody's run is ended in vain.
func TestNobodyEndsInVain(t *testing.T) {
	tree := filepath.Join(t.TempDir(), "two.yaml")
	if err := os.WriteFile(tree, []byte("queues: [{name: a, guarantee: 20}, {name: b, guarantee: 10, limit: 40}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range rightstest.Deciders() {
		for _, queues := range []string{"", tree} {
			t.Run(name+" "+filepath.Base(queues), func(t *testing.T) {
				s := Defaults()
				s.Strategy, s.Queues, s.Check = searching(name), queues, true
				s.Jobs = func(uint64) (trace.Reader, error) { return &crowd{rng: rand.New(rand.NewPCG(1, 0))}, nil }
				if _, err := Simulate(s); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
