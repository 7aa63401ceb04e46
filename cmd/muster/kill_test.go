package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/musterdl/muster/internal/client"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/run/local/supervise"
)

// TestMain lets this binary be muster itself: the control planes, supervisors and
// trainers that tests start are this program.
func TestMain(m *testing.M) {
	if os.Getenv("MUSTER_TEST_AS_MUSTER") != "" || len(os.Args) > 1 && os.Args[1] == "supervise" {
		main()
		tellPeak()
		os.Exit(0)
	}
	if err := sideBySide(4); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// sideBySide has so many tests run at once where nobody says how many: they wait for processes more than they compute.
func sideBySide(n int) error {
	flag.Parse()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" })
	if said {
		return nil
	}
	return flag.Set("test.parallel", strconv.Itoa(n))
}

// controlPlane is a muster up in a process of its own, to be killed.
type controlPlane struct {
	t      *testing.T
	state  string
	flags  []string // besides the usual ones
	bare   bool     // without control groups
	cmd    *exec.Cmd
	client *client.Client
	// account is whose it is, and program what that account runs; left out they are those of
	// the test.
	account *syscall.Credential
	program string
}

// command is a call of the program against the control plane.
func (p *controlPlane) command(args ...string) *exec.Cmd {
	cmd := exec.Command(cmp.Or(p.program, os.Args[0]), args...)
	cmd.Env = append(os.Environ(), "MUSTER_TEST_AS_MUSTER=1", "MUSTER_SOCKET="+p.socket())
	if p.account != nil {
		cmd.Dir, cmd.Env = p.state, append(cmd.Env, "HOME="+p.state, "PATH="+filepath.Join(p.state, "closed")+":"+os.Getenv("PATH"))
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.account}
	}
	return cmd
}

// stoppedPlane is a control plane on an empty state directory; it is not started.
func stoppedPlane(t *testing.T) *controlPlane {
	t.Helper()
	state, err := os.MkdirTemp("", "muster-plane-") // sockets have short names, so not below t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		endAll(state)
		os.RemoveAll(state)
	})
	return &controlPlane{t: t, state: state}
}

// toKill starts a control plane, and says how many kills to make, drawn from a seed.
func toKill(t *testing.T, seed uint64, few, many int) (p *controlPlane, rounds int, chance *rand.Rand) {
	t.Helper()
	if rounds = few; os.Getenv("MUSTER_LONG") != "" {
		rounds = many
	}
	t.Logf("seed %d, %d kills", seed, rounds)
	p = stoppedPlane(t)
	p.start()
	t.Cleanup(p.kill)
	return p, rounds, rand.New(rand.NewPCG(seed, 0))
}

func (p *controlPlane) start() {
	p.t.Helper()
	log, err := os.OpenFile(filepath.Join(p.state, "muster.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		p.t.Fatal(err)
	}
	defer log.Close()
	p.cmd = p.command("up", "--state", p.state, "--socket", p.socket(), "--listen", "", "--strategy", "tiresias",
		"--slots", "6", "--slot-cpu", "200m", "--allow-root", "--back-off", "100ms", "--grace", "1s", "--checkpoint-wait", "100ms")
	p.cmd.Args = append(p.cmd.Args, p.flags...)
	if p.bare {
		p.cmd = withoutGroups(p.cmd)
	}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.client = client.New(p.socket())
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := p.client.Version(p.t.Context()); err == nil {
			return
		}
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(filepath.Join(p.state, "muster.log"))
			p.t.Fatalf("the control plane did not come up:\n%s", text)
		}
	}
}

func (p *controlPlane) socket() string { return filepath.Join(p.state, "s") }

// goOnIn starts it on another state directory. What lives on below that ends before it goes, as below the first.
func (p *controlPlane) goOnIn(state string) {
	p.t.Helper()
	p.t.Cleanup(func() { endAll(state) })
	p.state = state
	p.start()
}

func (p *controlPlane) kill() {
	p.t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		p.t.Fatal(err)
	}
	_ = p.cmd.Wait() // killed, as it was meant to be
	p.cmd = nil
}

// dump logs what is known of a job that is not where it should be.
func (p *controlPlane) dump(name string) {
	j, err := p.client.Job(p.t.Context(), name)
	p.t.Logf("%+v, %v", j, err)
	for rank := range j.Gang {
		for attempt := range j.Attempt {
			spec := supervise.Spec{State: p.state, Job: name, Attempt: attempt + 1, Rank: rank}
			m := supervise.Look(spec.MemberDir())
			p.t.Logf("attempt %d rank %d: alive %v, started %v, last %+v, %v", attempt+1, rank, m.Alive, m.Started, m.Last, m.Err)
		}
	}
	text, err := os.ReadFile(filepath.Join(p.state, "muster.log"))
	p.t.Logf("%s %v", text[max(0, len(text)-3000):], err)
}

// TestKilledControlPlane kills the control plane at random moments, half of them
// right after an acknowledgement, while short jobs run. The supervisors' own records
// are the judges: at most one start and one end per attempt, no two live attempts of
// one job, and every acknowledged job ends. The recovered state is proven legal at
// each start, else the control plane refuses to come up.
func TestKilledControlPlane(t *testing.T) {
	t.Parallel()
	p, rounds, chance := toKill(t, 1, 20, 200)
	var acknowledged []string
	for round := range rounds {
		for i := range 1 + chance.IntN(3) {
			name := fmt.Sprintf("r%d-%d", round, i)
			gang := int32(1 + chance.IntN(2))
			job := workload.Job{Name: name, Resources: workload.Resources{Gang: gang, Devices: 1, Share: unit.Whole}, Retries: 2,
				Program: workload.Program{Command: []string{"sh", "-c", fmt.Sprintf("sleep 0.%d", chance.IntN(4))}, Env: []string{"PATH=" + os.Getenv("PATH")}}}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if _, err := p.client.Submit(ctx, []workload.Job{job}, "key-"+name); err == nil {
				acknowledged = append(acknowledged, name)
			}
			cancel()
		}
		if round%2 == 0 {
			time.Sleep(time.Duration(chance.IntN(50)) * time.Millisecond)
		} else {
			time.Sleep(time.Duration(chance.IntN(400)) * time.Millisecond)
		}
		p.kill()
		p.start()
	}
	for _, name := range acknowledged {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		j, err := p.client.Wait(ctx, name)
		cancel()
		if err != nil || j.Phase != "finished" {
			p.dump(name)
			t.Fatalf("acknowledged job %s is %s (%s), %v", name, j.Phase, j.Reason, err)
		}
	}
	judge(t, p.state)
}

// judge reads the record of every worker there ever was.
func judge(t *testing.T, state string) {
	t.Helper()
	members, err := supervise.Scan(state)
	if err != nil {
		t.Fatal(err)
	}
	type span struct {
		attempt  int32
		from, to unit.Time
	}
	lives := map[string][]span{}
	for _, m := range members {
		records, torn, err := supervise.ReadRecords(m.Dir, 0)
		if err != nil || torn {
			t.Errorf("%s: torn=%v, %v", m.Dir, torn, err)
		}
		starts, ends := 0, 0
		var s span
		for _, r := range records {
			switch r.Kind {
			case supervise.Started:
				starts++
				s.from = r.At
			case supervise.Ended:
				ends++
				s.to = r.At
			}
		}
		if starts > 1 || ends != 1 {
			t.Errorf("%s: %d starts and %d ends", m.Dir, starts, ends)
		}
		if starts == 1 && m.Spec.Rank == 0 {
			s.attempt = m.Spec.Attempt
			lives[m.Spec.Job] = append(lives[m.Spec.Job], s)
		}
	}
	for job, spans := range lives {
		for i, a := range spans {
			for _, b := range spans[:i] {
				if a.from < b.to && b.from < a.to {
					t.Errorf("attempts %d and %d of %s were alive at once", a.attempt, b.attempt, job)
				}
			}
		}
	}
	if len(lives) == 0 {
		t.Error("no worker ever started")
	}
}

func parentOf(pid int) int {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	var id, parent int
	var comm, status string
	if _, err := fmt.Sscanf(string(data), "%d %s %s %d", &id, &comm, &status, &parent); err != nil {
		return 0
	}
	return parent
}

// TestWhoWaitsOutlivesARestart: a wait, a followed log and a submission under way go on when
// the control plane is killed and started again; the log is whole and has nothing twice.
func TestWhoWaitsOutlivesARestart(t *testing.T) {
	t.Parallel()
	p, _, _ := toKill(t, 3, 1, 1)
	script := "for i in 1 2 3 4 5 6 7 8; do echo line $i; sleep 0.4; done"
	job := workload.Job{Name: "long", Resources: workload.Resources{Gang: 1, Devices: 1, Share: unit.Whole},
		Program: workload.Program{Command: []string{"sh", "-c", script}, Env: []string{"PATH=" + os.Getenv("PATH")}}}
	if _, err := p.client.Submit(t.Context(), []workload.Job{job}, "key"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := make(chan error, 3)
	var log strings.Builder
	follower, waiter := client.New(p.socket()), client.New(p.socket())
	var away atomic.Int32
	follower.Away = func(error) { away.Add(1) }
	go func() { ended <- follower.Logs(ctx, "long", client.LogOptions{Follow: true}, &log) }()
	go func() {
		j, err := waiter.Wait(ctx, "long")
		if err == nil && j.Phase != "finished" {
			err = fmt.Errorf("the job is %s: %s", j.Phase, j.Reason)
		}
		ended <- err
	}()
	time.Sleep(time.Second)
	p.kill()
	go func() { // once the server was there, a submission waits for it too
		job.Name, job.Command = "after", []string{"true"}
		_, err := follower.Submit(ctx, []workload.Job{job}, "another key")
		ended <- err
	}()
	time.Sleep(300 * time.Millisecond)
	p.start()
	for range 3 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	want := "line 1\nline 2\nline 3\nline 4\nline 5\nline 6\nline 7\nline 8\n"
	if log.String() != want || away.Load() == 0 {
		t.Errorf("the log followed is %q, away %d times", log.String(), away.Load())
	}
	if _, err := client.New(filepath.Join(p.state, "nobody")).Wait(ctx, "long"); !errors.Is(err, client.ErrNoServer) {
		t.Errorf("a server that never was is waited for: %v", err)
	}
}

// TestAnotherNumberOfSlots: the control plane starts with fewer slots than before and with more,
// and with other memory; what does not fit any more waits, and nothing runs twice.
func TestAnotherNumberOfSlots(t *testing.T) {
	t.Parallel()
	p, _, _ := toKill(t, 5, 1, 1)
	p.muster("submit", "--name", "sweep", "--array", "6", "--", "sleep", "60")
	active := func(n int) {
		t.Helper()
		var j view.Job
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
			var err error
			if j, err = p.client.Job(t.Context(), "sweep"); err != nil {
				t.Fatal(err)
			}
			if j.Copies["active"] == n && j.Copies["waiting"]+j.Copies["backoff"] == 6-n {
				return
			}
		}
		t.Errorf("%d copies should run: %+v", n, j.Copies)
	}
	active(6)
	for _, flags := range [][]string{{"--slots", "3"}, {"--slots", "5", "--slot-memory", "7GiB"}, {"--slots", "8"}} {
		p.kill()
		p.flags = flags
		p.start()
		n, _ := strconv.Atoi(flags[1])
		active(min(n, 6))
	}
	p.muster("cancel", "sweep")
	p.muster("submit", "--name", "more", "--array", "8", "--", "sleep", "0.2")
	p.muster("wait", "more")
	judge(t, p.state)
}
