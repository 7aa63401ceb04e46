package driver

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/musterdl/muster/run/kube/apitest"
)

// TestChaos plays random work while calls conflict, hang and lose their answers,
// watches have gaps, the API server is away, nodes are lost, and the scheduler is
// killed and begun anew from objects: nothing is bound twice or over-committed, no
// gang is lost, and all come to their ends.
func TestChaos(t *testing.T) {
	seeds := uint64(12)
	if os.Getenv("MUSTER_LONG") != "" {
		seeds = 150
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { chaos(t, seed+1) })
	}
}

func chaos(t *testing.T, seed uint64) {
	const length = 2 * time.Hour
	r := rand.New(rand.NewPCG(seed, 7))
	w := apitest.New(apitest.Options{T: t})
	nodes := []string{}
	for _, n := range w.AddNodes(6, 8) {
		nodes = append(nodes, n.Name)
	}
	strategies := []string{"fifo", "srtf", "tiresias", "fifo+easy", "fifo+equal-share"}
	s := newStage(t, w, composed(t, strategies[seed%uint64(len(strategies))]))
	w.Inject(apitest.Chaos(seed, length, nodes))
	made := 0
	for minute := time.Duration(1); minute <= 120; minute++ {
		if minute < 60 && r.IntN(3) == 0 {
			work := time.Duration(1+r.IntN(20)) * time.Minute
			name := fmt.Sprintf("job-%02d", made)
			edits := []func(*batchv1.Job){apitest.Annotated("muster.dev/work", fmt.Sprintf("%dm", work/time.Minute)), apitest.Keeping(time.Second)}
			if r.IntN(2) == 0 {
				edits = append(edits, apitest.Annotated("muster.dev/checkpoint", "on-request,save=1s"))
			}
			if r.IntN(3) == 0 {
				edits = append(edits, apitest.Annotated("muster.dev/elastic", "1-4"))
			}
			w.AddJob(name, int32(1+r.IntN(4)), int64(1+r.IntN(8)), work, edits...)
			made++
		}
		if r.IntN(10) == 0 {
			s.crash()
		}
		s.until(minute * time.Minute)
	}
	s.until(24 * time.Hour)
	for line := range strings.Lines(s.phases()) {
		if !strings.Contains(line, "finished") && !strings.Contains(line, "failed") && !strings.Contains(line, "cancelled") {
			t.Errorf("at the end: %s", line)
		}
	}
	if n := strings.Count(s.phases(), "\n"); n < made {
		t.Errorf("%d jobs are known, %d were made", n, made)
	}
	if !w.Settled() {
		t.Log(s.show())
		t.Errorf("waiting at the end: %v", w.Waiting())
	}
	longest := time.Duration(0)
	for _, p := range w.WerePartial() {
		if !p.Broken {
			longest = max(longest, p.For)
		}
	}
	t.Logf("%d jobs; the longest that a gang was partly bound is %v", made, longest)
}

func (s *stage) show() string {
	text := ""
	for _, e := range s.core.roster.gangs {
		if e.over || e.job < 0 {
			continue
		}
		g := e.gang.State(e.list())
		text += fmt.Sprintf("%s phase %v run %+v state %v needed %d members %d paused %v resuming %v suspended %v size %d ending %v leave %v\n", e.name, e.phase, e.run, g.Phase, g.Needed, len(g.Members), e.paused, e.resuming, e.gang.Suspended, e.gang.Size, e.gang.Ending, e.last.leave)
		for _, m := range e.pods {
			text += fmt.Sprintf("   %s node %q phase %v del %v notes %v leaving %v\n", m.pod.Name, m.pod.Spec.NodeName, m.pod.Status.Phase, m.pod.DeletionTimestamp, m.pod.Annotations["muster.dev/attempt"], m.leaving)
		}
	}
	return text
}
