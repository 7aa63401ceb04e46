package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterdl/muster/internal/client"
	"github.com/musterdl/muster/internal/promise"
	"github.com/musterdl/muster/internal/server"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// promised starts a world whose promises are in a file.
func promised(t *testing.T, change func(*promise.Config)) (*world, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "promises.jsonl")
	var keeper *promise.Keeper
	w := start(t, func(c *server.Config) {
		config := promise.Default(c.Plane, quiet())
		config.Path, config.After = path, unit.Hour
		if change != nil {
			change(&config)
		}
		var err error
		if keeper, err = promise.Open(config); err != nil {
			t.Fatal(err)
		}
		c.Promises = keeper
	})
	t.Cleanup(func() {
		if err := keeper.Close(); err != nil {
			t.Error(err)
		}
	})
	return w, path
}

func (w *world) when(name string) (y view.When) {
	w.t.Helper()
	y, err := w.client.When(w.t.Context(), name)
	if err != nil {
		w.t.Fatal(err)
	}
	return y
}

// A waiting job is told when it starts and ends, a running one when it ends, and one that
// is kept back why there is nothing to tell; what is told is in the file.
func TestWhen(t *testing.T) {
	w, path := promised(t, nil)
	long := job("long", 2)
	long.Estimate = 20 * unit.Minute
	w.submit(long, lasts("other", 2), lasts("waits", 2), lasts("kept", 1))
	w.until("other", "active", "running")
	if _, err := w.client.ChangeJob(t.Context(), "kept", "hold"); err != nil {
		t.Fatal(err)
	}
	y := w.when("waits")
	if y.LowUs == nil || y.EndLowUs == nil || y.Samples == 0 || y.Samples > 30 || y.Basis == "" || y.Calibration == nil || y.Calibration.Promises != 0 || y.Words != "" {
		t.Fatalf("waits: %+v", y)
	}
	if *y.LowUs > *y.MedianUs || *y.MedianUs > *y.HighUs || *y.LowUs < y.NowUs || *y.EndMedianUs <= *y.MedianUs {
		t.Errorf("the ranges are no ranges: %+v", y)
	}
	if y := w.when("long"); y.LowUs != nil || y.EndLowUs == nil {
		t.Errorf("long, which runs: %+v", y)
	}
	if y := w.when("kept"); y.LowUs != nil || y.EndLowUs != nil || !strings.Contains(y.Words, "held") {
		t.Errorf("kept: %+v", y)
	}
	w.when("waits") // the same again
	data, err := os.ReadFile(path)
	if n := bytes.Count(data, []byte("\n")); err != nil || n != 2 {
		t.Errorf("%d promises are in the file, want 2 (%v):\n%s", n, err, data)
	}
	w.submit(lasts("huge", 9))
	if y := w.when("huge"); !y.Never || y.LowUs != nil || !strings.HasPrefix(y.Words, "can never start here") {
		t.Errorf("huge, which there is no room for: %+v", y)
	}
	if status, _ := w.do("GET", "/v1/jobs/nobody/when", "", ""); status != http.StatusNotFound {
		t.Errorf("of a job that is not there: %d", status)
	}
}

// TestComing: that a run has to give way to maintenance is said by the list, the job and
// why in the same words, and no more when it is called off.
func TestComing(t *testing.T) {
	w, _ := promised(t, nil)
	long := job("long", 2)
	long.Estimate = 5 * unit.Hour
	w.submit(long)
	w.until("long", "active", "running")
	running, err := w.client.Job(t.Context(), "long")
	if err != nil {
		t.Fatal(err)
	}
	node, from := running.Where[0].Node, time.Now().Add(time.Hour)
	said := func() (reasons [3]string) {
		list, err := w.client.Jobs(t.Context(), client.ListOptions{})
		if err != nil || len(list.Jobs) != 1 {
			t.Fatalf("%+v, %v", list, err)
		}
		shown, err := w.client.Job(t.Context(), "long")
		if err != nil {
			t.Fatal(err)
		}
		why, err := w.client.Why(t.Context(), "long")
		if err != nil {
			t.Fatal(err)
		}
		return [3]string{list.Jobs[0].Reason, shown.Reason, why.Words}
	}
	if _, err := w.client.CloseNode(t.Context(), node, view.WindowRequest{FromUs: from.UnixMicro(), ToUs: from.Add(time.Hour).UnixMicro()}); err != nil {
		t.Fatal(err)
	}
	for _, reason := range said() {
		if !strings.Contains(reason, "; will give way in about 59m") || !strings.HasSuffix(reason, ": "+node+" is closed for maintenance then") {
			t.Errorf("it says %q", reason)
		}
	}
	if _, err := w.client.ChangeNode(t.Context(), node, "reopen"); err != nil {
		t.Fatal(err)
	}
	for _, reason := range said() {
		if strings.Contains(reason, "give way") {
			t.Errorf("called off, it says %q", reason)
		}
	}
}

// lasts is a job whose owner says ten minutes.
func lasts(name string, devices int32) (j workload.Job) {
	j = job(name, 1)
	j.Gang = devices
	j.Estimate = 10 * unit.Minute
	return j
}

// What was promised is scored when the job starts and ends, without a byte of what was
// said being changed.
func TestPromisesScored(t *testing.T) {
	w, path := promised(t, nil)
	w.submit(lasts("first", 4), lasts("second", 4))
	w.until("first", "active", "running")
	w.when("second")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if s := w.scored(0); s.Promises != 1 || s.Pending != 2 || s.HitRate != nil {
		t.Errorf("before anything happened: %+v", s)
	}
	w.finish("first", plan.NoFailure)
	w.until("second", "active", "running")
	s := w.scored(1)
	if s.Promises != 1 || s.Coverage == nil || *s.Coverage != 0 || s.MedianErrorSec <= 0 {
		t.Errorf("it started ten minutes early: %+v", s)
	}
	w.finish("second", plan.NoFailure)
	s = w.scored(2)
	if s.EndCoverage == nil || *s.EndCoverage != 0 || *s.HitRate != 0 || s.Pending != 0 {
		t.Errorf("it ended: %+v", s)
	}
	after, err := os.ReadFile(path)
	if err != nil || !bytes.HasPrefix(after, before) || bytes.Count(after, []byte("\n")) != 3 {
		t.Errorf("the file was\n%sand is\n%s (%v)", before, after, err)
	}
}

// scored waits until so many ranges were scored, and returns what is told of them.
func (w *world) scored(n int) view.PromiseScore {
	w.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		p, err := w.client.Promises(w.t.Context())
		if err != nil {
			w.t.Fatal(err)
		}
		if len(p.Queues) > 0 && p.Queues[0].Scored+p.Queues[0].ScoredEnds >= n {
			return p.Queues[0]
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("not %d scored: %+v", n, p)
		}
	}
}

// A job that waits is promised something without anybody asking.
func TestUnasked(t *testing.T) {
	w, path := promised(t, func(c *promise.Config) { c.After, c.Every = unit.Millisecond, time.Millisecond })
	w.submit(lasts("first", 4), lasts("second", 4), lasts("third", 4))
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		data, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(data), `"name":"third"`) && strings.Contains(string(data), `"name":"second"`) {
			if strings.Contains(string(data), `"name":"first"`) || bytes.Count(data, []byte("\n")) != 2 {
				t.Errorf("the file has\n%s", data)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("nothing was promised unasked: %s (%v)", data, err)
		}
	}
}

// Who does not see a queue is not told how good its promises are.
func TestPromisesOfQueues(t *testing.T) {
	w := share(t)
	w.set(named("research", 0, 2), named("ops", 0, 2))
	for i, tenant := range []string{"research", "ops"} {
		for k := range 3 {
			j := lasts(fmt.Sprintf("j%d%d", i, k), 2)
			j.Tenant = tenant
			w.submit(j)
		}
		w.when(fmt.Sprintf("j%d2", i))
	}
	for who, want := range map[string]string{"olga": ",ops,research", "vera": ",research", "fred": ",ops"} {
		p, err := w.as(who).Promises(t.Context())
		var names []string
		for _, q := range p.Queues {
			names = append(names, q.Queue)
		}
		if got := strings.Join(names, ","); err != nil || got != want {
			t.Errorf("%s sees %q, want %q (%v)", who, got, want, err)
		}
	}
}

// Shadows are added, told of and removed.
func TestShadows(t *testing.T) {
	w := start(t, nil)
	s, err := w.client.ChangeShadows(t.Context(), view.ShadowRequest{Add: "srtf+declared"})
	if err != nil || len(s.Shadows) != 1 || s.Active != "fifo" {
		t.Fatalf("%+v (%v)", s, err)
	}
	short := lasts("short", 4)
	short.Estimate = unit.Minute
	w.submit(lasts("first", 4), lasts("long", 4), short)
	w.until("first", "active", "running")
	w.finish("first", plan.NoFailure)
	w.until("long", "active", "running")
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if s, err = w.client.Shadows(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s.Shadows[0].Differing > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%+v", s)
		}
	}
	d := s.Shadows[0].Differences
	if last := d[len(d)-1]; !strings.HasPrefix(strings.Join(last.Shadow, ","), "start short on node0:0,1 node1:") && !strings.Contains(strings.Join(last.Shadow, ","), "stop first") {
		t.Errorf("it differs in %+v", d)
	}
	if s, err = w.client.Regrets(t.Context()); err != nil || s.Calibration == nil || s.Calibration.Jobs != 1 || s.Shadows[0].Regret == nil {
		t.Errorf("%+v (%v)", s, err)
	}
	for _, body := range []string{`{}`, `{"add": "nonsense"}`, `{"add": "fifo", "remove": "fifo"}`, `{"remove": "nobody"}`, `{"add": "srtf+declared"}`, `{"add": "/etc/passwd"}`} {
		if status, answer := w.do("POST", "/v1/shadows", "application/json", body); status != http.StatusBadRequest && status != http.StatusConflict {
			t.Errorf("%s: %d %s", body, status, answer)
		}
	}
	if s, err = w.client.ChangeShadows(t.Context(), view.ShadowRequest{Remove: s.Shadows[0].Name}); err != nil || len(s.Shadows) != 0 {
		t.Errorf("removed: %+v (%v)", s, err)
	}
	if b, err := json.Marshal(s); err != nil || !strings.Contains(string(b), `"shadows":[]`) {
		t.Errorf("%s (%v)", b, err)
	}
}
