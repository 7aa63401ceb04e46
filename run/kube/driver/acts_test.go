package driver

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run"
	"github.com/musterdl/muster/run/kube/apitest"
	"github.com/musterdl/muster/run/runtest"
	"github.com/musterdl/muster/schedule"
)

// acting is a stage before an API server in memory.
type acting struct {
	*stage
	puppet *runtest.Puppet
	jobs   []runtest.Job
}

func (a *acting) Decide(edit func(d *plan.Draft)) {
	a.puppet.Tell(edit)
	for !a.puppet.Idle() {
		a.Pass(a.puppet.Every)
	}
}

func (a *acting) Pass(d unit.Duration) { a.until(a.w.Since() + time.Duration(d)*time.Microsecond) }

func (a *acting) View() plan.View { return a.engine.View() }

// Workers are the pods that run, on the devices that their annotations say.
func (a *acting) Workers(id plan.JobID) (on []plan.DeviceID) {
	c := a.View().Cluster()
	for _, p := range a.w.Pods() {
		if p.Labels[batchv1.JobNameLabel] != a.jobs[id].Name || p.Status.Phase != corev1.PodRunning {
			continue
		}
		for n := range c.Nodes {
			if name, _, _ := strings.Cut(c.Nodes[n].Name, "/"); name != p.Spec.NodeName {
				continue
			}
			for _, index := range splitComma(p.Annotations[noteDevices]) {
				i, err := strconv.Atoi(index)
				if err != nil {
					a.t.Fatal(err)
				}
				on = append(on, plan.DeviceID(c.Nodes[n].First)+plan.DeviceID(i))
			}
		}
	}
	slices.Sort(on)
	return on
}

func (a *acting) Done(id plan.JobID) float64 {
	return a.w.Worked(apitest.Namespace, a.jobs[id].Name).Seconds()
}

func (a *acting) Batch(plan.JobID) int { return 0 }

func (a *acting) Off() float64 { return 0 }

// TestActs: on Kubernetes all happens that its table says.
func TestActs(t *testing.T) {
	runtest.Show(t, run.Kubernetes, func(t *testing.T, jobs []runtest.Job) runtest.Stage {
		w := apitest.New(apitest.Options{T: t})
		w.AddNodes(2, 4)
		puppet := &runtest.Puppet{Every: unit.Second}
		a := &acting{newStage(t, w, func() schedule.Scheduler { return puppet }), puppet, jobs}
		for i, j := range jobs {
			var edits []func(*batchv1.Job)
			if j.Checkpoint.OnRequest {
				edits = append(edits, apitest.Annotated("muster.dev/checkpoint", "on-request,save=1s"), apitest.Keeping(time.Second))
			}
			if n := len(j.Sizes); n > 0 {
				edits = append(edits, apitest.Annotated("muster.dev/elastic", fmt.Sprintf("%d-%d", j.Sizes[0], j.Sizes[n-1])))
			}
			w.AddJob(j.Name, j.Gang, int64(j.Devices), time.Duration(j.Duration)*time.Microsecond, edits...)
			for a.View().Jobs() <= i {
				a.Pass(unit.Second)
			}
		}
		return a
	})
}
