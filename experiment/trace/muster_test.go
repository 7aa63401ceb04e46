package trace

import (
	"bytes"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

var encodings = []Encoding{CSV, JSONL}

// drawEntries makes any jobs that the format can carry, the first at time 0.
func drawEntries(t *rapid.T) []entry {
	span := rapid.Int64Range(0, int64(maxSpan))
	spanOf := func(label string) unit.Duration { return unit.Duration(span.Draw(t, label)) }
	label := rapid.StringMatching(`[a-zäß,;"'| {}\[\]-]{0,6}`)
	item := rapid.StringMatching(`[a-z,;" ]{1,4}`)
	list := func(name string) []string {
		if n := rapid.SliceOfN(item, 0, 3).Draw(t, name); len(n) > 0 {
			return n
		}
		return nil
	}
	var all []entry
	for i := range rapid.IntRange(1, 5).Draw(t, "jobs") {
		j := workload.Job{
			Name: fmt.Sprint(label.Draw(t, "name"), i), Tenant: label.Draw(t, "tenant"), User: label.Draw(t, "user"),
			Priority: rapid.Int32().Draw(t, "priority"), After: list("after"),
			Resources: workload.Resources{Gang: rapid.Int32Range(1, 1000).Draw(t, "gang"), Devices: rapid.Int32Range(0, 1000).Draw(t, "devices"), Share: unit.Whole,
				Models: list("models"), Memory: unit.MiB(rapid.Int64Range(0, maxMiB).Draw(t, "memory")),
				CPU: unit.Milli(rapid.Int64Range(0, maxMilli).Draw(t, "cpu")), HostMemory: 7},
			Traits:   workload.Traits{Class: label.Draw(t, "class"), Skew: unit.Milli(rapid.Int64Range(0, 1000).Draw(t, "skew")), Traffic: 1000},
			Estimate: spanOf("estimate"), TimeLimit: spanOf("limit"), Deadline: spanOf("deadline"),
			Checkpoint: workload.Checkpoint{Every: spanOf("every"), OnRequest: rapid.Bool().Draw(t, "request"),
				Save: spanOf("save"), Load: spanOf("load")},
			Retries: rapid.Int32Range(0, 9).Draw(t, "retries"),
		}
		never := !j.Checkpoint.OnRequest && j.Checkpoint.Every == 0 && rapid.Bool().Draw(t, "never saves")
		if j.Devices == 1 {
			j.Share = unit.Milli(rapid.Int64Range(1, 1000).Draw(t, "share"))
		}
		if rapid.Bool().Draw(t, "elastic") {
			j.Sizes = []int32{j.Gang, j.Gang + 1, j.Gang + 5}
			j.Devices = min(j.Devices, 500)
		}
		if i > 0 {
			j.Submit = unit.Time(spanOf("submit"))
		}
		truth := workload.Truth{Duration: spanOf("duration"), NeverSaves: never, FailAfter: spanOf("fail"),
			Sensitivity: rapid.Float64Range(0, 1000).Draw(t, "sensitivity"), Busy: rapid.Float64Range(0, 1).Draw(t, "busy")}
		if rapid.Bool().Draw(t, "unknown") {
			truth.Duration = NoDuration
		}
		all = append(all, entry{j, truth})
	}
	slices.SortStableFunc(all, func(a, b entry) int { return int(min(1, max(-1, a.job.Submit.Sub(b.job.Submit)))) })
	return all
}

func TestRoundTrip(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		all := drawEntries(t)
		for _, encoding := range encodings {
			var out bytes.Buffer
			w := NewWriter(&out, encoding)
			for _, e := range all {
				if err := w.Write(e.job, e.truth); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			back, err := parse("muster", out.String())
			if err != nil {
				t.Fatalf("%v\n%s", err, out.String())
			}
			if !reflect.DeepEqual(back, all) {
				t.Fatalf("\nwrote %+v\nread  %+v\nas %s", all, back, out.String())
			}
		}
	})
}

func TestWriterRefuses(t *testing.T) {
	good := workload.Job{Name: "a", Resources: workload.Resources{Gang: 1, Devices: 1, Share: unit.Whole}}
	for want, edit := range map[string]func(*workload.Job){
		"has no name":            func(j *workload.Job) { j.Name = "" },
		"no arrays":              func(j *workload.Job) { j.Array = 3 },
		"no pipelines":           func(j *workload.Job) { j.Pipeline.Stages = 2 },
		"no commands":            func(j *workload.Job) { j.Command = []string{"sh"} },
		"have no |":              func(j *workload.Job) { j.Models = []string{"a|b"} },
		"gang: \"0\": expected":  func(j *workload.Job) { j.Gang = 0 },
		"submit_s: \"-1\"":       func(j *workload.Job) { j.Submit = unit.Time(-unit.Second) },
		"deadline_s: \"9223372":  func(j *workload.Job) { j.Deadline = unit.Forever },
		"tenant: \"a\\nb\": exp": func(j *workload.Job) { j.Tenant = "a\nb" },
		"share_milli: 500":       func(j *workload.Job) { j.Share, j.Devices = 500, 2 },
	} {
		j := good
		edit(&j)
		err := NewWriter(&bytes.Buffer{}, CSV).Write(j, workload.Truth{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if err := NewWriter(&bytes.Buffer{}, CSV).Write(good, workload.Truth{}); err != nil {
		t.Error(err)
	}
}

func TestCopy(t *testing.T) {
	for _, encoding := range encodings {
		var out bytes.Buffer
		r, err := Open("gen:rw-l?seed=3&estimate=noisy", Options{})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := Copy(NewWriter(&out, encoding), r); n != 160 || err != nil {
			t.Fatalf("%d jobs, %v", n, err)
		}
		back, err := parse("muster", out.String())
		if err != nil {
			t.Fatal(err)
		}
		if want := readJobs(t, "gen:rw-l?seed=3&estimate=noisy"); !reflect.DeepEqual(back, want) {
			t.Error("a generated trace does not read back")
		}
	}
}

func TestEmptyTrace(t *testing.T) {
	var out bytes.Buffer
	if err := NewWriter(&out, CSV).Flush(); err != nil {
		t.Fatal(err)
	}
	if all, err := parse("muster", out.String()); len(all) != 0 || err != nil {
		t.Errorf("%d jobs, %v", len(all), err)
	}
}

// The page about the format lists the columns that there are, in their order.
func TestFormatPage(t *testing.T) {
	page, err := os.ReadFile("FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed, have []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllSubmatch(page, -1) {
		listed = append(listed, string(m[1]))
	}
	for _, c := range musterFormat.columns {
		have = append(have, c.name)
	}
	if !slices.Equal(listed, have) {
		t.Errorf("the page lists %v\nthe format has %v", listed, have)
	}
	for i, block := range regexp.MustCompile("(?s)```\n(.*?)```").FindAllSubmatch(page, -1) {
		if all, err := parse("muster", string(block[1])); err != nil || len(all) != 2 {
			t.Errorf("example %d: %d jobs, %v", i+1, len(all), err)
		}
	}
}
