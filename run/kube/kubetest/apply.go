package kubetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// Apply creates or changes the objects of a YAML text, in its order, and waits for definitions to be served.
func (c *Cluster) Apply(manifest string) {
	c.t.Helper()
	if err := c.TryApply(manifest); err != nil {
		c.t.Fatal(err)
	}
}

// TryApply is Apply for objects that the API server may refuse.
func (c *Cluster) TryApply(manifest string) error { return c.apply.apply(manifest) }

// applier writes objects of any kind.
type applier struct {
	client dynamic.Interface
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

func newApplier(config *rest.Config) (*applier, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return &applier{client: client, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(kinds))}, nil
}

func (a *applier) apply(manifest string) error {
	objects, err := decode(manifest)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := a.object(object); err != nil {
			return err
		}
	}
	return nil
}

// decode reads the objects of a YAML text.
func decode(manifest string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading object %d of a manifest: %w", len(objects)+1, err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

func (a *applier) object(object *unstructured.Unstructured) error {
	what := fmt.Sprintf("%s %s", object.GetKind(), object.GetName())
	kind := object.GroupVersionKind()
	mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		a.mapper.Reset() // the definition may be new
		mapping, err = a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	}
	if err != nil {
		return fmt.Errorf("applying %s: %w", what, err)
	}
	client := dynamic.ResourceInterface(a.client.Resource(mapping.Resource))
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		namespace := object.GetNamespace()
		if namespace == "" {
			namespace = metav1.NamespaceDefault
		}
		client = a.client.Resource(mapping.Resource).Namespace(namespace)
	}
	_, err = client.Apply(context.Background(), object.GetName(), object, metav1.ApplyOptions{FieldManager: "kubetest", Force: true})
	if err != nil {
		return fmt.Errorf("applying %s: %w", what, err)
	}
	if mapping.Resource.Resource != "customresourcedefinitions" {
		return nil
	}
	return a.waitEstablished(mapping.Resource, object.GetName())
}

// waitEstablished waits until the objects of a definition can be made.
func (a *applier) waitEstablished(resource schema.GroupVersionResource, name string) error {
	for end := time.Now().Add(startLimit); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		object, err := a.client.Resource(resource).Get(context.Background(), name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("waiting for the definition %s: %w", name, err)
		}
		conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
		for _, condition := range conditions {
			c, _ := condition.(map[string]any)
			if c["type"] == "Established" && c["status"] == "True" {
				return nil
			}
		}
	}
	return fmt.Errorf("the definition %s is not established after %v", name, startLimit)
}
