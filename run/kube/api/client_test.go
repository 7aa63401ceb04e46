package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/musterdl/muster/run/kube/api"
)

// call is what came to a server.
type call struct {
	what, content, accept string
	body                  []byte
}

// into reads a body in protobuf.
func (c call) into(t *testing.T, object runtime.Object) {
	t.Helper()
	if c.content != runtime.ContentTypeProtobuf {
		t.Errorf("%s came as %q", c.what, c.content)
	}
	if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(c.body, nil, object); err != nil {
		t.Fatal(err)
	}
}

// canned is a server with one answer for all.
type canned struct {
	*testing.T
	client *api.Client

	mu     sync.Mutex
	calls  []call
	code   int
	answer any
}

func serve(t *testing.T, o api.Options) *canned {
	c := &canned{T: t, code: http.StatusOK, answer: metav1.Status{Status: metav1.StatusSuccess}}
	s := httptest.NewServer(c)
	t.Cleanup(s.Close)
	if o.QPS == 0 {
		o.QPS = -1
	}
	client, err := api.New(&rest.Config{Host: s.URL}, o)
	if err != nil {
		t.Fatal(err)
	}
	c.client = client
	return c
}

func (c *canned) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/api":
		_, _ = fmt.Fprint(w, `{"kind":"APIVersions","versions":["v1"]}`)
		return
	case "/apis":
		_, _ = fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"batch","versions":[{"groupVersion":"batch/v1","version":"v1"}]}]}`)
		return
	case "/api/v1":
		_, _ = fmt.Fprint(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","kind":"Pod","namespaced":true}]}`)
		return
	case "/apis/batch/v1":
		_, _ = fmt.Fprint(w, `{"kind":"APIResourceList","groupVersion":"batch/v1","resources":[{"name":"jobs/status","kind":"Job"},{"name":"jobs","kind":"Job","namespaced":true}]}`)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	q := r.URL.Query()
	q.Del("timeout")
	what := r.Method + " " + r.URL.Path
	if len(q) > 0 {
		what += "?" + q.Encode()
	}
	c.calls = append(c.calls, call{what, r.Header.Get("Content-Type"), r.Header.Get("Accept"), body})
	if s, ok := c.answer.(*apierrors.StatusError); ok {
		c.code = int(s.ErrStatus.Code)
		s.ErrStatus.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		if d := s.ErrStatus.Details; d != nil && d.RetryAfterSeconds > 0 {
			w.Header().Set("Retry-After", fmt.Sprint(d.RetryAfterSeconds))
		}
		w.WriteHeader(c.code)
		_ = json.NewEncoder(w).Encode(s.ErrStatus)
		return
	}
	w.WriteHeader(c.code)
	_ = json.NewEncoder(w).Encode(c.answer)
}

// one is the only call since the last.
func (c *canned) one() call {
	c.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.calls) != 1 {
		c.Fatalf("%d calls, expected one", len(c.calls))
	}
	defer func() { c.calls = nil }()
	return c.calls[0]
}

func (c *canned) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

func (c *canned) same(got, want string) {
	c.Helper()
	if got != want {
		c.Errorf("got      %s\nexpected %s", got, want)
	}
}

func somePod() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p", UID: "u", ResourceVersion: "9", Annotations: map[string]string{"its": "own"}}}
}

func TestBind(t *testing.T) {
	c := serve(t, api.Options{})
	c.must(c.client.Bind(t.Context(), somePod(), "node-7", map[string]string{"muster.dev/a": "b"}))
	call := c.one()
	c.same(call.what, "POST /api/v1/namespaces/n/pods/p/binding")
	var b corev1.Binding
	call.into(t, &b)
	c.same(encode(t, b), `{"kind":"Binding","apiVersion":"v1","metadata":{"name":"p","namespace":"n","uid":"u","annotations":{"muster.dev/a":"b"}},"target":{"kind":"Node","name":"node-7"}}`)
}

func TestEvict(t *testing.T) {
	c := serve(t, api.Options{})
	c.must(c.client.Evict(t.Context(), somePod(), ""))
	call := c.one()
	c.same(call.what, "POST /api/v1/namespaces/n/pods/p/eviction")
	var e policyv1.Eviction
	call.into(t, &e)
	c.same(encode(t, e), `{"kind":"Eviction","apiVersion":"policy/v1","metadata":{"name":"p","namespace":"n"},"deleteOptions":{"preconditions":{"uid":"u"}}}`)

	refusal := apierrors.NewTooManyRequests("Cannot evict pod", 10)
	refusal.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: "needs 3"}}
	c.answer = refusal
	began := time.Now()
	err := c.client.Evict(t.Context(), somePod(), "why")
	if !api.IsRefused(err) || time.Since(began) > 3*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	c.one() // it is not asked again, and nothing is said
}

func TestExplain(t *testing.T) {
	c := serve(t, api.Options{})
	p := somePod()
	c.must(c.client.Explain(t.Context(), p, "Unschedulable", "no room"))
	call := c.one()
	c.same(call.what+" "+call.content, "PATCH /api/v1/namespaces/n/pods/p/status application/strategic-merge-patch+json")
	var patch struct {
		Metadata metav1.ObjectMeta
		Status   corev1.PodStatus
	}
	c.must(json.Unmarshal(call.body, &patch))
	condition := patch.Status.Conditions[0]
	c.same(fmt.Sprintln(patch.Metadata.UID, patch.Metadata.ResourceVersion, condition.Type, condition.Status, condition.Reason, condition.Message),
		"u 9 PodScheduled False Unschedulable no room\n")
	if age := time.Since(condition.LastTransitionTime.Time); age > 5*time.Second {
		t.Errorf("since %v", age)
	}

	then := metav1.Time{Time: time.Unix(1000, 0)}
	p.Status.Conditions = []corev1.PodCondition{{Type: "PodScheduled", Status: "False", Reason: "Unschedulable", Message: "no room", LastTransitionTime: then}}
	c.must(c.client.Explain(t.Context(), p, "Unschedulable", "no room")) // said already
	bound, gated := somePod(), somePod()
	bound.Spec.NodeName = "x"
	gated.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}}
	c.must(c.client.Explain(t.Context(), bound, "Unschedulable", "no room"))
	c.must(c.client.Explain(t.Context(), gated, "Unschedulable", "no room"))
	c.must(c.client.Explain(t.Context(), p, "Unschedulable", "a little room"))
	c.must(json.Unmarshal(c.one().body, &patch))
	if got := patch.Status.Conditions[0]; got.Message != "a little room" || !got.LastTransitionTime.Equal(&then) {
		t.Errorf("%+v", got)
	}
}

func TestOwners(t *testing.T) {
	c := serve(t, api.Options{})
	job := corev1.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Namespace: "n", Name: "j", UID: "u"}
	ctx := t.Context()
	for _, x := range []struct {
		do            func() error
		content, body string
	}{
		{func() error { return c.client.Suspend(ctx, job, "spec.suspend", true) }, "merge-patch", `{"metadata":{"annotations":{"muster.dev/stopped":"true"},"uid":"u"},"spec":{"suspend":true}}`},
		{func() error { return c.client.Suspend(ctx, job, "spec.runPolicy.suspend", false) }, "merge-patch", `{"metadata":{"annotations":{"muster.dev/stopped":null},"uid":"u"},"spec":{"runPolicy":{"suspend":false}}}`},
		{func() error { return c.client.Set(ctx, job, []string{"spec.parallelism", "spec.completions"}, 3) }, "merge-patch",
			`{"metadata":{"uid":"u"},"spec":{"completions":3,"parallelism":3}}`},
		{func() error { return c.client.Set(ctx, job, []string{"spec.a[1].b[0][2].c/d~e", "spec.f"}, 3) }, "json-patch",
			`[{"op":"replace","path":"/metadata/uid","value":"u"},{"op":"add","path":"/spec/a/1/b/0/2/c~1d~0e","value":3},{"op":"add","path":"/spec/f","value":3}]`},
	} {
		c.must(x.do())
		call := c.one()
		c.same(call.what+" "+call.content, "PATCH /apis/batch/v1/namespaces/n/jobs/j application/"+x.content+"+json")
		c.same(string(call.body), x.body)
		if !strings.HasPrefix(call.accept, "application/json;as=PartialObjectMetadata;") {
			t.Errorf("the whole object is asked back: %q", call.accept)
		}
	}
	pod := corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "n", Name: "p", UID: "u"}
	c.must(c.client.Set(ctx, pod, []string{"spec.x"}, 1))
	c.same(c.one().what, "PATCH /api/v1/namespaces/n/pods/p")

	for _, field := range []string{"", "spec.", "a..b", "a[", "a[x]", "a[-1]", "a[01]", "a[1]b", "[1]", "a[1", "a[99999999999]"} {
		if err := c.client.Set(ctx, job, []string{field}, 1); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("field %q", field)) {
			t.Errorf("%q: %v", field, err)
		}
	}
	job.UID = ""
	if err := c.client.Suspend(ctx, job, "spec.suspend", true); err == nil {
		t.Error("an object without UID was suspended")
	}
	job.UID, job.Kind = "u", "Toaster"
	if err := c.client.Suspend(ctx, job, "spec.suspend", true); !api.IsGone(err) {
		t.Error(err)
	}
	if len(c.calls) > 0 {
		t.Errorf("%v was called", c.calls)
	}
}

func TestRecords(t *testing.T) {
	c := serve(t, api.Options{})
	ctx, j := t.Context(), fullJob()
	before := encode(t, j)
	c.answer = map[string]any{"metadata": map[string]any{"resourceVersion": "12"}}
	version, err := c.client.PutJob(ctx, j)
	c.must(err)
	call := c.one()
	c.same(call.what+" "+version, "POST /apis/muster.dev/v1alpha1/namespaces/work/musterjobs 12")
	var sent api.Job
	c.must(json.Unmarshal(call.body, &sent))
	c.same(sent.APIVersion+" "+sent.Kind, "muster.dev/v1alpha1 MusterJob")
	sent.TypeMeta = metav1.TypeMeta{}
	c.same(encode(t, sent), before)
	c.same(encode(t, j), before)

	j.ResourceVersion = "12"
	_, err = c.client.PutJob(ctx, j)
	c.must(err)
	call = c.one()
	c.same(call.what, "PUT /apis/muster.dev/v1alpha1/namespaces/work/musterjobs/"+j.Name)
	if !strings.Contains(string(call.body), `"resourceVersion":"12"`) {
		t.Errorf("%s", call.body)
	}
	_, err = c.client.PutLedger(ctx, &api.Ledger{ObjectMeta: metav1.ObjectMeta{Name: "muster", ResourceVersion: "3"}})
	c.must(err)
	c.same(c.one().what, "PUT /apis/muster.dev/v1alpha1/musterledgers/muster")

	resource := schema.GroupResource{Group: api.Group, Resource: "musterjobs"}
	c.answer = apierrors.NewConflict(resource, j.Name, errors.New("the object has been modified"))
	if _, err = c.client.PutJob(ctx, j); !api.IsConflict(err) {
		t.Error(err)
	}
	c.answer = apierrors.NewNotFound(resource, j.Name)
	if _, found, err := c.client.GetJob(ctx, "n", j.Name); err != nil || found {
		t.Error(found, err)
	}
	c.must(c.client.DeleteJob(ctx, "n", j.Name))
	c.answer = metav1.APIVersions{} // not a Status: a server that does not know the kind
	c.code = http.StatusNotFound
	if _, _, err := c.client.GetLedger(ctx, "muster"); err == nil {
		t.Error("a kind that is not served is no error")
	}
	c.code, c.answer = http.StatusOK, "no object"
	if _, err := c.client.PutJob(ctx, j); err == nil {
		t.Error("an answer without sense is no error")
	}
}

// What is said does not hold up what is done: each has a limit of its own.
func TestLimitsAreApart(t *testing.T) {
	c := serve(t, api.Options{QPS: 0.001, Burst: 1})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	p := somePod()
	c.must(c.client.Explain(ctx, p, "Unschedulable", "no room"))
	if err := c.client.Explain(ctx, p, "Unschedulable", "a little room"); !api.IsTransient(err) {
		t.Errorf("more words than the limit: %v", err)
	}
	c.answer = map[string]any{"metadata": map[string]any{"resourceVersion": "1"}}
	_, err := c.client.PutJob(ctx, fullJob())
	c.must(err)
	if _, err := c.client.PutJob(ctx, fullJob()); !api.IsTransient(err) {
		t.Errorf("more records than the limit: %v", err)
	}
	c.must(c.client.Bind(ctx, p, "n", nil))
	if err := c.client.Evict(ctx, p, ""); !api.IsTransient(err) {
		t.Errorf("more than the limit: %v", err)
	}
}

func TestSayIsWritten(t *testing.T) {
	c := serve(t, api.Options{Name: "muster.dev/scheduler", Instance: "pod-1"})
	object := corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "n", Name: "p", UID: "u", ResourceVersion: "5"}
	c.client.Say(object, "Warning", "FailedScheduling", strings.Repeat("é", 600))
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		c.mu.Lock()
		n := len(c.calls)
		c.mu.Unlock()
		if n > 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("nothing was said")
		}
	}
	call := c.one()
	c.same(call.what, "POST /apis/events.k8s.io/v1/namespaces/n/events")
	var e eventsv1.Event
	call.into(t, &e)
	c.same(strings.Join([]string{e.Type, e.Reason, e.Action, e.ReportingController, e.ReportingInstance, string(e.Regarding.UID), e.Regarding.ResourceVersion, e.Note}, " "),
		"Warning FailedScheduling Scheduling muster.dev/scheduler pod-1 u  "+strings.Repeat("é", 512))
	if e.EventTime.IsZero() || !strings.HasPrefix(e.Name, "p.") {
		t.Errorf("%+v", e)
	}
}

func TestKindsOfErrors(t *testing.T) {
	pod := schema.GroupResource{Resource: "pods"}
	status := func(code int32, reason metav1.StatusReason, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: reason, Message: message}}
	}
	budget := apierrors.NewTooManyRequests("no", 0)
	budget.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause}}
	_, dial := http.Get("http://127.0.0.1:1/")
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"none", nil, ""},
		{"of the caller", errors.New("field"), ""},
		{"of the request", apierrors.NewBadRequest("no"), ""},
		{"bound already", apierrors.NewConflict(pod, "p", errors.New(`pod p is already assigned to node "n"`)), "conflict"},
		{"an old version", apierrors.NewConflict(pod, "p", errors.New("the object has been modified")), "conflict"},
		{"exists", apierrors.NewAlreadyExists(pod, "p"), "conflict"},
		{"another UID", apierrors.NewConflict(pod, "p", errors.New("Precondition failed: UID in precondition: a, UID in object meta: b")), "gone"},
		{"another version", apierrors.NewConflict(pod, "p", errors.New("Precondition failed: ResourceVersion in precondition: a")), "conflict"},
		{"another UID, evicting", apierrors.NewConflict(pod, "p", errors.New("the UID in the precondition (a) does not match the UID in record (b)")), "gone"},
		{"another UID, patching", status(422, metav1.StatusReasonInvalid, `Pod "p" is invalid: metadata.uid: Invalid value: "a": field is immutable`), "gone"},
		{"not there", apierrors.NewNotFound(pod, "p"), "gone"},
		{"a budget", budget, "refused"},
		{"two budgets", status(500, "", "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."), "refused"},
		{"a quota", apierrors.NewForbidden(pod, "p", errors.New("exceeded quota")), "refused"},
		{"a webhook", status(403, metav1.StatusReasonForbidden, "admission webhook denied the request: spec.replicatedJobs: field is immutable"), "refused"},
		{"immutable", status(422, metav1.StatusReasonInvalid, "spec.template: field is immutable"), "refused"},
		{"no credentials", apierrors.NewUnauthorized("no"), "refused"},
		{"too much", apierrors.NewTooManyRequests("later", 1), "transient"},
		{"server timeout", apierrors.NewServerTimeout(pod, "create", 1), "transient"},
		{"timeout", apierrors.NewTimeoutError("slow", 1), "transient"},
		{"internal", apierrors.NewInternalError(errors.New("etcd")), "transient"},
		{"unavailable", apierrors.NewServiceUnavailable("soon"), "transient"},
		{"of a proxy", status(502, "", "bad gateway"), "transient"},
		{"deadline", context.DeadlineExceeded, "transient"},
		{"refused connection", dial, "transient"},
		{"cut off", io.ErrUnexpectedEOF, "transient"},
	} {
		for _, err := range []error{c.err, fmt.Errorf("binding: %w", c.err)} {
			if c.err == nil {
				err = nil
			}
			var got []string
			for name, is := range map[string]func(error) bool{"conflict": api.IsConflict, "refused": api.IsRefused, "gone": api.IsGone, "transient": api.IsTransient} {
				if is(err) {
					got = append(got, name)
				}
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("%s: %v is %q, expected %q", c.name, err, got, c.want)
			}
		}
	}
}
