package driver

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run"
	"github.com/musterdl/muster/run/kube/apitest"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/schedule"
)

// task is a job of a workload that both worlds can be given.
type task struct {
	name     string
	at       time.Duration // whole seconds: the API server keeps no finer ages
	gang     int32
	devices  int64
	work     time.Duration
	declared time.Duration // as its run time; 0 is nothing
	deadline time.Duration // 0 is none
	queue    string        // "" is its namespace
	priority int32
	saves    bool // when it is told to stop
}

// job is the task as the simulator is given it.
func (k *task) job() (workload.Job, workload.Truth) {
	j := workload.Job{Name: apitest.Namespace + "/" + k.name, Tenant: apitest.Namespace, User: apitest.Namespace,
		Submit: unit.Time(k.at.Microseconds()), Priority: k.priority, Resources: workload.Resources{Gang: k.gang, Devices: int32(k.devices), Share: unit.Whole,
			CPU: unit.Milli(max(4*k.devices, 1)) * unit.Whole, HostMemory: unit.MiB(max(8*k.devices, 1)) << 10},
		Estimate: unit.Duration(k.declared.Microseconds()), Deadline: unit.Duration(k.deadline.Microseconds()), Checkpoint: workload.Checkpoint{Every: rarely}}
	if k.queue != "" {
		j.Tenant = k.queue
	}
	if k.saves {
		j.Checkpoint.OnRequest = true
	}
	return j, workload.Truth{Duration: unit.Duration(k.work.Microseconds())}
}

// rarely is how often tasks save by themselves: never in these tests. The simulator
// takes jobs that say nothing for ones that save when they are stopped.
const rarely = 365 * 24 * unit.Hour

// add gives the task to a World.
func (k *task) add(w *apitest.World) {
	edits := []func(*batchv1.Job){apitest.Priority(k.priority)}
	if k.declared > 0 {
		edits = append(edits, apitest.Annotated("muster.dev/work", fmt.Sprintf("%dus", k.declared.Microseconds())))
	}
	if k.deadline > 0 {
		edits = append(edits, apitest.Annotated("muster.dev/deadline", fmt.Sprintf("%dus", k.deadline.Microseconds())))
	}
	if k.queue != "" {
		edits = append(edits, apitest.Annotated("muster.dev/queue", k.queue))
	}
	if k.saves {
		edits = append(edits, apitest.Annotated("muster.dev/checkpoint", "every=365d,on-request,save=0s"), apitest.Keeping(0))
	} else {
		edits = append(edits, apitest.Annotated("muster.dev/checkpoint", "every=365d"), apitest.PodAnnotated(apitest.AnnotationStop, "0s"))
	}
	w.AddJob(k.name, k.gang, k.devices, k.work, edits...)
}

// tasks is a Source of the simulator.
type tasks []task

func (l *tasks) Next() (workload.Job, workload.Truth, error) {
	if len(*l) == 0 {
		return workload.Job{}, workload.Truth{}, io.EOF
	}
	j, truth := (*l)[0].job()
	*l = (*l)[1:]
	return j, truth, nil
}

// shape is a cluster, by nodes and devices on each.
type shape struct {
	nodes   int
	devices int64
	racks   int
}

func (c shape) String() string { return fmt.Sprintf("%dx%d", c.nodes, c.devices) }

func (c shape) add(w *apitest.World) {
	made := 0
	w.AddNodes(c.nodes, c.devices, func(n *corev1.Node) {
		n.Labels["topology.kubernetes.io/rack"] = fmt.Sprintf("rack-%d", made*c.racks/c.nodes)
		made++
	})
}

// some are so many tasks that keep a cluster busier than it can be, with bursts, gangs
// of up to 64, a few without devices and a few that never fit.
func (c shape) some(seed uint64, n int) []task {
	rng := rand.New(rand.NewPCG(seed, uint64(c.nodes)<<8|uint64(c.devices)))
	room := float64(c.nodes) * float64(c.devices)
	var list []task
	at, lately := 0.0, 0.0
	for i := range n {
		k := task{name: fmt.Sprintf("job-%04d", i), gang: 1 << rng.IntN(7), devices: 1 << rng.IntN(4), priority: int32(rng.IntN(8) / 7)}
		k.work = time.Duration(60e6*math.Exp(rng.NormFloat64()*1.2+2)) * time.Microsecond // its median is 7 minutes
		k.devices = min(k.devices, c.devices)
		for rng.IntN(40) > 0 && float64(k.gang)*float64(k.devices) > room {
			k.gang /= 2
		}
		if rng.IntN(8) == 0 {
			k.devices, k.gang = 0, 1+rng.Int32N(64)
		}
		if rng.IntN(4) > 0 {
			k.declared = time.Duration(float64(k.work.Microseconds())*math.Exp(rng.NormFloat64()/2)) * time.Microsecond
		}
		if rng.IntN(4) == 0 {
			k.deadline = k.declared * time.Duration(1+rng.IntN(6))
		}
		k.queue = []string{"", "red", "blue"}[rng.IntN(3)]
		k.saves = rng.IntN(4) > 0
		if rng.IntN(3) > 0 { // else it comes with the one before
			at += rng.ExpFloat64() * lately
			lately = 0
		}
		lately += 1.2 * min(float64(k.gang)*float64(k.devices), room) * k.work.Seconds() / room
		k.at = time.Duration(at) * time.Second
		list = append(list, k)
	}
	return list
}

// history is what became of a workload in a world.
type history struct {
	commits []string // every decision with its instant, its reasons and its devices
	begun   []begun
	ended   map[string]unit.Time
}

// begun is a worker that was put on a node.
type begun struct {
	at      unit.Time
	job     string
	attempt int32
	rank    int
	node    string
	devices string // on the node
}

func (b begun) compare(o begun) int {
	return cmp.Or(cmp.Compare(b.at, o.at), cmp.Compare(b.job, o.job), cmp.Compare(b.rank, o.rank))
}

// simulate has the simulator play a workload.
func simulate(t *testing.T, c *cluster.Cluster, sched schedule.Scheduler, list []task, start unit.Duration) *history {
	h := &history{ended: map[string]unit.Time{}}
	var decisions bytes.Buffer
	source := tasks(list)
	s, err := simulated.New(simulated.Config{Cluster: c, Jobs: &source, Scheduler: sched, Policy: engine.DefaultPolicy(), Prices: simulated.Prices{Start: start}, Decisions: &decisions,
		Hooks: simulated.Hooks{Step: func(at unit.Time, _ []engine.Event, out *engine.Out, v plan.View) {
			for i := range out.Ready {
				switch ch := &out.Ready[i]; ch.Verb {
				case plan.Start:
					h.begin(c, at, run.Carry(v, ch, func(plan.JobID) *workload.Job { return &workload.Job{} }))
				case plan.Stop: // taken back in the instant in which it was decided: nothing was bound
					h.begun = slices.DeleteFunc(h.begun, func(b begun) bool { return b.at == at && b.job == v.Name(ch.Job) })
				}
			}
			for _, id := range out.Over {
				h.ended[v.Name(id)] = at
			}
		}}})
	for more := true; more && err == nil; {
		more, err = s.Advance()
	}
	if err != nil {
		t.Fatal(err)
	}
	h.commits = strings.SplitAfter(decisions.String(), "\n")
	h.commits = h.commits[:len(h.commits)-1]
	slices.SortFunc(h.begun, begun.compare)
	return h
}

func (h *history) begin(c *cluster.Cluster, at unit.Time, o run.Order) {
	for rank, w := range o.Workers {
		var on []int32
		for _, d := range w.Devices {
			on = append(on, int32(d)-c.Nodes[w.Node].First)
		}
		h.begun = append(h.begun, begun{at, o.Name, o.Attempt, rank, c.Nodes[w.Node].Name, join(on)})
	}
}

// drive has the driver play a workload in a World until nothing of it is left that can
// run.
func drive(t *testing.T, w *apitest.World, s *stage, list []task, until unit.Time) *history {
	h := &history{ended: map[string]unit.Time{}}
	onlooker := w.NewClient("onlooker")
	bound := map[types.UID]bool{}
	look := func() {
		for _, ch := range onlooker.Next() {
			p, ok := ch.Object.(*corev1.Pod)
			if !ok || p.Spec.NodeName == "" || bound[p.UID] {
				continue
			}
			bound[p.UID] = true
			attempt, _ := strconv.Atoi(p.Annotations[noteAttempt])
			rank, _ := strconv.Atoi(p.Annotations[batchv1.JobCompletionIndexAnnotation])
			h.begun = append(h.begun, begun{s.now(), p.Namespace + "/" + p.Labels[batchv1.JobNameLabel], int32(attempt), rank, p.Spec.NodeName, p.Annotations[noteDevices]})
		}
	}
	for _, k := range append(list, task{at: time.Duration(until)*time.Microsecond + time.Hour}) {
		for w.Since() < k.at {
			s.one(k.at)
			look()
		}
		if k.name != "" {
			k.add(w)
			w.Advance(0) // its pods are made before anything else happens
		}
	}
	v := s.engine.View()
	for id := range plan.JobID(v.Jobs()) {
		if j := v.Job(id); j.Phase.Over() {
			h.ended[v.Name(id)] = j.Ended
		}
	}
	h.commits = s.lines
	slices.SortFunc(h.begun, begun.compare)
	return h
}

// TestSimulated plays the same workloads to the simulator and, through the driver, to
// Kubernetes. One engine decides in both, so it decides the same: every commit is the
// same byte for byte, with its instant, its devices and its reason, and what is bound
// where and when is what the simulator began. Jobs come one by one and in bursts, some
// can never fit, most tell about how long they run, some of these when they must be done,
// and most save when they are stopped.
//
// For that the controllers of this World take no time, a start takes the same in both
// worlds, and a stop takes none: a pod is taken to work until it has gone, where a
// simulated run works until it is told to go. Elastic jobs and failures are left out, as
// what a worker more is worth, and when a Job tries again, are the worlds' own.
func TestSimulated(t *testing.T) {
	n, seeds := 40, uint64(1)
	if os.Getenv("MUSTER_LONG") != "" {
		n, seeds = 120, 3
	}
	for i, strategy := range []string{"fifo", "fifo-strict", "fifo+easy", "fifo+conservative", "fifo+best-fit", "fifo+easy+fgd", "sjf+spread", "srtf", "srsf+consolidate",
		"las", "las+random+newest", "tiresias", "tiresias+easy+best-fit", "srtf+history", "fifo+easy+feasible", "tiresias+feasible"} {
		shapes := []shape{{2, 8, 1}, {6, 4, 2}, {16, 8, 4}, {1, 8, 1}}
		for j, c := range shapes {
			if j != i%len(shapes) && os.Getenv("MUSTER_LONG") == "" {
				continue
			}
			for seed := range seeds {
				t.Run(fmt.Sprintf("%s/%v/%d", strategy, c, seed), func(t *testing.T) { bothWorlds(t, strategy, c, c.some(seed, n)) })
			}
		}
	}
}

func bothWorlds(t *testing.T, strategy string, c shape, list []task) {
	made, err := catalogue.Resolve(strategy)
	if err == nil {
		made, err = made.Live() // nobody tells the driver true run times
	}
	if err != nil {
		t.Fatal(err)
	}
	w := apitest.New(apitest.Options{T: t, Start: time.Unix(0, 0).UTC(), Timing: apitest.Timing{Controller: atOnce, Start: startTime}})
	c.add(w)
	s := newStage(t, w, composed(t, made.Text))
	want := simulate(t, s.core.fleet.Cluster(), composed(t, made.Text)(), list, unit.Duration(startTime.Microseconds()))
	last := unit.Time(0)
	for _, at := range want.ended {
		last = max(last, at)
	}
	got := drive(t, w, s, list, last)
	t.Logf("%d jobs over %v, %d ended by %v, %d commits, %d workers begun", len(list), list[len(list)-1].at, len(want.ended), unit.Duration(last), len(want.commits), len(want.begun))
	same(t, "commit", got.commits, want.commits)
	same(t, "worker", got.begun, want.begun)
	if !maps.Equal(got.ended, want.ended) {
		t.Errorf("jobs ended in Kubernetes at\n%v\nand simulated at\n%v", got.ended, want.ended)
	}
}

// startTime is what a start takes in both worlds, and atOnce what controllers take, as 0
// stands for a World's usual.
const (
	startTime = 2 * time.Second
	atOnce    = -1
)

func same[V comparable](t *testing.T, what string, got, want []V) {
	t.Helper()
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("%s %d of %d is\n%v\nin Kubernetes and\n%v\nsimulated", what, i, len(want), got[i], want[i])
		}
	}
	if len(got) != len(want) {
		t.Fatalf("there are %d %ss in Kubernetes and %d simulated", len(got), what, len(want))
	}
}
