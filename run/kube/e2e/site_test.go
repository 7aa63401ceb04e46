package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/musterdl/muster/run/kube/api"
	"github.com/musterdl/muster/run/kube/deploy"
	"github.com/musterdl/muster/run/kube/kubetest"
)

// devices is how many each node has.
const devices = 8

// plane is the control plane that all scenarios share.
type plane struct {
	*kubetest.Cluster
	components *kubetest.Components
	client     kubernetes.Interface
	dynamic    dynamic.Interface
	seen       *observer
	kubeconfig string // of muster's service account
}

func newPlane(t *testing.T) *plane {
	c := kubetest.Start(t, kubetest.Options{ControllerManager: true, Kwok: true, JobSet: true,
		FeatureGates: kubetest.PodGroupGates, APIServerArgs: []string{kubetest.PodGroupAPI}})
	components, err := kubetest.Find()
	if err != nil {
		t.Fatal(err)
	}
	p := &plane{Cluster: c, components: components, client: c.Client()}
	if p.dynamic, err = dynamic.NewForConfig(c.Config()); err != nil {
		t.Fatal(err)
	}
	p.install(t)
	p.kwok(t)
	p.seen = observe(t, c)
	return p
}

// install applies what the manifests install, but for the Deployment: its process is
// started by the scenarios.
func (p *plane) install(t *testing.T) {
	t.Helper()
	p.Namespace("muster-system")
	for _, crd := range deploy.CRDs() {
		p.Apply(string(crd))
	}
	p.Apply(pluginGroups)
	text, err := os.ReadFile("../deploy/muster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range strings.Split(string(text), "\n---\n") {
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(object), &kind); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(kind.APIVersion, rbacv1.GroupName) {
			p.Apply(object)
		}
	}
	account := p.ServiceAccount("muster-system", "muster")
	p.kubeconfig = p.KubeconfigFor(account)
	client, err := kubernetes.NewForConfig(account)
	if err != nil {
		t.Fatal(err)
	}
	until(t, 10*time.Second, "the account has its rights", func() (bool, string) {
		_, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		return err == nil, fmt.Sprint(err)
	})
}

// kwok plays the nodes in place of the control plane's own: under its stages every pod
// of a Job ends at once, under these one that says so.
func (p *plane) kwok(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(p.components.Path("kwok-stages.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	stages := strings.Split(string(text), "\n---\n")
	for i, stage := range stages {
		if strings.Contains(stage, "\n  name: pod-complete\n") {
			stages[i] = strings.Replace(stage, "\n  next:\n",
				"\n    - {key: '.metadata.annotations[\"e2e/completes\"]', operator: In, values: [\"true\"]}\n  next:\n", 1)
		}
	}
	path := filepath.Join(t.TempDir(), "stages.yaml")
	if err := os.WriteFile(path, []byte(strings.Join(stages, "\n---\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	p.Stop(kubetest.Kwok)
	p.Run(kubetest.Program{Name: "kwok-e2e", Path: p.components.Path(kubetest.Kwok), Args: []string{"--config=" + path, "--kubeconfig=" + p.Kubeconfig(),
		"--manage-all-nodes=false", "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake", "--cidr=10.128.0.0/9", "--node-ip=127.0.0.1",
		"--node-lease-duration-seconds=40"}})
}

// pluginGroups define the pod groups of the scheduler plugins.
const pluginGroups = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: podgroups.scheduling.x-k8s.io
  annotations: {api-approved.kubernetes.io: "https://github.com/kubernetes-sigs/scheduler-plugins/pull/50"}
spec:
  group: scheduling.x-k8s.io
  scope: Namespaced
  names: {plural: podgroups, singular: podgroup, kind: PodGroup, listKind: PodGroupList}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// options say what a scenario has.
type options struct {
	nodes    int
	claims   int // nodes whose devices are claimed instead of counted
	strategy string
	outage   bool // after which the API server does not know for a moment who has which rights
}

// site is the part of the control plane that one scenario has.
type site struct {
	*plane
	t       *testing.T
	ctx     context.Context
	name    string // of the namespace and of the scheduler
	options options
	runs    []string // programs of muster-kube
	began   time.Time
	// afterwards are looked at when a scenario has done the rest.
	afterwards []func()
}

func (p *plane) open(t *testing.T, scenario string, o options) *site {
	s := &site{plane: p, t: t, ctx: t.Context(), name: strings.ToLower(scenario), options: o, began: time.Now()}
	p.Namespace(s.name)
	p.AddNodes(o.nodes, kubetest.NodeTemplate{Prefix: s.name + "-", Devices: devices, Labels: map[string]string{"pool": s.name}})
	if o.claims > 0 {
		p.AddNodes(o.claims, kubetest.NodeTemplate{Prefix: s.name + "-dra-", Labels: map[string]string{"pool": s.name}})
	}
	p.seen.begin()
	t.Cleanup(s.close)
	return s
}

// close ends the scenario: its processes must still be there and well, and what it made
// goes.
func (s *site) close() {
	for _, run := range s.runs {
		if log := s.Log(run); strings.Contains(log, "panic:") || strings.Contains(log, "goroutine ") {
			s.t.Errorf("%s panicked:\n%s", run, last(log, 40))
		} else if strings.Contains(log, "is forbidden") && !s.options.outage {
			s.t.Errorf("%s wanted more than its rights:\n%s", run, grep(log, "is forbidden"))
		}
		s.Stop(run)
		if s.t.Failed() {
			s.t.Logf("%s said:\n%s", run, last(s.Log(run), 60))
		}
	}
	s.seen.report(s.t)
	ctx := context.Background()
	background, atOnce := metav1.DeletePropagationBackground, int64(0)
	for _, gvr := range []schema.GroupVersionResource{jobsets, jobs, pods, api.JobResource} {
		err := s.dynamic.Resource(gvr).Namespace(s.name).DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: &background, GracePeriodSeconds: &atOnce}, metav1.ListOptions{})
		if err != nil {
			s.t.Errorf("clearing %s: %v", gvr.Resource, err)
		}
	}
	if err := s.client.CoreV1().Nodes().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "pool=" + s.name}); err != nil {
		s.t.Errorf("clearing nodes: %v", err)
	}
	s.t.Logf("the scenario took %v", time.Since(s.began).Round(100*time.Millisecond))
}

var (
	jobs    = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	jobsets = schema.GroupVersionResource{Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobsets"}
	pods    = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
)

// start runs muster-kube for the scenario and waits until it schedules, or where it
// stands for election until it listens.
func (s *site) start(name string, more ...string) {
	s.t.Helper()
	kube, _ := programs(s.t)
	args := append([]string{"--kubeconfig=" + s.kubeconfig, "--scheduler-name=" + s.name, "--listen=127.0.0.1:0"}, more...)
	if s.options.strategy != "" {
		args = append(args, "--strategy="+s.options.strategy)
	}
	s.runs = append(s.runs, name)
	s.Run(kubetest.Program{Name: name, Path: kube, Args: args})
	s.until(30*time.Second, name+" is ready", func() (bool, string) {
		return s.healthy(name), last(s.Log(name), 5)
	})
}

var listening = regexp.MustCompile(`msg=listening address=(\S+)`)

// address is where the latest process of a name listens.
func (s *site) address(name string) string {
	all := listening.FindAllStringSubmatch(s.Log(name), -1)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1][1]
}

func (s *site) healthy(name string) bool {
	_, err := s.get(name, "/healthz")
	return err == nil
}

// get asks a process over HTTP.
func (s *site) get(name, path string) (string, error) {
	address := s.address(name)
	if address == "" {
		return "", fmt.Errorf("%s does not listen yet", name)
	}
	client := http.Client{Timeout: 2 * time.Second}
	resp, err := client.Get("http://" + address + path)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, text)
	}
	return string(text), err
}

// until waits for a condition, which says how far it is.
func (s *site) until(limit time.Duration, what string, done func() (bool, string)) time.Duration {
	s.t.Helper()
	return until(s.t, limit, what, done)
}

func until(t *testing.T, limit time.Duration, what string, done func() (bool, string)) time.Duration {
	t.Helper()
	began, now := time.Now(), ""
	for time.Since(began) < limit {
		ok, state := done()
		if ok {
			return time.Since(began)
		}
		now = state
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("after %v still not so: %s\n%s", limit, what, now)
	return 0
}

// apply makes objects in the scenario's namespace; NS and SCHEDULER stand for its names.
func (s *site) apply(text string, args ...any) {
	s.t.Helper()
	s.Apply(s.text(text, args...))
}

func (s *site) text(text string, args ...any) string {
	text = strings.NewReplacer("NS", s.name, "SCHEDULER", s.name).Replace(text)
	if len(args) > 0 {
		text = fmt.Sprintf(text, args...)
	}
	return text
}

// pods are those of a selector that have not ended and are not on their way out.
func (s *site) pods(selector string) []corev1.Pod {
	s.t.Helper()
	list, err := s.client.CoreV1().Pods(s.name).List(s.ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		s.t.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil || ended(&p) })
}

func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// bound waits until a selector has so many pods, all of them bound and running.
func (s *site) bound(limit time.Duration, selector string, n int) []corev1.Pod {
	s.t.Helper()
	var list []corev1.Pod
	s.until(limit, fmt.Sprintf("%d pods of %s are bound and run", n, selector), func() (bool, string) {
		list = s.pods(selector)
		on := 0
		for i := range list {
			if list[i].Spec.NodeName != "" && list[i].Status.Phase == corev1.PodRunning {
				on++
			}
		}
		return on == n && len(list) == n, fmt.Sprintf("%d of %d; %s", on, len(list), s.state(selector))
	})
	return list
}

// state is what there is to see of pods when something is wrong.
func (s *site) state(selector string) string {
	var b strings.Builder
	for i, p := range s.pods(selector) {
		if i == 6 {
			b.WriteString("\n...")
			break
		}
		fmt.Fprintf(&b, "\n%s on %q %s", p.Name, p.Spec.NodeName, p.Status.Phase)
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Message != "" {
				fmt.Fprintf(&b, ": %s: %s", c.Reason, c.Message)
			}
		}
	}
	return b.String()
}

// record is the MusterJob about an object.
func (s *site) record(kind, name string) (api.Job, bool) {
	s.t.Helper()
	list, err := s.dynamic.Resource(api.JobResource).Namespace(s.name).List(s.ctx, metav1.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range list.Items {
		text, err := list.Items[i].MarshalJSON()
		if err != nil {
			s.t.Fatal(err)
		}
		var j api.Job
		if err := yaml.Unmarshal(text, &j); err != nil {
			s.t.Fatal(err)
		}
		if strings.HasPrefix(j.Spec.Owner.Kind, kind) && j.Spec.Owner.Name == name {
			return j, true
		}
	}
	return api.Job{}, false
}

// recorded waits until the record about an object is in a phase.
func (s *site) recorded(kind, name, phase string) (j api.Job) {
	s.t.Helper()
	s.until(10*time.Second, fmt.Sprintf("the record of %s %s says %s", kind, name, phase), func() (bool, string) {
		var found bool
		j, found = s.record(kind, name)
		return found && j.Status.Phase == phase, fmt.Sprintf("found %t, phase %q, reason %q", found, j.Status.Phase, j.Status.Reason)
	})
	return j
}

// describe is what kubectl describe says.
func (s *site) describe(kind, name string) string {
	s.t.Helper()
	out, err := exec.Command(s.components.Path(kubetest.Kubectl), "--kubeconfig="+s.Kubeconfig(), "-n", s.name, "describe", kind, name).CombinedOutput()
	if err != nil {
		s.t.Fatalf("kubectl describe %s %s: %v\n%s", kind, name, err, out)
	}
	return string(out)
}

// described waits until kubectl describe of an object has words in it.
func (s *site) described(kind, name string, words ...string) string {
	s.t.Helper()
	var text string
	s.until(10*time.Second, fmt.Sprintf("kubectl describe %s %s says %q", kind, name, words), func() (bool, string) {
		text = s.describe(kind, name)
		for _, w := range words {
			if !strings.Contains(text, w) {
				return false, "missing " + w + " in\n" + text
			}
		}
		return true, ""
	})
	return text
}

// create makes an object by hand.
func (s *site) create(gvr schema.GroupVersionResource, text string, args ...any) *unstructured.Unstructured {
	s.t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(s.text(text, args...)), &o.Object); err != nil {
		s.t.Fatal(err)
	}
	made, err := s.dynamic.Resource(gvr).Namespace(s.name).Create(s.ctx, o, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return made
}

func last(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

func grep(text, word string) string {
	var found []string
	for line := range strings.Lines(text) {
		if strings.Contains(line, word) && len(found) < 10 {
			found = append(found, line)
		}
	}
	return strings.Join(found, "")
}
