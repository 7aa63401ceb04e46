package plane

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/experiment/trace"
	"github.com/musterdl/muster/internal/store"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/run/simulated/world"
)

// TestSimulatedHistory: the events of a simulation, written as a live control plane
// writes its own, are decided again by the code that verifies live journals: the
// commits are the simulator's, byte for byte. And they are folded into its state.
func TestSimulatedHistory(t *testing.T) {
	jobs := 160
	if os.Getenv("MUSTER_LONG") != "" {
		jobs = 480
	}
	for _, strategy := range []string{"fifo", "tiresias", "srtf"} {
		t.Run(strategy, func(t *testing.T) {
			w := newBench(t, t.TempDir(), strategy)
			w.close()
			w.open(t.TempDir()) // a journal without a live start
			defer w.close()
			w.config.Cluster = devices(4, 4)
			result := w.simulate(t, jobs)
			hash := sha256.New()
			err := w.journal.Replay(1, func(b store.Batch) error {
				for _, r := range b.Commits {
					if r.Kind == recordCommit {
						hash.Write(r.Data)
					}
				}
				return nil
			})
			if got := hex.EncodeToString(hash.Sum(nil)); err != nil || got != result.hash {
				t.Fatalf("the journal holds commits of hash %s, the simulator made %s, %v", got, result.hash, err)
			}
			found := w.verify()
			if found.Commits != result.commits || found.Commits < int64(jobs/2) {
				t.Errorf("%d commits were decided again, the simulator made %d", found.Commits, result.commits)
			}
			if fresh := w.rebuilt(); table(fresh.engine.View()) != result.table {
				t.Error("folded from the journal the state is another than the simulator's")
			}
			t.Logf("%d batches, %d commits, hash %.12s: decided again the same", found.Batches, found.Commits, result.hash)
		})
	}
}

type simulation struct {
	commits int64
	hash    string
	table   string
}

// table lists all jobs and runs.
func table(v plan.View) string {
	var b strings.Builder
	for id := range plan.JobID(v.Jobs()) {
		fmt.Fprintf(&b, "%s %+v\n", v.Name(id), v.Job(id))
	}
	for id := range plan.RunID(v.RunSlots()) {
		fmt.Fprintf(&b, "%+v\n", v.Run(id))
	}
	return b.String()
}

// simulate runs jobs of a generator against the simulated world, and journals what the
// engine is fed and makes of it.
func (w *bench) simulate(t *testing.T, jobs int) simulation {
	t.Helper()
	source, err := trace.Open("gen:rw-a", trace.Options{Seed: 1, Limit: jobs, Devices: len(w.config.Cluster.Devices), Load: 1.2})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	built, err := w.config.Strategy.Build(catalogue.Env{Seed: w.config.Seed}, true)
	if err != nil {
		t.Fatal(err)
	}
	w.config.Journal = w.journal
	setting, err := (&Plane{config: w.config}).setting()
	if err != nil {
		t.Fatal(err)
	}
	first := []engine.Event{{Kind: engine.Rebuilt, Setting: setting}}
	var last plan.View
	r, err := simulated.Run(t.Context(), simulated.Config{Cluster: w.config.Cluster, Jobs: trace.WithSaving(source, trace.Saving{}, 1), Scheduler: built.Scheduler, Policy: w.config.Policy,
		TellTruth: built.TellTruth, Prices: simulated.Prices{Restart: 30 * unit.Second}, World: world.Config{Seed: 1},
		Breaks: simulated.Breaks{Seed: 1, NodeEvery: 100 * unit.Hour, NodeFor: unit.Hour},
		Hooks: simulated.Hooks{Step: func(at unit.Time, events []engine.Event, out *engine.Out, v plan.View) {
			if len(events) == 0 {
				// Time alone may change what is decided later, so a live plane writes it too.
				events = []engine.Event{{Kind: engine.Tick}}
			}
			b, err := encodeBatch(at, append(first, events...), out, v)
			first, last = nil, v
			if err == nil {
				_, err = w.journal.Append(b)
			}
			if err != nil {
				t.Fatal(err)
			}
		}}})
	if err != nil {
		t.Fatal(err)
	}
	return simulation{commits: r.Commits, hash: r.DecisionHash, table: table(last)}
}
