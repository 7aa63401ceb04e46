package promiselog_test

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/musterdl/muster/internal/forecast"
	"github.com/musterdl/muster/internal/forecast/promiselog"
	"github.com/musterdl/muster/model/unit"
)

func entries() []forecast.Entry {
	return []forecast.Entry{
		{Promise: &forecast.Promise{Version: 1, Job: 3, Name: "train", Queue: "q", Made: 5, Basis: forecast.FromFutures,
			Start: forecast.Range{Low: 7, Median: 8, High: unit.Never}, End: forecast.Unknown()}},
		{Outcome: &forecast.Outcome{Job: 3, What: forecast.Started, At: 9}},
	}
}

func write(t *testing.T, path string, e ...forecast.Entry) {
	t.Helper()
	l, err := promiselog.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Append(e...); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestRoundTrip: what is appended comes back, over several openings.
func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "promises.jsonl")
	if got, damage, err := promiselog.Read(path); err != nil || len(got)+len(damage) > 0 {
		t.Fatalf("a file that is not there: %v, %v, %v", got, damage, err)
	}
	write(t, path, entries()...)
	write(t, path)
	write(t, path, entries()...)
	got, damage, err := promiselog.Read(path)
	if err != nil || len(damage) > 0 || !reflect.DeepEqual(got, append(entries(), entries()...)) {
		t.Fatalf("got %+v, %v, %v", got, damage, err)
	}
}

// TestTorn cuts a file at every third byte: what was whole is read, what was cut is told,
// and what is appended afterwards is read behind bytes that nobody changed.
func TestTorn(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "whole")
	write(t, whole, entries()...)
	data, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "torn")
	for cut := 0; cut <= len(data); cut += 3 {
		if err := os.WriteFile(path, data[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		lines := bytes.Count(data[:cut], []byte("\n"))
		got, damage, err := promiselog.Read(path)
		atEnd := cut == 0 || data[cut-1] == '\n'
		if err != nil || len(got) != lines || (len(damage) == 0) != atEnd {
			t.Fatalf("cut at %d: %d entries, %v, %v", cut, len(got), damage, err)
		}
		write(t, path, entries()[1])
		after, _, err := promiselog.Read(path)
		if err != nil || len(after) < lines+1 || *after[len(after)-1].Outcome != *entries()[1].Outcome {
			t.Fatalf("cut at %d and appended to: %+v, %v", cut, after, err)
		}
		now, err := os.ReadFile(path)
		if err != nil || !bytes.HasPrefix(now, data[:cut]) {
			t.Fatalf("cut at %d: what was there was changed (%v)", cut, err)
		}
	}
}

// TestStrange: lines that are no entries are passed over and told with their place.
func TestStrange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "strange")
	write(t, path, entries()[1])
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("{}\nnonsense\n" + strings.Repeat("x", 3<<20) + "\n"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, path, entries()[0])
	got, damage, err := promiselog.Read(path)
	if err != nil || len(got) != 2 || len(damage) != 3 || damage[0].Line != 2 || damage[2].Line != 4 {
		t.Fatalf("%d entries, %v, %v", len(got), damage, err)
	}
	l, err := promiselog.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if l.Append(forecast.Entry{}) == nil {
		t.Error("an entry of nothing was written")
	}
}
