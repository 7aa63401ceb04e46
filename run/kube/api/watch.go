package api

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// patience is how long the first batch waits for a kind that is served and cannot be
// listed, such as one whose conversion is broken. It does not wait where rights are
// missing; for nodes and pods it waits as long as it takes.
const patience = 30 * time.Second

var (
	nodes      = corev1.SchemeGroupVersion.WithResource("nodes")
	pods       = corev1.SchemeGroupVersion.WithResource("pods")
	namespaces = corev1.SchemeGroupVersion.WithResource("namespaces")
)

// typed are the kinds that are told as they are in Go; all others are unstructured
// objects.
var typed = map[schema.GroupVersionResource]runtime.Object{
	nodes: &corev1.Node{},
	pods:  &corev1.Pod{},
	resourcev1.SchemeGroupVersion.WithResource("deviceclasses"):          &resourcev1.DeviceClass{},
	resourcev1.SchemeGroupVersion.WithResource("resourceslices"):         &resourcev1.ResourceSlice{},
	resourcev1.SchemeGroupVersion.WithResource("resourceclaims"):         &resourcev1.ResourceClaim{},
	resourcev1.SchemeGroupVersion.WithResource("resourceclaimtemplates"): &resourcev1.ResourceClaimTemplate{},
}

// watcher is one call of Watch.
type watcher struct {
	client *Client
	box    *mailbox
	kinds  map[schema.GroupVersionResource]*kind

	settled chan struct{} // holds one: a kind was listed, or could not be
	asked   chan struct{} // holds one: the server said what it serves
}

// Watch implements Watcher. Beside nodes, pods and what is of dynamic resource
// allocation it watches namespaces and the owners of the options, each while it is
// served. An error says that the server does not talk to us, for a reason that lasts.
func (c *Client) Watch(ctx context.Context, tell func([]Change)) (<-chan struct{}, error) {
	err := c.served.ask()
	if err != nil && !IsTransient(err) {
		return nil, err
	}
	w := &watcher{client: c, box: newMailbox(), kinds: map[schema.GroupVersionResource]*kind{},
		settled: make(chan struct{}, 1), asked: make(chan struct{}, 1)}
	if err == nil {
		signal(w.asked)
	}
	synced := make(chan struct{})
	go w.ask(ctx, err)
	go w.run(ctx, tell, synced)
	return synced, nil
}

// ask asks what is served again and again; err is how it went last.
func (w *watcher) ask(ctx context.Context, err error) {
	for {
		wait := w.client.options.Rediscover
		if err != nil {
			w.client.options.Log.Warn("the server does not say what it serves; it is asked again", "error", err)
			wait = min(wait, time.Second)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		if err = w.client.served.ask(); err == nil {
			signal(w.asked)
		}
	}
}

// run tells until the context ends.
func (w *watcher) run(ctx context.Context, tell func([]Change), synced chan<- struct{}) {
	defer func() {
		for _, k := range w.kinds {
			<-k.ended
		}
	}()
	if !w.begin(ctx) {
		return
	}
	first := w.box.take()
	inOrder(first)
	tell(first)
	close(synced)
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.asked:
			w.follow(ctx)
		case <-w.box.wake:
			if changes := w.box.take(); len(changes) > 0 {
				tell(changes)
			}
		}
	}
}

// begin waits until all there is was listed, and reports whether it was before the
// context ended.
func (w *watcher) begin(ctx context.Context) bool {
	w.start(ctx, nodes)
	w.start(ctx, pods)
	select {
	case <-ctx.Done():
		return false
	case <-w.asked:
		w.follow(ctx)
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for patient := true; !w.complete(patient); {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			patient = false
		case <-w.settled:
		}
	}
	return true
}

// complete reports whether enough was listed for the first batch.
func (w *watcher) complete(patient bool) bool {
	for gvr, k := range w.kinds {
		listed, refused := k.state()
		if !listed && (gvr == nodes || gvr == pods || patient && !refused) {
			return false
		}
	}
	return true
}

// follow starts to watch what is served, and stops what is not any more.
func (w *watcher) follow(ctx context.Context) {
	all := append([]schema.GroupVersionResource{namespaces}, w.client.options.Owners...)
	for gvr := range typed {
		all = append(all, gvr)
	}
	for _, gvr := range all {
		k, running := w.kinds[gvr]
		switch served := w.client.served.has(gvr); {
		case served && running:
			k.missed = 0
		case served:
			w.start(ctx, gvr)
		case running && gvr != nodes && gvr != pods:
			w.miss(k)
		}
	}
}

// miss stops a kind that the server has not named several times in a row; a server
// that has just begun does not name all of its kinds yet.
func (w *watcher) miss(k *kind) {
	if k.missed++; k.missed < 3 {
		return
	}
	w.client.options.Log.Info("a kind is not served any more", "resource", k.gvr.String())
	k.cancel()
	<-k.ended
	delete(w.kinds, k.gvr)
}

// start watches a kind until it is cancelled, which tells that its objects are gone.
func (w *watcher) start(ctx context.Context, gvr schema.GroupVersionResource) {
	own, cancel := context.WithCancel(ctx)
	k := &kind{gvr: gvr, cancel: cancel, ended: make(chan struct{}), settled: w.settled, log: w.client.options.Log}
	w.kinds[gvr] = k
	go func() {
		defer close(k.ended)
		f := newFeed(w.box, k.list)
		k.reflect(own, w.client.listWatch(gvr), typed[gvr], f)
		if ctx.Err() == nil {
			f.stop()
		}
	}()
}

// listWatch lists and watches a kind in all namespaces.
func (c *Client) listWatch(gvr schema.GroupVersionResource) cache.ListerWatcher {
	if typed[gvr] != nil {
		return cache.NewFilteredListWatchFromClient(c.watched[gvr.GroupVersion()], gvr.Resource, metav1.NamespaceAll, func(*metav1.ListOptions) {})
	}
	r := c.dynamic.Resource(gvr)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return r.List(ctx, o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return r.Watch(ctx, o)
		},
	}
}

// signal puts a mark into a channel that holds one.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
