package history

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/musterdl/muster/experiment/trace"
)

// told is all that a history says, and its jobs in our own format without the columns that are empty.
func told(t *testing.T, file string, opt Options) string {
	t.Helper()
	h, err := Read(file, opt)
	if err != nil {
		return strings.ReplaceAll(err.Error(), filepath.Dir(file)+"/", "") + "\n"
	}
	var b strings.Builder
	for _, p := range h.Bad {
		fmt.Fprintf(&b, "wrong %d %s: %s\n", p.Line, p.Field, p.Message)
	}
	for _, l := range h.Left {
		fmt.Fprintf(&b, "left %d from %d: %s\n", l.Rows, l.First, l.Why)
	}
	sum := h.Sum()
	fmt.Fprintf(&b, "%s: %d jobs, %.3f h, %d at once\n", h.Kind, sum.Jobs, sum.DeviceHours, sum.Peak)
	for {
		j, truth, err := h.Next()
		if errors.Is(err, io.EOF) {
			return b.String()
		}
		fmt.Fprintf(&b, "%s at %v for %v: %dx%d", j.Name, j.Submit, truth.Duration, j.Gang, j.Devices)
		for _, of := range []struct {
			what  string
			value any
			there bool
		}{{"share", j.Share, j.Share < 1000}, {"cpu", j.CPU, j.CPU > 0}, {"memory", j.HostMemory, j.HostMemory > 0}, {"limit", j.TimeLimit, j.TimeLimit > 0},
			{"tenant", j.Tenant, j.Tenant != ""}, {"user", j.User, j.User != ""}, {"class", j.Class, j.Class != ""}, {"priority", j.Priority, j.Priority != 0}, {"after", j.After, j.After != nil}} {
			if of.there {
				fmt.Fprintf(&b, " %s %v", of.what, of.value)
			}
		}
		b.WriteByte('\n')
	}
}

// TestHistories: each file of testdata that another scheduler might have written is read as the
// text beside it says; MUSTER_UPDATE=1 writes the texts anew.
func TestHistories(t *testing.T) {
	for _, c := range []struct {
		file string
		opt  Options
	}{
		{"archive.swf", Options{}}, {"sacct.txt", Options{Cores: true}}, {"sacct-old.txt", Options{Cores: true}}, {"sacct-few.txt", Options{}}, {"jobs.json", Options{Cores: true}},
		{"workloads.json", Options{}}, {"pai_task_table.csv", Options{}}, {"own.csv", Options{Columns: "testdata/own.yaml"}}, {"unknown.csv", Options{}},
		{"ours.csv", Options{}}, {"letter.txt", Options{}}, {"far-apart.swf", Options{}}, {"wrong-column.csv", Options{Columns: "testdata/own.yaml"}},
	} {
		t.Run(c.file, func(t *testing.T) {
			got := told(t, filepath.Join("testdata", c.file), c.opt)
			want := filepath.Join("testdata", c.file+".told")
			if os.Getenv("MUSTER_UPDATE") != "" {
				if err := os.WriteFile(want, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if text, err := os.ReadFile(want); err != nil || string(text) != got {
				t.Errorf("%v\n%s\nexpected\n%s", err, got, text)
			}
		})
	}
}

// TestClusterHasRoom: where four workers of five devices ran at once, three nodes of eight have as many devices and no
// room for the fourth worker.
func TestClusterHasRoom(t *testing.T) {
	for want, r := range map[string]run{
		"gpus:4x8":  {workers: 4, devices: 5, share: 1000},
		"gpus:3x8":  {workers: 5, devices: 4, share: 1000},
		"gpus:2x16": {workers: 2, devices: 16, share: 1000},
		"gpus:1x8":  {workers: 16, devices: 1, share: 500},
	} {
		r.ran = 1
		h := History{runs: []run{r}}
		if got := h.Sum().Cluster; got != want {
			t.Errorf("%d workers of %d devices: %s, expected %s", r.workers, r.devices, got, want)
		}
	}
}

// TestReadsBack: what is imported is a trace of ours, job by job.
func TestReadsBack(t *testing.T) {
	h, err := Read("testdata/sacct.txt", Options{Cores: true})
	if err != nil {
		t.Fatal(err)
	}
	sum := h.Sum()
	var b bytes.Buffer
	if _, err := trace.Copy(trace.NewWriter(&b, trace.CSV), h); err != nil {
		t.Fatal(err)
	}
	r, err := trace.OpenFrom("muster", "history.csv", func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil }, trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	st, err := trace.Summarise(r)
	if err != nil || st.Jobs != sum.Jobs || st.DeviceHours != sum.DeviceHours {
		t.Errorf("%+v, %v: expected %d jobs of %g device-hours", st, err, sum.Jobs, sum.DeviceHours)
	}
}

// TestPage: the mapping that the page shows is read, and names every field there is.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../HISTORY.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	file := filepath.Join(t.TempDir(), "map.yaml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := mapped(file); err != nil {
		t.Error(err)
	}
	for _, kind := range Kinds() {
		if !strings.Contains(string(page), "`"+kind+"`") {
			t.Errorf("the page says nothing of %s", kind)
		}
	}
	if fields := reflect.TypeFor[columns]().NumField(); fields != strings.Count(text, "\n  ") {
		t.Errorf("the page names %d columns of %d", strings.Count(text, "\n  "), fields)
	}
}
