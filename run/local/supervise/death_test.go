package supervise

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/unit"
)

// processOf finds a process of the attempt in dir by its stage; the keeper has none.
func processOf(dir, stage string) int {
	for _, p := range processes() {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.pid))
		environ, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.pid))
		_, found, _ := strings.Cut(string(environ), stageVariable+"=")
		if strings.HasSuffix(string(line), "supervise\x00"+dir+"\x00") && strings.TrimRight(found, "\x00") == stage {
			return p.pid
		}
	}
	return 0
}

// kill kills a process of the attempt in dir, if it is there.
func kill(dir, stage string) (pid int) {
	if pid = processOf(dir, stage); pid > 0 {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended meanwhile
	}
	return pid
}

func TestDeathOfBothSupervisorsIsTheWorkersAndLost(t *testing.T) {
	t.Parallel()
	dir := runTo(t, shell(t, `setsid sleep 1000 & echo $!; echo up; while :; do sleep 0.02; done`), "up")
	var stray int
	if _, err := fmt.Sscan(output(t, dir), &stray); err != nil {
		t.Fatal(err)
	}
	if _, err := Reap(dir); !errors.Is(err, ErrAlive) {
		t.Fatalf("reaped a living supervisor: %v", err)
	}
	worker := await(t, dir, Started).PID
	awaitGone(t, kill(dir, "")) // the keeper first, which would take over
	awaitGone(t, kill(dir, stageSupervisor))
	if m := Look(dir); m.Alive || m.Last.Kind == Ended || !m.Started || m.Err != nil {
		t.Errorf("member %+v, expected an orphan that was started", m)
	}
	if err := Send(dir, Halt); !errors.Is(err, ErrNotListening) {
		t.Errorf("an order to the dead: %v", err)
	}
	first, err := Reap(dir)
	if err != nil || first.Class != Lost {
		t.Fatalf("reap: %+v, %v", first, err)
	}
	awaitGone(t, worker)
	awaitGone(t, stray)
	again, err := Reap(dir)
	for range 100 { // a process that another test is just starting may share the lock for a moment
		if !errors.Is(err, ErrAlive) {
			break
		}
		time.Sleep(10 * time.Millisecond)
		again, err = Reap(dir)
	}
	if err != nil || !reflect.DeepEqual(again, first) {
		t.Errorf("reaped again: %+v, %v", again, err)
	}
	prepared := await(t, dir, Prepared)
	if pids, err := prepared.Group.Processes(); err != nil || len(pids) != 0 {
		t.Errorf("processes %v, %v in its control group", pids, err)
	}
}

// An attempt starts and ends at most once, whoever is killed whenever.
func TestKilledAtRandomMoments(t *testing.T) {
	t.Parallel()
	rounds := 12
	if os.Getenv("MUSTER_LONG") != "" {
		rounds = 400
	}
	chance := rand.New(rand.NewPCG(draws.Seed(t), 0))
	for round := range rounds {
		pause := time.Duration(chance.IntN(60)) * time.Millisecond
		victims := [][]string{{stageSupervisor}, {""}, {"", stageSupervisor}, {stageSupervisor, ""}, nil}[chance.IntN(5)]
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			s := shell(t, `sleep 0.02; (setsid sleep 1000 &); sleep 0.05; exit 3`)
			if _, err := Launch(s, self()); err != nil {
				t.Fatal(err)
			}
			dir := s.MemberDir()
			go func() { // the control plane, which does not give up on a busy machine
				for t.Context().Err() == nil && Send(dir, Go) != nil {
					time.Sleep(time.Millisecond)
				}
			}()
			time.Sleep(pause)
			for _, stage := range victims {
				kill(dir, stage)
			}
			if m := Look(dir); victims == nil && m.Last.PID != 0 {
				_ = syscall.Kill(m.Last.PID, syscall.SIGKILL)
			}
			settle(t, dir)
		})
	}
}

// settle awaits the end of an attempt as a control plane would and checks its record.
func settle(t *testing.T, dir string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		m := Look(dir)
		if m.Last.Kind == Ended && !m.Alive {
			break
		}
		if !m.Alive && m.Started {
			if _, err := Reap(dir); err != nil && !errors.Is(err, ErrAlive) {
				t.Fatal(err)
			}
		}
		// Nothing yet: it may still be starting, or was killed before its first record.
		if !m.Alive && !m.Started && processOf(dir, "") == 0 {
			if _, err := Reap(dir); err != nil && !errors.Is(err, ErrAlive) {
				t.Fatal(err)
			}
		}
		if time.Now().After(end) {
			t.Fatalf("not settled: %+v", m)
		}
	}
	k := kinds(t, dir)
	if count(k, Started) > 1 || count(k, Ended) != 1 || k[len(k)-1] != Ended {
		t.Errorf("records %v", k)
	}
	for _, p := range processes() {
		cwd, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.pid))
		if strings.Contains(string(cwd), dir) {
			t.Errorf("process %+v is left", p)
		}
	}
}

func TestOneAttemptHasOneSupervisor(t *testing.T) {
	t.Parallel()
	s := shell(t, `echo up; sleep 0.3; exit 4`)
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			if _, err := Launch(s, self()); err != nil {
				t.Error(err)
			}
			if _, err := start(s.MemberDir(), self()); err != nil { // past all checks of Launch
				t.Error(err)
			}
		})
	}
	wait.Wait()
	dir := s.MemberDir()
	await(t, dir, Prepared)
	send(t, dir, Go)
	if r := await(t, dir, Ended); r.Code != 4 {
		t.Errorf("ended %+v", r)
	}
	settle(t, dir)
	// Nor is a used attempt run again.
	if _, err := Launch(s, self()); err != nil {
		t.Fatal(err)
	}
	if _, err := start(dir, self()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond)
	settle(t, dir)
	if got := output(t, dir); got != "up\n" {
		t.Errorf("output %q, expected one run's", got)
	}
}

func TestDeathOfTheControlPlaneIsNoMatter(t *testing.T) {
	t.Parallel()
	s := shell(t, `echo up; while :; do sleep 0.02; done`)
	s.TimeLimit = 700 * unit.Millisecond
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	plane := exec.Command(self(), "plane")
	plane.Stdin = strings.NewReader(string(b))
	plane.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := plane.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := plane.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("control plane said %q, %v", line, err)
	}
	if err := syscall.Kill(-plane.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = plane.Wait()

	// The next one finds the worker, reads on, and lets it go.
	await(t, s.MemberDir(), Prepared)
	members, err := Scan(s.State)
	if err != nil || len(members) != 1 {
		t.Fatalf("scan: %+v, %v", members, err)
	}
	m := members[0]
	if !m.Alive || m.Started || m.Last.Kind != Prepared || m.Spec.Job != s.Job || m.Err != nil {
		t.Errorf("member %+v", m)
	}
	send(t, m.Dir, Go)
	// Nobody watches; its time limit holds all the same.
	for alive := true; alive; time.Sleep(10 * time.Millisecond) {
		if alive, err = Alive(m.Dir); err != nil {
			t.Fatal(err)
		}
	}
	records, torn, err := ReadRecords(m.Dir, m.Last.Next)
	if err != nil || torn || len(records) < 3 || records[0].Kind != Started || records[len(records)-1].Class != TimeLimit {
		t.Errorf("records %+v, torn %v, %v", records, torn, err)
	}
}

func TestGangThatDoesNotStart(t *testing.T) {
	t.Parallel()
	s := shell(t, "echo ran")
	dir, _ := launch(t, s)
	send(t, dir, Resume) // makes no sense yet
	send(t, dir, Abort)
	if r := await(t, dir, Ended); r.Class != Aborted {
		t.Errorf("ended %+v", r)
	}
	s.Rank, s.WaitGo, s.Secrets = 1, 100*unit.Millisecond, []string{"A=b"}
	dir, _ = launch(t, s)
	if r := await(t, dir, Ended); r.Class != Abandoned {
		t.Errorf("ended %+v", r)
	}
	if k := kinds(t, dir); count(k, Started) != 0 || output(t, dir) != "" {
		t.Errorf("it ran: %v", k)
	}
	if _, err := os.Stat(filepath.Join(dir, "secrets")); !os.IsNotExist(err) {
		t.Errorf("secrets are still there: %v", err)
	}
}

func TestSupervisorToldToEndStopsItsWorker(t *testing.T) {
	t.Parallel()
	dir := runTo(t, shell(t, `trap 'exit 7' TERM; echo up; while :; do sleep 0.02; done`), "up")
	if err := syscall.Kill(processOf(dir, ""), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if r := await(t, dir, Ended); r.Class != Preempted || r.Code != 7 {
		t.Errorf("ended %+v", r)
	}
}

// A supervisor that dies while it ends what its worker left behind has recorded the
// worker's own end, which stays what it was: nothing that finished is run again.
func TestAnEndThatIsRecordedIsNotLost(t *testing.T) {
	t.Parallel()
	s := shell(t, `exit 3`)
	run(t, s)
	dir := s.MemberDir()
	if k := kinds(t, dir); count(k, Exited) != 1 || count(k, Ended) != 1 {
		t.Fatalf("records %v, expected exited and ended", k)
	}
	// The same record as that supervisor would have left.
	before := await(t, dir, Exited)
	if err := os.Truncate(filepath.Join(dir, "record"), before.Next); err != nil {
		t.Fatal(err)
	}
	r, err := Reap(dir)
	for range 100 { // see TestDeathOfBothSupervisorsIsTheWorkersAndLost
		if !errors.Is(err, ErrAlive) {
			break
		}
		time.Sleep(10 * time.Millisecond)
		r, err = Reap(dir)
	}
	if err != nil || r.Kind != Ended || r.Class != User || r.Code != 3 {
		t.Errorf("ended %+v, %v, expected exit code 3", r, err)
	}
}
