package reproduce

import (
	"io"
	"testing"

	"github.com/musterdl/muster/experiment/trace"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/run/simulated"
)

// listed is a trace of a few jobs.
type listed struct {
	jobs []workload.Job
	runs unit.Duration
}

func (l *listed) Next() (workload.Job, workload.Truth, error) {
	if len(l.jobs) == 0 {
		return workload.Job{}, workload.Truth{}, io.EOF
	}
	job := l.jobs[0]
	l.jobs = l.jobs[1:]
	job.Devices, job.Share = 1, unit.Whole
	return job, workload.Truth{Duration: l.runs}, nil
}

func (l *listed) Close() error { return nil }

// TestLocalityIsRelaxedInTime: nothing happens when the timer of a waiting gang runs out,
// and yet it starts then, over two nodes.
func TestLocalityIsRelaxedInTime(t *testing.T) {
	s := Defaults()
	s.Trace, s.Cluster, s.Strategy, s.Prices = "", "gpus:2x4", "fifo+philly", simulated.Prices{}
	s.Jobs = func(uint64) (trace.Reader, error) {
		three := workload.Resources{Gang: 3}
		return &listed{runs: 10 * unit.Hour, jobs: []workload.Job{{Name: "a", Resources: three}, {Name: "b", Resources: three},
			{Name: "gang", Resources: workload.Resources{Gang: 2}, Submit: unit.Time(unit.Minute)}}}, nil
	}
	o, err := Simulate(s)
	if err != nil {
		t.Fatal(err)
	}
	gang := o.Collector.View().Jobs[2]
	if waited := gang.FirstStart.Sub(gang.Submit); waited != 30*unit.Minute {
		t.Errorf("the gang starts after %v", waited)
	}
}
