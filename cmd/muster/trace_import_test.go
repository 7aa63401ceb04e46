package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/musterdl/muster/experiment/trace"
)

// largeHistories write 100,000 jobs of a kind, with rows in between that are no runs of jobs and
// some that do not read, and say how many device-hours they are.
var largeHistories = map[string]struct {
	file  string
	write func(w io.Writer, jobs int) (deviceHours float64)
}{
	"swf": {"log.swf", func(w io.Writer, jobs int) (hours float64) {
		fmt.Fprintln(w, "; Version: 2.2\n; UnixStartTime: 1700000000")
		for i := range jobs {
			ran, processors := i*7919%90_000, 1+i*31%64
			fmt.Fprintf(w, "%d %d %d %d %d -1 -1 %d 100000 -1 1 %d %d %d 1 -1 -1 -1\n", i+1, i*30, i%500, ran, processors, processors, i%97, i%7, i%13)
			if i%100 == 50 {
				fmt.Fprintf(w, "%d %d 0 -1 -1 -1 -1 4 100 -1 5 1 1 1 1 -1 -1 -1\n%d 12\n", jobs+i, i*30, jobs+i)
			}
			hours += float64(ran*processors) / 3600
		}
		return hours
	}},
	"sacct": {"jobs.txt", func(w io.Writer, jobs int) (hours float64) {
		fmt.Fprintln(w, "JobID|User|Account|State|Submit|Start|End|Elapsed|Timelimit|NNodes|AllocCPUS|ReqMem|AllocTRES|JobName")
		start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
		for i := range jobs {
			nodes := 1 + i%3
			gpus, ran := nodes*(1+i%8), time.Duration(i*7919%90_000)*time.Second
			at := start.Add(time.Duration(i) * 30 * time.Second)
			form, state := "2006-01-02T15:04:05", "COMPLETED"
			if i%5 == 0 {
				form += "-0700"
			}
			if i%7 == 0 {
				state = "CANCELLED by 1000"
				ran += time.Second
			}
			id := fmt.Sprint(i)
			if i%10 == 0 {
				id = fmt.Sprintf("%d_%d", i, i%4)
			}
			span := fmt.Sprintf("%d-%02d:%02d:%02d", int(ran.Hours())/24, int(ran.Hours())%24, int(ran.Minutes())%60, int(ran.Seconds())%60)
			fmt.Fprintf(w, "%s|user%d|account%d|%s|%s|%s|%s|%s|2-00:00:00|%d|16|64G|cpu=16,gres/gpu:a100=%d,gres/gpu=%d,node=%d|job%d\n", id, i%97, i%7, state,
				at.Format(form), at.Format(form), at.Add(ran).Format(form), span, nodes, gpus, gpus, nodes, i%50)
			fmt.Fprintf(w, "%s.batch|||COMPLETED|%s|%s|%s|%s||1|16||cpu=16,gres/gpu=%d|batch\n", id, at.Format(form), at.Format(form), at.Add(ran).Format(form), span, gpus)
			if i%100 == 50 {
				fmt.Fprintf(w, "9%d_[1-9%%2]|a|b|PENDING|%s|Unknown|Unknown|00:00:00|UNLIMITED|1|1|1G||x\n%d|cut off\n", i, at.Format(form), i)
			}
			hours += float64(gpus) * ran.Hours()
		}
		return hours
	}},
	"pai": {"pai_task_table.csv", func(w io.Writer, jobs int) (hours float64) {
		for i := range jobs {
			ran, instances, plan := 1+i*7919%90_000, 1+i%5, 25*(i%9)
			fmt.Fprintf(w, "%024x,worker,%d.0,Terminated,%d.0,%d.0,600.0,29.296875,%d.0,MISC\n", i, instances, 1000+i*30, 1000+i*30+ran, plan)
			if i%100 == 50 {
				fmt.Fprintf(w, "%024x,ps,1.0,Running,%d.0,,100.0,2,,\n%024x,ps,one,Terminated,1,2,1,1,1,T4\n", i, 1000+i*30, i)
			}
			held := float64(plan) / 100
			if plan > 100 {
				held = math.Ceil(held)
			}
			hours += float64(ran*instances) * held / 3600
		}
		return hours
	}},
}

// TestLargeHistories: a history of 100,000 jobs is imported within five seconds and 200 MB, and comes to as many
// jobs and device-hours as were written into it. Of a quarter of them as much is wanted in the short test.
func TestLargeHistories(t *testing.T) {
	jobs := 25_000
	if os.Getenv("MUSTER_LONG") != "" {
		jobs = 100_000
	}
	for kind, h := range largeHistories {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			file, to, peakFile := filepath.Join(dir, h.file), filepath.Join(dir, "history.csv"), filepath.Join(dir, "peak")
			f, err := os.Create(file)
			if err != nil {
				t.Fatal(err)
			}
			w := bufio.NewWriter(f)
			hours := h.write(w, jobs)
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			f.Close()
			cmd := exec.Command(os.Args[0], "trace", "import", file, "--to", to, "--json")
			cmd.Env = append(os.Environ(), "MUSTER_TEST_AS_MUSTER=1", "MUSTER_TEST_PEAK="+peakFile)
			var told strings.Builder
			cmd.Stderr = &told
			began := time.Now()
			out, err := cmd.Output()
			took := time.Since(began)
			if err != nil {
				t.Fatalf("%v\n%s", err, told.String())
			}
			var got imported
			if err := json.Unmarshal(out, &got); err != nil {
				t.Fatal(err)
			}
			peak := peakIn(t, peakFile) >> 20
			cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
			t.Logf("%s in %s of wall, %s of processor, %d MB", h.file, took.Round(time.Millisecond), cpu.Round(time.Millisecond), peak)
			if cpu > 5*time.Second || peak > 200 {
				t.Errorf("%s of processor and %d MB: expected less than 5 s and 200 MB", cpu, peak)
			}
			if got.Kind != kind || got.Jobs != jobs || math.Abs(got.DeviceHours/hours-1) > 1e-9 {
				t.Errorf("taken for %s, %d jobs of %.3f device-hours: expected %s, %d and %.3f", got.Kind, got.Jobs, got.DeviceHours, kind, jobs, hours)
			}
			if got.Wrong != jobs/100 || !strings.Contains(told.String(), file+":") || len(got.Left) == 0 {
				t.Errorf("%d rows do not read, left out %v: expected %d, each with its line\n%s", got.Wrong, got.Left, jobs/100, told.String())
			}
			s, err := summarise("muster:"+to, trace.Options{})
			if err != nil || s.Jobs != jobs || math.Abs(s.DeviceHours/hours-1) > 1e-6 {
				t.Errorf("the trace has %d jobs of %.3f device-hours (%v): expected %d and %.3f", s.Jobs, s.DeviceHours, err, jobs, hours)
			}
		})
	}
}

// tellPeak writes the state of this process, which says how much memory it has had at most, to where a test asked for
// it. The usage that a parent is told counts in what the parent had itself when it began the program.
func tellPeak() {
	to := os.Getenv("MUSTER_TEST_PEAK")
	if to == "" {
		return
	}
	state, err := os.ReadFile("/proc/self/status")
	if err == nil {
		err = os.WriteFile(to, state, 0o600)
	}
	if err != nil {
		panic(err)
	}
}

// peakIn are the bytes of memory that a process had at most that wrote its state to file.
func peakIn(t *testing.T, file string) int {
	t.Helper()
	state, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	peak := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(state)
	if peak == nil {
		t.Fatalf("no peak memory (VmHWM) in\n%s", state)
	}
	kB, err := strconv.Atoi(string(peak[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kB << 10
}
