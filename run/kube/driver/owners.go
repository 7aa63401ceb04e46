package driver

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// owners are the objects that make pods, by group, kind, namespace and name.
type owners map[ownerKey]*unstructured.Unstructured

type ownerKey struct{ group, kind, namespace, name string }

func groupOf(apiVersion string) string {
	group, _, ok := strings.Cut(apiVersion, "/")
	if !ok {
		return ""
	}
	return group
}

func keyOf(o *unstructured.Unstructured) ownerKey {
	return ownerKey{groupOf(o.GetAPIVersion()), o.GetKind(), o.GetNamespace(), o.GetName()}
}

func (o owners) put(x *unstructured.Unstructured, gone bool) {
	if o[keyOf(x)] = x; gone {
		delete(o, keyOf(x))
	}
}

// Find implements gang.Owners.
func (o owners) Find(ref metav1.OwnerReference, namespace string) (*unstructured.Unstructured, bool) {
	x, ok := o[ownerKey{groupOf(ref.APIVersion), ref.Kind, namespace, ref.Name}]
	if !ok || ref.UID != "" && x.GetUID() != ref.UID {
		return nil, false
	}
	return x, true
}

// below are the gangs that an object may say something about: its own, and those of
// the objects that own it.
func (o owners) below(ro *roster, x *unstructured.Unstructured) (list []*entry) {
	for depth := 0; x != nil && depth < 8; depth++ {
		list = append(list, ro.ofName[nameOf(x)]...)
		var above *unstructured.Unstructured
		for _, ref := range x.GetOwnerReferences() {
			if found, ok := o.Find(ref, x.GetNamespace()); ok {
				above = found
			}
		}
		x = above
	}
	return list
}
