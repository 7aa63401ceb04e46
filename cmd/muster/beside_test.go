package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/mechanism/control"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run/local/supervise"
	"github.com/musterdl/muster/strategies/allocate/colocate"
)

// sharing is the strategy under which who finds no free slot may live beside others.
const sharing = "order: fifo\nshare: colocate\n"

// sharingPlane is a control plane of so many slots of a part of a core under it, where estimates are what jobs declare.
func sharingPlane(t *testing.T, slots int, part string) *controlPlane {
	t.Helper()
	return planeOf(t, sharing+"estimate: declared\n", "--slots", fmt.Sprint(slots), "--slot-cpu", part, "--slot-memory", "1GiB",
		"--summary-every", "200ms", "--checkpoint-wait", "10s", "--grace", "10s")
}

// want makes a file that a program can look for, and returns its path.
func (p *controlPlane) want(name string) string {
	p.t.Helper()
	file := filepath.Join(p.state, name+".wanted")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		p.t.Fatal(err)
	}
	return file
}

// noMore removes the file of a job, and waits until the job has finished.
func (p *controlPlane) noMore(name string) {
	p.t.Helper()
	if err := os.Remove(filepath.Join(p.state, name+".wanted")); err != nil {
		p.t.Fatal(err)
	}
	p.muster("wait", name)
}

// job submits a job as it stands in a file, where $EXE is the path of this program.
func (p *controlPlane) job(name, text string) {
	p.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	file := filepath.Join(p.state, name+".yaml")
	text = "jobs:\n  - name: " + name + strings.ReplaceAll(text, "$EXE", exe)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	p.muster("submit", file)
}

// member is what a worker was started with.
func (p *controlPlane) member(name string, attempt, rank int32) (s supervise.Spec) {
	p.t.Helper()
	dir := (&supervise.Spec{State: p.state, Job: name, Attempt: attempt, Rank: rank}).MemberDir()
	data, err := os.ReadFile(filepath.Join(dir, "spec.json"))
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

// told is what the records of a worker say.
type told []supervise.Record

func (p *controlPlane) told(name string, attempt, rank int32) told {
	p.t.Helper()
	s := p.member(name, attempt, rank)
	records, _, err := supervise.ReadRecords(s.MemberDir(), 0)
	if err != nil || len(records) == 0 {
		p.t.Fatalf("%s has %d records, %v", name, len(records), err)
	}
	return records
}

// when is the time of the first record of a kind, or never.
func (a told) when(kind supervise.Kind) unit.Time {
	for i := range a {
		if a[i].Kind == kind {
			return a[i].At
		}
	}
	return unit.Never
}

// pace is how fast the worker went between two times, by the blocks of steps that lie between them.
func (a told) pace(from, to unit.Time) control.Pace {
	var blocks []control.Block
	last := unit.Time(0) // the blocks of a record are since the one before
	for i := range a {
		if a[i].Kind != supervise.Progress {
			continue
		}
		if last >= from && a[i].At <= to {
			blocks = append(blocks, a[i].Blocks...)
		}
		last = a[i].At
	}
	return control.PaceOf(blocks)
}

// idle reports whether the worker is in the idle class of the processor: its control group, or else its first thread.
func (a told) idle(t *testing.T) bool {
	t.Helper()
	if g := a[0].Group; g.CPU != "" || g.Unified != "" {
		idle, err := os.ReadFile(filepath.Join(cmp.Or(g.CPU, g.Unified), "cpu.idle"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(idle)) == "1"
	}
	attr, err := unix.SchedGetAttr(a[0].PID, 0)
	if err != nil {
		t.Fatal(err)
	}
	return attr.Policy == unix.SCHED_IDLE
}

// decisions are those about a job.
func (p *controlPlane) decisions(name string) (all []string) {
	p.t.Helper()
	steps, err := p.client.Steps(p.t.Context(), name)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, d := range steps.Decisions {
		all = append(all, fmt.Sprintf("%s %d: %s", d.Verb, d.Attempt, d.Reason))
	}
	return all
}

// mayHarm is the part of its pace that a host keeps at least.
func mayHarm() float64 {
	return float64(unit.Whole-colocate.Default().Harm) / float64(unit.Whole)
}

// whileWanted runs a program as long as there is a file, and ends well then.
const whileWanted = `"$@" & while [ -e "$WANTED" ] && kill -0 $!; do sleep 0.2; done; kill $!; wait; exit 0`

// TestLivesBeside: a gang that finds no free slot begins as the guest of another that leaves its slots idle, once that
// was seen to go alone. Its workers are in the idle class, under the law for guests; it makes all of its steps while its host
// goes on, which it does not surely slow by more than it may; both end.
func TestLivesBeside(t *testing.T) {
	if os.Getenv("MUSTER_LONG") != "1" {
		t.Skip("half a minute; set MUSTER_LONG=1")
	}
	t.Parallel()
	const steps = 300 // for longer than it takes to see how its host goes beside it
	p := sharingPlane(t, 2, "500m")
	p.job("host", fmt.Sprintf(`
    workers: 2
    memory: 300MiB
    phase: {compute: 30ms, communicate: 70ms}
    env: {MUSTER_TEST_AS_MUSTER: 1, WANTED: %q}
    command: [sh, -c, %q, sh, $EXE, trainer, --steps, 100000, --checkpoint-every, 0, --dim, 16, --seq, 16, --step-delay, 100ms]
`, p.want("host"), whileWanted))
	p.until("host", "on its way", func(j view.Job) bool { return j.Run == "running" })
	p.job("guest", fmt.Sprintf(`
    workers: 2
    memory: 300MiB
    phase: {compute: 10ms, communicate: 40ms}
    env: {MUSTER_TEST_AS_MUSTER: 1}
    command: [$EXE, trainer, --steps, %d, --checkpoint-every, 0, --dim, 16, --seq, 16, --step-delay, 50ms]
`, steps))
	g := p.until("guest", "beside its host", func(j view.Job) bool { return j.Run == "running" })
	if why := p.muster("why", "guest"); g.Reason != "shares a device with host" || !strings.Contains(why, g.Reason) {
		t.Errorf("it runs: %s; muster why: %s", g.Reason, why)
	}
	leader := p.member("host", 1, 0)
	for rank := range int32(2) {
		s, guest, host := p.member("guest", 1, rank), p.told("guest", 1, rank), p.told("host", 1, rank)
		if s.Law != control.ForGuests || s.Host != leader.MemberDir() || !guest.idle(t) {
			t.Errorf("worker %d of the guest is in the idle class: %v, under the law %q beside %q", rank, guest.idle(t), s.Law, s.Host)
		}
		if s := p.member("host", 1, rank); s.Law != "" || host.idle(t) {
			t.Errorf("worker %d of the host is in the idle class: %v, under the law %q", rank, host.idle(t), s.Law)
		}
	}
	p.muster("wait", "guest")
	p.noMore("host")

	for _, name := range []string{"host", "guest"} {
		if j := p.show(name); j.Phase != "finished" || j.Attempt != 1 || name == "guest" && j.Progress != 1 {
			t.Errorf("the %s is %s in attempt %d, %.2f done", name, j.Phase, j.Attempt, j.Progress)
		}
	}
	host, guest := p.told("host", 1, 0), p.told("guest", 1, 0)
	from, to := guest.when(supervise.Started), guest.when(supervise.Ended)
	alone, beside := host.pace(0, from), host.pace(from, to)
	t.Logf("%s before its guest came the host made %+v steps/s, and beside it in %s %+v", from.Sub(host.when(supervise.Started)), alone, to.Sub(from), beside)
	if beside.Most < mayHarm()*alone.Least || beside.Is == 0 {
		t.Errorf("the host made %+v steps/s alone and %+v beside its guest", alone, beside)
	}
}

// TestHarmfulGuest: a guest that holds up its host by what no class of the processor divides, here a lock that both
// take for each step, as they would a disk, ends when the host was surely seen to be slower, and waits. Alone the host goes faster
// again, so no guest comes to it any more: the one that was ended runs on a slot of its own.
func TestHarmfulGuest(t *testing.T) {
	if os.Getenv("MUSTER_LONG") != "1" {
		t.Skip("a minute; set MUSTER_LONG=1")
	}
	t.Parallel()
	if _, err := exec.LookPath("flock"); err != nil {
		t.Skip(err)
	}
	p := sharingPlane(t, 1, "500m")
	steps := func(name, each string) {
		p.job(name, fmt.Sprintf(`
    memory: 300MiB
    phase: {compute: 10ms, communicate: 90ms}
    env: {LOCK: %q, WANTED: %q, EACH: %q}
    command: 'i=0; while [ -e "$WANTED" ]; do flock "$LOCK" sleep $EACH; i=$((i+1)); echo "step=$i" >> "$MUSTER_PROGRESS"; done'
`, filepath.Join(p.state, "lock"), p.want(name), each))
	}
	steps("host", "0.1")
	p.until("host", "on its way", func(j view.Job) bool { return j.Run == "running" })
	steps("guest", "0.3")
	p.until("guest", "beside its host", func(j view.Job) bool { return j.Run == "running" })
	p.until("guest", "ended", func(j view.Job) bool { return j.Phase == "waiting" && j.Run == "" })
	time.Sleep(13 * time.Second) // until the host was seen alone
	p.until("guest", "waiting", func(j view.Job) bool { return j.Phase == "waiting" && j.Attempt == 1 })
	p.noMore("host")
	p.until("guest", "on a slot of its own", func(j view.Job) bool { return j.Run == "running" })
	p.noMore("guest")

	want := []string{"start 1: shares a device with host", "stop 1: sharing a device with host did not pay", "start 2: there was room"}
	if got := p.decisions("guest"); !slices.Equal(got, want) {
		t.Errorf("of the guest was decided %q, expected %q", got, want)
	}
	if s := p.member("guest", 2, 0); s.Law != "" || s.Host != "" {
		t.Errorf("on a slot of its own it is under the law %q beside %q", s.Law, s.Host)
	}
	host, first := p.told("host", 1, 0), p.told("guest", 1, 0)
	from, asked, to := first.when(supervise.Started), first.when(supervise.StopRequested), first.when(supervise.Ended)
	alone, beside, again := host.pace(0, from), host.pace(from, asked), host.pace(to, unit.Never)
	t.Logf("the host made %+v steps/s alone, %+v beside its guest in %s, %+v without it", alone, beside, asked.Sub(from), again)
	if beside.Most >= mayHarm()*alone.Least || beside.Most >= mayHarm()*again.Least {
		t.Errorf("the host made %+v steps/s alone, %+v beside its guest, %+v without it", alone, beside, again)
	}
	for _, name := range []string{"host", "guest"} {
		if j := p.show(name); j.Phase != "finished" || j.Restarts != 0 {
			t.Errorf("the %s is %s after %d failures", name, j.Phase, j.Restarts)
		}
	}
}

// TestGuestMoves: a guest of which nobody saw how it goes by itself is believed to go as its host lets it, and moves to the
// first slot that is free.
func TestGuestMoves(t *testing.T) {
	if os.Getenv("MUSTER_LONG") != "1" {
		t.Skip("half a minute; set MUSTER_LONG=1")
	}
	t.Parallel()
	p := sharingPlane(t, 2, "100m") // of which steps that take hardly any time still take a part
	steps := func(name, more string) {
		p.job(name, fmt.Sprintf(`
    %s
    env: {WANTED: %q}
    command: 'i=0; while [ -e "$WANTED" ]; do sleep 0.1; i=$((i+1)); echo "step=$i loss=1" >> "$MUSTER_PROGRESS"; done'
`, more, p.want(name)))
	}
	steps("other", "estimate: 1h") // how much memory it takes nobody knows, so none joins it
	steps("host", "memory: 300MiB\n    phase: {compute: 10ms, communicate: 90ms}")
	for _, name := range []string{"other", "host"} {
		p.until(name, "on its way", func(j view.Job) bool { return j.Run == "running" })
	}
	steps("guest", "memory: 300MiB\n    estimate: 1h\n    checkpoint: {every: 1s}") // else it would lose all that it did
	p.until("guest", "beside its host", func(j view.Job) bool { return j.Run == "running" })
	p.noMore("other")
	p.until("guest", "on a slot of its own", func(j view.Job) bool { return j.Run == "running" && j.Attempt == 2 })
	p.noMore("guest")
	p.noMore("host")
	want := []string{"start 1: shares a device with host", "stop 1: moved to a better place", "start 2: moved to a better place"}
	if got := p.decisions("guest"); !slices.Equal(got, want) {
		t.Errorf("of the guest was decided %q, expected %q", got, want)
	}
	if s := p.member("guest", 2, 0); s.Law != "" || s.Host != "" {
		t.Errorf("on a slot of its own it is under the law %q beside %q", s.Law, s.Host)
	}
}
