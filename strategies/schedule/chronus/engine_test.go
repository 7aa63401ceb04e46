package chronus_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/experiment/trace"
	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/run/report"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/strategies/profile/oracle"
	"github.com/musterdl/muster/strategies/schedule/chronus"
	"github.com/musterdl/muster/strategies/schedule/edf"
	"github.com/musterdl/muster/strategies/schedule/fifo"
)

// TestAdmittedAreInTime is the guarantee: with exact estimates and free stops nobody who
// was admitted is late, whatever comes later, and everybody ends.
func TestAdmittedAreInTime(t *testing.T) {
	admitted, repacked := 0.0, 0.0
	draws.Check(t, func(t *rapid.T) {
		devices := rapid.Int32Range(1, 16).Draw(t, "devices")
		var jobs scheduletest.Jobs
		now := unit.Time(0)
		for i := range rapid.IntRange(1, 30).Draw(t, "jobs") {
			now = now.Add(unit.Minute * unit.Duration(rapid.IntRange(0, 40).Draw(t, "gap")))
			j := scheduletest.Job{Job: workload.Job{Name: "j" + strconv.Itoa(i), Submit: now,
				Resources: workload.Resources{Gang: rapid.Int32Range(1, devices).Draw(t, "gang"), Devices: 1,
					Share: unit.Whole}, Checkpoint: workload.Checkpoint{OnRequest: true}}}
			j.Duration = unit.Duration(rapid.IntRange(1, 300).Draw(t, "runs")) * unit.Minute
			if rapid.IntRange(0, 3).Draw(t, "strict") > 0 {
				j.Deadline = j.Duration * unit.Duration(rapid.IntRange(100, 400).Draw(t, "slack")) / 100
			}
			jobs = append(jobs, j)
		}
		for _, repack := range []bool{false, true} {
			c := chronus.Default()
			c.Margin, c.Switch, c.Repack = 1, 0, repack
			config := scheduletest.JointConfig(scheduletest.Nodes(1, int(devices), 0), jobs, chronus.New(c), oracle.Estimator{})
			o, err := scheduletest.Run(config)
			if err != nil {
				t.Fatal(err)
			}
			_, late, refused, _ := outcome(jobs, o)
			if late > 0 || o.Censored > 0 {
				t.Fatalf("repack %t: %.2f of those admitted are late, %d never ended", repack, late, o.Censored)
			}
			if repack {
				repacked += 1 - refused
			} else {
				admitted += 1 - refused
			}
		}
	})
	if admitted == 0 || repacked < admitted {
		t.Errorf("admitted %.1f, with repacking %.1f", admitted, repacked)
	}
}

// published is every sixteenth job of the published trace.
func published(t *testing.T, offset int) (jobs scheduletest.Jobs) {
	file := filepath.Join("..", "..", "..", "..", "shared", "data", "chronus", "trace_job_Philly_MIX1.csv.gz")
	if _, err := os.Stat(file); err != nil {
		t.Skipf("the data set chronus is not here: %v", err)
	}
	src, err := trace.Open("chronus:"+file, trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	for i := 0; ; i++ {
		job, truth, err := src.Next()
		if err != nil {
			return jobs
		}
		if i%16 == offset {
			job.Checkpoint.OnRequest = true
			jobs = append(jobs, scheduletest.Job{Job: job, Truth: truth})
		}
	}
}

// outcome is the shares of late jobs among those with deadlines, and of those that were
// admitted and late among these; and the mean JCT of those without deadlines.
func outcome(jobs scheduletest.Jobs, o scheduletest.Outcome) (late, lateAdmitted, refused, freeMin float64) {
	strict, free := 0.0, 0.0
	for i, j := range o.Jobs {
		if jobs[i].Deadline == 0 {
			free++
			freeMin += j.JCT().Seconds() / 60
			continue
		}
		strict++
		switch {
		case j.Outcome == report.Refused:
			refused++
		case j.End > jobs[i].Submit.Add(jobs[i].Deadline):
			lateAdmitted++
		}
	}
	return (refused + lateAdmitted) / strict, lateAdmitted / max(1, strict-refused), refused / strict, freeMin / max(1, free)
}

// TestPublishedTrace runs the trace in the engine: refused jobs count as late. With a
// minute for every restart the guarantee still holds for nearly all.
func TestPublishedTrace(t *testing.T) {
	jobs := published(t, 3)
	config := func(decider allocate.Joint, restart unit.Duration) simulated.Config {
		c := scheduletest.JointConfig(scheduletest.Nodes(1, 60, 0), jobs, decider, oracle.Estimator{})
		c.Prices.Restart, c.Check = restart, false
		return c
	}
	measure := func(name string, c simulated.Config) (lateAdmitted, freeMin float64) {
		o, err := scheduletest.Run(c)
		if err != nil || !o.Balanced {
			t.Fatalf("%s: balanced %t, %v", name, o.Balanced, err)
		}
		late, lateAdmitted, refused, freeMin := outcome(jobs, o)
		t.Logf("%-16s late %.4f, of those admitted %.4f, refused %.4f, best effort %.0f min, %d preemptions", name, late, lateAdmitted, refused, freeMin, o.Preemptions)
		return lateAdmitted, freeMin
	}
	free, freeMin := measure("chronus", config(chronus.New(chronus.Default()), 0))
	paid, _ := measure("chronus, 60 s", config(chronus.New(chronus.Default()), unit.Minute))
	textbook := scheduletest.Config(scheduletest.Nodes(1, 60, 0), jobs, scheduletest.With(edf.New(edf.Default())))
	textbook.Check = false
	_, edfMin := measure("edf", textbook)
	aware := scheduletest.Config(scheduletest.Nodes(1, 60, 0), jobs, scheduletest.With(edf.New(edf.Config{Hopeless: true})))
	aware.Check = false
	measure("edf, hopeless", aware)
	plain := scheduletest.Config(scheduletest.Nodes(1, 60, 0), jobs, scheduletest.With(fifo.New(fifo.Default())))
	plain.Check = false
	measure("fifo", plain)
	if free > 0 || paid > 0.05 || freeMin > edfMin/2 {
		t.Errorf("late of those admitted %.4f, with restarts of a minute %.4f; best effort %.0f min, edf %.0f", free, paid, freeMin, edfMin)
	}
}
