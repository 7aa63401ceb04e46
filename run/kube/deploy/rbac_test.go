package deploy

import (
	"slices"
	"sort"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/kubernetes/pkg/registry/rbac/validation"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"

	"github.com/musterdl/muster/run/kube/gang"
)

// right is what may be done with a resource: in every namespace, or with one object
// of the installation's own.
type right struct {
	verbs, group, resource string
	name                   string // of the one object; "*" is any in the own namespace
}

const reads = "get list watch"

// readerRights and schedulerRights are all that Muster may do: what is not here is
// refused.
var readerRights = []right{
	{reads, "", "nodes", ""},
	{reads, "", "pods", ""},
	{reads, "", "namespaces", ""},
	{reads, "", "resourcequotas", ""},
	{reads, "", "services", ""},
	{reads, "", "replicationcontrollers", ""},
	{reads, "", "persistentvolumeclaims", ""},
	{reads, "", "persistentvolumes", ""},
	{reads, "storage.k8s.io", "storageclasses", ""},
	{reads, "storage.k8s.io", "csinodes", ""},
	{reads, "storage.k8s.io", "csidrivers", ""},
	{reads, "storage.k8s.io", "csistoragecapacities", ""},
	{reads, "storage.k8s.io", "volumeattachments", ""},
	{reads, "policy", "poddisruptionbudgets", ""},
	{reads, "resource.k8s.io", "deviceclasses", ""},
	{reads, "resource.k8s.io", "resourceclaims", ""},
	{reads, "resource.k8s.io", "resourceclaimtemplates", ""},
	{reads, "resource.k8s.io", "resourceslices", ""},
	{reads, "resource.k8s.io", "devicetaintrules", ""},
	{reads, "apps", "replicasets", ""},
	{reads, "apps", "statefulsets", ""},
	{reads, "batch", "jobs", ""},
	{reads, "jobset.x-k8s.io", "jobsets", ""},
	{reads, "leaderworkerset.x-k8s.io", "leaderworkersets", ""},
	{reads, "ray.io", "rayclusters", ""},
	{reads, "ray.io", "rayjobs", ""},
	{reads, "trainer.kubeflow.org", "trainjobs", ""},
	{reads, "kubeflow.org", "pytorchjobs", ""},
	{reads, "kubeflow.org", "mpijobs", ""},
	{reads, "kubeflow.org", "tfjobs", ""},
	{reads, "kubeflow.org", "xgboostjobs", ""},
	{reads, "kubeflow.org", "paddlejobs", ""},
	{reads, "kubeflow.org", "jaxjobs", ""},
	{reads, "scheduling.k8s.io", "priorityclasses", ""},
	{reads, "scheduling.k8s.io", "podgroups", ""},
	{reads, "scheduling.k8s.io", "workloads", ""},
	{reads, "scheduling.x-k8s.io", "podgroups", ""},
	{reads, "scheduling.sigs.k8s.io", "podgroups", ""},
	{reads, "scheduling.volcano.sh", "podgroups", ""},
}

var schedulerRights = []right{
	{"create", "", "pods/binding", ""},
	{"create", "", "pods/eviction", ""},
	{"patch", "", "pods/status", ""},
	{"update", "", "pods/finalizers", ""},
	{"create patch", "", "events", ""},
	{"create patch", "events.k8s.io", "events", ""},
	{"update", "", "persistentvolumeclaims", ""},
	{"update", "", "persistentvolumes", ""},
	{"create update delete", "resource.k8s.io", "resourceclaims", ""},
	{"update patch", "resource.k8s.io", "resourceclaims/status", ""},
	{"update patch", "resource.k8s.io", "resourceclaims/binding", ""},
	{"patch", "batch", "jobs", ""},
	{"patch", "jobset.x-k8s.io", "jobsets", ""},
	{"patch", "ray.io", "rayclusters", ""},
	{"patch", "ray.io", "rayjobs", ""},
	{"patch", "trainer.kubeflow.org", "trainjobs", ""},
	{"patch", "kubeflow.org", "pytorchjobs", ""},
	{"patch", "kubeflow.org", "mpijobs", ""},
	{"patch", "kubeflow.org", "tfjobs", ""},
	{"patch", "kubeflow.org", "xgboostjobs", ""},
	{"patch", "kubeflow.org", "paddlejobs", ""},
	{"patch", "kubeflow.org", "jaxjobs", ""},
	{reads + " create update patch delete", "muster.dev", "musterjobs", ""},
	{reads + " create update patch delete", "muster.dev", "musterledgers", ""},
	{"get update", "coordination.k8s.io", "leases", "muster"},
	{"create", "coordination.k8s.io", "leases", "*"},
}

// guarded are resources that a scheduler has no business with.
var guarded = []right{
	{"", "", "secrets", ""}, {"", "", "configmaps", ""}, {"", "", "pods/exec", ""}, {"", "", "pods/log", ""}, {"", "", "nodes/proxy", ""},
	{"", "", "nodes/status", ""}, {"", "", "serviceaccounts", ""}, {"", "", "serviceaccounts/token", ""}, {"", "apps", "deployments", ""},
	{"", "rbac.authorization.k8s.io", "clusterroles", ""}, {"", "rbac.authorization.k8s.io", "clusterrolebindings", ""},
	{"", "apiextensions.k8s.io", "customresourcedefinitions", ""}, {"", "admissionregistration.k8s.io", "mutatingwebhookconfigurations", ""},
	{"", "batch", "cronjobs", ""}, {"", "batch", "jobs/status", ""}, {"", "certificates.k8s.io", "certificatesigningrequests", ""},
}

var allVerbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "bind", "escalate", "impersonate", "*"}

// request is one thing to be tried.
type request struct {
	verb, group, resource string
	namespace, name       string
}

// requests are all verbs on all resources, with names and namespaces of our own and
// others, and whether each is a right.
func requests(rights []right) map[request]bool {
	tried := map[request]bool{}
	for _, r := range slices.Concat(readerRights, schedulerRights, guarded) {
		for _, verb := range allVerbs {
			for _, in := range []string{namespace, "team", ""} {
				for _, name := range []string{"muster", "other", ""} {
					tried[request{verb, r.group, r.resource, in, name}] = false
				}
			}
		}
	}
	for q := range tried {
		tried[q] = slices.ContainsFunc(rights, func(r right) bool {
			return r.group == q.group && r.resource == q.resource && slices.Contains(strings.Fields(r.verbs), q.verb) &&
				(r.name == "" || q.namespace == namespace && (r.name == "*" || r.name == q.name))
		})
	}
	return tried
}

// account is who a manifest's pods are to the API server.
func account(name string) user.Info {
	return &user.DefaultInfo{Name: "system:serviceaccount:" + namespace + ":" + name,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"}}
}

// rules has the roles and bindings of a manifest.
func rules(all []runtime.Object) *validation.StaticRoles {
	_, roles := validation.NewTestRuleResolver(of[*rbacv1.Role](all), of[*rbacv1.RoleBinding](all), of[*rbacv1.ClusterRole](all), of[*rbacv1.ClusterRoleBinding](all))
	return roles
}

// installations are the manifests with the rights that they are to give.
var installations = []struct {
	file, account string
	rights        []right
}{
	{manifest, "muster", slices.Concat(readerRights, schedulerRights)},
	{manifestAdvise, "muster-advise", readerRights},
}

// TestRights tries everything with the API server's own authorizer.
func TestRights(t *testing.T) {
	for _, i := range installations {
		static := rules(objects(t, read(t, i.file)))
		asked := rbac.New(static, static, static, static)
		for q, want := range requests(i.rights) {
			resource, sub, _ := strings.Cut(q.resource, "/")
			decision, _, err := asked.Authorize(t.Context(), authorizer.AttributesRecord{User: account(i.account), Verb: q.verb, APIGroup: q.group,
				APIVersion: "*", Resource: resource, Subresource: sub, Namespace: q.namespace, Name: q.name, ResourceRequest: true})
			if got := decision == authorizer.DecisionAllow; err != nil || got != want {
				t.Errorf("%s: %+v: allowed %t, expected %t, %v", i.file, q, got, want, err)
			}
		}
	}
}

// TestNoOtherRights: the rules give what the tables have, on resources that the tables
// do not think of too.
func TestNoOtherRights(t *testing.T) {
	for _, i := range installations {
		all := objects(t, read(t, i.file))
		given := map[string]bool{}
		take := func(rules []rbacv1.PolicyRule, own string) {
			for _, r := range rules {
				if len(r.NonResourceURLs) > 0 {
					t.Errorf("%s: a rule on %v", i.file, r.NonResourceURLs)
				}
				names := r.ResourceNames
				if len(names) == 0 {
					names = []string{own}
				}
				for _, group := range r.APIGroups {
					for _, resource := range r.Resources {
						for _, verb := range r.Verbs {
							given[strings.Join([]string{verb, group, resource, strings.Join(names, ",")}, " ")] = true
						}
					}
				}
			}
		}
		bound := map[string]bool{}
		for _, b := range of[*rbacv1.ClusterRoleBinding](all) {
			bound[b.RoleRef.Name] = true
		}
		for _, r := range of[*rbacv1.ClusterRole](all) {
			if bound[r.Name] {
				take(r.Rules, "")
			}
		}
		for _, r := range of[*rbacv1.Role](all) {
			take(r.Rules, "*")
		}
		var want []string
		for _, r := range i.rights {
			for verb := range strings.FieldsSeq(r.verbs) {
				want = append(want, strings.Join([]string{verb, r.group, r.resource, r.name}, " "))
			}
		}
		var got []string
		for g := range given {
			got = append(got, g)
		}
		sort.Strings(want)
		sort.Strings(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s gives\n%s\nexpected\n%s", i.file, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// TestRightsOfGangs: what gangs are found from may be read, and what they are stopped
// or resized by may be written; nothing else of those groups.
func TestRightsOfGangs(t *testing.T) {
	writes := map[schema.GroupResource]bool{}
	for _, r := range schedulerRights {
		if r.verbs == "patch" && !strings.Contains(r.resource, "/") {
			writes[schema.GroupResource{Group: r.group, Resource: r.resource}] = true
		}
	}
	for _, k := range gang.Kinds() {
		gv, err := schema.ParseGroupVersion(k.APIVersion)
		if err != nil {
			t.Fatal(err)
		}
		of := schema.GroupResource{Group: gv.Group, Resource: k.Resource}
		if !slices.ContainsFunc(readerRights, func(r right) bool { return r.group == of.Group && r.resource == of.Resource }) {
			t.Errorf("gangs are found from %s, which may not be read", of)
		}
		if writes[of] != (k.Suspends || k.Resizes) {
			t.Errorf("%s may be written: %t; it suspends or resizes gangs: %t", of, writes[of], k.Suspends || k.Resizes)
		}
		delete(writes, of)
	}
	for of := range writes {
		t.Errorf("%s may be written and is of no kind of gang", of)
	}
}

// TestView: who may view a namespace may see the records of its jobs.
func TestView(t *testing.T) {
	for _, r := range of[*rbacv1.ClusterRole](objects(t, read(t, manifest))) {
		if r.Labels["rbac.authorization.k8s.io/aggregate-to-view"] == "true" {
			if len(r.Rules) != 1 || !slices.Equal(r.Rules[0].Resources, []string{"musterjobs"}) || !slices.Equal(r.Rules[0].Verbs, strings.Fields(reads)) {
				t.Errorf("viewers may %v", r.Rules)
			}
			return
		}
	}
	t.Error("nothing is said of viewers")
}
