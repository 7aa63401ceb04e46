package plan_test

import (
	"testing"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/plan"
)

// TestFailureWords: a failure is told with the worker and the node, as far as they are known,
// and to others without what is run.
func TestFailureWords(t *testing.T) {
	v := plan.NewState(cluster.Uniform("lab", 2, 1, cluster.Model{Name: "gpu", Memory: 1024, Speed: 1}, 1)).View()
	for _, c := range []struct {
		failure     plan.Failure
		all, veiled string
	}{
		{plan.Failure{Rank: 3, Node: 1, Code: 7, Why: "exit code 7"}, "exit code 7 (rank 3 on node1)", "exit code 7 (rank 3 on node1)"},
		{plan.Failure{Code: 127, Why: "no such program: x"}, "no such program: x (rank 0 on node0)", "exit code 127 (rank 0 on node0)"},
		{plan.Failure{Signal: "SIGKILL", Why: "ended by SIGKILL"}, "ended by SIGKILL (rank 0 on node0)", "ended by SIGKILL (rank 0 on node0)"},
		{plan.Failure{Rank: -1, Why: "no port is free"}, "no port is free (on node0)", "it could not be run to its end (on node0)"},
		{plan.Failure{Rank: -1, Node: plan.None, Why: "pod a-0 failed"}, "pod a-0 failed", "it could not be run to its end"},
		{plan.Failure{Class: plan.MemoryFailure, Code: 1, Why: "out of memory: exit code 1"}, "out of memory: exit code 1 (rank 0 on node0)", "out of memory: exit code 1 (rank 0 on node0)"},
	} {
		if all, veiled := c.failure.Words(v), c.failure.Veiled().Words(v); all != c.all || veiled != c.veiled {
			t.Errorf("%q and %q, expected %q and %q", all, veiled, c.all, c.veiled)
		}
	}
}

// One of something is told in the singular.
func TestReasonsCount(t *testing.T) {
	v := plan.NewState(cluster.Uniform("lab", 1, 1, cluster.Model{Name: "gpu", Memory: 1024, Speed: 1}, 1)).View()
	for words, r := range map[string]plan.Reason{
		"started in room that 1 lower-ranked run gave up":                       {Code: plan.TookRoomOf, A: 1},
		"started in room that 2 lower-ranked runs gave up":                      {Code: plan.TookRoomOf, A: 2},
		"held after 1 failure of its own; look at its log, then release it":     {Code: plan.CrashLoop, A: 1},
		"3 workers of it would stand somewhere that is not there or may not be": {Code: plan.Impossible, A: 3},
	} {
		if got := r.Words(v); got != words {
			t.Errorf("%q, want %q", got, words)
		}
	}
}
