package kubetest

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of CPU time in /proc, the same on every Linux machine Go runs on.
const clockTick = 10 * time.Millisecond

// CPU returns the processor time a program has used since it started; its latest run where there were several.
func (c *Cluster) CPU(program string) time.Duration {
	c.t.Helper()
	one := c.processes.find(program)
	if one == nil {
		c.t.Fatalf("the CPU time of %s: it never ran", program)
	}
	used, err := cpuTime(one.cmd.Process.Pid)
	if err != nil && one.hasEnded() {
		return one.cmd.ProcessState.UserTime() + one.cmd.ProcessState.SystemTime()
	}
	if err != nil {
		c.t.Fatalf("the CPU time of %s: %v", program, err)
	}
	return used
}

// RSSBytes returns the memory a program holds now.
func (c *Cluster) RSSBytes(program string) int64 { return c.memory(program, "VmRSS") }

// PeakRSSBytes returns the most memory a program has held since it started, or since ResetPeak.
func (c *Cluster) PeakRSSBytes(program string) int64 { return c.memory(program, "VmHWM") }

// ResetPeak makes PeakRSSBytes begin anew.
func (c *Cluster) ResetPeak(program string) {
	c.t.Helper()
	path := fmt.Sprintf("/proc/%d/clear_refs", c.pid(program))
	if err := os.WriteFile(path, []byte("5"), 0); err != nil {
		c.t.Fatalf("resetting the peak memory of %s: %v", program, err)
	}
}

func (c *Cluster) pid(program string) int {
	c.t.Helper()
	if err := c.processes.exited(program); err != nil {
		c.t.Fatal(err)
	}
	return c.processes.find(program).cmd.Process.Pid
}

func (c *Cluster) memory(program, field string) int64 {
	c.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.pid(program)))
	if err != nil {
		c.t.Fatalf("the memory of %s: %v", program, err)
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[0] == field+":" {
			kib, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				c.t.Fatalf("the memory of %s: %v", program, err)
			}
			return kib * 1024
		}
	}
	c.t.Fatalf("the memory of %s: no %s in its status", program, field)
	return 0
}

// cpuTime reads the user and system time of a process.
func cpuTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The second field is the name in brackets and may hold spaces, so the count starts behind it.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields behind the name, want at least 13", pid, len(fields))
	}
	var ticks int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading /proc/%d/stat: %w", pid, err)
		}
		ticks += n
	}
	return time.Duration(ticks) * clockTick, nil
}
