package local_test

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/local/cgroup"
	"github.com/musterdl/muster/run/local/cgroup/cgrouptest"
	"github.com/musterdl/muster/run/local/supervise"
	"github.com/musterdl/muster/run/trainer/progress"
)

// work is a job whose every step computes for so long of one processor's time and then
// waits for so long; a core of 0 or more is the only one it runs on. It ends after a
// number of steps, 0 is never.
func work(args []string) error {
	compute, err1 := time.ParseDuration(args[0])
	wait, err2 := time.ParseDuration(args[1])
	core, err3 := strconv.Atoi(args[2])
	steps, err4 := strconv.Atoi(args[3])
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return err
	}
	runtime.LockOSThread()
	if core >= 0 {
		var set unix.CPUSet
		set.Set(core)
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			return err
		}
	}
	w, err := progress.Open(os.Getenv)
	if err != nil {
		return err
	}
	for step := 1; steps == 0 || step <= steps; step++ {
		for until := threadTime() + compute; threadTime() < until; {
			for range 1_000 {
			}
		}
		time.Sleep(wait)
		w.Write(progress.Event{Step: int64(step), Of: int64(steps)})
	}
	return w.Close()
}

// threadTime is the processor time that this thread has used.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}

// worker is a job of that kind, in milliseconds.
func worker(t *testing.T, name string, compute, wait, core, steps int) workload.Job {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return workload.Job{Name: name, Program: workload.Program{Command: []string{exe, "work", fmt.Sprint(compute, "ms"), fmt.Sprint(wait, "ms"), fmt.Sprint(core), fmt.Sprint(steps)}}}
}

// steps is how many steps a job has reported in an attempt.
func (h *host) steps(name string, attempt int32) int {
	h.t.Helper()
	data, err := os.ReadFile(supervise.ProgressPath(h.driver.MemberDir(name, attempt, 0)))
	if err != nil {
		h.t.Fatal(err)
	}
	return strings.Count(string(data), "\n")
}

// rates is how many steps per second jobs make in their first attempt over a span.
func (h *host) rates(span time.Duration, names ...string) []float64 {
	h.t.Helper()
	before, began := make([]int, len(names)), time.Now()
	for i, name := range names {
		before[i] = h.steps(name, 1)
	}
	time.Sleep(span)
	rates := make([]float64, len(names))
	for i, name := range names {
		rates[i] = float64(h.steps(name, 1)-before[i]) / time.Since(began).Seconds()
	}
	return rates
}

func running(j plan.Job, v plan.View) bool {
	return j.Run != plan.None && v.Run(j.Run).Status == plan.Running
}

// begin submits a job and waits until it runs.
func (h *host) begin(j workload.Job) plan.JobID {
	h.t.Helper()
	id := h.submit(j)
	h.wait(id, "running", running)
	return id
}

// cpu is the processor time that the group of a job's first worker has used.
func (h *host) cpu(name string) unit.Duration {
	h.t.Helper()
	u, err := h.group(name).Usage()
	if err != nil {
		h.t.Fatal(err)
	}
	return u.CPU
}

// group is the control group of a job's first worker.
func (h *host) group(name string) *cgroup.Group {
	h.t.Helper()
	return h.groupOf(name, 1, 0)
}

// groupOf is the control group of one worker of a job's attempt.
func (h *host) groupOf(name string, attempt, rank int32) *cgroup.Group {
	h.t.Helper()
	records, _, err := supervise.ReadRecords(h.driver.MemberDir(name, attempt, rank), 0)
	if err != nil || len(records) == 0 || records[0].Group == nil {
		h.t.Fatalf("%s has no group: %v", name, err)
	}
	return records[0].Group
}

// groupFile reads a file of a job's group of processor time.
func (h *host) groupFile(name, file string) string {
	h.t.Helper()
	g := h.group(name)
	data, err := os.ReadFile(filepath.Join(cmp.Or(g.CPU, g.Unified), file))
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(data))
}

// favour has a measurement count more on this machine than others do.
func (h *host) favour(name string) {
	h.t.Helper()
	g := h.group(name)
	cgrouptest.Favour(h.t, g.CPU, g.Unified)
}
