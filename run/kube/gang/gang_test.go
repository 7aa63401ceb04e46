package gang

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// objects is a cluster's objects by group, kind, namespace and name.
type objects map[string]*unstructured.Unstructured

func id(group, kind, namespace, name string) string {
	return group + "|" + kind + "|" + namespace + "|" + name
}

// Find makes objects the Owners of tests.
func (o objects) Find(ref metav1.OwnerReference, namespace string) (*unstructured.Unstructured, bool) {
	u, ok := o[id(apiGroup(ref.APIVersion), ref.Kind, namespace, ref.Name)]
	return u, ok
}

func (o objects) add(u *unstructured.Unstructured) {
	o[id(apiGroup(u.GetAPIVersion()), u.GetKind(), u.GetNamespace(), u.GetName())] = u
}

// load reads the objects of a file; pods are among the objects, as they may own others.
func load(t testing.TB, name string) (objects, []*corev1.Pod) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, data)
}

func parse(t testing.TB, data []byte) (objects, []*corev1.Pod) {
	t.Helper()
	all := objects{}
	var pods []*corev1.Pod
	for _, doc := range bytes.Split(data, []byte("\n---\n")) {
		text, err := yaml.YAMLToJSON(doc)
		if err != nil {
			t.Fatal(err)
		}
		if string(text) == "null" {
			continue // a comment before the first
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(text); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		all.add(u)
		if u.GetKind() == "Pod" {
			p := &corev1.Pod{}
			if err := yaml.UnmarshalStrict(doc, p); err != nil {
				t.Fatal(err)
			}
			pods = append(pods, p)
		}
	}
	return all, pods
}

// read finds the one gang of the pods and reads it.
func read(t testing.TB, all objects, pods []*corev1.Pod) (Gang, []Problem) {
	t.Helper()
	var key Key
	var problems []Problem
	for i, p := range pods {
		k, ps := Find(p, all)
		problems = append(problems, ps...)
		if i > 0 && k != key {
			t.Fatalf("pod %s is of %v, %s of %v", p.Name, k, pods[0].Name, key)
		}
		key = k
	}
	if key == (Key{}) {
		return Gang{}, problems
	}
	g, ps := Read(key, pods, all)
	return g, append(problems, ps...)
}

// summary is a gang in a few lines.
func summary(g Gang, pods []*corev1.Pod, problems []Problem) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s size %d first %d %v", g.Name, g.Key.UID, g.Size, g.First, g.Stop)
	if g.Control.Kind != "" {
		fmt.Fprintf(&b, " %s %s %s %v", g.Control.Kind, g.Control.Name, g.SuspendField, g.Suspended)
	}
	for _, r := range g.Roles {
		gpus := r.Template.Spec.Containers[0].Resources.Limits["nvidia.com/gpu"]
		fmt.Fprintf(&b, "\nrole %s x%d gpus %s", r.Name, r.Count, gpus.String())
		if r.Late {
			b.WriteString(" late")
		}
	}
	sorted := slices.Clone(pods)
	g.Sort(sorted)
	b.WriteString("\norder")
	for _, p := range sorted {
		rank, _ := g.Rank(p)
		fmt.Fprintf(&b, " %s:%d", p.Name, rank)
	}
	for _, t := range g.Resize.Targets {
		fmt.Fprintf(&b, "\nresize %s %s %s less %d", t.Object.Kind, t.Object.Name, strings.Join(t.Fields, " "), g.Resize.Others)
	}
	s := g.State(pods)
	fmt.Fprintf(&b, "\nstate %v needed %d: %s", s.Phase, s.Needed, s.Reason)
	j := g.Job
	fmt.Fprintf(&b, "\njob %s/%s priority %d gang %d %v retries %d limit %v estimate %v deadline %v", j.Tenant, j.User, j.Priority, j.Gang, j.Sizes, j.Retries, j.TimeLimit, j.Estimate, j.Deadline)
	if j.Class != "" {
		fmt.Fprintf(&b, "\nmore %s %v %v %q %s %v submit %d", j.Class, j.Skew, j.Traffic, j.Models, j.Law, j.Checkpoint, j.Submit)
	}
	for _, p := range problems {
		fmt.Fprintf(&b, "\nproblem %s", p)
	}
	return b.String()
}

func TestKinds(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	for _, f := range files {
		name := filepath.Base(f)
		t.Run(name, func(t *testing.T) {
			all, pods := load(t, name)
			g, problems := read(t, all, pods)
			got := summary(g, pods, problems) + "\n"
			golden := strings.TrimSuffix(f, ".yaml") + ".txt"
			if os.Getenv("MUSTER_UPDATE") == "1" {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%swant\n%s", got, want)
			}
		})
	}
}
