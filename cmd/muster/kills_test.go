package main

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/run/local/supervise"
)

// strays is the script of a job that leaves a process in a session of its own behind. All
// that happens is told in one file, in order, and the last it does is to say that it ends.
const strays = `log=%s.$RANK
(setsid sh -c "trap '' TERM HUP; while :; do echo tick $MUSTER_ATTEMPT >>$log; sleep 0.03; done" </dev/null >/dev/null 2>&1 &)
echo start $MUSTER_ATTEMPT >>$log; sleep 0.2; echo end $MUSTER_ATTEMPT >>$log`

// TestKills kills the control plane, a supervisor, both or the worker of jobs that leave
// processes behind, with control groups and without, at random moments and right when a job
// has come to its end. No job is lost or stuck, nothing of an attempt runs beside the next one
// or after the job, and no job comes to its end twice. Killing a worker between its last word
// and its exit is no end by anybody's account; such are counted apart.
func TestKills(t *testing.T) {
	t.Parallel()
	for seed, name := range []string{"with control groups", "without"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bare := name == "without"
			if bare && os.Getuid() != 0 {
				t.Skip("only root can make a machine without control groups of this one")
			}
			rounds := 8
			if os.Getenv("MUSTER_LONG") != "" {
				rounds = 152
			}
			k := newKills(t, bare, uint64(seed))
			for round := range rounds {
				k.round(round)
			}
			judge(t, k.plane.state)
			t.Logf("seed %d, %v, %d of them right after the end: came to their end twice: %d, and %d whose worker was killed after its last word",
				seed, k.made, k.aimed, k.twice, k.lastWord)
		})
	}
}

// kills are the kills of a test and what came of them.
type kills struct {
	t                      *testing.T
	plane                  *controlPlane
	chance                 *rand.Rand
	made                   map[string]int
	aimed, twice, lastWord int
}

func newKills(t *testing.T, bare bool, seed uint64) *kills {
	t.Helper()
	k := &kills{t: t, plane: stoppedPlane(t), chance: rand.New(rand.NewPCG(seed, 0)), made: map[string]int{}}
	k.plane.bare = bare
	k.plane.start()
	t.Cleanup(k.plane.kill)
	return k
}

// round runs one job, kills one thing, and judges what became of the job.
func (k *kills) round(round int) {
	t, p := k.t, k.plane
	t.Helper()
	job, gang := fmt.Sprintf("stray-%d", round), int32(1+round/4%2)
	log := filepath.Join(p.state, job+".log")
	if _, err := p.client.Submit(t.Context(), []workload.Job{{Name: job, Resources: workload.Resources{Gang: gang, Devices: 1, Share: unit.Whole}, Retries: 5,
		Program: workload.Program{Command: []string{"sh", "-c", fmt.Sprintf(strays, log)}, Env: []string{"PATH=" + os.Getenv("PATH")}}}}, job); err != nil {
		t.Fatal(err)
	}
	what := []string{"plane", "supervisor", "both", "worker"}[round%4]
	rank := k.chance.Int32N(gang)
	worker := p.workerOf(job, rank)
	victim := worker
	if what != "worker" {
		spec := supervise.Spec{State: p.state, Job: job, Attempt: 1, Rank: rank}
		above := supervisorsOf(worker, spec.MemberDir())
		if len(above) == 0 {
			t.Logf("%s ended before it could be killed", job)
			return
		}
		victim = above[k.chance.IntN(len(above))]
	}
	if what != "worker" && k.chance.IntN(2) == 0 {
		k.aimed++
		awaitEnd(t, fmt.Sprintf("%s.%d", log, rank))
		time.Sleep(time.Duration(k.chance.IntN(5000)) * time.Microsecond)
	} else {
		time.Sleep(time.Duration(k.chance.IntN(300)) * time.Millisecond)
	}
	k.made[what]++
	if what == "plane" || what == "both" {
		p.kill()
	}
	if what != "plane" {
		_ = syscall.Kill(victim, syscall.SIGKILL) // it may have ended
	}
	if what == "plane" || what == "both" {
		p.start()
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if j, err := p.client.Wait(ctx, job); err != nil || j.Phase != "finished" {
		p.dump(job)
		t.Fatalf("%s, %s killed, is %s (%s), %v", job, what, j.Phase, j.Reason, err)
	}
	ends := judgeStrays(t, log+".0")
	if gang == 2 {
		ends = min(ends, judgeStrays(t, log+".1")) // the job ends when all of it has ended
	}
	if ends < 2 {
		return
	}
	if what == "worker" {
		k.lastWord++
		return
	}
	k.twice++
	p.dump(job)
	t.Errorf("%s, %s killed, came to its end twice", job, what)
}

// awaitEnd waits until a job says that it ends.
func awaitEnd(t *testing.T, log string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Microsecond) {
		if text, err := os.ReadFile(log); err == nil && strings.Contains(string(text), "end") {
			return
		}
	}
	t.Fatalf("%s: no end", log)
}

// supervisorsOf are the processes above a worker that supervise it.
func supervisorsOf(worker int, dir string) (pids []int) {
	for pid := parentOf(worker); pid > 1; pid = parentOf(pid) {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if !strings.HasSuffix(string(line), "supervise\x00"+dir+"\x00") {
			break
		}
		pids = append(pids, pid)
	}
	return pids
}

// judgeStrays reads what a job told, and waits whether it tells more although it is over. It
// returns how often the job came to its end.
func judgeStrays(t *testing.T, log string) (ends int) {
	t.Helper()
	read := func() string {
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	text := read()
	latest := 0
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		var what string
		var attempt int
		if _, err := fmt.Sscan(lines.Text(), &what, &attempt); err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		if attempt < latest {
			t.Errorf("%s: %s of attempt %d beside attempt %d", log, what, attempt, latest)
			break
		}
		latest = attempt
		if what == "end" {
			ends++
		}
	}
	time.Sleep(100 * time.Millisecond)
	if more := read(); more != text {
		t.Errorf("%s: something of the job runs on after it: %q", log, more[len(text):])
	}
	return ends
}

// workerOf waits until a worker of a job's first attempt has started and returns it.
func (p *controlPlane) workerOf(job string, rank int32) int {
	p.t.Helper()
	spec := supervise.Spec{State: p.state, Job: job, Attempt: 1, Rank: rank}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		records, _, err := supervise.ReadRecords(spec.MemberDir(), 0)
		if err != nil {
			continue
		}
		for _, r := range records {
			if r.Kind == supervise.Started {
				return r.PID
			}
		}
	}
	p.t.Fatalf("%s did not start", job)
	return 0
}

// withoutGroups makes a command see a machine without control groups.
func withoutGroups(c *exec.Cmd) *exec.Cmd {
	script := `grep -o " /sys/fs/cgroup[^ ]*" /proc/self/mountinfo | tac | xargs -n1 umount -l; ! grep -q " - cgroup" /proc/self/mountinfo && exec "$0" "$@"`
	bare := exec.Command("/bin/sh", append([]string{"-c", script}, c.Args...)...)
	bare.Env, bare.SysProcAttr = c.Env, &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	return bare
}
