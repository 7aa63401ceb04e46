package local_test

import (
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

// signal sends one to the processes of a job's group.
func (h *host) signal(name string, s syscall.Signal) {
	h.t.Helper()
	for _, word := range strings.Fields(h.groupFile(name, "cgroup.procs")) {
		if pid, err := strconv.Atoi(word); err == nil {
			_ = syscall.Kill(pid, s) // it may have ended
		}
	}
}

// cpuOf is the processor time, in seconds, of the groups of a job's workers.
func (h *host) cpuOf(name string, workers int32) (sum float64) {
	h.t.Helper()
	for rank := range workers {
		u, err := h.groupOf(name, rank).Usage()
		if err != nil {
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

// runs reports whether all of these jobs run.
func (h *host) runs(ids []plan.JobID) bool {
	h.t.Helper()
	all := true
	if err := h.plane.Query(h.t.Context(), func(v plan.View) {
		for _, id := range ids {
			all = all && running(v.Job(id), v)
		}
	}); err != nil {
		h.t.Fatal(err)
	}
	return all
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
	const enough, most, come, settle, each, quiet = 4, 10, 60 * time.Second, 25 * time.Second, 2 * time.Second, .05
	before, began := machineBusy(t), time.Now()
	time.Sleep(time.Second)
	if used := (machineBusy(t) - before) / time.Since(began).Seconds() / 2; used > quiet {
		t.Skipf("others use %.2f of two cores: this is measured where they use no more than %.2f", used, quiet)
	}
	h := startOn(t, stateDir(t), "fifo+antman", oneCore(2))
	defer h.stop()
	ids, guests := []plan.JobID{h.begin(bubbling(t, "owner"))}, []string{"guest0", "guest1"}
	defer func() {
		for _, id := range ids {
			h.cancel(id)
		}
	}()
	for core, name := range guests {
		g := opportunistic(t, name, core)
		g.Memory = 256
		ids = append(ids, h.submit(g))
	}
	// They come when it is known how fast their host goes alone.
	before, began = machineBusy(t)-h.cpuOf("owner", 2), time.Now()
	for !h.runs(ids) {
		if time.Sleep(100 * time.Millisecond); time.Since(began) < come {
			continue
		}
		if used := (machineBusy(t) - h.cpuOf("owner", 2) - before) / time.Since(began).Seconds() / 2; used > quiet {
			t.Skipf("others use %.2f of two cores, and no guest came in %s", used, come)
		}
		t.Fatalf("no guest came in %s", come)
	}
	t.Logf("guests came after %s", time.Since(began))
	time.Sleep(settle)
	cpu := func() (host, used, all float64) {
		return h.cpuOf("owner", 2), h.cpuOf("guest0", 1) + h.cpuOf("guest1", 1), machineBusy(t)
	}
	look := func(s syscall.Signal) span {
		for _, name := range guests {
			h.signal(name, s)
		}
		time.Sleep(200 * time.Millisecond)
		return h.look("owner", each, cpu)
	}
	var longer, used, idle []float64
	disturbed := false // by others, in the last round
	for i := 0; i < most && len(longer) < enough; i++ {
		switch there := h.runs(ids); {
		case !there && disturbed:
			t.Skipf("round %d: guests were ended while others slowed their host", i)
		case !there:
			t.Fatalf("round %d: guests were ended", i)
		}
		alone, beside := look(syscall.SIGSTOP), look(syscall.SIGCONT)
		others := max(alone.others, beside.others) / 2
		if disturbed = others > quiet; disturbed {
			t.Logf("round %d does not count: others use %.2f of two cores (alone %+v, beside %+v)", i, others, alone, beside)
			continue
		}
		if most := max(alone.host, beside.host+beside.guests); most > 2*(1+quiet) {
			t.Logf("round %d does not count: %.2f of two cores were used, so the clock was read late", i, most)
			continue
		}
		idle = append(idle, 1-alone.host/2)
		longer, used = append(longer, beside.step/alone.step-1), append(used, beside.guests/(2-alone.host))
		t.Logf("round %d: a step takes %.1f ms alone and %.1f beside; %.3f of the slots is idle, guests use %.3f of that", i, 1e3*alone.step, 1e3*beside.step, 1-alone.host/2, beside.guests/(2-alone.host))
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
