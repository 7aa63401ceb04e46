package filter

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	configv1 "k8s.io/kube-scheduler/config/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/profile"

	"github.com/musterdl/muster/run/kube/filter/filtertest"
)

func quiet(t testing.TB) context.Context {
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	t.Cleanup(cancel)
	return ctx
}

// hostOf builds a Host over objects: nodes and pods by hand, the rest through informers.
func hostOf(t testing.TB, objects ...runtime.Object) (*Host, *fake.Clientset) {
	t.Helper()
	ctx := quiet(t)
	for _, object := range objects {
		if o, err := meta.Accessor(object); err == nil && o.GetResourceVersion() == "" {
			o.SetResourceVersion("1")
		}
	}
	client := fake.NewClientset(objects...)
	client.PrependReactor("*", "*", versioning(new(atomic.Int64)))
	factory := informers.NewSharedInformerFactory(client, 0)
	h, err := New(ctx, Options{
		Client: client, Informers: factory,
		OwnsResource: func(name corev1.ResourceName) bool { return name == "nvidia.com/gpu" },
		OwnsDriver:   func(name string) bool { return name == filtertest.Driver },
	})
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	if err := h.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		switch o := object.(type) {
		case *corev1.Node:
			h.SetNode(o)
		case *corev1.Pod:
			h.SetPod(o)
		}
	}
	return h, client
}

// versioning gives every object that is written a version, as an API server does: upstream's caches go by it.
func versioning(last *atomic.Int64) clienttesting.ReactionFunc {
	return func(action clienttesting.Action) (bool, runtime.Object, error) {
		if write, ok := action.(interface{ GetObject() runtime.Object }); ok {
			if object, err := meta.Accessor(write.GetObject()); err == nil {
				object.SetResourceVersion(strconv.FormatInt(1000+last.Add(1), 10))
			}
		}
		return false, nil, nil
	}
}

// upstream is the real upstream scheduler with its default profile, plus a filter that runs last and notes the nodes
// that passed all others.
type upstream struct {
	*scheduler.Scheduler
	framework framework.Framework
	passed    *passed
}

type passed struct {
	mu    sync.Mutex
	nodes []string
}

func (*passed) Name() string { return "Passed" }

func (p *passed) Filter(_ context.Context, _ fwk.CycleState, _ *corev1.Pod, info fwk.NodeInfo) *fwk.Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.nodes = append(p.nodes, info.Node().Name)
	return nil
}

func upstreamOf(t testing.TB, objects ...runtime.Object) *upstream {
	t.Helper()
	ctx := quiet(t)
	var versioned configv1.KubeSchedulerConfiguration
	scheme.Scheme.Default(&versioned)
	var all config.KubeSchedulerConfiguration
	if err := scheme.Scheme.Convert(&versioned, &all, nil); err != nil {
		t.Fatal(err)
	}
	u := &upstream{passed: &passed{}}
	all.Profiles[0].Plugins.Filter.Enabled = []config.Plugin{{Name: u.passed.Name()}}
	registry := frameworkruntime.Registry{u.passed.Name(): func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
		return u.passed, nil
	}}
	client := fake.NewClientset(objects...)
	factory := scheduler.NewInformerFactory(client, 0)
	everyNode := int32(100)
	var recorder profile.RecorderFactory = func(string) events.EventRecorderLogger { return &events.FakeRecorder{} }
	var err error
	u.Scheduler, err = scheduler.New(ctx, client, factory, nil, recorder, scheduler.WithProfiles(all.Profiles...),
		scheduler.WithFrameworkOutOfTreeRegistry(registry), scheduler.WithPercentageOfNodesToScore(&everyNode))
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	if err := u.WaitForHandlersSync(ctx); err != nil {
		t.Fatal(err)
	}
	u.framework = u.Profiles[corev1.DefaultSchedulerName]
	return u
}

// schedule returns the nodes that upstream finds for a pod, and its error where there are none.
func (u *upstream) schedule(t testing.TB, pod *corev1.Pod) ([]string, *framework.FitError) {
	t.Helper()
	ctx := klog.NewContext(context.Background(), klog.Logger{})
	if err := u.Cache.UpdateSnapshot(klog.Logger{}, u.framework.SnapshotSharedLister().(*internalcache.Snapshot)); err != nil {
		t.Fatal(err)
	}
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		t.Fatal(err)
	}
	u.passed.nodes = nil
	_, err = u.SchedulePod(ctx, u.framework, framework.NewCycleState(), &framework.QueuedPodInfo{PodInfo: info})
	fit, isFit := err.(*framework.FitError)
	if err != nil && !isFit {
		t.Fatal(err)
	}
	slices.Sort(u.passed.nodes)
	return u.passed.nodes, fit
}
