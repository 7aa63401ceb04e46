package api

import (
	"context"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// kind is one kind of objects that is watched.
type kind struct {
	gvr     schema.GroupVersionResource
	cancel  context.CancelFunc
	ended   chan struct{}
	settled chan<- struct{}
	log     *slog.Logger
	missed  int // how often in a row it was not served

	mu      sync.Mutex
	lists   int
	refused bool // we may not list it, or it is not there
}

// reflect lists and watches the kind into a feed until the context ends. The reflector
// takes a watch up where it ended, and lists again where the server has forgotten. It
// logs what goes wrong.
func (k *kind) reflect(ctx context.Context, from cache.ListerWatcher, example runtime.Object, f *feed) {
	var expected any
	if example != nil {
		expected = example
	}
	r := cache.NewReflectorWithOptions(k.noting(from), expected, f, cache.ReflectorOptions{
		Name: "muster " + k.gvr.Resource, TypeDescription: k.gvr.String(),
		// So that not more than some seconds are lost behind an outage.
		Backoff: &wait.Backoff{Duration: 200 * time.Millisecond, Cap: 5 * time.Second, Steps: 10, Factor: 2, Jitter: 1}})
	r.RunWithContext(ctx)
}

// noting lists and watches, and notes how that went.
func (k *kind) noting(from cache.ListerWatcher) cache.ListerWatcher {
	x := cache.ToListerWatcherWithContext(from)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := x.ListWithContext(ctx, o)
			k.note(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := x.WatchWithContext(ctx, o)
			k.note(err)
			return w, err
		},
	}
}

// list notes that all objects were listed.
func (k *kind) list(changes int) {
	k.mu.Lock()
	k.lists++
	again := k.lists > 1
	k.mu.Unlock()
	if again {
		k.log.Info("listed again after a gap", "resource", k.gvr.String(), "differences", changes)
	}
	signal(k.settled)
}

// note keeps whether the kind cannot be listed or watched for a reason that lasts.
func (k *kind) note(err error) {
	if err == nil {
		return
	}
	k.mu.Lock()
	k.refused = apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
	k.mu.Unlock()
	signal(k.settled)
}

func (k *kind) state() (listed, refused bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lists > 0, k.refused
}
