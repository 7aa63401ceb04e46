package api

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// little is a server with one object of each kind that it serves.
type little struct {
	mu     sync.Mutex
	served map[string][]string // resource and Kind by group and version
	broken bool
}

func (l *little) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	path, q := strings.TrimPrefix(r.URL.Path, "/"), r.URL.Query()
	gv, resource, _ := cutLast(path)
	switch {
	case l.broken:
		http.Error(w, "", http.StatusServiceUnavailable)
	case path == "api":
		_, _ = fmt.Fprint(w, `{"kind":"APIVersions","versions":["v1"]}`)
	case path == "apis":
		var groups []string
		for gv := range l.served {
			if group, version, ok := strings.Cut(strings.TrimPrefix(gv, "apis/"), "/"); ok && gv != "api/v1" {
				groups = append(groups, fmt.Sprintf(`{"name":%q,"versions":[{"groupVersion":"%s/%s","version":%q}]}`, group, group, version, version))
			}
		}
		_, _ = fmt.Fprintf(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[%s]}`, strings.Join(groups, ","))
	case l.served[path] != nil:
		_, _ = fmt.Fprintf(w, `{"kind":"APIResourceList","groupVersion":%q,"resources":[%s]}`, versionOf(path), l.resources(path))
	case q.Get("sendInitialEvents") != "":
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":400,"reason":"BadRequest"}`)
	case q.Get("watch") != "":
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		l.mu.Unlock()
		<-r.Context().Done()
		l.mu.Lock()
	default:
		kind := ""
		for _, pair := range l.served[gv] {
			if name, k, _ := strings.Cut(pair, " "); name == resource {
				kind = k
			}
		}
		_, _ = fmt.Fprintf(w, `{"kind":"%sList","apiVersion":%q,"metadata":{"resourceVersion":"5"},"items":[{"kind":%q,"apiVersion":%q,"metadata":{"name":"the-%s","uid":"u","resourceVersion":"4"}}]}`,
			kind, versionOf(gv), kind, versionOf(gv), resource)
	}
}

func cutLast(path string) (before, after string, ok bool) {
	i := strings.LastIndex(path, "/")
	if i < 0 {
		return path, "", false
	}
	return path[:i], path[i+1:], true
}

func versionOf(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, "apis/"), "api/")
}

func (l *little) resources(gv string) string {
	var all []string
	for _, pair := range l.served[gv] {
		name, kind, _ := strings.Cut(pair, " ")
		all = append(all, fmt.Sprintf(`{"name":%q,"kind":%q}`, name, kind))
	}
	return strings.Join(all, ",")
}

func (l *little) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

// Kinds are watched while they are served, and the first batch has all there is.
func TestWatch(t *testing.T) {
	l := &little{served: map[string][]string{"api/v1": {"nodes Node", "pods Pod", "namespaces Namespace"}, "apis/batch/v1": {"jobs Job"},
		"apis/resource.k8s.io/v1": {"resourceclaims ResourceClaim"}}, broken: true}
	s := httptest.NewServer(l)
	t.Cleanup(s.Close)
	jobs := schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	sets := schema.GroupVersionResource{Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobsets"}
	c, err := New(&rest.Config{Host: s.URL}, Options{Owners: []schema.GroupVersionResource{jobs, sets}, Rediscover: 50 * time.Millisecond})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	told := make(chan []string, 100)
	synced, err := c.Watch(ctx, func(changes []Change) {
		var names []string
		for _, c := range changes {
			names = append(names, c.Object.(metav1.Object).GetName()+map[bool]string{true: " gone"}[c.Gone])
		}
		told <- names
	})
	must(t, err)
	next := func(want ...string) {
		t.Helper()
		select {
		case got := <-told:
			if len(want) == 5 { // owners come in any order
				slices.Sort(got[1:3])
			}
			if !slices.Equal(got, want) {
				t.Fatalf("told %v, expected %v", got, want)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("nothing was told, expected %v", want)
		}
	}
	select {
	case got := <-told:
		t.Fatalf("told %v by a server that is down", got)
	case <-time.After(200 * time.Millisecond):
	}
	l.set(func() { l.broken = false })
	next("the-nodes", "the-jobs", "the-namespaces", "the-resourceclaims", "the-pods")
	<-synced
	l.set(func() { l.served["apis/jobset.x-k8s.io/v1alpha2"] = []string{"jobsets JobSet"} })
	next("the-jobsets")
	l.set(func() { l.broken = true })
	time.Sleep(300 * time.Millisecond) // a server that says nothing does not say that all is gone
	l.set(func() { l.broken = false; delete(l.served, "apis/batch/v1") })
	next("the-jobs gone")
	cancel()
	if len(told) > 0 {
		t.Errorf("told %v", <-told)
	}
}

// Credentials that are wrong are an error at once.
func TestWatchWithoutRights(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	t.Cleanup(s.Close)
	c, err := New(&rest.Config{Host: s.URL}, Options{})
	must(t, err)
	if _, err := c.Watch(t.Context(), func([]Change) {}); !IsRefused(err) {
		t.Error(err)
	}
}
