package api

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
)

// server is a server of pods with a history that it can forget.
type server struct {
	streams bool // it sends lists as watches

	mu        sync.Mutex
	version   int
	pods      map[string]*corev1.Pod
	history   []watch.Event // of versions 1, 2, ...
	forgotten int
	watches   []*watch.RaceFreeFakeWatcher
	lists     int
}

func newServer() *server { return &server{pods: map[string]*corev1.Pod{}} }

// put makes or changes a pod; a new uid makes it another one.
func (s *server) put(name string, uid types.UID) *corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	if was := s.pods[name]; was != nil && was.UID != uid {
		s.send(watch.Deleted, was)
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "n", UID: uid, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}}}
	kind := watch.Modified
	if was := s.pods[name]; was == nil {
		kind = watch.Added
	}
	s.send(kind, p)
	return p
}

func (s *server) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if was := s.pods[name]; was != nil {
		s.send(watch.Deleted, was)
	}
}

func (s *server) send(kind watch.EventType, p *corev1.Pod) {
	s.version++
	p = p.DeepCopy()
	p.ResourceVersion = strconv.Itoa(s.version)
	if s.pods[p.Name] = p; kind == watch.Deleted {
		delete(s.pods, p.Name)
	}
	s.history = append(s.history, watch.Event{Type: kind, Object: p})
	for _, w := range s.watches {
		w.Action(kind, p.DeepCopy())
	}
}

func (s *server) ListWithContext(context.Context, metav1.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists++
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(s.version)}}
	for _, p := range s.pods {
		list.Items = append(list.Items, *p.DeepCopy())
	}
	return list, nil
}

func (s *server) WatchWithContext(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := watch.NewRaceFreeFake()
	if o.SendInitialEvents != nil {
		if !s.streams {
			return nil, apierrors.NewBadRequest("it streams no lists")
		}
		s.lists++
		for _, p := range s.pods {
			w.Add(p.DeepCopy())
		}
		w.Action(watch.Bookmark, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.Itoa(s.version),
			Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}})
	} else {
		from, err := strconv.Atoi(o.ResourceVersion)
		if err != nil || from < s.forgotten {
			return nil, apierrors.NewResourceExpired("it has forgotten")
		}
		for _, e := range s.history[from:] {
			w.Action(e.Type, e.Object.DeepCopyObject())
		}
	}
	s.watches = append(s.watches, w)
	return w, nil
}

func (s *server) List(o metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(context.Background(), o)
}

func (s *server) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(context.Background(), o)
}

// cut ends all watches; how says whether the server still knows what was, and says so.
func (s *server) cut(forget, say bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if forget {
		s.forgotten = s.version
	}
	for _, w := range s.watches {
		if say {
			status := apierrors.NewResourceExpired("it has forgotten").Status()
			w.Error(&status)
		}
		w.Stop()
	}
	s.watches = nil
}

// replay is what somebody knows who was told changes.
type replay struct {
	mu    sync.Mutex
	known map[string]string // UID and version by name
	all   map[string]bool   // whatever was told
	wrong []string
}

func newReplay() *replay { return &replay{known: map[string]string{}, all: map[string]bool{}} }

func (r *replay) tell(changes []Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range changes {
		p := c.Object.(*corev1.Pod)
		now := string(p.UID) + "/" + p.ResourceVersion
		was, ok := r.known[p.Name]
		switch {
		case p.ManagedFields != nil:
			r.wrong = append(r.wrong, p.Name+" has managed fields")
		case c.Gone && !ok:
			r.wrong = append(r.wrong, p.Name+" went and was not there")
		case c.Gone:
			if was[:2] != now[:2] {
				r.wrong = append(r.wrong, p.Name+" was "+was+", went as "+now)
			}
			delete(r.known, p.Name)
		case ok && was[:2] != now[:2]:
			r.wrong = append(r.wrong, p.Name+" became another without going: "+was+", "+now)
		case r.all[p.Name+now]:
			r.wrong = append(r.wrong, p.Name+" was told twice as "+now)
		default:
			r.known[p.Name] = now
			r.all[p.Name+now] = true
		}
	}
}

// equals reports whether that is what the server has.
func (r *replay) equals(s *server) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, p := range s.pods {
		if r.known[name] != string(p.UID)+"/"+p.ResourceVersion {
			return false
		}
	}
	return len(r.known) == len(s.pods)
}

// Whatever is missed, what was told is what there is.
func TestFeedTellsDifferences(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		s, r, box, lists := newServer(), newReplay(), newMailbox(), 0
		f := newFeed(box, func(int) { lists++ })
		connected, at, uid := false, 0, 10
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")
			switch rapid.SampledFrom([]string{"make", "change", "remove", "cut", "list"}).Draw(t, "step") {
			case "make":
				uid++
				s.put(name, types.UID(strconv.Itoa(uid)))
			case "change":
				if p := s.pods[name]; p != nil {
					s.put(name, p.UID)
				}
			case "remove":
				s.remove(name)
			case "cut":
				connected = false
			case "list":
				list, _ := s.List(metav1.ListOptions{})
				var all []any
				for i := range list.(*corev1.PodList).Items {
					all = append(all, &list.(*corev1.PodList).Items[i])
				}
				must(t, f.Replace(all, ""))
				connected, at = true, len(s.history)
			}
			for ; connected && at < len(s.history); at++ {
				switch e := s.history[at]; e.Type {
				case watch.Deleted:
					must(t, f.Delete(e.Object.DeepCopyObject()))
				default:
					must(t, f.Update(e.Object.DeepCopyObject()))
				}
			}
			r.tell(box.take())
			if connected && !r.equals(s) || len(r.wrong) > 0 {
				t.Fatalf("told %v, there is %v; %v", r.known, s.pods, r.wrong)
			}
		}
		f.stop()
		if r.tell(box.take()); len(r.known) > 0 || len(r.wrong) > 0 {
			t.Fatalf("left %v; %v", r.known, r.wrong)
		}
	})
}

type fataler interface{ Fatal(...any) }

func must(t fataler, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

// The reflector takes up watches that ended, and lists again where it has to.
func TestGaps(t *testing.T) {
	for _, c := range []struct {
		name                 string
		streams, forget, say bool
		lists                int
	}{
		{name: "the watch ends", lists: 1},
		{name: "the watch ends and its history is forgotten", forget: true, lists: 2},
		{name: "the watch is told that it is behind", forget: true, say: true, lists: 2},
		{name: "lists are streamed, and the watch ends", streams: true, lists: 1},
		{name: "lists are streamed, and its history is forgotten", streams: true, forget: true, say: true, lists: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, r, box := newServer(), newReplay(), newMailbox()
			s.streams = c.streams
			k := &kind{gvr: pods, settled: make(chan struct{}, 1), log: slog.New(slog.DiscardHandler)}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); k.reflect(ctx, s, &corev1.Pod{}, newFeed(box, k.list)) }()
			agree := func() {
				t.Helper()
				for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
					r.tell(box.take())
					if listed, _ := k.state(); listed && r.equals(s) && len(r.wrong) == 0 {
						return
					}
					if time.Now().After(end) || len(r.wrong) > 0 {
						t.Fatalf("told %v, there is %v; %v", r.known, s.pods, r.wrong)
					}
				}
			}
			s.put("stays", "10")
			s.put("goes", "11")
			s.put("changes", "12")
			s.put("again", "13")
			agree()
			s.put("seen", "14")
			agree()
			s.mu.Lock() // nothing may be watched before all this has happened
			watches := s.watches
			s.watches = nil
			s.mu.Unlock()
			s.remove("goes")
			s.put("changes", "12")
			s.put("again", "15")
			s.put("comes", "16")
			s.mu.Lock()
			s.watches = watches
			s.mu.Unlock()
			s.cut(c.forget, c.say)
			agree()
			s.put("after", "17")
			agree()
			if s.lists != c.lists {
				t.Errorf("%d lists, expected %d", s.lists, c.lists)
			}
			cancel()
			<-done
		})
	}
}

// A kind that may not be listed does not hold up the first batch.
func TestRefused(t *testing.T) {
	for code, want := range map[int]bool{http.StatusForbidden: true, http.StatusNotFound: true, http.StatusInternalServerError: false} {
		k := &kind{settled: make(chan struct{}, 1)}
		lw := k.noting(&cache.ListWatch{ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return nil, &apierrors.StatusError{ErrStatus: metav1.Status{Code: int32(code), Reason: metav1.StatusReason(http.StatusText(code))}}
		}})
		if _, err := cache.ToListerWatcherWithContext(lw).ListWithContext(t.Context(), metav1.ListOptions{}); err == nil {
			t.Fatal("no error")
		}
		if _, refused := k.state(); refused != want {
			t.Errorf("%d: %t", code, refused)
		}
		w := &watcher{kinds: map[schema.GroupVersionResource]*kind{{Resource: "x"}: k}}
		if w.complete(true) != want || !w.complete(false) {
			t.Errorf("%d: %t patiently, %t else", code, w.complete(true), w.complete(false))
		}
		w.kinds = map[schema.GroupVersionResource]*kind{pods: k}
		if w.complete(false) {
			t.Error("it goes on without pods")
		}
	}
}

func TestOrderOfTheFirstBatch(t *testing.T) {
	var told []string
	changes := []Change{{Object: &corev1.Pod{}}, {Object: &resourcev1.ResourceClaim{}}, {Object: &unstructured.Unstructured{}},
		{Object: &resourcev1.ResourceSlice{}}, {Object: &corev1.Node{}}}
	inOrder(changes)
	for _, c := range changes {
		told = append(told, fmt.Sprintf("%T", c.Object))
	}
	if want := []string{"*v1.Node", "*v1.ResourceSlice", "*unstructured.Unstructured", "*v1.ResourceClaim", "*v1.Pod"}; !slices.Equal(told, want) {
		t.Error(told)
	}
}
