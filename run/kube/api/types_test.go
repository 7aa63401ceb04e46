package api_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/run/kube/api"
	"github.com/musterdl/muster/run/kube/deploy"
)

// fullJob is a record with every field set.
func fullJob() *api.Job {
	at := metav1.Time{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Local()}
	owner := api.JobOwner{APIVersion: "batch/v1", Kind: "Job", Name: "train", UID: "u"}
	return &api.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: api.JobName("Job", "train", "u"), OwnerReferences: api.OwnedBy(owner)},
		Spec: api.JobSpec{Owner: owner, Gang: 4, Sizes: []int32{2, 4}, DevicesPerWorker: 1, ShareMilli: 500, Models: []string{"H200"}, Queue: "q", User: "u",
			Priority: 3, EstimateSeconds: 1, TimeLimitSeconds: 2, DeadlineSeconds: 3, Checkpoint: "on request", Profile: "resnet50/64"},
		Status: api.JobStatus{Phase: "waiting", Reason: "too big", Number: 7, Attempt: 1, Workers: 4, Submitted: &at, Started: &at, Ended: &at, WaitedSeconds: 1,
			ExecutedSeconds: 2, ServiceDeviceSeconds: 8, Preemptions: 1, Restarts: 1, Failures: 1, Memory: [2]int64{1, -2},
			Placement: []api.Place{{Node: "n1", Workers: 4, Devices: []int32{0, 1}}}, Fence: "1/a", Exact: "{}"},
	}
}

func encode(t testing.TB, x any) string {
	t.Helper()
	text, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The API server drops fields that the definitions do not have.
func TestEveryFieldIsDefined(t *testing.T) {
	ledger := &api.Ledger{Spec: api.LedgerSpec{Scheduler: "muster"}, Status: api.LedgerStatus{Strategy: "s", Commits: 1, Nodes: 1, Jobs: 1, Fence: "f", Exact: "x"}}
	records := map[string]any{api.KindJob: fullJob(), api.KindLedger: ledger}
	for _, text := range deploy.CRDs() {
		var crd struct {
			Spec struct {
				Group    string
				Names    struct{ Kind, Plural string }
				Versions []struct {
					Name   string
					Schema struct{ OpenAPIV3Schema schemaNode }
				}
			}
		}
		if err := yaml.Unmarshal(text, &crd); err != nil {
			t.Fatal(err)
		}
		names, version := crd.Spec.Names, crd.Spec.Versions[0]
		if crd.Spec.Group != api.Group || version.Name != api.Version || names.Plural != api.JobResource.Resource && names.Plural != api.LedgerResource.Resource {
			t.Errorf("%s %s %s", crd.Spec.Group, version.Name, names.Plural)
		}
		var fields map[string]any
		if err := json.Unmarshal([]byte(encode(t, records[names.Kind])), &fields); err != nil {
			t.Fatal(err)
		}
		delete(records, names.Kind)
		for _, part := range []string{"spec", "status"} {
			compare(t, names.Kind+"."+part, fields[part], version.Schema.OpenAPIV3Schema.Properties[part])
		}
	}
	if len(records) > 0 {
		t.Errorf("no definition for %v", records)
	}
}

type schemaNode struct {
	Type       string
	Properties map[string]schemaNode
	Items      *schemaNode
}

// compare checks that both have the same fields of the same types.
func compare(t *testing.T, path string, value any, schema schemaNode) {
	kind := "integer"
	switch v := value.(type) {
	case map[string]any:
		kind = "object"
		for name, below := range v {
			compare(t, path+"."+name, below, schema.Properties[name])
		}
		for name := range schema.Properties {
			if _, ok := v[name]; !ok {
				t.Errorf("%s.%s is defined and not written", path, name)
			}
		}
	case []any:
		kind = "array"
		if schema.Items != nil {
			compare(t, path+"[0]", v[0], *schema.Items)
		}
	case string:
		kind = "string"
	}
	if schema.Type != kind {
		t.Errorf("%s is %q in the definition, %s in Go", path, schema.Type, kind)
	}
}

func TestDeepCopy(t *testing.T) {
	j := fullJob()
	before := encode(t, j)
	c := j.DeepCopyObject().(*api.Job)
	if encode(t, c) != before {
		t.Error("the copy differs")
	}
	c.Spec.Sizes[0], c.Spec.Models[0], c.Status.Placement[0].Node, c.Status.Placement[0].Devices[0] = 9, "x", "x", 9
	c.OwnerReferences[0].Name = "x"
	c.Status.Submitted.Time, c.Status.Started.Time, c.Status.Ended.Time = time.Time{}, time.Time{}, time.Time{}
	if encode(t, j) != before {
		t.Error("the copy shares something")
	}
	l := &api.Ledger{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}}
	l.DeepCopyObject().(*api.Ledger).Labels["a"] = "c"
	if l.Labels["a"] != "b" {
		t.Error("the copy shares something")
	}
}

func TestJobName(t *testing.T) {
	for _, c := range []struct{ kind, name, uid, want string }{
		{"Job", "train", "", "job-train"},
		{"RayCluster", "a.b", "", "raycluster-a.b"},
		{"PodGroup.x-k8s", "g", "", "podgroup.x-k8s-g"},
		{"Job", "train", "u", "job-train-"},
		{"Gang", "My_Group", "", "gang-my-group-"}, // mended, and told from my-group
		{"Gang", "a..b", "", "gang-a--b-"},
		{"Job", strings.Repeat("x", 300), "", "job-" + strings.Repeat("x", 240) + "-"},
	} {
		got := api.JobName(c.kind, c.name, c.uid)
		if got != c.want && (!strings.HasSuffix(c.want, "-") || len(got) != len(c.want)+8 || !strings.HasPrefix(got, c.want)) {
			t.Errorf("%q %q %q: %q, expected %q", c.kind, c.name, c.uid, got, c.want)
		}
	}
	draws.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-zA-Z0-9._-]{0,300}`))
		kind, name, uid := rapid.StringMatching(`[A-Z][a-zA-Z]*`).Draw(t, "kind"), text.Draw(t, "name"), text.Draw(t, "uid")
		got := api.JobName(kind, name, uid)
		if wrong := validation.IsDNS1123Subdomain(got); len(wrong) > 0 {
			t.Fatalf("%q: %v", got, wrong)
		}
		if other := api.JobName(kind, name, uid+"x"); other == got {
			t.Fatalf("%q for two objects", got)
		}
		if other := api.JobName(kind, name+"x", uid); other == got {
			t.Fatalf("%q for two names", got)
		}
	})
}

func TestOwnedBy(t *testing.T) {
	if refs := api.OwnedBy(api.JobOwner{Kind: "Gang", Name: "g"}); refs != nil {
		t.Error(refs)
	}
	refs := api.OwnedBy(api.JobOwner{APIVersion: "batch/v1", Kind: "Job", Name: "train", UID: "u"})
	if want := (metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: "train", UID: types.UID("u")}); len(refs) != 1 || refs[0] != want {
		t.Error(refs)
	}
}
