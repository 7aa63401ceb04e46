package kubetest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// settle is how long a scheduler may finish what it does after the last binding, such as writing events, before its
// CPU time is read.
const settle = 2 * time.Second

// Contender is a scheduler that can be measured: UpstreamScheduler, UpstreamGangs, VolcanoGangs, or a program under
// test whose Start calls Cluster.Run.
type Contender struct {
	Name string
	// SchedulerName is what its pods carry.
	SchedulerName string
	// Program is the name its process has in the Cluster.
	Program string
	// Options are what the control plane needs beside it.
	Options Options
	// Start runs it on a control plane; nil where Options start it already.
	Start func(c *Cluster, limits ClientLimits) error
	// Group makes a gang known before its pods come; nil where the pods say it all.
	Group func(ctx context.Context, c *Cluster, gang Gang) error
	// Join marks a pod as a member of a gang.
	Join func(pod *corev1.Pod, gang Gang)
}

// Setting is what contenders have in common in a comparison.
type Setting struct {
	Nodes  int
	Node   NodeTemplate
	Limits ClientLimits
	// Kwok makes the nodes alive: they renew their leases and run the pods they get.
	Kwok bool
}

// Measured is what one contender did with one Load.
type Measured struct {
	Contender   string
	Pods, Bound int
	// Created is how long creating the pods took; Last is the time from the first creation, or from the end of a
	// backlog's creation, to the last binding.
	Created, Last time.Duration
	// BoundPerSecond is the pods bound over Last.
	BoundPerSecond float64
	// P50 and P99 are times from a pod's creation, or a backlog's, to its binding.
	P50, P99 time.Duration
	// CPU is the scheduler's time, from the first creation until its work was done; APIServerCPU that of the API
	// server in the same time, which the way of binding moves.
	CPU, APIServerCPU time.Duration
	PeakRSSBytes      int64
	// Gangs is how many gangs were created, WholeGangs how many were bound whole and PartialGangs in part.
	Gangs, WholeGangs, PartialGangs int
	// GangSpreadP99 is the time from a gang's first to its last binding.
	GangSpreadP99 time.Duration
	// OvercommittedNodes hold more devices than they have; MovedPods changed their node. Both must be none.
	OvercommittedNodes, MovedPods int
}

// CPUPerPod is the scheduler's CPU time for a pod.
func (m Measured) CPUPerPod() time.Duration {
	if m.Bound == 0 {
		return 0
	}
	return m.CPU / time.Duration(m.Bound)
}

// String is one line of a comparison.
func (m Measured) String() string {
	ms := func(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
	text := fmt.Sprintf("%s: %d of %d pods bound, %.0f/s, p50 %v, p99 %v, created in %v, last bound after %v, CPU %v (%v a pod), API server CPU %v, peak %d MiB",
		m.Contender, m.Bound, m.Pods, m.BoundPerSecond, ms(m.P50), ms(m.P99), ms(m.Created), ms(m.Last), ms(m.CPU),
		m.CPUPerPod().Round(time.Microsecond), ms(m.APIServerCPU), m.PeakRSSBytes>>20)
	if m.Gangs > 0 {
		text += fmt.Sprintf("; gangs %d whole, %d partial of %d, p99 spread %v", m.WholeGangs, m.PartialGangs, m.Gangs, ms(m.GangSpreadP99))
	}
	if m.OvercommittedNodes+m.MovedPods > 0 {
		text += fmt.Sprintf("; WRONG: %d nodes over-committed, %d pods moved", m.OvercommittedNodes, m.MovedPods)
	}
	return text
}

// StartFor brings up a control plane with the nodes of a setting and a contender running on it.
func (s Setting) StartFor(t testing.TB, contender Contender) *Cluster {
	t.Helper()
	options := contender.Options
	options.Kwok = options.Kwok || s.Kwok
	if options.Scheduler != nil {
		scheduler := *options.Scheduler
		scheduler.Limits = s.Limits
		options.Scheduler = &scheduler
	}
	c := Start(t, options)
	c.AddNodes(s.Nodes, s.Node)
	if contender.Start != nil {
		if err := contender.Start(c, s.Limits.orDefault()); err != nil {
			t.Fatalf("starting %s: %v", contender.Name, err)
		}
	}
	return c
}

// Measure puts a load on a contender that runs on the control plane. Pods that are not bound within the load's limit
// are counted and no error: the comparison says so.
func (c *Cluster) Measure(contender Contender, load Load) (Measured, error) {
	if load.Limit == 0 {
		load.Limit = 10 * time.Minute
	}
	ctx, cancel := context.WithTimeout(context.Background(), load.Limit)
	defer cancel()
	list := load.pods()
	objects, err := c.prepare(ctx, contender, load, list)
	if err != nil {
		return Measured{}, err
	}
	client := c.fastClient()
	seen := newBindings(len(list))
	go seen.follow(ctx, client, metav1.NamespaceDefault)
	c.ResetPeak(contender.Program)
	if load.Backlog {
		c.Pause(contender.Program)
		defer c.Resume(contender.Program)
	}
	cpu, apiCPU, start := c.CPU(contender.Program), c.CPU(APIServer), time.Now()
	if err := load.create(ctx, client, objects, seen); err != nil {
		return Measured{}, fmt.Errorf("creating the pods for %s: %w", contender.Name, err)
	}
	m := Measured{Contender: contender.Name, Pods: len(list), Created: time.Since(start)}
	if load.Backlog {
		apiCPU, start = c.CPU(APIServer), time.Now()
		seen.restart(start)
		c.Resume(contender.Program)
	}
	select {
	case <-seen.done:
		time.Sleep(settle)
	case <-ctx.Done():
	}
	m.CPU, m.APIServerCPU = c.CPU(contender.Program)-cpu, c.CPU(APIServer)-apiCPU
	m.PeakRSSBytes = c.PeakRSSBytes(contender.Program)
	m.times(start, seen)
	m.gangs(load, list, seen)
	return m, c.checkCapacity(&m, load, seen)
}

// prepare makes the gangs known and the pods' objects, before the clock starts.
func (c *Cluster) prepare(ctx context.Context, contender Contender, load Load, list []loadPod) ([]*corev1.Pod, error) {
	if contender.Group != nil {
		err := parallel(len(load.Gangs), func(g int) error {
			return contender.Group(ctx, c, load.gang(metav1.NamespaceDefault, g))
		})
		if err != nil {
			return nil, fmt.Errorf("making the pod groups for %s: %w", contender.Name, err)
		}
	}
	var objects []*corev1.Pod
	for _, p := range list {
		pod := load.pod(p, metav1.NamespaceDefault, contender.SchedulerName)
		if p.gang >= 0 && contender.Join != nil {
			contender.Join(pod, load.gang(metav1.NamespaceDefault, p.gang))
		}
		objects = append(objects, pod)
	}
	return objects, nil
}

func (m *Measured) times(start time.Time, seen *bindings) {
	seen.mu.Lock()
	defer seen.mu.Unlock()
	var waits []time.Duration
	for name, b := range seen.bound {
		waits = append(waits, b.at.Sub(seen.asked[name]))
		m.Last = max(m.Last, b.at.Sub(start))
	}
	m.Bound, m.MovedPods = len(waits), seen.moved
	m.P50, m.P99 = quantile(waits, 0.50), quantile(waits, 0.99)
	if m.Last > 0 {
		m.BoundPerSecond = float64(m.Bound) / m.Last.Seconds()
	}
}

func (m *Measured) gangs(load Load, list []loadPod, seen *bindings) {
	seen.mu.Lock()
	defer seen.mu.Unlock()
	m.Gangs = len(load.Gangs)
	times := make([][]time.Time, len(load.Gangs))
	for _, p := range list {
		if b, ok := seen.bound[p.name]; ok && p.gang >= 0 {
			times[p.gang] = append(times[p.gang], b.at)
		}
	}
	var spreads []time.Duration
	for g, bound := range times {
		switch {
		case len(bound) == load.Gangs[g]:
			m.WholeGangs++
			spreads = append(spreads, slices.MaxFunc(bound, time.Time.Compare).Sub(slices.MinFunc(bound, time.Time.Compare)))
		case len(bound) > 0:
			m.PartialGangs++
		}
	}
	m.GangSpreadP99 = quantile(spreads, 0.99)
}

// checkCapacity counts the nodes that hold more devices than they have.
func (c *Cluster) checkCapacity(m *Measured, load Load, seen *bindings) error {
	nodes, err := c.fastClient().CoreV1().Nodes().List(context.Background(), metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return fmt.Errorf("reading the nodes' capacity: %w", err)
	}
	capacity := map[string]int64{}
	for i := range nodes.Items {
		devices := nodes.Items[i].Status.Allocatable[deviceResource]
		capacity[nodes.Items[i].Name] = devices.Value()
	}
	m.OvercommittedNodes = seen.overcommitted(load, func(node string) int64 { return capacity[node] })
	return nil
}

// quantile returns the value below which a share of the values lies; zero of none.
func quantile(values []time.Duration, share float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[min(len(values)-1, int(share*float64(len(values))))]
}

// DeletePods removes every pod of the harness's namespace at once, so that the next load finds empty nodes.
func (c *Cluster) DeletePods() {
	c.t.Helper()
	ctx := context.Background()
	client := c.fastClient().CoreV1().Pods(metav1.NamespaceDefault)
	atOnce := int64(0)
	if err := client.DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &atOnce}, metav1.ListOptions{}); err != nil {
		c.t.Fatalf("removing the pods: %v", err)
	}
}
