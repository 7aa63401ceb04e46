package gang

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/unit"
)

func TestParseSizes(t *testing.T) {
	for _, c := range []struct {
		text  string
		asked int32
		want  string
	}{
		{"2-8", 4, "[2 3 4 5 6 7 8]"},
		{"1-8", 8, "[1 2 3 4 5 6 7 8]"},
		{" 2 , 8,4 ", 4, "[2 4 8]"},
		{"4", 4, "[4]"},
		{"1-64", 64, "[1 2 4 8 16 32 64]"},
		{"1-64", 48, "[1 2 4 8 16 32 48 64]"},
		{"2-12", 3, "[2 3 4 8 12]"},
		{"1-1000000", 7, "[1 2 7 16 256 4096 65536 1000000]"},
		{"8-2", 4, ""}, {"2-8", 9, ""}, {"2,4", 3, ""}, {"0-4", 2, ""}, {"", 1, ""}, {"-", 1, ""}, {"1,2,3,4,5,6,7,8,9", 1, ""},
		{"1-1000001", 1, ""}, {"+1-4", 2, ""}, {"1-2-3", 1, ""}, {"99999999999999999999", 1, ""}, {"2,,4", 2, ""},
	} {
		got, err := parseSizes(c.text, c.asked)
		if c.want == "" && err == nil || c.want != "" && fmt.Sprint(got) != c.want {
			t.Errorf("%q of %d: %v %v", c.text, c.asked, got, err)
		}
	}
}

// TestSpread: at most eight sizes, ascending, with the ends and the size asked for.
func TestSpread(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		low := rapid.Int32Range(1, maxGang).Draw(t, "low")
		high := rapid.Int32Range(low, maxGang).Draw(t, "high")
		asked := rapid.Int32Range(low, high).Draw(t, "asked")
		s := spread(low, high, asked)
		if len(s) > maxSizes || !slices.IsSorted(s) || len(slices.Compact(slices.Clone(s))) != len(s) || s[0] != low || s[len(s)-1] != high || !slices.Contains(s, asked) {
			t.Fatal(low, high, asked, s)
		}
	})
}

func TestParseCheckpoint(t *testing.T) {
	c, err := parseCheckpoint(" every = 30m, on-request ,save=20s")
	if err != nil || c.Every != 30*unit.Minute || c.Save != 20*unit.Second || !c.OnRequest || c.Load != 0 {
		t.Fatal(c, err)
	}
	if c, err = parseCheckpoint("save=0s,on-request"); err != nil || c.Save != 0 || !c.timed {
		t.Fatal(c, err)
	}
	for _, s := range []string{"", "every", "every=", "every=30", "every=0s", "on-request=1", "save=1s,save=2s", "often=1s", "every=-1s", "every=1e300h", ",", "on-request,"} {
		if c, err := parseCheckpoint(s); err == nil {
			t.Errorf("%q: %+v", s, c)
		}
	}
}

// TestNatural: numbers in names sort as numbers, and the order is a total one.
func TestNatural(t *testing.T) {
	names := []string{"w-10", "w-2", "w-02", "w", "w-2-b", "x1", "", "w-100000000000000000000000"}
	slices.SortFunc(names, natural)
	if got := fmt.Sprint(names); got != "[ w w-02 w-2 w-2-b w-10 w-100000000000000000000000 x1]" {
		t.Fatal(got)
	}
	name := rapid.StringMatching(`[a0-3-]{0,6}`)
	draws.Check(t, func(t *rapid.T) {
		a, b, c := name.Draw(t, "a"), name.Draw(t, "b"), name.Draw(t, "c")
		if natural(a, b) != -natural(b, a) || natural(a, b) == 0 && a != b || natural(a, b) < 0 && natural(b, c) < 0 && natural(a, c) >= 0 {
			t.Fatal(a, b, c)
		}
	})
}

// TestAnnotations: the table is complete, and what it gives as an example is read.
func TestAnnotations(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range annotations {
		if a.Name == "" || a.Example == "" || a.Says == "" || a.Otherwise == "" || seen[a.Name] {
			t.Errorf("%+v", a)
		}
		seen[a.Name] = true
		objs, pods := load(t, "job-indexed.yaml")
		for _, o := range objs {
			if o.GetKind() == "Job" {
				o.SetAnnotations(map[string]string{a.Name: a.Example})
			}
		}
		for _, p := range pods {
			p.Annotations = map[string]string{labelCompletionIndex: p.Labels[labelCompletionIndex]}
		}
		if _, problems := read(t, objs, pods); len(problems) > 0 {
			t.Errorf("%s: %v", a.Name, problems)
		}
	}
}

// TestElastic: an elastic JobSet whose Job was resized, and the number that it was
// submitted with.
func TestElastic(t *testing.T) {
	objs, pods := change(t, "jobset.yaml", "name: workers\n      replicas: 2\n      template:\n", "name: workers\n      replicas: 1\n      template:\n        metadata: {annotations: {muster.dev/elastic: 1-4}}\n",
		"annotations: {muster.dev/work: 5h}", "annotations: {muster.dev/work: 5h, muster.dev/workers: \"2\"}",
		"uid: js-1, controller: true}\nspec: {parallelism: 2, completions: 2", "uid: js-1, controller: true}\nspec: {parallelism: 3, completions: 3")
	pods = slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return p.Labels[labelJobIndex] == "1" })
	g, problems := read(t, objs, pods)
	if len(problems) > 0 || g.Size != 4 || g.Job.Gang != 3 || fmt.Sprint(g.Job.Sizes) != "[2 3 4 5]" || g.Resize.Others != 1 || len(g.Resize.Targets) != 2 {
		t.Fatalf("%v size %d gang %d %v %+v", problems, g.Size, g.Job.Gang, g.Job.Sizes, g.Resize)
	}
	if a, b := g.Resize.Targets[0], g.Resize.Targets[1]; a.Object.Kind != "JobSet" || a.Fields[0] != "spec.replicatedJobs[1].template.spec.parallelism" ||
		b.Object.Name != "gpt-workers-0" || b.Fields[1] != "spec.completions" {
		t.Fatalf("%+v", g.Resize)
	}
}

// TestStages: what waits for others to complete is a stage behind them, what waits
// for others to be ready is late in the same.
func TestStages(t *testing.T) {
	objs, _ := change(t, "trainjob.yaml", "{name: model-initializer, status: Complete}", "{name: model-initializer, status: Ready}")
	for _, o := range objs {
		if o.GetKind() != "JobSet" {
			continue
		}
		stage, late := stages(o)
		if stage["dataset-initializer"] != 1 || stage["node"] != 0 || !late["node"] || late["model-initializer"] {
			t.Fatal(stage, late)
		}
	}
}

// FuzzAnnotations: no text makes a parser panic or give what is out of bounds.
func FuzzAnnotations(f *testing.F) {
	for _, a := range annotations {
		f.Add(a.Example, int32(4), int64(1772359200000000))
	}
	f.Add("2026-01-01T00:00:00Z", int32(1), int64(0))
	f.Add(`[{"name":"a","minMember":9223372036854775807},{"minMember":1}]`, int32(1), int64(0))
	f.Fuzz(func(t *testing.T, s string, asked int32, created int64) {
		if sizes, err := parseSizes(s, asked); err == nil && (len(sizes) == 0 || len(sizes) > maxSizes || !slices.IsSorted(sizes) || sizes[0] < 1 || !slices.Contains(sizes, asked)) {
			t.Fatal(sizes)
		}
		if c, err := parseCheckpoint(s); err == nil && (c.Every < 0 || c.Save < 0 || c.Load < 0) {
			t.Fatal(c)
		}
		if d, err := parseSpan(s); err == nil && d <= 0 {
			t.Fatal(d)
		}
		if d, err := parseDeadline(s, unit.Time(created)); err == nil && d <= 0 {
			t.Fatal(d)
		}
		if m, err := parseModels(s); err == nil && (len(m) == 0 || len(m) > 64) {
			t.Fatal(m)
		}
		if m, err := parseSkew(s); err == nil && (m < 0 || m > unit.Whole) {
			t.Fatal(m)
		}
		if b, err := parseTraffic(s); err == nil && b < 0 {
			t.Fatal(b)
		}
		if n, err := parseCount(s); err == nil && (n < 1 || n > maxGang) {
			t.Fatal(n)
		}
		if n, ok := taskGroups(s); ok && (n < 0 || n > maxGang+1) {
			t.Fatal(n)
		}
		if n, ok := parseIndex(s); ok && n < 0 {
			t.Fatal(n)
		}
		_, _ = parseName(s)
	})
}
