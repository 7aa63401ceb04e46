package snapshot

import (
	"archive/zip"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/experiment/trace"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/store"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/report"
	"github.com/musterdl/muster/run/simulated"
)

// restart is what a resumed job loses in the histories of these tests.
const restart = 30 * unit.Second

// lived is a history that a simulation made, written as a control plane writes its own.
type lived struct {
	batches []store.Batch
	result  report.Result
}

// history calls each with every batch.
func (l *lived) history(each func(store.Batch) error) error {
	for _, b := range l.batches {
		if err := each(b); err != nil {
			return err
		}
	}
	return nil
}

// past says what kind of history live makes.
type past struct {
	trace    string
	strategy string // as a plane journals it
	jobs     int
	nodes    int
	perNode  int     // devices; 4 if zero
	load     float64 // 1.1 if zero
	until    unit.Time
	breaks   simulated.Breaks
	start    unit.Time      // of the first batch
	first    []engine.Event // in it
	// mark changes a job before it is submitted, to give it names to look for.
	mark func(i int, j *workload.Job)
}

// marked gives the jobs of a source names.
type marked struct {
	source trace.Reader
	mark   func(i int, j *workload.Job)
	start  unit.Time
	n      int
}

func (m *marked) Next() (workload.Job, workload.Truth, error) {
	j, t, err := m.source.Next()
	j.Submit += m.start
	if err == nil && m.mark != nil {
		m.mark(m.n, &j)
		m.n++
	}
	return j, t, err
}

// live simulates a history.
func (p past) live(t testing.TB) *lived {
	t.Helper()
	c := cluster.Uniform("lab", p.nodes, cmp.Or(p.perNode, 4), cluster.Model{Name: "gpu", Memory: 32 << 10, Speed: 1}, 16)
	source, err := trace.Open(p.trace, trace.Options{Seed: 1, Limit: p.jobs, Devices: len(c.Devices), Load: cmp.Or(p.load, 1.1)})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	composition, err := catalogue.Parse("test", p.strategy)
	if err != nil {
		t.Fatal(err)
	}
	built, err := composition.Build(catalogue.Env{Seed: 1}, true)
	if err != nil {
		t.Fatal(err)
	}
	setting, err := json.Marshal(plane.Setting{Strategy: p.strategy, Seed: 1, Policy: engine.DefaultPolicy(), Cluster: c})
	if err != nil {
		t.Fatal(err)
	}
	first := []engine.Event{{Kind: engine.Rebuilt, Setting: setting}}
	l := &lived{}
	var from *plan.State
	if p.start != 0 {
		from = plan.NewState(c)
		from.Now = p.start
	}
	l.result, err = simulated.Run(t.Context(), simulated.Config{Cluster: c, Beginning: simulated.Beginning{From: from, First: p.first}, Jobs: &marked{source: trace.WithSaving(source, trace.Saving{}, 1), mark: p.mark, start: p.start}, Scheduler: built.Scheduler,
		Policy: engine.DefaultPolicy(), TellTruth: built.TellTruth, Prices: simulated.Prices{Restart: restart}, Until: p.until, Breaks: p.breaks,
		Hooks: simulated.Hooks{Step: func(at unit.Time, events []engine.Event, out *engine.Out, v plan.View) {
			if len(events) == 0 {
				events = []engine.Event{{Kind: engine.Tick}}
			}
			b := record(t, at, append(first, events...), out, v)
			first = nil
			b.Seq = store.Seq(len(l.batches) + 1)
			l.batches = append(l.batches, b)
		}}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// record writes a batch as package plane does.
func record(t testing.TB, at unit.Time, events []engine.Event, out *engine.Out, v plan.View) (b store.Batch) {
	t.Helper()
	add := func(list *[]store.Record, kind string, value any) {
		data, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		*list = append(*list, store.Record{Kind: kind, At: at, Data: data})
	}
	for i := range events {
		add(&b.Events, events[i].Kind.String(), &events[i])
	}
	if c := out.Commit; c != nil {
		b.Commits = append(b.Commits, store.Record{Kind: "commit", At: at, Data: c.AppendJSON(nil, v)})
		if len(c.Notes) > 0 {
			add(&b.Commits, "notes", c.Notes)
		}
	}
	if len(out.Asides) > 0 {
		add(&b.Commits, "asides", out.Asides)
	}
	return b
}

// saved writes a snapshot of a history into a file.
func saved(t testing.TB, l *lived, o Options) (string, Manifest) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "snapshot.zip")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Save(f, l.history, o)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return name, m
}

func opened(t testing.TB, name string) *File {
	t.Helper()
	f, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// contents unpacks all files of a snapshot.
func contents(t testing.TB, f *File) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for _, entry := range f.zip.File {
		in, err := entry.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(in)
		if err := errors.Join(err, in.Close()); err != nil {
			t.Fatal(err)
		}
		all[entry.Name] = data
	}
	return all
}

// verified decides a state directory's journal again.
func verified(dir string) (plane.Verdict, error) {
	journal, err := store.Open(filepath.Join(dir, "journal"), store.Options{})
	if err != nil {
		return plane.Verdict{}, err
	}
	report, err := journal.Verify()
	if err == nil && !report.Intact() {
		err = fmt.Errorf("the journal is not intact: %s", report)
	}
	var found plane.Verdict
	if err == nil {
		found, err = plane.Verify(journal)
	}
	if err == nil && found.Differs != 0 {
		err = fmt.Errorf("batch %d differs: %s, %s", found.Differs, found.Recorded, found.Decided)
	}
	return found, errors.Join(err, journal.Close())
}

// sameBatches compares batches without their keys.
func sameBatches(a, b []store.Batch) error {
	if len(a) != len(b) {
		return fmt.Errorf("%d batches, expected %d", len(b), len(a))
	}
	for i := range a {
		for k, pair := range [][2][]store.Record{{a[i].Events, b[i].Events}, {a[i].Commits, b[i].Commits}} {
			if len(pair[0]) != len(pair[1]) {
				return fmt.Errorf("batch %d, list %d: %d records, expected %d", i+1, k, len(pair[1]), len(pair[0]))
			}
			for r, x := range pair[0] {
				if y := pair[1][r]; x.Kind != y.Kind || x.At != y.At || !bytes.Equal(x.Data, y.Data) {
					return fmt.Errorf("batch %d: %s at %d %q, expected %s at %d %q", i+1, y.Kind, y.At, y.Data, x.Kind, x.At, x.Data)
				}
			}
		}
	}
	return nil
}

// rewritten is a file with nothing in it but a manifest.
func rewritten(t testing.TB, m Manifest) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "manifest.zip")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	s := saver{zip: zip.NewWriter(f)}
	err = s.file(manifestName, func(w io.Writer) error { return json.NewEncoder(w).Encode(m) })
	if err := errors.Join(err, s.zip.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return name
}

// walkAny replaces the strings below a pointer.
func walkAny(n *names, v any) { n.walk(reflect.ValueOf(v), "") }

// cut is a history's first batches with one more behind them, in which other events
// happen, decided by who decided the others.
func (l *lived) cut(t testing.TB, batches int, happens func(v plan.View) []engine.Event) *lived {
	t.Helper()
	var e engine.Event
	if err := json.Unmarshal(l.batches[0].Events[0].Data, &e); err != nil {
		t.Fatal(err)
	}
	setting, err := plane.ReadSetting(e.Setting)
	if err != nil {
		t.Fatal(err)
	}
	composition, err := catalogue.Parse("test", setting.Strategy)
	if err != nil {
		t.Fatal(err)
	}
	built, err := composition.Build(catalogue.Env{Seed: setting.Seed}, true)
	if err != nil {
		t.Fatal(err)
	}
	again := engine.New(setting.Cluster, built.Scheduler, setting.Policy)
	cut := &lived{batches: l.batches[:batches:batches]}
	var at unit.Time
	for _, b := range cut.batches {
		var now []engine.Event
		for _, r := range b.Events {
			var e engine.Event
			if err := json.Unmarshal(r.Data, &e); err != nil {
				t.Fatal(err)
			}
			now, at = append(now, e), r.At
		}
		again.Step(at, now)
	}
	at = at.Add(unit.Minute)
	events := happens(again.View())
	out := again.Step(at, events)
	b := record(t, at, events, &out, again.View())
	b.Seq = store.Seq(batches + 1)
	cut.batches = append(cut.batches, b)
	return cut
}

// cluster1 is one node with one device.
func cluster1() *cluster.Cluster {
	return cluster.Uniform("lab", 1, 1, cluster.Model{Name: "gpu", Memory: 32 << 10, Speed: 1}, 16)
}
