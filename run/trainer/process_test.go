package trainer

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterdl/muster/run/trainer/progress"
)

// TestMain lets the test binary be a worker of a real multi-process job.
func TestMain(m *testing.M) {
	if os.Getenv("MUSTER_TEST_WORKER") != "" {
		os.Exit(Main(os.Args[1:], os.Getenv, os.Stderr))
	}
	os.Exit(m.Run())
}

// processes is a job of real processes.
type processes struct {
	t      *testing.T
	args   []string
	all    []*exec.Cmd
	logs   []*bytes.Buffer
	report string
}

func spawn(t *testing.T, n int, args []string, env map[string]string) *processes {
	t.Helper()
	p := &processes{t: t, args: args, report: filepath.Join(t.TempDir(), "progress")}
	own := []string{"WORLD_SIZE=" + strconv.Itoa(n), "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + freePort(t)}
	for key, value := range env {
		own = append(own, key+"="+value)
	}
	for rank := range n {
		p.start(rank, own...)
	}
	return p
}

func (p *processes) start(rank int, env ...string) {
	p.t.Helper()
	c := exec.Command(os.Args[0], p.args...)
	c.Env = append(append(os.Environ(), "MUSTER_TEST_WORKER=1", "GOMAXPROCS=1", "RANK="+strconv.Itoa(rank),
		"MUSTER_PROGRESS="+p.report), env...)
	log := &bytes.Buffer{}
	c.Stderr = log
	if err := c.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { c.Process.Kill() })
	p.all, p.logs = append(p.all, c), append(p.logs, log)
}

// until waits for an event of rank 0.
func (p *processes) until(want func(progress.Event) bool) {
	p.t.Helper()
	tail := progress.NewTail(p.report)
	var parser progress.Parser
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		b, err := tail.Read()
		if err != nil {
			p.t.Fatal(err)
		}
		for _, e := range parser.Feed(b) {
			if want(e) {
				return
			}
		}
	}
	p.t.Fatalf("it did not happen; rank 0 says:\n%s", p.logs[0])
}

func (p *processes) signal(rank int, s syscall.Signal) {
	p.t.Helper()
	if err := p.all[rank].Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// wait returns what is left of the job, with -1 for killed processes.
func (p *processes) wait() result {
	p.t.Helper()
	r := result{}
	for i, c := range p.all {
		c.Wait() // the exit code tells
		r.codes, r.logs = append(r.codes, c.ProcessState.ExitCode()), append(r.logs, p.logs[i].String())
	}
	r.events = readEvents(p.t, p.report)
	return r
}

func reached(step int64) func(progress.Event) bool {
	return func(e progress.Event) bool { return e.Kind == progress.Step && e.Step >= step }
}

// paced is a tiny job that leaves time to meddle.
func paced() (Config, []string) {
	c := tiny()
	c.Steps, c.CheckpointEvery = 40, 10
	return c, flags(c, "--step-delay", "15ms")
}

func TestKillOneWorkerAndResume(t *testing.T) {
	c, slow := paced()
	for _, d := range []division{{"3 workers", 3, nil}, {"2 stages", 2, oneForwardOneBackward(3, 2)}, {"2 pipelines of 2 stages", 4, oneForwardOneBackward(3, 2)}} {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			want := attempt(t, d.workers, flags(c), d.env(t, "")).must(t, ExitDone).losses()
			env := d.env(t, t.TempDir())
			p := spawn(t, d.workers, slow, env)
			p.until(reached(14))
			p.signal(d.workers-1, syscall.SIGKILL)
			killed := time.Now()
			r := p.wait()
			if waited := time.Since(killed); waited > 10*time.Second {
				t.Errorf("the others ended after %s", waited)
			}
			for rank, code := range r.codes[:d.workers-1] {
				if code != ExitPeer || !strings.Contains(r.logs[rank], errPeer.Error()) {
					t.Errorf("rank %d ended with %d:\n%s", rank, code, r.logs[rank])
				}
			}
			saved := r.saved()
			if len(saved) == 0 || saved[len(saved)-1] < 10 {
				t.Fatalf("saved at %v", saved)
			}
			got := spawn(t, d.workers, flags(c), env).wait().must(t, ExitDone).losses()
			for step := saved[len(saved)-1] + 1; step <= int64(c.Steps); step++ {
				if got[step] != want[step] {
					t.Errorf("step %d: loss %v, undisturbed %v", step, got[step], want[step])
				}
			}
			if len(got) != c.Steps-int(saved[len(saved)-1]) {
				t.Errorf("%d steps after a checkpoint at %v", len(got), saved)
			}
		})
	}
}

func TestSignals(t *testing.T) {
	c, slow := paced()
	c.CheckpointEvery = 0
	slow = append(slow, "--checkpoint-every", "0")
	for _, d := range []division{{"1 worker", 1, nil}, {"2 workers", 2, nil}, {"2 stages", 2, gpipe(2, 2)}} {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			env := d.env(t, t.TempDir())
			p := spawn(t, d.workers, slow, env)
			p.until(reached(3))
			p.signal(d.workers-1, syscall.SIGUSR1)
			p.until(func(e progress.Event) bool { return e.Kind == progress.Checkpoint })
			p.signal(0, syscall.SIGTERM) // one of them is enough: all stop at one boundary
			r := p.wait().must(t, ExitStopped)
			losses, saved := r.losses(), r.saved()
			if len(saved) != 2 || saved[1] != int64(len(losses)) {
				t.Errorf("saved at %v after %d steps", saved, len(losses))
			}
			got := spawn(t, d.workers, flags(c), env).wait().must(t, ExitDone).losses()
			if len(got)+len(losses) != c.Steps {
				t.Errorf("%d steps, then %d: want %d in all", len(losses), len(got), c.Steps)
			}
		})
	}
}

func TestStopWhileWaitingForTheOthers(t *testing.T) {
	t.Parallel()
	for rank := range 2 {
		master := net.JoinHostPort("127.0.0.1", freePort(t))
		var door net.Listener
		var err error
		if rank == 1 { // the test is a rank 0 that never answers
			if door, err = net.Listen("tcp", master); err != nil {
				t.Fatal(err)
			}
		}
		_, port, _ := net.SplitHostPort(master)
		p := &processes{t: t, report: filepath.Join(t.TempDir(), "progress")}
		p.start(rank, "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT="+port)
		if rank == 1 {
			conn, err := door.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
		} else {
			p.until(func(e progress.Event) bool { return e.Name == "rendezvous" })
		}
		p.signal(0, syscall.SIGTERM)
		p.wait().must(t, ExitStopped)
	}
}

// A scheduler that takes turns stops a gang as a whole: that is no loss of a peer.
// A single member that hangs is one.
func TestSuspension(t *testing.T) {
	if os.Getenv("MUSTER_LONG") == "" {
		t.Skip("takes 30 s: set MUSTER_LONG=1 to run it")
	}
	_, slow := paced()
	p := spawn(t, 2, slow, nil)
	p.until(reached(5))
	for rank := range 2 {
		p.signal(rank, syscall.SIGSTOP)
	}
	time.Sleep(13 * time.Second)
	for rank := range 2 {
		p.signal(rank, syscall.SIGCONT)
	}
	p.until(reached(20))
	p.signal(1, syscall.SIGSTOP)
	begin := time.Now()
	if err := p.all[0].Wait(); p.all[0].ProcessState.ExitCode() != ExitPeer {
		t.Errorf("rank 0 beside a hanging peer: %v\n%s", err, p.logs[0])
	}
	if waited := time.Since(begin); waited > 13*time.Second {
		t.Errorf("noticed after %s", waited)
	}
}
