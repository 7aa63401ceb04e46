package deploy

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/internal/spec"
	"github.com/musterdl/muster/run/kube/api"
)

// manifests are the files for kubectl apply.
const (
	manifest       = "muster.yaml"
	manifestAdvise = "muster-advise.yaml"
)

// scheme has all kinds that manifests are made of.
func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := clientscheme.AddToScheme(s); err != nil {
		panic(err)
	}
	if err := apiextensionsv1.AddToScheme(s); err != nil {
		panic(err)
	}
	return s
}

// objects reads a manifest as strictly as kubectl apply --validate=strict.
func objects(t *testing.T, text []byte) []runtime.Object {
	t.Helper()
	decoder := serializer.NewCodecFactory(scheme(), serializer.EnableStrict).UniversalDeserializer()
	var all []runtime.Object
	for _, doc := range documents(text) {
		o, _, err := decoder.Decode([]byte(doc), nil, nil)
		if err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		all = append(all, o)
	}
	return all
}

// documents are those of a YAML file that hold something.
func documents(text []byte) []string {
	var all []string
	for doc := range strings.SplitSeq("\n"+string(text), "\n---") {
		var any any
		if yaml.Unmarshal([]byte(doc), &any) != nil || any != nil {
			all = append(all, doc)
		}
	}
	return all
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// one is the only object of a type.
func one[T runtime.Object](t *testing.T, all []runtime.Object) T {
	t.Helper()
	found := of[T](all)
	if len(found) != 1 {
		t.Fatalf("%d objects of type %T", len(found), *new(T))
	}
	return found[0]
}

func of[T runtime.Object](all []runtime.Object) []T {
	var found []T
	for _, o := range all {
		if x, ok := o.(T); ok {
			found = append(found, x)
		}
	}
	return found
}

// TestCRDs: the definitions are strictly readable, and have what kubectl get shows.
// That an API server takes them is in TestOnAPIServer.
func TestCRDs(t *testing.T) {
	want := []struct {
		name    string
		scope   apiextensionsv1.ResourceScope
		columns string
	}{
		{"musterjobs.muster.dev", apiextensionsv1.NamespaceScoped, "Phase Gang Devices Queue Attempt Waited Age Reason"},
		{"musterledgers.muster.dev", apiextensionsv1.ClusterScoped, "Strategy Nodes Jobs Commits Age"},
	}
	all := CRDs()
	if len(all) != len(want) {
		t.Fatalf("%d definitions", len(all))
	}
	for i, text := range all {
		crd := one[*apiextensionsv1.CustomResourceDefinition](t, objects(t, text))
		v := crd.Spec.Versions[0]
		var columns []string
		for _, c := range v.AdditionalPrinterColumns {
			columns = append(columns, c.Name)
			if c.JSONPath != ".metadata.creationTimestamp" && !has(v.Schema.OpenAPIV3Schema, c.JSONPath) {
				t.Errorf("%s: column %s shows %s, which there is not", crd.Name, c.Name, c.JSONPath)
			}
		}
		if got := strings.Join(columns, " "); crd.Name != want[i].name || crd.Spec.Scope != want[i].scope || got != want[i].columns {
			t.Errorf("%s, %s, columns %s", crd.Name, crd.Spec.Scope, got)
		}
		if v.Subresources != nil {
			t.Errorf("%s has subresources: spec and status would be two requests", crd.Name)
		}
	}
}

// has reports whether a schema has a path of names.
func has(s *apiextensionsv1.JSONSchemaProps, path string) bool {
	for name := range strings.SplitSeq(strings.TrimPrefix(path, "."), ".") {
		next, ok := s.Properties[name]
		if !ok {
			return false
		}
		s = &next
	}
	return true
}

// flags are those of muster-kube, and whether they take a value.
var flags = map[string]bool{
	"kubeconfig": true, "scheduler-name": true, "strategy": true, "queues": true, "listen": true, "data": true,
	"leader-elect": false, "leader-elect-namespace": true, "leader-elect-name": true, "kube-api-qps": true,
	"kube-api-burst": true, "advise": false, "log-format": true, "log-level": true, "device-resource": true,
}

// TestManifests: what kubectl applies is strictly readable, hardened, and fits together.
func TestManifests(t *testing.T) {
	for _, file := range []string{manifest, manifestAdvise} {
		t.Run(file, func(t *testing.T) {
			all := objects(t, read(t, file))
			advise := file == manifestAdvise
			d := one[*appsv1.Deployment](t, all)
			if want := map[bool]int32{false: 2, true: 1}[advise]; *d.Spec.Replicas != want {
				t.Errorf("%d replicas", *d.Spec.Replicas)
			}
			pod := d.Spec.Template.Spec
			c := pod.Containers[0]
			given := checkArgs(t, c.Args)
			if slices.Contains(given, "advise") != advise || slices.Contains(given, "leader-elect") == advise {
				t.Errorf("flags %v", given)
			}
			checkHardened(t, pod)
			config := one[*corev1.ConfigMap](t, all)
			if _, err := spec.Queues("queues.yaml", []byte(config.Data["queues.yaml"]), nil); err != nil {
				t.Error(err)
			}
			if s, err := catalogue.Resolve(config.Data["strategy"]); err != nil {
				t.Error(err)
			} else if _, err := s.Live(); err != nil {
				t.Error(err)
			}
			service := one[*corev1.Service](t, all)
			if service.Spec.Ports[0].TargetPort.StrVal != c.Ports[0].Name {
				t.Errorf("the service goes to %v", service.Spec.Ports[0].TargetPort)
			}
			for k, v := range service.Spec.Selector {
				if d.Spec.Template.Labels[k] != v {
					t.Errorf("the service selects %s=%s", k, v)
				}
			}
			ns := one[*corev1.Namespace](t, all)
			if ns.Name != d.Namespace || ns.Labels["pod-security.kubernetes.io/enforce"] != "restricted" {
				t.Errorf("namespace %s with labels %v", ns.Name, ns.Labels)
			}
		})
	}
}

// checkArgs returns the flags that are given, and that the program has.
func checkArgs(t *testing.T, args []string) []string {
	var given []string
	for _, arg := range args {
		name, value, has := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		takes, known := flags[name]
		if !known || takes != has || has && value == "" {
			t.Errorf("argument %s", arg)
		}
		given = append(given, name)
	}
	return given
}

// checkHardened holds a pod against the restricted profile, and a little more.
func checkHardened(t *testing.T, pod corev1.PodSpec) {
	c := pod.Containers[0]
	s, p := c.SecurityContext, pod.SecurityContext
	if !*p.RunAsNonRoot || p.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault ||
		*s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
		t.Errorf("security: %v, %v", p, s)
	}
	if c.LivenessProbe.HTTPGet.Path != "/healthz" || c.ReadinessProbe.HTTPGet.Path != "/readyz" {
		t.Error("probes")
	}
	if c.Resources.Requests.Cpu().IsZero() || c.Resources.Limits.Memory().IsZero() {
		t.Error("no resources")
	}
}

// TestDockerfile: the recipe compiles with a Go that the module asks for, and the
// package that there is.
func TestDockerfile(t *testing.T) {
	recipe, mod := string(read(t, "Dockerfile")), read(t, "../go.mod")
	var asked, pinned string
	for line := range bytes.Lines(mod) {
		if n, _ := fmt.Sscanf(string(line), "go %s", &asked); n == 1 {
			break
		}
	}
	_, rest, _ := strings.Cut(recipe, " golang:")
	pinned, _, _ = strings.Cut(rest, "-")
	major, _, _ := strings.Cut(strings.TrimPrefix(asked, "1."), ".")
	if !strings.HasPrefix(pinned, "1."+major+".") {
		t.Errorf("go.mod asks for Go %s, the image compiles with %s", asked, pinned)
	}
	if _, err := os.Stat("../cmd/muster-kube"); err != nil {
		t.Skip("muster-kube is not there")
	}
	if !strings.Contains(recipe, "./cmd/muster-kube\n") {
		t.Error("the recipe compiles something else than cmd/muster-kube")
	}
}

// TestRecordsFit: the definitions have the fields that the records have, by name and
// type, and no others: an API server drops what a definition lacks.
func TestRecordsFit(t *testing.T) {
	for i, record := range []any{api.Job{}, api.Ledger{}} {
		crd := one[*apiextensionsv1.CustomResourceDefinition](t, objects(t, CRDs()[i]))
		root := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
		want, got := map[string]string{}, map[string]string{}
		for _, part := range []string{"Spec", "Status"} {
			field, _ := reflect.TypeOf(record).FieldByName(part)
			fieldsOf(field.Type, part, got)
			schema := root.Properties[strings.ToLower(part)]
			fieldsIn(&schema, part, want)
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: the record has\n%v\nthe definition\n%v", crd.Name, got, want)
		}
	}
}

// fieldsOf are the fields of a Go type by their names in JSON.
func fieldsOf(of reflect.Type, path string, into map[string]string) {
	switch kind := of.Kind(); {
	case of == reflect.TypeFor[*metav1.Time]():
		into[path] = "string date-time"
	case kind == reflect.Slice || kind == reflect.Array:
		fieldsOf(of.Elem(), path+"[]", into)
	case kind == reflect.Struct:
		for f := range of.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			fieldsOf(f.Type, path+"."+name, into)
		}
	case kind == reflect.String:
		into[path] = "string"
	default:
		into[path] = "integer " + kind.String()
	}
}

// fieldsIn are the same of a schema.
func fieldsIn(s *apiextensionsv1.JSONSchemaProps, path string, into map[string]string) {
	switch {
	case s.Items != nil:
		fieldsIn(s.Items.Schema, path+"[]", into)
	case s.Type == "object":
		for name, next := range s.Properties {
			fieldsIn(&next, path+"."+name, into)
		}
	default:
		into[path] = strings.TrimSpace(s.Type + " " + s.Format)
	}
}
