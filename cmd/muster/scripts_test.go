package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/script"
	"github.com/musterdl/muster/internal/store"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

const shortestFirst = "../../docs/examples/external/shortest_first.py"

func needPython(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not on the PATH: the example scripts are written in it")
	}
}

// broken are scripts that fail, each in its way, and what the log says of it.
var broken = map[string]struct{ lines, limit, says string }{
	"hangs":          {"import sys, time\nprint('{\"hello\": \"x\", \"protocol\": 1}')\ntime.sleep(1000)\n", "0.3", "its time limit has passed"},
	"exits":          {"import sys\nprint('no data', file=sys.stderr)\nsys.exit(3)\n", "20", "it ended"},
	"prints rubbish": {"import sys\nprint('{\"hello\": \"x\", \"protocol\": 1}')\nfor line in sys.stdin:\n    print('let me see')\n", "20", "let me see"},
	"names nobody":   {"import sys\nprint('{\"hello\": \"x\", \"protocol\": 1}')\nfor line in sys.stdin:\n    print('{\"order\": [7777]}')\n", "20", "order[0] is 7777"},
}

// composition writes a file that lets a script of these lines decide.
func composition(t *testing.T, lines, limit string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"script.py": lines,
		"broken.yaml": "joint: external\noptions:\n  external:\n    command: [python3, -u, " + filepath.Join(dir, "script.py") + "]\n    limit-s: " + limit + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "broken.yaml")
}

type simulatedResult struct {
	Jobs     int     `json:"jobs"`
	Finished int     `json:"finished"`
	JCT      float64 `json:"avg_jct_s"`
	Hash     string  `json:"decision_hash"`
}

// simulateBy runs the small reference work through a strategy.
func simulateBy(t *testing.T, strategy string) (r simulatedResult, log string) {
	t.Helper()
	out := mustMuster(t, "simulate", "--trace", "gen:rw-a-prime", "--cluster", "gpus:15x4", "--load", "0.95", "--strategy", strategy, "--check", "--json", "--free")
	at := strings.Index(out, "{\n")
	if err := json.Unmarshal([]byte(out[at:]), &r); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	return r, out[:at]
}

// TestScriptSimulated: the example is in the simulator what an order of the catalogue is;
// the same script decides the same again.
func TestScriptSimulated(t *testing.T) {
	needPython(t)
	text, err := os.ReadFile(shortestFirst)
	if lines := strings.Count(string(text), "\n"); err != nil || lines > 40 {
		t.Errorf("the example has %d lines, %v: at most 40", lines, err)
	}
	fifo, _ := simulateBy(t, "fifo")
	sjf, _ := simulateBy(t, "sjf+oracle")
	informed, log := simulateBy(t, "script:"+shortestFirst+"+oracle")
	again, _ := simulateBy(t, "script:"+shortestFirst+"+oracle")
	if informed.JCT > 0.95*fifo.JCT || informed.JCT > 1.1*sjf.JCT || informed.Finished != informed.Jobs {
		t.Errorf("mean JCT %.0f s by the script, %.0f s by sjf, %.0f s by fifo", informed.JCT, sjf.JCT, fifo.JCT)
	}
	if informed.Hash != again.Hash || log != "" {
		t.Errorf("the same script decided %s, then %s; its log: %s", informed.Hash, again.Hash, log)
	}
	blind, _ := simulateBy(t, "script:"+shortestFirst)
	if blind.JCT != fifo.JCT {
		t.Errorf("without estimates its order is that of submission: mean JCT %.0f s, by fifo %.0f s", blind.JCT, fifo.JCT)
	}
	whole, log := simulateBy(t, "script:../../docs/examples/external/whole_scheduler.py")
	if whole.JCT > 0.95*fifo.JCT || whole.Finished != whole.Jobs || log != "" {
		t.Errorf("mean JCT %.0f s by the whole scheduler, %.0f s by fifo; its log: %s", whole.JCT, fifo.JCT, log)
	}
}

// TestBrokenScriptSimulated: with a script that fails, jobs go first in, first out, and
// the log says what was wrong with it.
func TestBrokenScriptSimulated(t *testing.T) {
	needPython(t)
	fifo, _ := simulateBy(t, "fifo")
	for name, b := range broken {
		t.Run(name, func(t *testing.T) {
			r, log := simulateBy(t, composition(t, b.lines, b.limit))
			if r.JCT != fifo.JCT || r.Finished != r.Jobs {
				t.Errorf("mean JCT %.0f s with %d of %d jobs done, by fifo %.0f s", r.JCT, r.Finished, r.Jobs, fifo.JCT)
			}
			if !strings.Contains(log, b.says) || !strings.Contains(log, "given up") {
				t.Errorf("the log does not say %q and that it is given up:\n%s", b.says, log)
			}
		})
	}
	if _, err := muster(t, "simulate", "--strategy", "script:no/such.py"); err == nil || !strings.Contains(err.Error(), "no/such.py") {
		t.Errorf("a script that is not there: %v", err)
	}
	if out, err := muster(t, "simulate", "--strategy", "external", "--limit", "3"); err != nil || !strings.Contains(out, "no script is named") {
		t.Errorf("without a script: %v, %s", err, out)
	}
}

// stage is a control plane of one device on which nothing ends by itself.
type stage struct {
	t       *testing.T
	plane   *plane.Plane
	journal *store.Store
	end     func()
	mu      sync.Mutex
	log     strings.Builder
}

func (s *stage) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(b)
}

func (s *stage) logged() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

func newStage(t *testing.T, strategy string) *stage {
	t.Helper()
	s := &stage{t: t}
	c, err := catalogue.ResolveLive(strategy)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(s, nil))
	endScripts := hostScripts(&script.Host{Log: log, BackOff: time.Second})
	if s.journal, err = store.Open(t.TempDir(), store.Options{Now: now}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.plane, err = plane.Open(plane.Config{Cluster: cluster.Uniform("lab", 1, 1, cluster.Model{Name: "gpu", Memory: 32 << 10, Speed: 1}, 16), Strategy: c,
		Seed: 1, Policy: engine.DefaultPolicy(), Journal: s.journal, Driver: newIdleDriver(ctx), Now: now, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.plane.Run(ctx) }()
	s.end = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		endScripts()
	}
	return s
}

// submit submits jobs with the running times that their owners expect, all at once.
func (s *stage) submit(names string, expect ...unit.Duration) {
	s.t.Helper()
	var events []engine.Event
	for i, name := range strings.Fields(names) {
		events = append(events, engine.Event{Kind: engine.Submit, Spec: &workload.Job{Name: name,
			Resources: workload.Resources{Gang: 1, Devices: 1, Share: unit.Whole}, Estimate: expect[i]}})
	}
	for _, r := range s.plane.Requests(s.t.Context(), events) {
		if r.Err != nil {
			s.t.Fatal(r.Err)
		}
	}
}

// next waits for a job to run, ends it, and returns its name.
func (s *stage) next() (name string) {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(2 * time.Millisecond) {
		e := engine.Event{Kind: engine.Exited, Job: plan.None}
		if err := s.plane.Query(s.t.Context(), func(v plan.View) {
			for id := range plan.JobID(v.Jobs()) {
				if j := v.Job(id); j.Run != plan.None && v.Run(j.Run).Status == plan.Running {
					name, e.Job, e.Attempt = v.Name(id), id, j.Attempt
				}
			}
		}); err != nil {
			s.t.Fatal(err)
		}
		if e.Job != plan.None {
			s.plane.Report(e)
			return name
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("nothing runs; the log:\n%s", s.logged())
		}
	}
}

// told waits until the script has answered a question that names so many jobs.
func (s *stage) told(jobs int) {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(2 * time.Millisecond) {
		f, err := s.plane.Fork(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		if strings.Contains(string(f.State.Memory), fmt.Sprintf(`"asked":%d,`, jobs)) {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the script never answered for %d jobs: %s; the log:\n%s", jobs, f.State.Memory, s.logged())
		}
	}
}

// verify ends the control plane and decides its journal again, where no script is.
func (s *stage) verify() {
	s.t.Helper()
	s.end()
	defer s.journal.Close()
	catalogue.Scripts = func([]string, unit.Duration) catalogue.Exchange { return silence{s.t} }
	defer func() { catalogue.Scripts = nil }()
	found, err := plane.Verify(s.journal)
	if err != nil || found.Differs != 0 || found.Commits == 0 {
		s.t.Errorf("decided again: %+v, %v", found, err)
	}
}

// silence is an exchange that nobody may use.
type silence struct{ t *testing.T }

func (s silence) Ask([]byte) (hello, reply []byte, err error) {
	s.t.Error("the script was asked again")
	return nil, nil, nil
}

func (s silence) End(error) {}

// TestScriptLive: live the example decides who is next, also among jobs that come
// together, and its journal is decided again without it.
func TestScriptLive(t *testing.T) {
	needPython(t)
	s := newStage(t, "script:"+shortestFirst)
	s.submit("hour minute unknown day", unit.Hour, unit.Minute, 0, unit.Day)
	got := []string{s.next()}
	s.submit("second", unit.Second)
	s.told(5) // or an answer that was under way may let another go first
	for range 4 {
		got = append(got, s.next())
	}
	s.verify()
	if list := strings.Join(got, " "); list != "minute second hour day unknown" && list != "minute hour second day unknown" {
		// The second order is that of a submission that comes just after the end before.
		t.Errorf("the jobs ran as %s; the log:\n%s", list, s.logged())
	}
}

// TestBrokenScriptLive: with a script that fails, jobs go first in, first out, before
// long; the log says why, and the journal is decided again.
func TestBrokenScriptLive(t *testing.T) {
	needPython(t)
	for name, b := range broken {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, composition(t, b.lines, b.limit))
			s.submit("a b c", unit.Hour, unit.Minute, unit.Second)
			got := s.next() + s.next() + s.next()
			s.verify()
			if got != "abc" {
				t.Errorf("the jobs ran as %s", got)
			}
			if !strings.Contains(s.logged(), b.says) {
				t.Errorf("the log does not say %q:\n%s", b.says, s.logged())
			}
		})
	}
}

// TestScriptsAllowed: a control plane runs the scripts that it was started with, and
// none that came over the wire.
func TestScriptsAllowed(t *testing.T) {
	needPython(t)
	strategy, err := catalogue.ResolveLive("script:" + shortestFirst)
	if err != nil {
		t.Fatal(err)
	}
	f := upFlags{scripts: []string{"named.py"}}
	end, err := f.liveScripts(slog.New(slog.DiscardHandler), strategy)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	if hello, _, err := catalogue.Scripts(strategy.Command(), unit.Minute).Ask([]byte(`{"jobs": []}`)); err != nil || !strings.Contains(string(hello), "shortest-first") {
		t.Errorf("that of --strategy: %q, %v", hello, err)
	}
	for path, refused := range map[string]bool{"named.py": false, "other.py": true} {
		path, _ := filepath.Abs(path)
		_, _, err := catalogue.Scripts(catalogue.ScriptCommand(path), unit.Minute).Ask(nil)
		if got := err != nil && strings.Contains(err.Error(), "--script"); got != refused {
			t.Errorf("%s: %v", path, err)
		}
	}
}
