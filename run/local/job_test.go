package local_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/local/cgroup"
	"github.com/musterdl/muster/run/local/supervise"
)

// TestGangStartsWholeOrNotAtAll: the command of one rank does not exist, so none runs.
func TestGangStartsWholeOrNotAtAll(t *testing.T) {
	state := stateDir(t)
	h := start(t, state, "fifo")
	defer h.stop()
	ran := filepath.Join(state, "ran")
	// What is to be run is written once, before its supervisor is started: rank 1 finds
	// something else to run than rank 0.
	missing := supervise.Spec{State: state, Job: "gang", Attempt: 1, Rank: 1, Command: []string{"/no/such/program"}, Dir: "/",
		User: supervise.Identity{UID: os.Getuid(), GID: os.Getgid(), AllowRoot: true}}
	data, err := json.Marshal(missing)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(missing.MemberDir(), 0o711); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(missing.MemberDir(), "spec.json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	id := h.submit(workload.Job{Name: "gang", Resources: workload.Resources{Gang: 3}, Program: workload.Program{Command: shell("touch " + ran + "; sleep 1000")}})
	if j := h.wait(id, "over", over); j.Phase != plan.Failed || plan.FailureClass(j.Reason.A) != plan.UserFailure {
		t.Errorf("the job is %s, %v", j.Phase, j.Reason)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a rank ran although another could not be started")
	}
	for rank := range int32(3) {
		m := supervise.Look(h.driver.MemberDir("gang", 1, rank))
		for range 500 { // what it has written last is not the last that it does
			if !m.Alive {
				break
			}
			time.Sleep(10 * time.Millisecond)
			m = supervise.Look(h.driver.MemberDir("gang", 1, rank))
		}
		if m.Alive || m.Started || m.Last.Kind != supervise.Ended {
			t.Errorf("rank %d: alive %v, started %v, last record %s", rank, m.Alive, m.Started, m.Last.Kind)
		}
	}
}

// spec reads what a rank was told to run.
func (h *host) spec(name string, attempt, rank int32) (s supervise.Spec) {
	h.t.Helper()
	data, err := os.ReadFile(filepath.Join(h.driver.MemberDir(name, attempt, rank), "spec.json"))
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return s
}

// TestShareOfASlot: half a slot is half of its cores and memory.
func TestShareOfASlot(t *testing.T) {
	h := start(t, stateDir(t), "fifo")
	defer h.stop()
	whole := h.submit(workload.Job{Name: "whole", Program: workload.Program{Command: shell("true")}})
	half := h.submit(workload.Job{Name: "half", Resources: workload.Resources{Share: 500}, Program: workload.Program{Command: shell("true")}})
	h.wait(whole, "over", over)
	h.wait(half, "over", over)
	if got, want := h.spec("whole", 1, 0).Limits, (cgroup.Limits{CPU: 500, Memory: 512}); got != want {
		t.Errorf("a whole slot is limited to %+v, expected %+v", got, want)
	}
	if got, want := h.spec("half", 1, 0).Limits, (cgroup.Limits{CPU: 250, Memory: 256}); got != want {
		t.Errorf("half a slot is limited to %+v, expected %+v", got, want)
	}
}

// TestLimits: a job that runs for too long, or takes too much memory, fails and says so.
func TestLimits(t *testing.T) {
	t.Parallel()
	h := start(t, stateDir(t), "fifo")
	defer h.stop()
	long := h.submit(workload.Job{Name: "long", TimeLimit: 300 * unit.Millisecond, Retries: 3, Program: workload.Program{Command: shell("sleep 1000")}})
	if j := h.wait(long, "over", over); j.Phase != plan.Failed || j.Reason.Code != plan.OverLimit || j.Attempt != 1 {
		t.Errorf("beyond its time limit the job is %s, %v, after %d attempts", j.Phase, j.Reason, j.Attempt)
	}
	if support := cgroup.Probe(); !support.Memory {
		t.Skipf("no memory limits are enforced here: %s", support)
	}
	hog := h.submit(workload.Job{Name: "hog", Program: workload.Program{Command: shell("head -c 2000000000 /dev/zero | tail -c 1900000000 >/dev/null")}})
	if j := h.wait(hog, "over", over); j.Phase != plan.Failed || plan.FailureClass(j.Reason.A) != plan.MemoryFailure {
		t.Errorf("beyond its memory the job is %s, %v", j.Phase, j.Reason)
	}
}

// TestSecrets: a variable that is a secret, by the job's word or by what it looks like,
// reaches the process and no file but the one kept for it; so it does in each copy of an
// array.
func TestSecrets(t *testing.T) {
	state := stateDir(t)
	h := start(t, state, "fifo")
	const value = "correct-horse-battery"
	looks := []string{"MY_TOKEN", "DB_PASS", "PGPASSWORD", "HTTP_AUTH", "SENTRY_DSN", "WANDB_API_KEY", "S3_KEY", "GITHUB_PAT", "MYSQL_PWD", "AWS_ACCESS_KEY_ID", "COOKIE"}
	job := workload.Job{Name: "discreet", Array: 2, Program: workload.Program{
		Env: []string{"TOK=" + value, "STORE=s3://reader:" + value + "@store/x?y", "X=Bearer " + value, "Y=ghp_" + value, "PLAIN=public-value", "HOMEPAGE=https://example.org/a:b@c"}, Secrets: []string{"TOK"}}}
	script := `test "$PLAIN" = public-value && test "$HOMEPAGE" = https://example.org/a:b@c && test ${#TOK} = 21 && test ${#STORE} = 43`
	for _, name := range looks {
		job.Env = append(job.Env, name+"="+value)
		script += " && test ${#" + name + "} = 21"
	}
	job.Command = shell(script)
	if err := h.driver.KeepSecrets(&job); err != nil {
		t.Fatal(err)
	}
	if kept := strings.Join(job.Env, " "); kept != "PLAIN=public-value HOMEPAGE=https://example.org/a:b@c" {
		t.Errorf("what is no secret: %s", kept)
	}
	// One job of the array's name has secrets of its own: none.
	other := workload.Job{Name: "discreet", Program: workload.Program{Command: shell("true")}}
	if err := h.driver.KeepSecrets(&other); err != nil {
		t.Fatal(err)
	}
	first := h.submit(job)
	for id := first; id < first+2; id++ {
		if j := h.wait(id, "over", over); j.Phase != plan.Finished {
			t.Errorf("copy %d is %s: it does not see its variables", id-first, j.Phase)
		}
	}
	found := 0
	look := func() {
		err := filepath.WalkDir(state, func(path string, e fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // a member that ends takes its socket and notes away
			}
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(path)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			if bytes.Contains(data, []byte("public-value")) {
				found++ // so the search finds what is there
			}
			if bytes.Contains(data, []byte(value)) && path != filepath.Join(state, "secrets", "discreet[].json") {
				t.Errorf("%s holds the secret", path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	look()
	h.stop() // saves a snapshot
	look()
	if found < 2 {
		t.Errorf("variables that are no secret were found %d times", found)
	}
	info, err := os.Stat(filepath.Join(state, "secrets", "discreet[].json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file of secrets: %v, %v", info, err)
	}
}

// TestOtherUser: a job of another user runs as that user, in directories of its own,
// and can put nothing in their place.
func TestOtherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root runs jobs as other users")
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Skip("there is no user nobody here")
	}
	state, err := os.MkdirTemp("", "muster-user-") // those of the test are closed to others
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(state)
	if err := os.Chmod(state, 0o711); err != nil {
		t.Fatal(err)
	}
	h := start(t, state, "fifo")
	defer h.stop()
	id := h.submit(workload.Job{Name: "theirs", User: "nobody", Retries: 1,
		Program: workload.Program{Command: shell(`id -u >uid && touch "$MUSTER_CHECKPOINT_DIR/saved" && ! rmdir ../checkpoints && ! mv ../work ../gone && ! touch ../plan.1.0.json`)}})
	if j := h.wait(id, "over", over); j.Phase != plan.Finished {
		log, err := os.ReadFile(filepath.Join(h.driver.MemberDir("theirs", 1, 0), "log"))
		t.Fatalf("the job is %s, %v: %s %v", j.Phase, j.Reason, log, err)
	}
	uid, err := os.ReadFile(filepath.Join(state, "jobs", "theirs", "work", "uid"))
	if err != nil || strings.TrimSpace(string(uid)) != nobody.Uid {
		t.Errorf("it ran as %q, %v: expected %s", uid, err, nobody.Uid)
	}
	for name, want := range map[string]string{"": "0", "work": nobody.Uid, "checkpoints": nobody.Uid, "checkpoints/saved": nobody.Uid} {
		info, err := os.Stat(filepath.Join(state, "jobs", "theirs", name))
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(info.Sys().(*syscall.Stat_t).Uid); got != want {
			t.Errorf("%q is of user %s, expected %s", name, got, want)
		}
	}
}

// TestMistakes: jobs that can be run nowhere fail, and their machine is not blamed.
func TestMistakes(t *testing.T) {
	h := start(t, stateDir(t), "fifo")
	defer h.stop()
	for _, j := range []workload.Job{
		{Name: "empty"},
		{Name: "whose", User: "no-such-user", Program: workload.Program{Command: shell("true")}},
		{Name: "elsewhere", Program: workload.Program{Dir: "not/absolute", Command: shell("true")}},
		{Name: "nowhere", Program: workload.Program{Dir: "/no/such/directory", Command: shell("true")}},
	} {
		id := h.submit(j)
		if got := h.wait(id, "over", over); got.Phase != plan.Failed || plan.FailureClass(got.Reason.A) != plan.UserFailure || got.Attempt != 1 {
			t.Errorf("%s is %s, %v, after %d attempts", j.Name, got.Phase, got.Reason, got.Attempt)
		}
	}
	if j := h.wait(h.submit(workload.Job{Name: "sane", Program: workload.Program{Command: shell("true")}}), "over", over); j.Phase != plan.Finished {
		t.Errorf("after them a job is %s", j.Phase)
	}
}
