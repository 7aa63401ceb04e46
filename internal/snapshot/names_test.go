package snapshot

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/store"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/workload"
)

// secretive gives jobs names and texts that can be searched for, all of which hold
// "zqxjvkwq", and returns them all.
func secretive(p *past) map[string]bool {
	used := map[string]bool{"zqxjvkwq": true}
	say := func(format string, args ...any) string {
		text := fmt.Sprintf(format, args...)
		used[text] = true
		return text
	}
	p.mark = func(i int, j *workload.Job) {
		j.Name = say("zqxjvkwq-job-%d", i)
		j.Tenant = say("zqxjvkwqlab/zqxjvkwqteam-%d", i%3)
		j.User = say("zqxjvkwquser-%d", i%5)
		j.Class = []string{"resnet50/64", say("zqxjvkwqmodel-%d", i%2)}[i%2]
		j.Command = []string{say("/zqxjvkwqhome/%d/train", i), say("--key=zqxjvkwq%d", i)}
		j.Dir, j.Env = say("/zqxjvkwqdata/%d", i), []string{say("ZQXJVKWQ=zqxjvkwq%d", i)}
		if i%7 == 3 {
			j.After = []string{fmt.Sprintf("zqxjvkwq-job-%d", i-1)}
		}
	}
	return used
}

// TestAnonymised: nothing of any name or text is left, in the lines or in the binary
// state, the history is decided again the same, and names that were equal still are.
func TestAnonymised(t *testing.T) {
	for _, strategy := range []string{"tiresias", "srtf+history", "name: zqxjvkwqsecret # zqxjvkwq\norder: srtf\nestimate: history\n"} {
		t.Run(strings.Fields(strategy)[0], func(t *testing.T) {
			p := busy(strategy)
			secretive(&p)
			l := p.live(t)
			name, _ := saved(t, l, Options{Anonymise: true})
			f := opened(t, name)
			for file, data := range contents(t, f) {
				if i := bytes.Index(bytes.ToLower(data), []byte("zqxjvkwq")); i >= 0 {
					t.Errorf("%s holds a name: %q", file, data[max(0, i-40):min(len(data), i+40)])
				}
			}
			dir := filepath.Join(t.TempDir(), "state")
			if err := Load(f, dir); err != nil {
				t.Fatal(err)
			}
			found, err := verified(dir)
			if err != nil {
				t.Fatal(err)
			}
			if found.Commits != l.result.Commits || found.Commits < 150 || f.Manifest.Commits != found.Commits {
				t.Errorf("%d commits were decided again, %d were made", found.Commits, l.result.Commits)
			}
			sameStructure(t, l, f)
		})
	}
}

// sameStructure compares what submissions say with the names taken out.
func sameStructure(t *testing.T, l *lived, f *File) {
	t.Helper()
	before, after := specs(t, l.history), specs(t, f.Each)
	if len(before) != len(after) {
		t.Fatalf("%d submissions, expected %d", len(after), len(before))
	}
	to, from := map[string]string{}, map[string]string{}
	same := func(a, b string) {
		t.Helper()
		if old, seen := to[a]; seen && old != b {
			t.Errorf("%q is called %q and %q", a, old, b)
		}
		if old, seen := from[b]; seen && old != a {
			t.Errorf("%q and %q are both called %q", a, old, b)
		}
		to[a], from[b] = b, a
	}
	for i := range before {
		a, b := before[i], after[i]
		same(a.Name, b.Name)
		same(a.Tenant, b.Tenant)
		same(a.User, b.User)
		same(a.Class, b.Class)
		for k := range a.After {
			same(a.After[k], b.After[k])
		}
		if !strings.HasPrefix(b.Name, "job-") || !strings.HasPrefix(b.User, "user-") || strings.Count(b.Tenant, "/") != 1 ||
			strings.HasPrefix(a.Class, "zqxjvkwq") == (a.Class == b.Class) {
			t.Errorf("%+v became %+v", a, b)
		}
		a.Name, a.Tenant, a.User, a.Class, a.After, a.Command, a.Dir, a.Env = b.Name, b.Tenant, b.User, b.Class, b.After, b.Command, b.Dir, b.Env
		if x, y := fmt.Sprintf("%+v", a), fmt.Sprintf("%+v", b); x != y {
			t.Errorf("more than names differ:\n%s\n%s", x, y)
		}
	}
}

func specs(t *testing.T, history History) (list []workload.Job) {
	t.Helper()
	err := history(func(b store.Batch) error {
		for _, r := range b.Events {
			var e engine.Event
			if err := json.Unmarshal(r.Data, &e); err != nil {
				return err
			}
			if e.Spec != nil {
				list = append(list, *e.Spec)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestAnonymisedAnyNames: whatever jobs and their owners are called, pseudonyms of others
// among it, deciding again stays the same and different names stay different.
func TestAnonymisedAnyNames(t *testing.T) {
	draws.Check(t, func(r *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.OneOf(rapid.SampledFrom([]string{"job-1", "job-2", "job-7", "user-1", "tenant-1", "text-3", "node0", "gpu"}),
			rapid.StringMatching(`[a-z]{1,8}`), rapid.StringN(1, 6, -1)), 10, 10, rapid.ID[string]).Draw(r, "names")
		n := newNames()
		seen := map[string]string{}
		for range 3 {
			for _, name := range names {
				e := engine.Event{Kind: engine.Submit, By: "x uid=1", Spec: &workload.Job{Name: name, User: name, Resources: workload.Resources{Models: []string{name}}}}
				if err := n.event(&e); err != nil {
					r.Fatal(err)
				}
				if e.Spec.Models[0] != name || e.Spec.Name != e.Spec.User {
					r.Fatalf("%q became %+v", name, e.Spec)
				}
				if old, ok := seen[name]; ok && old != e.Spec.Name {
					r.Fatalf("%q is called %q and %q", name, old, e.Spec.Name)
				}
				seen[name] = e.Spec.Name
			}
		}
		back := map[string]string{}
		for name, other := range seen {
			if back[other] != "" {
				r.Fatalf("%q and %q are both called %q", name, back[other], other)
			}
			back[other] = name
		}
	})
}

// TestTenantPaths: the queue above a tenant is still above it.
func TestTenantPaths(t *testing.T) {
	n := newNames()
	tree := queue.Tree{Queues: []queue.Queue{queue.Root(), {Name: "research", Weight: 1, Limit: []queue.Amount{{Model: "a100", Milli: 5}}}, {Name: "research/vision", Weight: 1}}}
	e := engine.Event{Kind: engine.Shares, Queues: &tree}
	job := engine.Event{Kind: engine.Submit, Spec: &workload.Job{Name: "research", Tenant: "research/vision/ana"}}
	for _, x := range []*engine.Event{&job, &e} {
		if err := n.event(x); err != nil {
			t.Fatal(err)
		}
	}
	if at := tree.Find(job.Spec.Tenant); at != 2 || tree.Queues[2].Name == "research/vision" || tree.Queues[1].Limit[0].Model != "a100" {
		t.Errorf("%q is in queue %d of %+v", job.Spec.Tenant, at, tree.Queues)
	}
}

// TestNewFieldsAreCovered: strings in fields, slices and maps that nobody listed are
// replaced, and bytes are dropped.
func TestNewFieldsAreCovered(t *testing.T) {
	e := engine.Event{Kind: engine.Answered, Answer: strategy.Answer{Asker: "solver", Reply: []byte(`{"job":"secret"}`)}, By: "secret uid=1 gid=1"}
	if err := newNames().event(&e); err != nil {
		t.Fatal(err)
	}
	if data, err := json.Marshal(&e); err != nil || bytes.Contains(data, []byte("secret")) || e.Asker != "solver" || e.By != "user-1" {
		t.Errorf("%s, %v", data, err)
	}
	type invented struct {
		Text  string
		Lists [][]string
		Map   map[string][]string
		Next  *invented
		Any   any
	}
	v := invented{Text: "secret", Lists: [][]string{{"secret", ""}}, Map: map[string][]string{"secret": {"other secret"}, "text-1": nil},
		Next: &invented{Text: "third secret"}, Any: "secret"}
	walkAny(newNames(), &v)
	if data, err := json.Marshal(&v); err != nil || bytes.Contains(data, []byte("secret")) || v.Lists[0][1] != "" ||
		v.Lists[0][0] != v.Text || len(v.Map) != 2 || v.Map[v.Text] == nil {
		t.Errorf("%s, %v", data, err)
	}
}

// TestStrategyText: a composition keeps what it says and loses its name and comments.
func TestStrategyText(t *testing.T) {
	text := "# for the secret project\nname: secret\norder: tiresias\noptions:\n  tiresias:\n    queues-device-s: [60, 200] # secret\n"
	out, err := newNames().strategy(text)
	if err != nil || strings.Contains(out, "secret") {
		t.Fatalf("%q, %v", out, err)
	}
	a, errA := catalogue.Parse("a", text)
	b, errB := catalogue.Parse("b", out)
	if errA != nil || errB != nil {
		t.Fatalf("it is not read: %v, %v", errA, errB)
	}
	if !maps.Equal(a.Choices, b.Choices) || b.Name != "strategy-1" {
		t.Errorf("%+v became %+v", a, b)
	}
}

// TestAnonymiseSaysWhatDiffers: a history that is decided otherwise is not passed off as
// one with other names.
func TestAnonymiseSaysWhatDiffers(t *testing.T) {
	l := past{trace: "gen:rw-a", strategy: "fifo", jobs: 20, nodes: 2}.live(t)
	for i := range l.batches {
		for k, r := range l.batches[i].Commits {
			if i > 5 && r.Kind == "commit" {
				l.batches[i].Commits[k].Data = bytes.Replace(r.Data, []byte(`"reason":"fits"`), []byte(`"reason":"moved"`), 1)
			}
		}
	}
	_, err := Save(&bytes.Buffer{}, l.history, Options{Anonymise: true})
	if err == nil || !strings.Contains(err.Error(), "is decided otherwise") {
		t.Errorf("%v", err)
	}
	var p plane.Past
	if _, err := p.Fold(l.batches[1]); err == nil {
		t.Error("a history can be begun at its second batch")
	}
}
