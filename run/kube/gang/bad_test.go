package gang

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/musterdl/muster/internal/draws"
)

// change replaces text of a file of testdata before it is read.
func change(t testing.TB, name string, pairs ...string) (objects, []*corev1.Pod) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("%s has no %q", name, pairs[i])
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	return parse(t, []byte(text))
}

func TestProblems(t *testing.T) {
	bert := "Job team/bert: annotation muster.dev/"
	for _, c := range []struct {
		file  string
		pairs []string
		holds bool
		want  string // the beginning of a problem
	}{
		{"job-indexed.yaml", []string{"2h30m", "2 hors"}, false, bert + `work: found "2 hors", expected a span of time`},
		{"job-indexed.yaml", []string{"2h30m", `"7200"`}, false, bert + `work: found "7200", expected a span of time such as 90s or 2h30m, more than 0s, with its unit`},
		{"job-indexed.yaml", []string{"2026-03-01T22:00:00Z", "2026-03-01T09:00:00Z"}, false, bert + `deadline: found "2026-03-01T09:00:00Z", expected an instant after the job's creation`},
		{"job-indexed.yaml", []string{"elastic: 2-8", "elastic: 8-2"}, false, bert + `elastic: found "8-2", expected a range`},
		{"job-indexed.yaml", []string{"elastic: 2-8", `elastic: "2,3"`}, false, bert + `elastic: found "2,3", expected numbers with the 4 that the job asks for`},
		{"job-indexed.yaml", []string{"completions: 4", "completions: 9"}, false, bert + `elastic: found "2-8", expected on one role that can grow`},
		{"job-indexed.yaml", []string{"give-way", "anarchy"}, false, bert + `law: found "anarchy", expected one of`},
		{"job-indexed.yaml", []string{"research/vision", "../etc"}, false, bert + `queue: found "../etc", expected at most 128 letters`},
		{"job-indexed.yaml", []string{"save=20s", "save=90s"}, false, bert + `checkpoint: found save=1m30s on request, with pods killed after 1m,`},
		{"job-indexed.yaml", []string{"save=20s", "safe=20s"}, false, bert + `checkpoint: found "every=30m,safe=20s,load=40s,on-request", expected every=, save=, load= and on-request`},
		{"job-indexed.yaml", []string{"Seconds: 86400", "Seconds: 9223372036854775807"}, false, "Job team/bert: spec.activeDeadlineSeconds: found 9223372036854775807"},
		{"job-indexed.yaml", []string{"parallelism: 4", "parallelism: 2147483648"}, true, "Job team/bert: spec.parallelism: found 2147483648, expected a number of pods from 0 to 1000000"},
		{"job-indexed.yaml", []string{"parallelism: 4", "parallelism: -1"}, true, "Job team/bert: spec.parallelism: found -1"},
		{"job-indexed.yaml", []string{"parallelism: 4", "parallelism: many"}, true, `Job team/bert: spec.parallelism: found "many"`},
		{"job-indexed.yaml", []string{"parallelism: 4", "parallelism: 0"}, true, "Job team/bert: found a size of 0 pods"},
		{"job-indexed.yaml", []string{"uid: job-1\n  creation", "uid: job-7\n  creation"}, true, "Pod team/bert-3-x3: metadata.ownerReferences: found Job bert, which is not there"},
		{"job-indexed.yaml", []string{"uid: job-1\n  creation", "uid: job-1\n  deletionTimestamp: \"2026-03-01T11:00:00Z\"\n  creation"}, true, "Job team/bert: found that it is deleted"},
		{"jobset.yaml", []string{"replicas: 2", "replicas: 900000"}, true, "JobSet team/gpt: found more than 1000000 pods in all"},
		{"leaderworkerset.yaml", []string{`group-index: "1"`, `group-index: "-1"`}, true, "Pod team/vllm-1-2: label leaderworkerset.sigs.k8s.io/group-index: found \"-1\""},
		{"leaderworkerset.yaml", []string{"kind: LeaderWorkerSet, name: vllm, uid: lws-1", "kind: Pod, apiVersion: v1, name: vllm-1-2, uid: vllm-1-2-uid", "apiVersion: leaderworkerset.x-k8s.io/v1, kind", "kind"}, true,
			"Pod team/vllm-1-2: metadata.ownerReferences: found owners in a circle"},
		{"podgroup.yaml", []string{"minCount: 2", "minCount: 0"}, true, "PodGroup team/pair: spec.schedulingPolicy.gang.minCount: found 0, expected a number of pods from 1"},
		{"podgroup.yaml", []string{"metadata: {name: pair", "metadata: {name: other"}, true, `Pod team/w-10: spec.schedulingGroup.podGroupName: found "pair", a PodGroup of scheduling.k8s.io that is not there`},
		{"gang.yaml", []string{`gang-size: "3"`, `gang-size: "2"`}, true, "Gang team/trio: the size of the group: found 3 pods for a size of 2"},
		{"gang.yaml", []string{`, muster.dev/gang-size: "3"`, ""}, true, `Pod team/g-0: label muster.dev/gang-size: found ""`},
		{"kueue.yaml", []string{"uid: k-0-uid", "uid: k-0-uid\n  generation: 1", `0"}` + "\n  annotations: {kueue.x-k8s.io/pod-group-total-count: \"2\"}", `0"}` + "\n  annotations: {kueue.x-k8s.io/pod-group-total-count: \"5\"}"}, true,
			"Pod team/k-0: annotation kueue.x-k8s.io/pod-group-total-count: found 5, expected 2 as on pod k-1"},
		{"replicaset.yaml", []string{"kind: ReplicaSet", "kind: Rocket"}, false, "Pod team/web-6d4-abcde: metadata.ownerReferences: found an owner of kind Rocket"},
		{"pytorchjob.yaml", []string{"minReplicas: 1", "minReplicas: -5"}, false, `PyTorchJob team/resnet: spec.elasticPolicy: found "-5-4"`},
		{"yunikorn.yaml", []string{`"minMember":2`, `"minMember":-2`}, true, "Pod team/y-driver: annotation yunikorn.apache.org/task-groups"},
		{"trainjob.yaml", []string{"kind: JobSet\nmetadata:\n  name: llama", "kind: JobSet\nmetadata:\n  name: lama"}, true, "Pod team/llama-node-0-2: metadata.ownerReferences: found JobSet llama"},
	} {
		t.Run(c.want, func(t *testing.T) {
			all, pods := change(t, c.file, c.pairs...)
			g, problems := read(t, all, pods)
			if Holds(problems) != c.holds {
				t.Errorf("holds %v: %v", Holds(problems), problems)
			}
			if !slices.ContainsFunc(problems, func(p Problem) bool { return strings.HasPrefix(p.String(), c.want) }) {
				t.Errorf("got %v\nwant %s", problems, c.want)
			}
			for _, p := range problems {
				if p.Reason == "" || p.Object == "" || p.Found == "" || p.Do == "" {
					t.Errorf("incomplete: %+v", p)
				}
			}
			if !c.holds && g.Size == 0 {
				t.Error("no gang")
			}
		})
	}
}

// TestDisagreement: pods of one role that say different things are told so, and the
// first counts.
func TestDisagreement(t *testing.T) {
	all, pods := load(t, "gang.yaml")
	pods[0].Annotations = map[string]string{AnnotationWork: "1h"}
	pods[2].Annotations = map[string]string{AnnotationWork: "9h"}
	g, problems := read(t, all, pods)
	if len(problems) != 1 || problems[0].Reason != ReasonContradiction || Holds(problems) || g.Job.Estimate.String() != "1h" {
		t.Fatal(g.Job.Estimate, problems)
	}
}

// TestNames: no two keys share a name.
func TestNames(t *testing.T) {
	seen := map[string]Key{}
	for _, kind := range []string{kindJob, kindPod, kindJobSet, kindLWS, kindStatefulSet, kindGang, kindPodGroup, kindPlugins, kindKueue} {
		for _, name := range []string{"a", "pod", "jobset.a", "a-0"} {
			for _, group := range []int32{0, 1} {
				k := Key{Namespace: "n", Kind: kind, Name: name, Group: group}
				if group > 0 && (kind == kindJob || kind == kindPod) {
					continue
				}
				if other, taken := seen[k.String()]; taken {
					t.Errorf("%v and %v are both %s", k, other, k)
				}
				seen[k.String()] = k
			}
		}
	}
}

// mutate changes one thing somewhere in a value as JSON has it.
func mutate(t *rapid.T, v any) any {
	junk := rapid.SampledFrom([]any{nil, "", "x", "-1", "99999999999", int64(-1), int64(0), int64(1) << 31, int64(1) << 62, 1.5, 1e300, true,
		map[string]any{}, []any{}, []any{nil}, []any{"x", int64(1)}, map[string]any{"a": nil}})
	switch x := v.(type) {
	case map[string]any:
		if len(x) == 0 || rapid.IntRange(0, 9).Draw(t, "here") == 0 {
			return junk.Draw(t, "junk")
		}
		keys := make([]string, 0, len(x))
		for k := range x {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		k := rapid.SampledFrom(keys).Draw(t, "key")
		if rapid.IntRange(0, 9).Draw(t, "drop") == 0 {
			delete(x, k)
			return x
		}
		x[k] = mutate(t, x[k])
		return x
	case []any:
		if len(x) == 0 || rapid.IntRange(0, 9).Draw(t, "here") == 0 {
			return junk.Draw(t, "junk")
		}
		i := rapid.IntRange(0, len(x)-1).Draw(t, "index")
		x[i] = mutate(t, x[i])
		return x
	}
	return junk.Draw(t, "junk")
}

// TestNoPanic: whatever is changed in the objects of a cluster, gangs are found or
// problems told, sizes and roles agree, and the order of pods does not matter.
func TestNoPanic(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.yaml")
	draws.Check(t, func(t *rapid.T) {
		data, err := os.ReadFile(rapid.SampledFrom(files).Draw(t, "file"))
		if err != nil {
			t.Fatal(err)
		}
		all, pods := objects{}, []*corev1.Pod(nil)
		for _, doc := range strings.Split(string(data), "\n---\n") {
			var v map[string]any
			text, err := yaml.YAMLToJSON([]byte(doc))
			if err != nil || string(text) == "null" {
				continue
			}
			u := &unstructured.Unstructured{}
			if err := u.UnmarshalJSON(text); err != nil {
				t.Fatal(err)
			}
			v = u.Object
			if rapid.Bool().Draw(t, "mutated") {
				for range rapid.IntRange(1, 4).Draw(t, "times") {
					k := rapid.SampledFrom([]string{"spec", "metadata", "status", "spec"}).Draw(t, "part")
					v[k] = mutate(t, v[k])
				}
			}
			name, _, _ := unstructured.NestedString(v, "metadata", "name")
			p := &corev1.Pod{}
			if u.GetKind() == "Pod" {
				text, _ := yaml.Marshal(v)
				if yaml.Unmarshal(text, p) == nil { // the API server keeps no others
					p.Namespace, p.UID = "team", types.UID(fmt.Sprint("pod-", len(pods)))
					pods = append(pods, p)
				}
			}
			all[id(apiGroup(u.GetAPIVersion()), u.GetKind(), "team", name)] = u
		}
		byKey := map[Key][]*corev1.Pod{}
		for _, p := range pods {
			decorate(t, p)
			k, problems := Find(p, all)
			if k == (Key{}) != Holds(problems) {
				t.Fatalf("key %v with %v", k, problems)
			}
			if k != (Key{}) {
				byKey[k] = append(byKey[k], p)
			}
		}
		for k, members := range byKey {
			check(t, k, members, all)
		}
	})
}

// decorate gives a pod what happens to pods.
func decorate(t *rapid.T, p *corev1.Pod) {
	p.Status.Phase = rapid.SampledFrom([]corev1.PodPhase{"", corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed}).Draw(t, "phase")
	p.Spec.NodeName = rapid.SampledFrom([]string{"", "n1"}).Draw(t, "node")
	if rapid.IntRange(0, 4).Draw(t, "deleted") == 0 {
		now := metav1.Unix(1772359200, 0)
		p.DeletionTimestamp = &now
	}
	if a := rapid.SampledFrom(annotations).Draw(t, "annotation"); rapid.Bool().Draw(t, "annotated") {
		if p.Annotations == nil {
			p.Annotations = map[string]string{}
		}
		p.Annotations[a.Name] = rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{a.Example, "1-1000000", "9,9", "-"})).Draw(t, "value")
	}
}

func check(t *rapid.T, k Key, pods []*corev1.Pod, all objects) {
	g, problems := Read(k, pods, all)
	s := g.State(pods)
	perm := rapid.Permutation(pods).Draw(t, "order")
	g2, problems2 := Read(k, perm, all)
	s2 := g2.State(perm)
	if a, b := fmt.Sprint(g.Size, g.First, g.Job, problems, s.Phase, s.Failure, s.Reason), fmt.Sprint(g2.Size, g2.First, g2.Job, problems2, s2.Phase, s2.Failure, s2.Reason); a != b {
		t.Fatalf("the order of pods matters:\n%s\n%s", a, b)
	}
	sum := int32(0)
	for _, r := range g.Roles {
		sum += r.Count
		if r.Count < 0 || r.Template == nil && r.Count > 0 && !Holds(problems) {
			t.Fatalf("role %+v without problem", r)
		}
	}
	if sum != g.Size && !Holds(problems) && !g.Missing {
		t.Fatalf("roles of %d pods in a gang of %d", sum, g.Size)
	}
	if g.Size < 0 || g.Size > maxGang || len(g.Job.Sizes) > maxSizes || len(g.Job.Sizes) > 0 && !slices.Contains(g.Job.Sizes, g.Job.Gang) {
		t.Fatalf("size %d, job %+v", g.Size, g.Job)
	}
	counted := len(s.Members) + len(s.Extra) + int(s.Gated+s.Claimless+s.Succeeded+s.Failed+s.Terminating)
	if counted != len(pods) || int(s.Needed) < len(s.Members) || s.Running > s.Bound || int(s.Bound) > len(s.Members) {
		t.Fatalf("%d pods counted as %d: %+v", len(pods), counted, s)
	}
	if s.Phase == Unknown || s.Reason == "" {
		t.Fatalf("no phase: %+v", s)
	}
	empty, _ := Read(k, nil, all)
	empty.State(nil)
}

// TestEndless: an owner that owns itself through ever new names ends in a problem.
func TestEndless(t *testing.T) {
	yes := true
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p", Labels: map[string]string{labelLWS: "x"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "s", Controller: &yes}}}}
	key, problems := Find(p, mirror{})
	if key != (Key{}) || len(problems) != 1 || problems[0].Reason != ReasonCycle {
		t.Fatal(key, problems)
	}
}

// mirror has an owner for everything.
type mirror struct{}

func (mirror) Find(ref metav1.OwnerReference, namespace string) (*unstructured.Unstructured, bool) {
	next := map[string]any{"apiVersion": "v1", "kind": "Pod", "name": ref.Name + "x", "uid": string(types.UID("")), "controller": true}
	if ref.Kind == "Pod" {
		next["apiVersion"], next["kind"] = "apps/v1", "StatefulSet"
	}
	return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": ref.Name, "ownerReferences": []any{next}}}}, true
}
