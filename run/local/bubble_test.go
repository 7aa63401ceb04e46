package local_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/local/cgroup"
)

// bubbling is a trainer of two stages that takes two microbatches a step, so that a third of its
// slots' time is bubble.
func bubbling(t *testing.T, name string) workload.Job {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	layer := workload.Layer{Forward: 10 * unit.Millisecond, Backward: 20 * unit.Millisecond, ParamKiB: 100, OutputKiB: 16, ActivationKiB: 100}
	j := workload.Job{Name: name, Resources: workload.Resources{Gang: 2, Memory: 512}}
	j.Pipeline = workload.Pipeline{Stages: 2, Microbatches: 2, Layers: []workload.Layer{layer, layer, layer, layer}}
	j.Command = []string{exe, "train", "--steps", "1000000", "--checkpoint-every", "0", "--batch", "8", "--dim", "64", "--seq", "64", "--layers", "2"}
	return j
}

// span is a stretch of a run: what a step took, and the cores that it, its guests and others used.
type span struct{ step, host, guests, others float64 }

// look measures from the end of one step of a job to that of another.
func (h *host) look(job string, least time.Duration, cpu func() (host, guests, all float64)) span {
	h.t.Helper()
	boundary := func() (int, time.Time) {
		for n, end := h.steps(job, 1), time.Now().Add(20*time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			if now := h.steps(job, 1); now > n {
				return now, time.Now()
			}
		}
		h.t.Fatalf("%s makes no step", job)
		return 0, time.Time{}
	}
	n, at := boundary()
	hostWas, guestsWere, allWas := cpu()
	time.Sleep(least)
	m, end := boundary()
	host, guests, all := cpu()
	took := end.Sub(at).Seconds()
	host, guests, all = (host-hostWas)/took, (guests-guestsWere)/took, (all-allWas)/took
	return span{took / float64(m-n), host, guests, all - host - guests}
}

// signal sends one to the processes of a group.
func signal(g *cgroup.Group, s syscall.Signal) {
	pids, _ := g.Processes() // those that ended meanwhile need none
	for _, pid := range pids {
		_ = syscall.Kill(pid, s)
	}
}

// cpuOf is the processor time, in seconds, of groups; what is gone has none.
func (h *host) cpuOf(groups []*cgroup.Group) (sum float64) {
	h.t.Helper()
	for _, g := range groups {
		u, err := g.Usage()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			h.t.Fatal(err)
		}
		sum += u.CPU.Seconds()
	}
	return sum
}

// machineBusy is the processor time, in seconds, that all of this machine's cores were busy.
func machineBusy(t *testing.T) float64 {
	t.Helper()
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		t.Skipf("what others use of this machine cannot be told: %v", err)
	}
	line, _, _ := strings.Cut(string(b), "\n")
	sum := 0.0
	for i, word := range strings.Fields(line) {
		if ticks, err := strconv.ParseFloat(word, 64); err == nil && i != 4 && i != 5 && i < 9 { // neither idle nor waiting for a disk
			sum += ticks / 100
		}
	}
	return sum
}

// there are the groups of the workers of jobs that run.
func (h *host) there(ids []plan.JobID) (groups []*cgroup.Group) {
	h.t.Helper()
	for _, id := range ids {
		var j plan.Job
		var name string
		workers := int32(0)
		if err := h.plane.Query(h.t.Context(), func(v plan.View) {
			if j, name = v.Job(id), v.Name(id); running(j, v) {
				workers = v.Run(j.Run).Workers
			}
		}); err != nil {
			h.t.Fatal(err)
		}
		for rank := range workers {
			groups = append(groups, h.groupOf(name, j.Attempt, rank))
		}
	}
	return groups
}

// TestBubblesLive: a guest in each slot of a trainer of two stages uses at least half of what the
// stages leave idle, and a step takes no more than 3 % longer. The same run is measured with its
// guests stopped and going on in turns. Guests yield to everybody on the machine, so only what is
// seen while others leave it alone counts.
func TestBubblesLive(t *testing.T) {
	needLong(t)
	if support := cgroup.Probe(); !support.CPU {
		t.Skip(support)
	}
	const enough, most, come, settle, each, quiet = 20, 24, 3 * time.Minute, 15 * time.Second, 2 * time.Second, .05
	before, began := machineBusy(t), time.Now()
	time.Sleep(time.Second)
	if used := (machineBusy(t) - before) / time.Since(began).Seconds() / 2; used > quiet {
		t.Skipf("others use %.2f of two cores: this is measured where they use no more than %.2f", used, quiet)
	}
	h := startOn(t, stateDir(t), "fifo+antman", oneCore(2))
	defer h.stop()
	ids := []plan.JobID{h.begin(bubbling(t, "owner"))}
	owner := h.there(ids)
	defer func() {
		for _, id := range ids {
			h.cancel(id)
		}
	}()
	for core := range 2 {
		g := opportunistic(t, fmt.Sprint("guest", core), core)
		g.Memory = 256
		ids = append(ids, h.submit(g))
	}
	// They come when it is known how fast their host goes alone.
	before, began = machineBusy(t)-h.cpuOf(owner), time.Now()
	for len(h.there(ids[1:])) < 2 {
		if time.Sleep(100 * time.Millisecond); time.Since(began) < come {
			continue
		}
		if used := (machineBusy(t) - h.cpuOf(owner) - before) / time.Since(began).Seconds() / 2; used > quiet {
			t.Skipf("others use %.2f of two cores, and no guest came in %s", used, come)
		}
		t.Fatalf("no guest came in %s", come)
	}
	t.Logf("guests came after %s", time.Since(began))
	time.Sleep(settle)
	look := func(guests []*cgroup.Group, s syscall.Signal) span {
		for _, g := range guests {
			signal(g, s)
		}
		time.Sleep(200 * time.Millisecond)
		return h.look("owner", each, func() (float64, float64, float64) { return h.cpuOf(owner), h.cpuOf(guests), machineBusy(t) })
	}
	var longer, used, idle []float64
	for i := 0; i < most && len(longer) < enough; i++ {
		guests := h.there(ids[1:]) // where they were ended for now, they use nothing and harm nobody
		var alone, beside span
		if i%2 == 0 { // in turns, so that a machine that gets slower or faster does not count
			alone = look(guests, syscall.SIGSTOP)
			beside = look(guests, syscall.SIGCONT)
		} else {
			beside = look(guests, syscall.SIGCONT)
			alone = look(guests, syscall.SIGSTOP)
			for _, g := range guests {
				signal(g, syscall.SIGCONT)
			}
		}
		if len(h.there(ids[1:])) != len(guests) {
			t.Logf("round %d does not count: guests came or went", i)
			continue
		}
		if others := max(alone.others, beside.others) / 2; others > quiet {
			t.Logf("round %d does not count: others use %.2f of two cores (alone %+v, beside %+v)", i, others, alone, beside)
			continue
		}
		if most := max(alone.host, beside.host+beside.guests); most > 2*(1+quiet) {
			t.Logf("round %d does not count: %.2f of two cores were used, so the clock was read late", i, most)
			continue
		}
		idle = append(idle, 1-alone.host/2)
		longer, used = append(longer, beside.step/alone.step-1), append(used, beside.guests/(2-alone.host))
		t.Logf("round %d: a step takes %.1f ms alone and %.1f beside; %.3f of the slots is idle, %d guests use %.3f of that", i, 1e3*alone.step, 1e3*beside.step, 1-alone.host/2, len(guests), beside.guests/(2-alone.host))
	}
	load, _ := os.ReadFile("/proc/loadavg")
	if len(longer) < enough {
		t.Skipf("others left this machine alone in %d of %d rounds, load %s", len(longer), most, load)
	}
	i, u, l := median(idle), median(used), median(longer)
	t.Logf("medians: idle %.3f, used %.3f, longer %.4f; load %s", i, u, l, load)
	if i < .25 || u < .5 || l > .03 {
		t.Errorf("%.3f of the slots' time is idle, guests use %.3f of it and steps take %.4f longer: expected .25, .5 and no more than .03", i, u, l)
	}
}
