package spec

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
)

func lab(t testing.TB) *cluster.Cluster {
	t.Helper()
	c, err := Cluster("lab.yaml", example(t, "cluster"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestQueueMessages compares the text of what users see, word by word.
func TestQueueMessages(t *testing.T) {
	datadriven.RunTest(t, "testdata/bad-queues.txt", func(t *testing.T, c *datadriven.TestData) string {
		var err error
		switch c.Cmd {
		case "queues":
			_, err = Queues("f.yaml", []byte(c.Input), nil)
		case "queues-for-lab":
			_, err = Queues("f.yaml", []byte(c.Input), lab(t))
		default:
			c.Fatalf(t, "unknown command %s", c.Cmd)
		}
		if err == nil {
			return "no problem"
		}
		return strings.ReplaceAll(err.Error(), "f.yaml:", "") + "\n"
	})
}

func TestExampleQueues(t *testing.T) {
	got, err := Queues("queues.yaml", example(t, "queues"), lab(t))
	if err != nil {
		t.Fatal(err)
	}
	v := func(model string, devices float64) queue.Amount {
		return queue.Amount{Model: model, Milli: int64(devices * 1000)}
	}
	fifty := int32(50)
	just := func(devices float64) []queue.Amount { return []queue.Amount{v("", devices)} }
	want := queue.Tree{HalfLife: 7 * unit.Day, Protect: 10 * unit.Minute, ProtectRank: 10 * unit.Minute, Disruptions: 3, Queues: []queue.Queue{
		{Parent: -1, Weight: 1000, Limit: just(256)},
		{Name: "research", Weight: 2000, Priority: 1, Guarantee: []queue.Amount{v("V100", 64), v("A100", 16)}, Limit: just(128), Keep: just(8),
			Borrow: just(32), UserLimit: just(16), MaxRun: 3 * unit.Day, Preempt: true, MaxPriority: &fifty},
		{Name: "research/vision", Parent: 1, Weight: 1000, Guarantee: []queue.Amount{v("V100", 48), v("A100", 4)}},
		{Name: "research/speech", Parent: 1, Weight: 500},
		{Name: "service", Weight: 1000, Guarantee: []queue.Amount{v("A100", 4.5), v("", 40)}},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	text := string(example(t, "queues"))
	for _, typ := range []reflect.Type{reflect.TypeFor[queuesFile](), reflect.TypeFor[queueFile]()} {
		for _, f := range fieldsOf(typ) {
			if !regexp.MustCompile(`\b` + f.name + ":").MatchString(text) {
				t.Errorf("the example lacks %s of %s", f.name, typ)
			}
		}
	}
}

func TestFormatQueuesText(t *testing.T) {
	tree, err := Queues("queues.yaml", example(t, "queues"), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := `protect: 10m
disruptions: 3
limit: 256
queues:
  - name: research
    weight: 2
    priority: 1
    guarantee: {V100: 64, A100: 16}
    limit: 128
    keep: 8
    borrow: 32
    user_limit: 16
    max_run: 72h
    preempt: true
    max_priority: 50
    queues:
      - name: vision
        guarantee: {V100: 48, A100: 4}
      - name: speech
        weight: 500m
  - name: service
    guarantee: {A100: 4500m, all: 40}
`
	if got := string(FormatQueues(tree)); got != want {
		t.Errorf("got\n%s", got)
	}
	plain := queue.Flat()
	if got := string(FormatQueues(plain)); got != "queues: []\n" {
		t.Errorf("a tree of defaults is %q", got)
	}
	if got, err := Queues("f.yaml", []byte("queues: []\n"), nil); err != nil || !reflect.DeepEqual(got, plain) {
		t.Errorf("no queues: %+v, %v", got, err)
	}
}

// anyTree draws a legal tree in the order of a file: guarantees are dealt out from
// the top, limits are at least as much.
func anyTree(t *rapid.T) queue.Tree {
	word := rapid.OneOf(rapid.StringMatching(`[A-Za-z0-9_@][A-Za-z0-9_@.-]{0,4}`), rapid.SampledFrom([]string{"null", "true", "no", "1e3", "007", "all"}))
	span := func(what string) unit.Duration {
		return unit.Duration(rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, int64(3650*unit.Day)), rapid.Map(rapid.Int64Range(0, 100), func(x int64) int64 { return x * int64(unit.Hour) })).Draw(t, what))
	}
	some := func(what string, least func(model string) int64) (all []queue.Amount) {
		for _, model := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"", "V100", "A100", "null", "7"}), 0, 3, rapid.ID).Draw(t, what) {
			all = append(all, queue.Amount{Model: model, Milli: least(model) + rapid.Int64Range(0, 1e6).Draw(t, "amount")})
		}
		return all
	}
	none := func(string) int64 { return 0 }
	tree := queue.Tree{HalfLife: span("half-life"), Protect: span("protect"), Disruptions: rapid.Int32Range(0, 1000).Draw(t, "disruptions"), Queues: []queue.Queue{queue.Root()}}
	if tree.Protect != queue.DefaultProtect {
		tree.ProtectRank = tree.Protect // it is written
	}
	root := &tree.Queues[0]
	root.Limit, root.UserLimit, root.MaxRun, root.Preempt = some("limit", func(string) int64 { return 1e9 }), some("user limit", none), span("longest"), rapid.Bool().Draw(t, "preempt")
	var below func(parent int32, above string, room int64, depth int)
	below = func(parent int32, above string, room int64, depth int) {
		if depth > 4 {
			return
		}
		for _, name := range rapid.SliceOfNDistinct(word, 0, 3, rapid.ID).Draw(t, "names") {
			q := queue.Queue{Name: above + name, Parent: parent, Weight: rapid.Int32Range(1, 1e9).Draw(t, "weight"), Priority: rapid.Int32().Draw(t, "priority"),
				Borrow: some("borrow", none), UserLimit: some("user limit", none), MaxRun: span("longest"), Preempt: rapid.Bool().Draw(t, "preempt")}
			q.Limit = some("limit", func(string) int64 { return room })
			if rapid.Bool().Draw(t, "bounds priorities") {
				most := rapid.Int32().Draw(t, "max priority")
				q.MaxPriority = &most
			}
			inside := room / 8
			if rapid.Bool().Draw(t, "guaranteed") {
				inside = rapid.Int64Range(0, room/8).Draw(t, "guarantee")
				q.Guarantee = []queue.Amount{{Milli: inside}}
				if rapid.Bool().Draw(t, "keeps") {
					q.Keep = []queue.Amount{{Milli: rapid.Int64Range(0, inside).Draw(t, "keep")}}
				}
			}
			id := int32(len(tree.Queues))
			tree.Queues = append(tree.Queues, q)
			below(id, q.Name+"/", inside, depth+1)
		}
	}
	below(0, "", 1e6, 0)
	return tree
}

func TestFormatQueuesReadsBack(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		want := anyTree(t)
		if err := want.Check(func(string) bool { return true }); err != nil {
			t.Fatal(err)
		}
		text := FormatQueues(want)
		got, err := Queues("f.yaml", text, nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got  %#v\nwant %#v\n%s", got, want, text)
		}
	})
}

func TestQueuePresets(t *testing.T) {
	for _, c := range []struct {
		name              string
		devices, queues   int
		guaranteed        int64 // devices
		largest, smallest int64 // devices guaranteed to the largest and last queue
		last              string
	}{
		{"venus", 1064, 16, 1064, 252, 8, "vcgkz"},
		{"venus", 592, 16, 592, 140, 4, "vcgkz"},
		{"venus", 3, 16, 3, 1, 0, "vcgkz"},
		{"venus", 0, 16, 0, 0, 0, "vcgkz"},
		{"philly", 2490, 16, 2490, 651, 0, "925e2b"},
		{"queues:1000x30", 10_000, 1031, 5000, 5, 5, "group29/queue989"},
		{"queues:4x3", 3, 8, 1, 0, 0, "group2/queue2"},
	} {
		tree, ok := QueuePreset(c.name, c.devices)
		if !ok || len(tree.Queues) != c.queues {
			t.Errorf("%s: %v, %d queues", c.name, ok, len(tree.Queues))
			continue
		}
		if err := tree.Check(func(string) bool { return false }); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		var sum, most, last int64
		for _, q := range tree.Queues {
			last = 0
			for _, a := range q.Guarantee {
				sum += a.Milli
				most = max(most, a.Milli)
				last = a.Milli
			}
		}
		// Of the thousandths of queues:4x3 the whole devices are compared.
		if name := tree.Queues[c.queues-1].Name; name != c.last || last/1000 != c.smallest || most/1000 != c.largest || (sum+500)/1000 != c.guaranteed && sum/1000 != c.guaranteed {
			t.Errorf("%s on %d: %d guaranteed, %d the most, %s the last with %d", c.name, c.devices, sum, most, name, last)
		}
		if back, err := Queues("f.yaml", FormatQueues(tree), nil); err != nil || !reflect.DeepEqual(back, tree) {
			t.Errorf("%s does not read back: %v", c.name, err)
		}
	}
	for _, name := range []string{"", "mars", "queues:", "queues:3", "queues:3x4", "queues:1x0", "queues:9999x9", "queues:-1x1", "queues:3x2x1"} {
		if _, ok := QueuePreset(name, 8); ok {
			t.Errorf("%q is a preset", name)
		}
	}
}

func TestResolveQueues(t *testing.T) {
	c, good := lab(t), example(t, "queues")
	t.Chdir(t.TempDir())
	for name, data := range map[string]string{"good.yaml": string(good), "bad.yaml": "queues: [{name: a, limit: {H100: 8}}]"} {
		if err := os.WriteFile(name, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c2 := range []struct {
		ref, wrong string
		queues     int
	}{
		{"venus", "", 16},
		{"good.yaml", "", 5},
		{"bad.yaml", "bad.yaml:1:34: queues[0].limit.H100: found the model \"H100\", expected one that the cluster has; did you mean \"A100\"?", 0},
		{"veuns", `queues "veuns": no such file or preset; did you mean "venus"?`, 0},
		{"queues:9x", "expected queues:NxG", 0},
		{".", "read file of queues: ", 0},
	} {
		tree, err := ResolveQueues(c2.ref, c)
		if c2.wrong == "" && (err != nil || len(tree.Queues) != c2.queues) || c2.wrong != "" && (err == nil || !strings.Contains(err.Error(), c2.wrong)) {
			t.Errorf("%s: %d queues, %v", c2.ref, len(tree.Queues), err)
		}
	}
}

func TestMostQueues(t *testing.T) {
	var b strings.Builder
	b.WriteString("queues:\n")
	for i := range maxQueues + 1 {
		fmt.Fprintf(&b, "  - {name: q%d}\n", i)
	}
	if _, err := Queues("f.yaml", []byte(b.String()), nil); err == nil || !strings.Contains(err.Error(), "f.yaml:10002:5: queues[10000]: found one queue more, expected at most 10000") {
		t.Errorf("one queue more: %.300v", err)
	}
	one := b.String()[:strings.LastIndex(b.String(), "  -")]
	if tree, err := Queues("f.yaml", []byte(one), nil); err != nil || len(tree.Queues) != maxQueues+1 {
		t.Errorf("as many queues as may be: %.300v", err)
	}
}

func FuzzQueues(f *testing.F) {
	f.Add(example(f, "queues"))
	for _, s := range []string{"limit: {all: 1, V100: 1}", "queues: [{name: a, guarantee: &g {A: 1}, limit: *g}]", "queues:\n- name: a\n  queues: [{name: b, guarantee: 1e3}]", "limit: {<<: {A: 1}}", "half_life: 0s\nlimit: {}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		tree, err := Queues("f.yaml", data, nil)
		if err != nil {
			var ps Problems
			if !errors.As(err, &ps) {
				t.Fatalf("an error that is not Problems: %v", err)
			}
			for _, p := range ps {
				if p.Line < 1 || p.Column < 1 || p.Found == "" {
					t.Fatalf("a problem without place or text: %#v", p)
				}
			}
			return
		}
		// Spans of many years lose their microseconds in writing.
		long := max(tree.HalfLife, tree.Protect, slices.MaxFunc(tree.Queues, func(a, b queue.Queue) int { return int((a.MaxRun - b.MaxRun) / unit.Day) }).MaxRun) >= 3650*unit.Day
		if back, err := Queues("f.yaml", FormatQueues(tree), nil); err != nil || !long && !reflect.DeepEqual(back, tree) {
			t.Fatalf("%v\n%s\ngot  %#v\nwant %#v", err, FormatQueues(tree), back, tree)
		}
	})
}
