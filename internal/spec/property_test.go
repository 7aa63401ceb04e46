package spec

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// anyJob draws a legal job; every field takes its zero or default at times.
func anyJob(t *rapid.T) workload.Job {
	name := rapid.StringMatching(`[A-Za-z0-9_][A-Za-z0-9_.-]{0,20}`)
	anyName := rapid.OneOf(rapid.Just(""), name, rapid.SampledFrom([]string{"null", "true", "no", "1e3", "0x10", "1_0", "007", ".5e1", "NULL", "12:30:45"}))
	anyText := rapid.OneOf(rapid.StringN(0, 20, -1), rapid.StringOf(rapid.SampledFrom([]rune(" \t\n\r:#-?*&!|>'\"%@`{}[],~é\u0085\u2028\ufeff\x01😀0a"))), rapid.SampledFrom([]string{"", "~", "null", "---", "<<", "0.1"}))
	noZero := anyText.Filter(func(s string) bool { return !strings.ContainsRune(s, 0) })
	atMost := func(n int64) int64 {
		return rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 100), rapid.Int64Range(0, n), rapid.Map(rapid.Int64Range(0, n>>10), func(x int64) int64 { return x << 10 })).Draw(t, "number")
	}
	span := func() unit.Duration { return unit.Duration(atMost(int64(3650 * unit.Day))) }
	names := func(g *rapid.Generator[string]) []string {
		if all := rapid.SliceOfNDistinct(g, 0, 3, rapid.ID).Draw(t, "names"); len(all) > 0 {
			return all
		}
		return nil
	}
	j := workload.Job{Name: strings.ReplaceAll(anyName.Draw(t, "name"), ":", "-"), Tenant: name.Draw(t, "tenant"), User: strings.TrimLeft(strings.ReplaceAll(anyName.Draw(t, "user"), ":", "/"), "."),
		Priority: rapid.Int32().Draw(t, "priority"), Resources: workload.Resources{Gang: int32(1 + atMost(maxGang-1)), Devices: 1, Share: unit.Milli(1 + atMost(999)),
			Models: names(name), Memory: unit.MiB(atMost(1 << 30)), CPU: unit.Milli(atMost(1e6)), HostMemory: unit.MiB(atMost(1 << 30))},
		Estimate: span(), TimeLimit: span(), Deadline: span(), Retries: int32(atMost(maxRetries)), Array: int32(atMost(maxArray)),
		Checkpoint: workload.Checkpoint{Every: span(), OnRequest: rapid.Bool().Draw(t, "on request"), Save: span(), Load: span()},
		Traits:     workload.Traits{Class: noZero.Draw(t, "class"), Skew: unit.Milli(atMost(1000)), Traffic: unit.Mbps(atMost(1e9))},
		Program:    workload.Program{Dir: noZero.Draw(t, "dir")}}
	j.Name = strings.TrimLeft(j.Name, ".")
	if j.Share == unit.Whole {
		j.Devices = int32(atMost(maxPerWorker))
	}
	if rapid.Bool().Draw(t, "elastic") {
		j.Sizes = append(rapid.SliceOfNDistinct(rapid.Int32Range(1, maxGang), 0, 5, rapid.ID).Draw(t, "sizes"), j.Gang)
		slices.Sort(j.Sizes)
		j.Sizes = slices.Compact(j.Sizes)
	}
	j.After = slices.DeleteFunc(names(name), func(s string) bool { return s == j.Name })
	if len(j.After) == 0 {
		j.After = nil
	}
	if rapid.Bool().Draw(t, "live") {
		j.Command = append([]string{"./run"}, names(noZero)...)
		for _, key := range names(noZero.Filter(func(s string) bool { return s != "" && !strings.Contains(s, "=") })) {
			j.Env = append(j.Env, key+"="+noZero.Draw(t, "value"))
			if rapid.Bool().Draw(t, "secret") {
				j.Secrets = append(j.Secrets, key)
			}
		}
	}
	if rapid.Bool().Draw(t, "pipeline") {
		j.Pipeline = workload.Pipeline{Stages: 1, Microbatches: int32(1 + atMost(1000))}
		for range rapid.IntRange(0, 3).Draw(t, "layers") {
			j.Pipeline.Layers = append(j.Pipeline.Layers, workload.Layer{Name: noZero.Draw(t, "layer"), Forward: span(), Backward: span(),
				ParamKiB: atMost(1 << 35), OutputKiB: atMost(1 << 35), ActivationKiB: atMost(1 << 35)})
		}
		j.Pipeline.Stages, j.Pipeline.Tensor = int32(max(1, len(j.Pipeline.Layers))), int32(rapid.IntRange(0, 2).Draw(t, "tensor"))
		each := j.Pipeline.Stages * max(1, j.Pipeline.Tensor)
		if slices.ContainsFunc(append(j.Sizes, j.Gang), func(n int32) bool { return n%each != 0 }) {
			j.Pipeline.Stages, j.Pipeline.Tensor = 1, 0
		}
	}
	return j
}

func TestFormatJobReadsBack(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		want := anyJob(t)
		text := FormatJob(want)
		got, err := Jobs("f.yaml", text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if len(got) != 1 || !reflect.DeepEqual(got[0], want) {
			t.Fatalf("got  %#v\nwant %#v\n%s", got, want, text)
		}
	})
}

func TestFormatJobText(t *testing.T) {
	jobs, err := Jobs("f.yaml", example(t, "jobs"))
	if err != nil {
		t.Fatal(err)
	}
	want := `name: gpt
workers: 8
pipeline:
  stages: 2
  microbatches: 8
  tensor: 2
  layers:
    - {name: embed, forward: 3ms, backward: 6ms, params: 4MiB, output: 1MiB, activations: 2MiB}
    - {name: block, forward: 3ms500us, backward: 7ms, params: 512KiB, output: 1MiB, activations: 2MiB}
`
	if got := string(FormatJob(jobs[2])); got != want {
		t.Errorf("got\n%s", got)
	}
	if got := string(FormatJob(workload.Job{Resources: workload.Resources{Gang: 1, Devices: 1, Share: unit.Whole}})); got != "workers: 1\n" {
		t.Errorf("a job of defaults is %q", got)
	}
}

// TestLimits holds files that are made to exhaust the reader; each must be answered
// with the problem named, soon.
func TestLimits(t *testing.T) {
	bomb := "jobs:\n  - env: &e0 {A: 1}\n"
	for i := range 40 {
		bomb += fmt.Sprintf("  - env: &e%d {<<: [*e%d, *e%d]}\n", i+1, i, i)
	}
	var fields strings.Builder
	for i := range maxFields + 1 {
		fmt.Fprintf(&fields, "k%d: 1\n", i)
	}
	for _, c := range []struct{ name, text, want string }{
		{"size", strings.Repeat(" ", maxFileBytes+1), "a file of 4194305 bytes"},
		{"brackets", strings.Repeat("[", 1<<17), "more than 64 levels of nesting"},
		{"braces", strings.Repeat("{a: ", 1<<15), "more than 64 levels of nesting"},
		{"dashes", strings.Repeat("- ", 1<<17), "more than 64 levels of nesting"},
		{"indents", indented(70), "more than 64 levels of nesting"},
		{"fields", fields.String(), "more than 4096 fields in one mapping"},
		{"empty items", strings.Repeat("-\n", 1<<16), "more than 1000 fields or items without a value"},
		{"empty fields", strings.Repeat("- a:\n", 1<<15), "more than 1000 fields or items without a value"},
		{"empty flow fields", "{" + strings.Repeat("a: ,", 1<<15), "more than 1000 fields or items without a value"},
		{"flow names alone", "{" + strings.Repeat("a,", 1<<15), "more than 1000 fields or items without a value"},
		{"anchors", strings.Repeat("- &a 1\n", 1<<15), "more than 1000 anchors"},
		{"documents", strings.Repeat("---\na: 1\n", 1<<15), "more than 10000 documents"},
		{"complex names", strings.Repeat("? a\n", 1<<15), "a name marked with ?"},
		{"alias bomb", bomb, "more than 150000 values, aliases followed"},
		{"alias to itself", "jobs:\n  - env: &e {A: 1, <<: *e}\n", "an alias inside the value it stands for"},
		{"alias to its alias", "jobs: &a\n  *a\n", "the alias *a, expected the name of an anchor outside itself"},
		{"bytes", "name: x\ntenant: \xff\n", "f.yaml:2:9: found the byte 0xff"},
		{"zero byte", "command: \"a\\0\"\n", "text with a zero byte"},
	} {
		start := time.Now()
		_, err := Jobs("f.yaml", []byte(c.text))
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("%s took %v", c.name, took)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: expected %q, got %.300v", c.name, c.want, err)
		}
	}
}

func TestLargestCluster(t *testing.T) {
	text := "models: [{name: A, memory: 1GiB}]\nracks: [{nodes: [{name: n, count: 250000, devices: 8}%s]}]\n"
	c, err := Cluster("f.yaml", fmt.Appendf(nil, text, ""))
	if err != nil || len(c.Devices) != maxDevices {
		t.Fatal(err)
	}
	if _, err := Cluster("f.yaml", fmt.Appendf(nil, text, ", {name: one, devices: 1}")); err == nil || !strings.Contains(err.Error(), "nodes[1]: found too many nodes or devices") {
		t.Errorf("one device more: %v", err)
	}
}

func indented(levels int) string {
	var b strings.Builder
	for i := range levels {
		fmt.Fprintf(&b, "%sa:\n", strings.Repeat(" ", i))
	}
	return b.String()
}

func TestFiftyProblemsInOrder(t *testing.T) {
	_, err := Jobs("f.yaml", []byte("jobs:\n"+strings.Repeat("  - {x: 1, memory: 1}\n", 60)))
	var ps Problems
	if !errors.As(err, &ps) || len(ps) != problemsShown {
		t.Fatalf("%d problems", len(ps))
	}
	for i, p := range ps {
		if p.Line != 2+i/2 || p.Field != fmt.Sprintf("jobs[%d].%s", i/2, []string{"x", "memory"}[i%2]) {
			t.Errorf("problem %d is %v", i, p)
		}
	}
	if !strings.HasSuffix(err.Error(), "\n(only the first 50 problems are shown)") {
		t.Error("the text does not say that there may be more")
	}
}

func TestNearest(t *testing.T) {
	known := []string{"name", "memory", "time-limit", "cpu"}
	for word, want := range map[string]string{"nmae": "name", "Memory": "memory", "time_limt": "time-limit", "timelimit": "time-limit",
		"gpu": "cpu", "dog": "", "": "", "xxxxxx": "", strings.Repeat("a", 1000): ""} {
		if got := Nearest(word, known); got != want {
			t.Errorf("nearest to %.20q is %q, expected %q", word, got, want)
		}
	}
}

func longest(j workload.Job) unit.Duration {
	d := max(j.Estimate, j.TimeLimit, j.Deadline, j.Checkpoint.Every, j.Checkpoint.Save, j.Checkpoint.Load)
	for _, l := range j.Pipeline.Layers {
		d = max(d, l.Forward, l.Backward)
	}
	return d
}

func FuzzRead(f *testing.F) {
	for _, kind := range []string{"jobs", "cluster"} {
		f.Add([]byte(strings.ReplaceAll(string(example(f, kind)), "  ", " ")))
	}
	for _, s := range []string{"a: &a [*a]", "<<: *x", "{a: , b}", "- ? x\n: y", "a: |\n  x\n", "%YAML 1.2\n---\n...\n", "\"\\x", "names: n[0-", "!a &b *c", "a:\n\t- b"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		check := func(err error) {
			var ps Problems
			if err != nil && !errors.As(err, &ps) {
				t.Fatalf("an error that is not Problems: %v", err)
			}
			for _, p := range ps {
				if p.Line < 1 || p.Column < 1 || p.Found == "" {
					t.Fatalf("a problem without place or text: %#v", p)
				}
			}
		}
		jobs, err := Jobs("f.yaml", data)
		check(err)
		for _, j := range jobs {
			back, err := Jobs("f.yaml", FormatJob(j))
			if err != nil || len(back) != 1 || longest(j) < 3650*unit.Day && !reflect.DeepEqual(back[0], j) {
				t.Fatalf("%v\n%s\ngot  %#v\nwant %#v", err, FormatJob(j), back, j)
			}
		}
		c, err := Cluster("f.yaml", data)
		check(err)
		if err == nil && (len(c.Nodes) == 0 || len(c.Devices) > maxDevices) {
			t.Fatalf("%d nodes, %d devices", len(c.Nodes), len(c.Devices))
		}
		check(Decode("f.yaml", data, &config{}))
	})
}
