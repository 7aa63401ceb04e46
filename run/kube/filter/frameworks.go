package filter

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"
	configv1 "k8s.io/kube-scheduler/config/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
)

// profileName is the scheduler name under which upstream's own metrics and logs speak of these frameworks.
const profileName = "muster"

// frameworks are upstream's plugins, wired the way its scheduler.New wires them.
type frameworks struct {
	strict framework.Framework // counts everything
	open   framework.Framework // leaves out what the engine counts
	cache  internalcache.Cache

	claims  *assumecache.AssumeCache
	slices  *tracker.Tracker
	devices fwk.SharedDRAManager
}

func newFrameworks(ctx context.Context, o Options, snapshot *internalcache.Snapshot) (frameworks, error) {
	metrics.Register()
	logger := klog.FromContext(ctx)
	f := frameworks{
		cache:  internalcache.New(ctx, nil, utilfeature.DefaultFeatureGate.Enabled(features.GenericWorkload)),
		claims: assumecache.NewAssumeCache(logger, o.Informers.Resource().V1().ResourceClaims().Informer(), "ResourceClaim", "", nil),
	}
	profile, err := defaultProfile()
	if err != nil {
		return f, err
	}
	f.slices, err = tracker.StartTracker(ctx, trackerOptions(o))
	if err != nil {
		return f, err
	}
	f.devices = dynamicresources.NewDRAManager(ctx, f.claims, f.slices, o.Informers)
	shared := []frameworkruntime.Option{
		frameworkruntime.WithClientSet(o.Client),
		frameworkruntime.WithInformerFactory(o.Informers),
		frameworkruntime.WithSnapshotSharedLister(snapshot),
		frameworkruntime.WithEventRecorder(o.Recorder),
		frameworkruntime.WithMetricsRecorder(metrics.NewMetricsAsyncRecorder(1000, time.Second, ctx.Done())),
		frameworkruntime.WithWaitingPods(frameworkruntime.NewWaitingPodsMap()),
		frameworkruntime.WithPodsInPreBind(frameworkruntime.NewPodsInPreBindMap()),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(o.Informers.Storage().V1().CSINodes().Lister())),
		frameworkruntime.WithPodGroupManager(f.cache),
	}
	built := map[string]fwk.Plugin{}
	f.strict, err = frameworkruntime.NewFramework(ctx, remembering(plugins.NewInTreeRegistry(), built), profile,
		append(slices.Clone(shared), frameworkruntime.WithSharedDRAManager(f.devices))...)
	if err != nil {
		return f, err
	}
	open := openDevices{SharedDRAManager: f.devices, owns: o.OwnsDriver}
	f.open, err = frameworkruntime.NewFramework(ctx, opening(plugins.NewInTreeRegistry(), built, o.OwnsResource), profile,
		append(slices.Clone(shared), frameworkruntime.WithSharedDRAManager(open))...)
	return f, err
}

func trackerOptions(o Options) tracker.Options {
	t := tracker.Options{
		EnableDeviceTaintRules:   utilfeature.DefaultFeatureGate.Enabled(features.DRADeviceTaintRules),
		EnableConsumableCapacity: utilfeature.DefaultFeatureGate.Enabled(features.DRAConsumableCapacity),
		SliceInformer:            o.Informers.Resource().V1().ResourceSlices(),
		KubeClient:               o.Client,
	}
	if t.EnableDeviceTaintRules {
		t.TaintInformer = o.Informers.Resource().V1beta2().DeviceTaintRules()
		t.ClassInformer = o.Informers.Resource().V1().DeviceClasses()
	}
	return t
}

// defaultProfile is upstream's default profile without what the engine decides: scores and preemption. Upstream
// insists on a queue order and a binder; these two are built and never asked.
func defaultProfile() (*config.KubeSchedulerProfile, error) {
	var versioned configv1.KubeSchedulerConfiguration
	scheme.Scheme.Default(&versioned)
	var all config.KubeSchedulerConfiguration
	if err := scheme.Scheme.Convert(&versioned, &all, nil); err != nil {
		return nil, fmt.Errorf("reading upstream's default configuration: %w", err)
	}
	p := all.Profiles[0]
	p.SchedulerName = profileName
	drop := []string{names.ImageLocality, names.NodeResourcesBalancedAllocation, names.DefaultPreemption}
	dropped := func(plugin config.Plugin) bool { return slices.Contains(drop, plugin.Name) }
	p.Plugins.MultiPoint.Enabled = slices.DeleteFunc(p.Plugins.MultiPoint.Enabled, dropped)
	none := []config.Plugin{{Name: "*"}}
	p.Plugins.PreScore.Disabled = none
	p.Plugins.Score.Disabled = none
	return &p, nil
}

// remembering notes every plugin that is built, so that both frameworks share them with their caches.
func remembering(registry frameworkruntime.Registry, built map[string]fwk.Plugin) frameworkruntime.Registry {
	out := frameworkruntime.Registry{}
	for name, factory := range registry {
		out[name] = func(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
			plugin, err := factory(ctx, args, handle)
			built[name] = plugin
			return plugin, err
		}
	}
	return out
}

// opening hands out the plugins that were built, but for the two that count devices and resources.
func opening(registry frameworkruntime.Registry, built map[string]fwk.Plugin, owns func(corev1.ResourceName) bool) frameworkruntime.Registry {
	out := frameworkruntime.Registry{}
	for name, plugin := range built {
		out[name] = func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return plugin, nil }
	}
	out[names.DynamicResources] = registry[names.DynamicResources]
	out[names.NodeResourcesFit] = func(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		plugin, err := registry[names.NodeResourcesFit](ctx, args, handle)
		if err != nil {
			return nil, err
		}
		return openFit{Fit: plugin.(*noderesources.Fit), owns: owns}, nil
	}
	return out
}

// openFit is upstream's check of resources for a pod that asks for none of the engine's. Upstream's own list of
// ignored resources cannot name processor and memory, and its filter reads only what PreFilter computed.
type openFit struct {
	*noderesources.Fit
	owns func(corev1.ResourceName) bool
}

// PreFilter computes what the pod asks for without what the engine counts.
func (f openFit) PreFilter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	return f.Fit.PreFilter(ctx, state, withoutOwned(pod, f.owns), nodes)
}

// withoutOwned returns a pod that asks for nothing the engine counts; upstream computes from it as from any pod.
func withoutOwned(pod *corev1.Pod, owns func(corev1.ResourceName) bool) *corev1.Pod {
	drop := func(list corev1.ResourceList) corev1.ResourceList {
		out := corev1.ResourceList{}
		for name, quantity := range list {
			if !engineCounts(name, owns) {
				out[name] = quantity
			}
		}
		return out
	}
	stripped := *pod
	stripped.Spec.InitContainers = slices.Clone(pod.Spec.InitContainers)
	stripped.Spec.Containers = slices.Clone(pod.Spec.Containers)
	for _, containers := range [][]corev1.Container{stripped.Spec.InitContainers, stripped.Spec.Containers} {
		for i := range containers {
			containers[i].Resources.Requests = drop(containers[i].Resources.Requests)
		}
	}
	stripped.Spec.Overhead = drop(pod.Spec.Overhead)
	if pod.Spec.Resources != nil {
		whole := *pod.Spec.Resources
		whole.Requests = drop(whole.Requests)
		stripped.Spec.Resources = &whole
	}
	return &stripped
}

func engineCounts(name corev1.ResourceName, owns func(corev1.ResourceName) bool) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory || owns(name)
}

// openDevices shows the engine's own devices as free: the engine knows which are, and which soon will be.
type openDevices struct {
	fwk.SharedDRAManager
	owns func(driver string) bool
}

// ResourceClaims returns upstream's claims, with the engine's devices left out of what is allocated.
func (d openDevices) ResourceClaims() fwk.ResourceClaimTracker {
	return openClaims{ResourceClaimTracker: d.SharedDRAManager.ResourceClaims(), owns: d.owns}
}

type openClaims struct {
	fwk.ResourceClaimTracker
	owns func(driver string) bool
}

// ListAllAllocatedDevices lists the allocated devices that the engine does not count.
func (c openClaims) ListAllAllocatedDevices() (sets.Set[structured.DeviceID], error) {
	all, err := c.ResourceClaimTracker.ListAllAllocatedDevices()
	return c.foreign(all), err
}

// GatherAllocatedState is ListAllAllocatedDevices with shared devices and consumed capacity.
func (c openClaims) GatherAllocatedState() (*structured.AllocatedState, error) {
	all, err := c.ResourceClaimTracker.GatherAllocatedState()
	if err != nil || all == nil {
		return all, err
	}
	out := &structured.AllocatedState{
		AllocatedDevices:         c.foreign(all.AllocatedDevices),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for id := range all.AllocatedSharedDeviceIDs {
		if !c.owns(id.Driver.String()) {
			out.AllocatedSharedDeviceIDs.Insert(id)
		}
	}
	for id, capacity := range all.AggregatedCapacity {
		if !c.owns(id.Driver.String()) {
			out.AggregatedCapacity[id] = capacity
		}
	}
	return out, nil
}

func (c openClaims) foreign(all sets.Set[structured.DeviceID]) sets.Set[structured.DeviceID] {
	out := sets.New[structured.DeviceID]()
	for id := range all {
		if !c.owns(id.Driver.String()) {
			out.Insert(id)
		}
	}
	return out
}

// watchOthers counts the changes of what is neither a node nor a pod, because answers of pods with volumes, claims or
// namespace selectors depend on it. Claims, slices and classes are heard of through upstream's own caches, which have
// taken the change in by then.
func (h *Host) watchOthers(i informers.SharedInformerFactory) ([]cache.ResourceEventHandlerRegistration, error) {
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { h.others.Add(1) },
		UpdateFunc: func(any, any) { h.others.Add(1) },
		DeleteFunc: func(any) { h.others.Add(1) },
	}
	registrations := []cache.ResourceEventHandlerRegistration{h.claims.AddEventHandler(handler)}
	add := func(informer interface {
		AddEventHandler(cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error)
	}, handler cache.ResourceEventHandler) error {
		registration, err := informer.AddEventHandler(handler)
		registrations = append(registrations, registration)
		return err
	}
	if err := add(h.slices, handler); err != nil {
		return nil, err
	}
	classes := cache.ResourceEventHandler(handler)
	if resolver, ok := h.devices.DeviceClassResolver().(*extendedresourcecache.ExtendedResourceCache); ok && resolver != nil {
		resolver.AddEventHandler(handler)
		classes = resolver
	}
	if err := add(i.Resource().V1().DeviceClasses().Informer(), classes); err != nil {
		return nil, err
	}
	for _, informer := range []cache.SharedIndexInformer{
		i.Core().V1().Namespaces().Informer(),
		i.Core().V1().PersistentVolumeClaims().Informer(),
		i.Core().V1().PersistentVolumes().Informer(),
		i.Storage().V1().StorageClasses().Informer(),
		i.Storage().V1().CSINodes().Informer(),
		i.Storage().V1().CSIDrivers().Informer(),
		i.Storage().V1().CSIStorageCapacities().Informer(),
		i.Storage().V1().VolumeAttachments().Informer(),
	} {
		if err := add(informer, handler); err != nil {
			return nil, err
		}
	}
	return registrations, nil
}
