package local_test

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/costtest"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run"
	"github.com/musterdl/muster/run/local"
	"github.com/musterdl/muster/run/local/cgroup"
	"github.com/musterdl/muster/run/local/cgroup/cgrouptest"
	"github.com/musterdl/muster/run/local/supervise"
	"github.com/musterdl/muster/run/runtest"
	"github.com/musterdl/muster/run/trainer/progress"
)

// acting is a stage with real processes.
type acting struct {
	t       *testing.T
	machine local.Machine
	driver  *local.Driver
	engine  *engine.Engine
	puppet  *runtest.Puppet
	events  chan engine.Event
	told    map[string][]plan.DeviceID // by member directory: the devices of its order
	specs   []*workload.Job
	step    []unit.Duration // by job: how much of a device one step takes; 0 where that is not known

	favoured bool
}

// beat is how often the engine of a stage looks.
const beat = 10 * unit.Millisecond

// perStep is the processor time of one step of a job that only computes.
const perStep = 4 * unit.Millisecond

// open makes a stage on a machine with those jobs waiting, and ends them when the test
// does.
func open(t *testing.T, able strategy.Ability, slots local.Slots, jobs []runtest.Job) *acting {
	state := stateDir(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	core := "-1"
	if slots.CPU > 0 && able.Means[strategy.Share] != "" && slices.ContainsFunc(jobs, func(j runtest.Job) bool { return j.Opportunistic }) {
		slots.CPU, core = unit.Whole, "0" // where two can be in each other's way
	}
	if slots.CPU > 0 && jobs[0].Pipeline.Stages > 0 {
		slots.CPU = slow
	}
	machine, err := local.Detect(slots)
	if err != nil {
		t.Fatal(err)
	}
	if got := machine.Ability.Driver; got != able.Driver {
		t.Fatalf("this is said to be %s, expected %s", got, able.Driver)
	}
	a := &acting{t: t, machine: machine, puppet: &runtest.Puppet{Every: beat}, events: make(chan engine.Event, 1000),
		told: map[string][]plan.DeviceID{}}
	a.engine = engine.New(machine.Cluster, a.puppet, engine.DefaultPolicy())
	a.driver = local.New(local.Config{State: state, Exe: exe, SlotCPU: machine.SlotCPU, SlotMemory: machine.SlotMemory, GPUs: machine.GPUs, AllowRoot: true,
		CheckpointWait: 5 * unit.Second, Grace: unit.Second, SummaryEvery: 200 * unit.Millisecond, Log: slog.New(slog.NewTextHandler(testWriter{t}, nil))})
	a.driver.Recover(nil, func(e engine.Event) { a.events <- e })
	for _, j := range jobs {
		j.Env = []string{"PATH=" + os.Getenv("PATH")}
		whole := cmp.Or(machine.SlotCPU, unit.Whole) // of a core
		compute, wait := perStep, unit.Duration(0)
		if j.Busy < 1 {
			compute, wait = 20*unit.Millisecond*unit.Duration(whole)*unit.Duration(1000*j.Busy)/1000_000, 20*unit.Millisecond
		}
		j.Command, a.step = []string{exe, "work", timeOf(compute).String(), timeOf(wait - compute*unit.Duration(min(wait, 1))).String(), core, "0"},
			append(a.step, compute*unit.Duration(unit.Whole)/unit.Duration(whole))
		if j.Checkpoint.OnRequest {
			j.Command, a.step[len(a.step)-1] = append([]string{exe, "train"}, training(&j.Job)...), 0
			if machine.GPUs && j.Pipeline.Stages > 0 {
				j.CPU = slow
			}
		}
		a.specs = append(a.specs, &j.Job)
		a.happen(engine.Event{Kind: engine.Submit, Spec: &j.Job})
	}
	t.Cleanup(a.close)
	return a
}

func timeOf(d unit.Duration) time.Duration { return time.Duration(d) * time.Microsecond }

// slow is so little of a core that a stage computes for much longer than a quota's period
// lasts, however fast this machine is: else who waits has what he did not use meanwhile. With the
// race detector in it a stage takes many times as long.
var slow = func() unit.Milli {
	if costtest.Slowed {
		return 300
	}
	return 100
}()

// training are the options of a trainer that makes small steps, or large ones in stages.
func training(j *workload.Job) []string {
	if j.Pipeline.Stages > 0 {
		return []string{"--steps", "1000000", "--checkpoint-every", "0", "--batch", "8", "--dim", "128", "--seq", "64", "--layers", "2"}
	}
	return []string{"--steps", "1000000", "--checkpoint-every", "0", "--batch", "8", "--dim", "16", "--seq", "16", "--layers", "2"}
}

func (a *acting) close() {
	for id := range a.specs {
		a.happen(engine.Event{Kind: engine.Cancel, Job: plan.JobID(id)})
	}
	for range 1000 {
		if v := a.View(); !slices.ContainsFunc(a.ids(), func(id plan.JobID) bool { return v.Job(id).Leaving != plan.None || v.Job(id).Run != plan.None }) {
			return
		}
		a.Pass(beat)
	}
	a.t.Error("its jobs do not end")
}

func (a *acting) ids() (ids []plan.JobID) {
	for id := range a.specs {
		ids = append(ids, plan.JobID(id))
	}
	return ids
}

// happen feeds the engine and carries out what it says.
func (a *acting) happen(events ...engine.Event) {
	out := a.engine.Step(unit.Time(time.Now().UnixMicro()), events)
	var orders []run.Order
	for i := range out.Ready {
		orders = append(orders, run.Carry(a.View(), &out.Ready[i], func(id plan.JobID) *workload.Job { return a.specs[id] }))
	}
	for _, o := range orders {
		for rank, w := range o.Workers {
			a.told[a.driver.MemberDir(o.Name, o.Attempt, int32(rank))] = w.Devices
		}
		a.driver.Order(o)
	}
}

func (a *acting) Decide(edit func(d *plan.Draft)) {
	a.puppet.Tell(edit)
	for !a.puppet.Idle() {
		a.Pass(beat)
	}
}

// favour has what is measured count more on this machine than others do, from the first
// start on.
func (a *acting) favour() {
	records, _, err := supervise.ReadRecords(a.member(0, 0), 0)
	if err != nil || len(records) == 0 || a.favoured || a.machine.Ability.Driver == run.Bare.Driver {
		return
	}
	cgrouptest.Favour(a.t, records[0].Group.CPU, records[0].Group.Unified)
	a.favoured = true
}

func (a *acting) Pass(d unit.Duration) {
	for end := time.Now().Add(timeOf(d)); ; time.Sleep(min(timeOf(beat), max(0, time.Until(end)))) {
		var events []engine.Event
		for more := true; more; {
			select {
			case e := <-a.events:
				events = append(events, e)
			default:
				more = false
			}
		}
		if a.happen(events...); slices.ContainsFunc(events, func(e engine.Event) bool { return e.Kind == engine.Started }) {
			a.favour()
		}
		if !time.Now().Before(end) {
			return
		}
	}
}

func (a *acting) View() plan.View { return a.engine.View() }

// member is the directory of a rank of a job's present or last attempt.
func (a *acting) member(id plan.JobID, rank int) string {
	return a.driver.MemberDir(a.specs[id].Name, a.View().Job(id).Attempt, int32(rank))
}

// Workers are on the devices whose slot's group a process is in, or which its environment
// names; where there is neither, on those that were ordered.
func (a *acting) Workers(id plan.JobID) (on []plan.DeviceID) {
	for rank := 0; ; rank++ {
		m := supervise.Look(a.member(id, rank))
		if m.Err != nil {
			slices.Sort(on)
			return on
		}
		records, _, err := supervise.ReadRecords(m.Dir, 0)
		if err != nil || len(records) == 0 || !m.Started {
			continue
		}
		pid := strconv.Itoa(records[0].PID)
		if _, err := os.Stat("/proc/" + pid); err != nil || m.Last.Kind == supervise.Ended {
			continue
		}
		if d := a.deviceOf(pid); d != plan.None {
			on = append(on, d)
		} else {
			on = append(on, a.told[m.Dir]...)
		}
	}
}

// deviceOf is the device that a process is on; None where nothing says.
func (a *acting) deviceOf(pid string) plan.DeviceID {
	file, before, after := "cgroup", "/slot-", "."
	if a.machine.GPUs {
		file, before, after = "environ", "CUDA_VISIBLE_DEVICES=", "\x00"
	}
	text, err := os.ReadFile("/proc/" + pid + "/" + file)
	if err != nil {
		return plan.None // it ended just now
	}
	_, rest, _ := strings.Cut(string(text), before)
	number, _, _ := strings.Cut(rest, after)
	if n, err := strconv.Atoi(number); err == nil {
		return plan.DeviceID(n)
	}
	return plan.None
}

// reported is what the ranks of a job have reported in its present or last attempt.
func (a *acting) reported(id plan.JobID) (all []progress.Event) {
	for rank := 0; ; rank++ {
		text, err := os.ReadFile(supervise.ProgressPath(a.member(id, rank)))
		if err != nil {
			return all
		}
		var p progress.Parser
		for _, e := range p.Feed(text) {
			if e.Kind == progress.Step {
				all = append(all, e)
			}
		}
	}
}

func (a *acting) Done(id plan.JobID) float64 {
	all := a.reported(id)
	if n := len(all); a.step[id] == 0 && n > 0 {
		return float64(all[n-1].Step)
	}
	return float64(len(all)) * a.step[id].Seconds()
}

func (a *acting) Batch(id plan.JobID) int {
	all := a.reported(id)
	if n := len(all); n > 1 {
		return int(all[n-1].Samples - all[n-2].Samples)
	}
	return 0
}

func (a *acting) Off() float64 { return .1 }

// needLong skips what takes long: shares are measured, and trainings watched, for as long as it takes to be sure.
func needLong(t *testing.T) {
	t.Helper()
	if os.Getenv("MUSTER_LONG") != "1" {
		t.Skip("half a minute and more; set MUSTER_LONG=1")
	}
}

// needAlone skips what judges how fast things are, where others may have the machine as well.
func needAlone(t *testing.T) {
	t.Helper()
	if os.Getenv("MUSTER_ALONE") != "1" {
		t.Skip("judges how fast things are; set MUSTER_ALONE=1 on a machine that has nothing else to do")
	}
}

// TestActs: on slots all happens that their table says.
func TestActs(t *testing.T) {
	on := func(able strategy.Ability) runtest.Open {
		return func(t *testing.T, jobs []runtest.Job) runtest.Stage {
			t.Parallel()
			return open(t, able, local.Slots{Count: 4, CPU: 250, Memory: 512}, jobs)
		}
	}
	if support := cgroup.Probe(); support.CPU {
		runtest.Show(t, run.Slots, on(run.Slots))
	} else {
		runtest.Show(t, run.Bare, on(run.Bare))
	}
}

// TestActsWithoutGroups plays TestActs as a user who may make no control groups.
func TestActsWithoutGroups(t *testing.T) {
	needLong(t)
	out := asNobody(t, "^TestActs$")
	for act := range run.Bare.Means {
		if !strings.Contains(out, "--- PASS: TestActs/"+string(act)+" ") {
			t.Errorf("as nobody %s was not seen", act)
		}
	}
}

// asNobody runs tests of this package as a user who may make no control groups, and returns what they say.
func asNobody(t *testing.T, tests string, env ...string) string {
	if os.Geteuid() != 0 {
		t.Skip("only root becomes another user")
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Skip("there is no user nobody here")
	}
	uid, err1 := strconv.Atoi(nobody.Uid)
	gid, err2 := strconv.Atoi(nobody.Gid)
	dir := stateDir(t)
	exe, err3 := os.Executable()
	program, err4 := os.ReadFile(exe)
	copied := filepath.Join(dir, "local.test")
	if err := errors.Join(err1, err2, err3, err4, os.WriteFile(copied, program, 0o755), os.Chmod(dir, 0o777)); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(copied, "-test.run="+tests, "-test.v")
	c.Dir, c.Env = dir, append(env, "PATH="+os.Getenv("PATH"), "TMPDIR="+dir)
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	out, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
	return string(out)
}

// capped is a stage on GPUs under MPS, of which there is none here: what a process finds
// is what there is to see.
type capped struct{ *acting }

func (c capped) Part(id plan.JobID) float64 {
	m := supervise.Look(c.member(id, 0))
	for _, kv := range m.Spec.Env {
		if text, ok := strings.CutPrefix(kv, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE="); ok {
			percent, err := strconv.Atoi(text)
			if err != nil {
				c.t.Fatal(err)
			}
			return float64(percent) / 100
		}
	}
	return 1
}

// TestActsOnGPUs: processes that find the GPUs of this machine, which are made up, are
// frozen, told their batch and plan, and under MPS their part.
func TestActsOnGPUs(t *testing.T) {
	needLong(t)
	gpu := "<gpu><product_name>A100</product_name><fb_memory_usage><total>40960 MiB</total></fb_memory_usage></gpu>"
	tools := t.TempDir()
	if err := os.WriteFile(filepath.Join(tools, "nvidia-smi"), fmt.Appendf(nil, "#!/bin/sh\necho '<nvidia_smi_log>%s</nvidia_smi_log>'\n", strings.Repeat(gpu, 4)), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", tools+":"+os.Getenv("PATH"))
	t.Setenv("CUDA_MPS_PIPE_DIRECTORY", tools)
	on := func(able strategy.Ability) runtest.Open {
		return func(t *testing.T, jobs []runtest.Job) runtest.Stage {
			a := open(t, able, local.Slots{}, jobs)
			if able.Means[strategy.Share] != "" {
				return capped{a}
			}
			return a
		}
	}
	runtest.Show(t, run.GPUs, on(run.GPUs))
	if err := os.WriteFile(filepath.Join(tools, "control"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	runtest.Show(t, run.WithMPS, on(run.WithMPS))
}
