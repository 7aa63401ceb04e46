package supervise

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/unit"
)

// Whatever happens to the end of a record file, the records before it are read and
// can be added to; a change in the middle is found.
func TestRecordSurvivesTornTails(t *testing.T) {
	dir := t.TempDir()
	draws.Check(t, func(t *rapid.T) {
		path := filepath.Join(dir, "record")
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		w, _, err := openRecord(dir)
		if err != nil {
			t.Fatal(err)
		}
		n := rapid.IntRange(1, 5).Draw(t, "records")
		ends := []int64{0}
		for range n {
			if err := w.add(Record{Kind: Progress, Why: rapid.String().Draw(t, "why"), Report: Report{Step: rapid.Int64().Draw(t, "step")}}); err != nil {
				t.Fatal(err)
			}
			info, _ := w.file.Stat()
			ends = append(ends, info.Size())
		}
		w.file.Close()
		whole, torn, err := ReadRecords(dir, 0)
		if err != nil || torn || len(whole) != n {
			t.Fatalf("read %d of %d, torn %v, %v", len(whole), n, torn, err)
		}
		for i, r := range whole {
			if r.Next != ends[i+1] {
				t.Fatalf("record %d ends at %d, expected %d", i, r.Next, ends[i+1])
			}
		}
		from := rapid.IntRange(0, n).Draw(t, "from")
		if rest, _, err := ReadRecords(dir, ends[from]); err != nil || len(rest) != n-from {
			t.Fatalf("read %d from record %d of %d: %v", len(rest), from, n, err)
		}

		cut := rapid.Int64Range(0, ends[n]).Draw(t, "cut")
		if err := os.Truncate(path, cut); err != nil {
			t.Fatal(err)
		}
		keep := 0
		for keep < n && ends[keep+1] <= cut {
			keep++
		}
		got, torn, err := ReadRecords(dir, 0)
		if err != nil || len(got) != keep || torn != (cut != ends[keep]) {
			t.Fatalf("cut at %d of %v: read %d, torn %v, %v", cut, ends, len(got), torn, err)
		}
		w, _, err = openRecord(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.add(Record{Kind: Ended}); err != nil {
			t.Fatal(err)
		}
		w.file.Close()
		if got, torn, err = ReadRecords(dir, 0); err != nil || torn || len(got) != keep+1 || got[keep].Kind != Ended {
			t.Fatalf("after adding: read %d, torn %v, %v", len(got), torn, err)
		}
	})
}

func TestChangedRecordIsDamaged(t *testing.T) {
	dir := t.TempDir()
	w, _, err := openRecord(dir)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := w.add(Record{Kind: Progress}); err != nil {
			t.Fatal(err)
		}
	}
	w.file.Close()
	path := filepath.Join(dir, "record")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	line := len(b) / 3
	for name, c := range map[string]struct {
		at      int
		damaged bool
		read    int
	}{"first": {20, true, 0}, "second": {line + 20, true, 1}, "last": {2*line + 20, false, 2}, "newline": {line - 1, true, 0}} {
		changed := bytes.Clone(b)
		changed[c.at] ^= 1
		if err := os.WriteFile(path, changed, 0o644); err != nil {
			t.Fatal(err)
		}
		records, torn, err := ReadRecords(dir, 0)
		if errors.Is(err, ErrDamaged) != c.damaged || torn == c.damaged || len(records) != c.read {
			t.Errorf("%s: read %d, torn %v, %v", name, len(records), torn, err)
		}
	}
}

// The log is the whole output, or its beginning and end with the gap counted.
func TestLogKeepsBothEnds(t *testing.T) {
	dir := t.TempDir()
	draws.Check(t, func(t *rapid.T) {
		files, _ := filepath.Glob(filepath.Join(dir, "log*"))
		for _, f := range files {
			os.Remove(f)
		}
		quota := rapid.Int64Range(0, 64).Draw(t, "quota")
		l, err := newLogWriter(dir, quota)
		if err != nil {
			t.Fatal(err)
		}
		var all []byte
		for i := range rapid.IntRange(0, 12).Draw(t, "writes") {
			b := bytes.Repeat([]byte{byte('a' + i)}, rapid.IntRange(0, 40).Draw(t, "size"))
			all = append(all, b...)
			l.write(b)
		}
		l.close()
		var kept, dropped, at int64
		for {
			chunk, err := ReadLog(dir, at, rapid.IntRange(1, 50).Draw(t, "limit"))
			if err != nil {
				t.Fatal(err)
			}
			if len(chunk.Data) == 0 {
				break
			}
			from := at + chunk.Dropped
			if !bytes.Equal(chunk.Data, all[from:chunk.Next]) {
				t.Fatalf("read %q at %d of %q", chunk.Data, from, all)
			}
			if chunk.Dropped > 0 && at < quota/2 {
				t.Fatalf("dropped at %d, within the first half of %d", at, quota)
			}
			at, kept, dropped = chunk.Next, kept+int64(len(chunk.Data)), dropped+chunk.Dropped
		}
		size, most := int64(len(all)), quota/2+2*max(quota/4, 1)
		if at != size || kept+dropped != size || kept > most || size <= most && dropped > 0 {
			t.Fatalf("quota %d, output %d: kept %d, dropped %d, ended at %d", quota, size, kept, dropped, at)
		}
	})
}

func TestLogQuota(t *testing.T) {
	t.Parallel()
	s := shell(t, `echo first; yes 0123456789 | head -c 1000000; echo last >&2`)
	s.LogBytes = 64 << 10
	if r := run(t, s); r.Class != Done {
		t.Errorf("ended %+v", r)
	}
	got := output(t, s.MemberDir())
	if len(got) > 66<<10 || !strings.HasPrefix(got, "first\n") || !strings.HasSuffix(got, "last\n") || !strings.Contains(got, "bytes of output dropped here]") {
		t.Errorf("%d bytes of output: %.20q...%q", len(got), got, got[max(0, len(got)-20):])
	}
}

// A worker that floods its progress file fills no disk, and what it reports later counts.
func TestFloodOfProgress(t *testing.T) {
	t.Parallel()
	s := shell(t, `i=0; while [ $i -lt 40 ]; do yes nonsense | head -c 8000000 >>"$MUSTER_PROGRESS"; sleep .05; i=$((i+1)); done
		echo >>"$MUSTER_PROGRESS"; echo checkpoint step=7 path=/w >>"$MUSTER_PROGRESS"; sleep 1`)
	dir, _ := launch(t, s)
	send(t, dir, Go)
	ended, most := make(chan Record), int64(0)
	go func() { ended <- await(t, dir, Ended) }()
	for done := false; !done; {
		select {
		case r := <-ended:
			if r.Class != Done {
				t.Errorf("ended %+v", r)
			}
			done = true
		case <-time.After(20 * time.Millisecond):
			if info, err := os.Stat(ProgressPath(dir)); err == nil {
				most = max(most, info.Sys().(*syscall.Stat_t).Blocks*512)
			}
		}
	}
	if most > 120<<20 {
		t.Errorf("the file took %d MiB of the disk at most; 320 MB were written", most>>20)
	}
	t.Logf("at most %d MiB of 320 MB", most>>20)
	records, _, err := ReadRecords(dir, 0)
	if err != nil || !slices.ContainsFunc(records, func(r Record) bool { return r.Kind == Checkpoint && r.Report.Step == 7 }) {
		t.Errorf("the checkpoint after the flood is not in %+v (%v)", records, err)
	}
}

func TestClean(t *testing.T) {
	t.Parallel()
	s := shell(t, `yes | head -c 5000; mkdir -p `+"$D"+`; exit 0`)
	s.Env = append(s.Env, "D="+filepath.Join(s.MemberDir(), "checkpoints"))
	dir, _ := launch(t, s)
	if err := Clean(dir); err == nil || !strings.Contains(err.Error(), "it has not ended") {
		t.Errorf("cleaned a living member: %v", err)
	}
	send(t, dir, Go)
	await(t, dir, Ended) // and not for its supervisors to be gone
	if err := Clean(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(ProgressPath(dir)); !os.IsNotExist(err) || len(output(t, dir)) != 5000 {
		t.Errorf("progress: %v; %d bytes of log", err, len(output(t, dir)))
	}
	if left, err := os.ReadDir(dir); err != nil || !slices.ContainsFunc(left, func(e os.DirEntry) bool { return e.Name() == "checkpoints" }) {
		t.Errorf("left in %s: %v, %v, expected the checkpoints", dir, left, err)
	}
}

func TestScanToleratesJunk(t *testing.T) {
	state := t.TempDir()
	if members, err := Scan(state); err != nil || members != nil {
		t.Errorf("an empty state: %v, %v", members, err)
	}
	for path, text := range map[string]string{
		"attempts/file": "", "attempts/a.1/0/spec.json": "{", "attempts/b.1/0/other": "", "attempts/c.1/0/spec.json": `{"job":"c"}`,
		"attempts/d.1/0/record": "zzz",
	} {
		path = filepath.Join(state, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	members, err := Scan(state)
	if err != nil || len(members) != 3 {
		t.Fatalf("scan: %+v, %v", members, err)
	}
	for _, m := range members {
		if m.Err == nil || m.Alive || !strings.Contains(m.Err.Error(), "spec.json") {
			t.Errorf("member %+v, expected an error that names its spec", m)
		}
	}
	if !members[2].Torn {
		t.Error("half a record is not torn")
	}
}

func TestDefaults(t *testing.T) {
	s := Spec{}.withDefaults()
	if s.Stop.Grace != 10*unit.Second || s.LogBytes == 0 || s.SampleEvery == 0 || s.SummaryEvery == 0 || s.WaitGo == 0 || s.Umask == 0 {
		t.Errorf("%+v", s)
	}
	if s := (Spec{Watch: Watch{LogBytes: 5}}).withDefaults(); s.LogBytes != 5 {
		t.Errorf("%+v", s)
	}
}
