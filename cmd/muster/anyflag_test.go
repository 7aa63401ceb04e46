package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/musterdl/muster/internal/client"
	"github.com/musterdl/muster/internal/release"
	"github.com/musterdl/muster/internal/store"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// journals holds a journal that each released version wrote: NAME.tar.gz is that of version NAME.
const journals = "testdata/journals"

// keptJobs is how many jobs the history has that keepJournal makes.
const keptJobs = 14

// TestAnyFlagAfterAKill: killed with a history that its back-off made, and which no snapshot stands for, the
// control plane starts again whatever flag is another now, and what waited goes on.
func TestAnyFlagAfterAKill(t *testing.T) {
	t.Parallel()
	p, _, _ := toKill(t, 7, 1, 1)
	p.history()
	p.muster("submit", "--name", "endless", "--", "sleep", "600")
	shares := filepath.Join(p.state, "queues.yaml")
	if err := os.WriteFile(shares, []byte("queues:\n  - name: team\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	changed := [][]string{{"--back-off", "1h", "--grace", "2s", "--checkpoint-wait", "1s", "--summary-every", "1s", "--snapshot-every", "0s"},
		{"--slots", "4", "--slot-cpu", "100m"}, {"--slots", "9", "--slot-memory", "3GiB", "--user-rate", "7"},
		{"--strategy", "fifo", "--shadow", "srtf"}, {"--queues", shares, "--verbose"}, {"--strategy", "muster", "--page", "off"}}
	for _, flags := range changed {
		p.kill()
		p.flags = flags
		p.start()
		if j := p.show("endless"); j.Phase != "active" {
			t.Errorf("started again with %v the job that ran is %s", flags, j.Phase)
		}
	}
	p.muster("cancel", "endless")
	p.muster("submit", "--wait", "--name", "after", "--", "true")
	p.kill()
	if said := p.muster("replay", "--verify", "--state", p.state); !strings.Contains(said, "none differs") {
		t.Errorf("decided again: %s", said)
	}
	p.start()
	others := map[string]bool{"state": true, "socket": true, "listen": true, "tls-cert": true, "tls-key": true, "socket-group": true, // where it is reached
		"script": true, "allow-root": true, "accept-journal-loss": true, "help": true} // what may be done, which the journal does not say
	upCommand().Flags().VisitAll(func(f *pflag.Flag) {
		for _, flags := range changed {
			if strings.Contains(strings.Join(flags, " ")+" ", "--"+f.Name+" ") {
				return
			}
		}
		if !others[f.Name] {
			t.Errorf("nothing is known of a start with another --%s after a kill: add it to this test", f.Name)
		}
	})
}

// TestAnyFlagOnReleasedJournals: the journal of each released version is folded from its first batch, with no
// snapshot and under other flags, and its decisions are decided again as they were. The version that was cut
// last must have one: MUSTER_JOURNAL=keep go test ./cmd/muster -run ReleasedJournals makes it.
func TestAnyFlagOnReleasedJournals(t *testing.T) {
	t.Parallel()
	if os.Getenv("MUSTER_JOURNAL") == "keep" {
		keepJournal(t, filepath.Join(journals, release.Version+".tar.gz"))
	}
	if _, err := os.Stat(filepath.Join(journals, release.Version+".tar.gz")); err != nil {
		t.Errorf("%v: MUSTER_JOURNAL=keep go test ./cmd/muster -run ReleasedJournals keeps one of this version", err)
	}
	files, err := filepath.Glob(filepath.Join(journals, "*.tar.gz"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there is no journal of any version: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".tar.gz"), func(t *testing.T) {
			p := stoppedPlane(t)
			unpack(t, file, filepath.Join(p.state, "journal"))
			if said := p.muster("replay", "--verify", "--state", p.state); !strings.Contains(said, "none differs") {
				t.Errorf("decided again: %s", said)
			}
			p.flags = []string{"--back-off", "1h"}
			p.start()
			t.Cleanup(p.kill)
			all, err := p.client.Jobs(t.Context(), client.ListOptions{All: true})
			if err != nil || len(all.Jobs) != keptJobs {
				t.Fatalf("it has %d jobs, %d were kept; %v", len(all.Jobs), keptJobs, err)
			}
			for _, j := range all.Jobs {
				if !j.Over() {
					t.Errorf("%s had ended, and is %s", j.Name, j.Phase)
				}
			}
			p.muster("submit", "--wait", "--name", "another", "--", "true")
		})
	}
}

// history lets happen what folding has to know the policy for, and more: jobs that fail and are tried again
// after back-offs, an array, a gang, jobs after others, one held and released, one cancelled, other queues and
// another strategy. All jobs end.
func (p *controlPlane) history() {
	p.t.Helper()
	job := func(name, script string, gang int32, more ...func(*workload.Job)) workload.Job {
		j := workload.Job{Name: name, Resources: workload.Resources{Gang: gang, Devices: 1, Share: unit.Whole},
			Program: workload.Program{Command: []string{"sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/"}}
		for _, set := range more {
			set(&j)
		}
		return j
	}
	retries := func(n int32) func(*workload.Job) { return func(j *workload.Job) { j.Retries = n } }
	jobs := []workload.Job{job("flaky", "exit 3", 1, retries(3)), job("gang", "sleep 2", 3),
		job("many", "true", 1, func(j *workload.Job) { j.Array = 6 }),
		job("later", "true", 1, func(j *workload.Job) { j.After = []string{"gang"} }),
		job("never", "true", 1, func(j *workload.Job) { j.After = []string{"flaky"} }),
		job("wide", "sleep 0.1", 6), job("long", "sleep 60", 1), job("short", "true", 1, func(j *workload.Job) { j.TimeLimit = unit.Minute })}
	if _, err := p.client.Submit(p.t.Context(), jobs, "history"); err != nil {
		p.t.Fatal(err)
	}
	p.muster("strategies", "switch", "srtf")
	p.muster("submit", "--name", "held", "--after", "gang", "--", "true")
	p.muster("hold", "held")
	p.muster("cancel", "long")
	if err := os.WriteFile(filepath.Join(p.state, "tree.yaml"), []byte("queues:\n  - name: a\n    weight: 2\n  - name: b\n"), 0o600); err != nil {
		p.t.Fatal(err)
	}
	p.muster("queues", "set", filepath.Join(p.state, "tree.yaml"))
	p.muster("release", "held")
	for _, name := range []string{"flaky", "gang", "many", "later", "never", "wide", "short", "held"} {
		if _, err := p.client.Wait(p.t.Context(), name); err != nil {
			p.t.Fatal(err)
		}
	}
	p.until("long", "ended", func(j view.Job) bool { return j.Over() })
}

// keepJournal writes the journal of a control plane of this version that was killed.
func keepJournal(t *testing.T, file string) {
	t.Helper()
	p := stoppedPlane(t)
	p.flags = []string{"--back-off", "300ms"}
	p.start()
	p.history()
	p.kill()
	dir := filepath.Join(p.state, "journal")
	s, err := store.Open(dir, store.Options{}) // which puts the log into the database
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(z)
	for _, name := range []string{"journal.db", "head"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			err = w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(data))})
		}
		if err == nil {
			_, err = w.Write(data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close(), os.WriteFile(file, b.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %d bytes", file, b.Len())
}

// unpack puts the files of a kept journal into a folder.
func unpack(t *testing.T, file, dir string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		var data []byte
		if err == nil {
			data, err = io.ReadAll(r)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(h.Name)), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
