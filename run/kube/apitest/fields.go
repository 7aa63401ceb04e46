package apitest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// fieldAt returns what lies under a path such as spec.replicatedJobs[1].name.
func fieldAt(o any, path string) any {
	for _, name := range split(path) {
		switch v := o.(type) {
		case map[string]any:
			o = v[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			o = v[i]
		default:
			return nil
		}
	}
	return o
}

func split(path string) []string {
	return strings.Split(strings.ReplaceAll(strings.ReplaceAll(path, "[", "."), "]", ""), ".")
}

// number is a whole number under a path, or else another.
func number(o any, path string, otherwise int64) int64 {
	if n, ok := fieldAt(o, path).(int64); ok {
		return n
	}
	return otherwise
}

func text(o any, path string) string {
	s, _ := fieldAt(o, path).(string)
	return s
}

func truth(o any, path string) bool {
	b, _ := fieldAt(o, path).(bool)
	return b
}

func list(o any, path string) []any {
	l, _ := fieldAt(o, path).([]any)
	return l
}

// with returns an object with a value under a path. Only what is on the way there is
// copied, so that objects that were told stay as they were.
func with(o any, value any, path ...string) (any, error) {
	if len(path) == 0 {
		return value, nil
	}
	switch v := o.(type) {
	case nil, map[string]any:
		m, _ := v.(map[string]any)
		inner, err := with(m[path[0]], value, path[1:]...)
		if err != nil {
			return nil, err
		}
		if m = maps.Clone(m); m == nil {
			m = map[string]any{}
		}
		m[path[0]] = inner
		return m, nil
	case []any:
		i, err := strconv.Atoi(path[0])
		if err != nil || i < 0 || i >= len(v) {
			return nil, fmt.Errorf("no element %s in a list of %d", path[0], len(v))
		}
		inner, err := with(v[i], value, path[1:]...)
		if err != nil {
			return nil, err
		}
		v = slices.Clone(v)
		v[i] = inner
		return v, nil
	}
	return nil, fmt.Errorf("field %s of what is no object", path[0])
}

// edited returns a copy of an object with one field set.
func edited(u *unstructured.Unstructured, path string, value any) (*unstructured.Unstructured, error) {
	o, err := with(u.Object, value, split(path)...)
	if err != nil {
		return nil, fmt.Errorf("setting %s: %w", path, err)
	}
	c := &unstructured.Unstructured{Object: o.(map[string]any)}
	meta, _ := c.Object["metadata"].(map[string]any)
	c.Object["metadata"] = maps.Clone(meta) // put writes the version there
	return c, nil
}

// condition sets a condition of a pod, and reports whether that changed anything.
func condition(p *corev1.Pod, c corev1.PodCondition) bool {
	i := slices.IndexFunc(p.Status.Conditions, func(x corev1.PodCondition) bool { return x.Type == c.Type })
	if i < 0 {
		p.Status.Conditions = append(slices.Clip(p.Status.Conditions), c)
		return true
	}
	old := p.Status.Conditions[i]
	if old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	if old == c {
		return false
	}
	p.Status.Conditions = slices.Clone(p.Status.Conditions)
	p.Status.Conditions[i] = c
	return true
}

// hasCondition reports whether a condition of an object of any kind is true.
func hasCondition(u *unstructured.Unstructured, kinds ...string) bool {
	for _, c := range list(u.Object, "status.conditions") {
		if text(c, "status") == "True" && slices.Contains(kinds, text(c, "type")) {
			return true
		}
	}
	return false
}

// conditions returns the conditions of an object with one of them set.
func (co *controllers) conditions(old []any, kind, status, reason, message string) []any {
	c := map[string]any{"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": co.clock.stamp().UTC().Format("2006-01-02T15:04:05Z")}
	i := slices.IndexFunc(old, func(x any) bool { return text(x, "type") == kind })
	if i < 0 {
		return append(slices.Clip(old), c)
	}
	if text(old[i], "status") == status && text(old[i], "reason") == reason {
		return old
	}
	old = slices.Clone(old)
	old[i] = c
	return old
}

// controller is the reference to what makes an object again.
func controller(o object) (metav1.OwnerReference, bool) {
	for _, ref := range o.GetOwnerReferences() {
		if ref.Controller != nil && *ref.Controller {
			return ref, true
		}
	}
	return metav1.OwnerReference{}, false
}

// ownedBy is the reference of what an object makes.
func ownedBy(o object) []metav1.OwnerReference {
	yes := true
	r := reference(o)
	return []metav1.OwnerReference{{APIVersion: r.APIVersion, Kind: r.Kind, Name: r.Name, UID: r.UID, Controller: &yes, BlockOwnerDeletion: &yes}}
}

// ended reports that a pod will never run again.
func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// active pods count for their owner.
func active(p *corev1.Pod) bool { return !ended(p) && p.DeletionTimestamp == nil }
