package inventory

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"
)

// objects are what a test reads from YAML; it looks claims up in itself.
type objects struct {
	nodes     []*corev1.Node
	slices    []*resourcev1.ResourceSlice
	classes   []*resourcev1.DeviceClass
	claims    map[string]*resourcev1.ResourceClaim
	templates map[string]*resourcev1.ResourceClaimTemplate
	pods      []*corev1.Pod
}

func (o *objects) Claim(ns, name string) *resourcev1.ResourceClaim { return o.claims[ns+"/"+name] }
func (o *objects) Template(ns, name string) *resourcev1.ResourceClaimTemplate {
	return o.templates[ns+"/"+name]
}

func (o *objects) reader(r Rules) *Reader {
	ms, _ := r.Machines(o.nodes, o.slices)
	return r.NewReader(ms, o.classes)
}

// read reads YAML documents by their kind.
func read(t *testing.T, docs ...string) *objects {
	t.Helper()
	o := &objects{claims: map[string]*resourcev1.ResourceClaim{}, templates: map[string]*resourcev1.ResourceClaimTemplate{}}
	for _, doc := range strings.Split(strings.Join(docs, "\n---\n"), "\n---\n") {
		if strings.TrimSpace(doc) == "" {
			continue
		}
		var kind struct{ Kind string }
		must(t, yaml.Unmarshal([]byte(doc), &kind))
		switch kind.Kind {
		case "Node":
			o.nodes = append(o.nodes, decode[corev1.Node](t, doc))
		case "ResourceSlice":
			o.slices = append(o.slices, decode[resourcev1.ResourceSlice](t, doc))
		case "DeviceClass":
			o.classes = append(o.classes, decode[resourcev1.DeviceClass](t, doc))
		case "ResourceClaim":
			c := decode[resourcev1.ResourceClaim](t, doc)
			o.claims[c.Namespace+"/"+c.Name] = c
		case "ResourceClaimTemplate":
			c := decode[resourcev1.ResourceClaimTemplate](t, doc)
			o.templates[c.Namespace+"/"+c.Name] = c
		case "Pod":
			o.pods = append(o.pods, decode[corev1.Pod](t, doc))
		default:
			t.Fatalf("kind %q in:\n%s", kind.Kind, doc)
		}
	}
	return o
}

func decode[T any](t *testing.T, doc string) *T {
	t.Helper()
	v := new(T)
	must(t, yaml.UnmarshalStrict([]byte(doc), v))
	return v
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// node is the YAML of a ready node.
func node(name, labels, resources string) string {
	return "kind: Node\nmetadata: {name: " + name + ", labels: {" + labels + "}}\n" +
		"status:\n  allocatable: {cpu: '64', memory: 256Gi, " + resources + "}\n" +
		"  conditions: [{type: Ready, status: 'True'}]\n"
}

// pod is the YAML of a pod with one container.
func pod(resources string) string {
	return "kind: Pod\nmetadata: {name: p, namespace: ns}\nspec:\n  containers:\n  - name: main\n    resources: {requests: {" + resources + "}}\n"
}
