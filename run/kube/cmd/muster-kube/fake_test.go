package main

import (
	"context"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/store"
	"github.com/musterdl/muster/run/kube/api"
	"github.com/musterdl/muster/run/kube/driver"
	"github.com/musterdl/muster/run/kube/filter"
	"github.com/musterdl/muster/run/kube/inventory"
	"github.com/musterdl/muster/run/kube/kubetest"
)

// fakeAPI stands before client-go's fake client, which keeps no records: they stay here.
type fakeAPI struct {
	client   kubernetes.Interface
	mu       sync.Mutex
	versions int
}

func (d *fakeAPI) Watch(ctx context.Context, tell func([]api.Change)) (<-chan struct{}, error) {
	factory := informers.NewSharedInformerFactory(d.client, 0)
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { tell([]api.Change{{Object: object(o)}}) },
		UpdateFunc: func(_, o any) { tell([]api.Change{{Object: object(o)}}) },
		DeleteFunc: func(o any) { tell([]api.Change{{Object: object(o), Gone: true}}) },
	}
	nodes, err := factory.Core().V1().Nodes().Informer().AddEventHandler(handler)
	if err != nil {
		return nil, err
	}
	pods, err := factory.Core().V1().Pods().Informer().AddEventHandler(handler)
	if err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	cache.WaitForCacheSync(ctx.Done(), nodes.HasSynced, pods.HasSynced)
	synced := make(chan struct{})
	close(synced)
	return synced, nil
}

func object(o any) runtime.Object {

	switch x := o.(type) {
	case *corev1.Pod:
		return x
	case *corev1.Node:
		return x
	}
	panic("neither a pod nor a node")
}

func (d *fakeAPI) Bind(ctx context.Context, pod *corev1.Pod, node string, notes map[string]string) error {
	return d.client.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, Annotations: notes},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node}}, metav1.CreateOptions{})
}

func (d *fakeAPI) Evict(context.Context, *corev1.Pod, string) error           { return nil }
func (d *fakeAPI) Explain(context.Context, *corev1.Pod, string, string) error { return nil }
func (d *fakeAPI) Say(corev1.ObjectReference, string, string, string)         {}
func (d *fakeAPI) ListJobs(context.Context) ([]api.Job, error)                { return nil, nil }
func (d *fakeAPI) PutJob(context.Context, *api.Job) (string, error)           { return d.version(), nil }
func (d *fakeAPI) DeleteJob(context.Context, string, string) error            { return nil }
func (d *fakeAPI) PutLedger(context.Context, *api.Ledger) (string, error)     { return d.version(), nil }
func (d *fakeAPI) GetJob(context.Context, string, string) (api.Job, bool, error) {
	return api.Job{}, false, nil
}
func (d *fakeAPI) GetLedger(context.Context, string) (api.Ledger, bool, error) {
	return api.Ledger{}, false, nil
}
func (d *fakeAPI) Suspend(context.Context, corev1.ObjectReference, string, bool) error { return nil }
func (d *fakeAPI) Set(context.Context, corev1.ObjectReference, []string, int32) error  { return nil }

func (d *fakeAPI) version() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.versions++
	return strconv.Itoa(d.versions)
}

// musterOnFake starts all of muster-kube but its clients on a client.
func musterOnFake(t *testing.T) func(ctx context.Context, client kubernetes.Interface) error {
	return func(ctx context.Context, client kubernetes.Interface) error {
		log := slog.New(slog.DiscardHandler)
		factory := informers.NewSharedInformerFactory(client, 0)
		rules := inventory.Rules{}
		host, err := filter.New(ctx, filter.Options{Client: client, Informers: factory, OwnsResource: rules.Counts, OwnsDriver: rules.CountsDriver})
		if err != nil {
			return err
		}
		factory.Start(ctx.Done())
		if err := host.WaitForSync(ctx); err != nil {
			return err
		}
		d := &fakeAPI{client: client}
		core := driver.New(driver.Config{Scheduler: "muster", Rules: rules, Filter: host, Pods: d, Owners: d, Records: d, Ledgers: d, Voice: d, Now: now, Log: log})
		x := driver.NewDriver(core, driver.Options{})
		begin, err := x.Begin(ctx, d)
		if err != nil {
			return err
		}
		journal, err := store.Open(t.TempDir(), store.Options{Now: now})
		if err != nil {
			return err
		}
		strategy, err := catalogue.Parse("test", "fifo")
		if err != nil {
			return err
		}
		p, err := plane.Open(plane.Config{Cluster: begin.Cluster, Image: begin.Image, Strategy: strategy, Seed: 1, Policy: engine.DefaultPolicy(),
			Journal: journal, Driver: x, Told: x.Told, Now: now, Log: log})
		if err != nil {
			return err
		}
		ended := make(chan struct{}, 2)
		go func() { _ = p.Run(ctx); ended <- struct{}{} }() // it ends with the test
		go func() { _ = x.Run(ctx, p); ended <- struct{}{} }()
		t.Cleanup(func() { <-ended; <-ended; journal.Close() })
		return nil
	}
}

// TestFake measures decisions alone: no network, no encoding, no API server.
func TestFake(t *testing.T) {
	if os.Getenv("MUSTER_LONG") == "" {
		t.Skip("set MUSTER_LONG=1 to measure on a fake client")
	}
	setting := kubetest.Setting{Nodes: 1000, Node: kubetest.NodeTemplate{Devices: 8}}
	load := kubetest.Load{Pods: size(t)}
	ours, err := kubetest.MeasureFake(setting, load, "muster", "muster", musterOnFake(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Log(ours)
	theirs, err := kubetest.MeasureFake(setting, load, "kube-scheduler", corev1.DefaultSchedulerName, kubetest.UpstreamOnFake)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(theirs)
	if ours.Bound != load.Pods || ours.OvercommittedNodes+ours.MovedPods > 0 {
		t.Error("not all pods were bound as they should")
	}
	if ratio := ours.PerSecond / theirs.PerSecond; ratio < 2 {
		t.Errorf("%.2f times kube-scheduler's decisions per second, want 2", ratio)
	}
}
