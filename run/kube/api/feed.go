package api

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// mailbox gathers changes until somebody has time for them.
type mailbox struct {
	wake chan struct{} // holds one: something is there

	mu      sync.Mutex
	changes []Change
}

func newMailbox() *mailbox { return &mailbox{wake: make(chan struct{}, 1)} }

func (m *mailbox) put(changes ...Change) {
	if len(changes) == 0 {
		return
	}
	m.mu.Lock()
	m.changes = append(m.changes, changes...)
	m.mu.Unlock()
	signal(m.wake)
}

// take empties the mailbox.
func (m *mailbox) take() []Change {
	m.mu.Lock()
	defer m.mu.Unlock()
	changes := m.changes
	m.changes = nil
	return changes
}

// inOrder puts nodes first, then what is on them and what makes pods, pods last.
func inOrder(changes []Change) {
	slices.SortStableFunc(changes, func(a, b Change) int { return cmp.Compare(rank(a.Object), rank(b.Object)) })
}

func rank(o runtime.Object) int {
	switch o.(type) {
	case *corev1.Node:
		return 0
	case *resourcev1.DeviceClass, *resourcev1.ResourceSlice:
		return 1
	case *unstructured.Unstructured:
		return 2
	case *corev1.Pod:
		return 4
	}
	return 3
}

// feed is the store behind the reflector of one kind: it knows what there was, and
// puts what is different into a mailbox. Its reflector alone calls it.
type feed struct {
	box    *mailbox
	known  map[string]object // by namespace and name
	listed func(changes int) // called after each list
}

// object is any kind of object.
type object interface {
	runtime.Object
	metav1.Object
}

var _ cache.TransformingStore = (*feed)(nil)

func newFeed(box *mailbox, listed func(changes int)) *feed {
	return &feed{box: box, known: map[string]object{}, listed: listed}
}

// Transformer drops what nobody reads as soon as an object arrives.
func (f *feed) Transformer() cache.TransformFunc {
	return func(x any) (any, error) {
		return arrived(x)
	}
}

// arrived is an object as it came, without what nobody reads.
func arrived(x any) (object, error) {
	o, ok := x.(object)
	if !ok {
		return nil, fmt.Errorf("a %T came, which is no object", x)
	}
	o.SetManagedFields(nil)
	return o, nil
}

func keyOf(o metav1.Object) string { return o.GetNamespace() + "/" + o.GetName() }

// Add implements cache.ReflectorStore.
func (f *feed) Add(x any) error { return f.Update(x) }

// Update implements cache.ReflectorStore.
func (f *feed) Update(x any) error {
	o, err := arrived(x)
	if err != nil {
		return err
	}
	f.box.put(f.now(keyOf(o), o)...)
	return nil
}

// now notes what an object is and returns what is different: nothing, the object, or
// that another of its name went before.
func (f *feed) now(key string, o object) []Change {
	was, ok := f.known[key]
	if ok && was.GetUID() == o.GetUID() && was.GetResourceVersion() == o.GetResourceVersion() {
		return nil
	}
	f.known[key] = o
	if ok && was.GetUID() != o.GetUID() {
		return []Change{{Object: was, Gone: true}, {Object: o}}
	}
	return []Change{{Object: o}}
}

// Delete implements cache.ReflectorStore.
func (f *feed) Delete(x any) error {
	o, err := arrived(x)
	if err != nil {
		return err
	}
	if _, ok := f.known[keyOf(o)]; !ok {
		return nil
	}
	delete(f.known, keyOf(o))
	f.box.put(Change{Object: o, Gone: true})
	return nil
}

// Replace implements cache.ReflectorStore: it is called with all there is, at first
// and after a gap.
func (f *feed) Replace(list []any, _ string) error {
	all := make(map[string]object, len(list))
	for _, x := range list {
		o, err := arrived(x)
		if err != nil {
			return err
		}
		all[keyOf(o)] = o
	}
	changes := f.gone(func(key string) bool { return all[key] == nil })
	for _, key := range sorted(all) {
		changes = append(changes, f.now(key, all[key])...)
	}
	f.box.put(changes...)
	f.listed(len(changes))
	return nil
}

// Resync implements cache.ReflectorStore; nothing is told twice.
func (f *feed) Resync() error { return nil }

// gone forgets all objects that went, and returns them in the order of their names.
func (f *feed) gone(went func(key string) bool) (changes []Change) {
	for _, key := range sorted(f.known) {
		if went(key) {
			changes = append(changes, Change{Object: f.known[key], Gone: true})
			delete(f.known, key)
		}
	}
	return changes
}

// stop tells that all objects are gone, as their kind is.
func (f *feed) stop() { f.box.put(f.gone(func(string) bool { return true })...) }

func sorted(objects map[string]object) []string {
	keys := make([]string, 0, len(objects))
	for key := range objects {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, strings.Compare)
	return keys
}
