package fleet

import (
	"log/slog"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run/kube/filter"
	"github.com/musterdl/muster/run/kube/filter/filtertest"
	"github.com/musterdl/muster/run/kube/stored"
)

// TestWhatComesLaterIsHeardOf: a pod's volumes, claims and classes may be made after the pod. No node or pod changes then,
// and upstream's plugins hear of them later than we do: the set is told as soon as they know.
func TestWhatComesLaterIsHeardOf(t *testing.T) {
	tried := 0
	for _, c := range filtertest.Cases() {
		var first, later []runtime.Object
		for _, o := range c.Objects {
			switch o := o.(type) {
			case *corev1.Node:
				first = append(first, o)
			case *corev1.Pod:
				first = append(first, o)
			default:
				later = append(later, o)
			}
		}
		want := c.Open
		if want == nil {
			want = c.Allowed
		}
		if len(later) == 0 || len(want) == 0 {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			s := open(t, first)
			_, set, _ := s.sets.Confine(c.Pod)
			before := slices.Clone(s.within)
			if slices.Equal(before, want) {
				t.Skip("it may go there without them")
			}
			tried++
			for _, o := range later {
				s.add(t, o)
			}
			waited := func() map[int32]bool { return map[int32]bool{set: true} }
			for end := time.Now().Add(10 * time.Second); !slices.Equal(s.within, want); time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("its set is %v, before the others came %v, want %v", s.within, before, want)
				}
				s.sets.Pass()
				s.sets.TellChanged(waited)
			}
		})
	}
	if tried < 5 {
		t.Errorf("%d cases in which something comes later, want at least 5", tried)
	}
}

// TestTheOneThatStandsForASetMayGo: a set is asked for by one of its pods. That one may be deleted, and the claim that was
// made for it as well, while another waits that has a claim alike.
func TestTheOneThatStandsForASetMayGo(t *testing.T) {
	cases := filtertest.Cases()
	c := cases[slices.IndexFunc(cases, func(c filtertest.Case) bool { return c.Name == "claim of two devices" })]
	var nodes []runtime.Object
	var mine *resourcev1.ResourceClaim
	for _, o := range c.Objects {
		if n, ok := o.(*corev1.Node); ok {
			nodes = append(nodes, n)
		}
		if claim, ok := o.(*resourcev1.ResourceClaim); ok {
			mine = claim
		}
	}
	s := open(t, nodes)
	for _, o := range c.Objects {
		if _, ok := o.(*corev1.Node); !ok {
			s.add(t, o)
		}
	}
	until := func(set int32, want ...string) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); !slices.Equal(s.within, want); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("its set is %v, want %v", s.within, want)
			}
			s.sets.Pass()
			s.sets.TellChanged(func() map[int32]bool { return map[int32]bool{set: true} })
		}
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) { // until the filter knows its claim
		if in, err := s.sets.config.Filter.Nodes(t.Context(), c.Pod); err != nil || time.Now().After(end) {
			t.Fatalf("its nodes are %v, %v", in, err)
		} else if slices.Equal(in.Allowed, []string{"a"}) {
			break
		}
	}
	_, set, _ := s.sets.Confine(c.Pod)
	until(set, "a")
	another := mine.DeepCopy()
	another.Name, another.UID = "another", "another"
	s.add(t, another)
	next := c.Pod.DeepCopy()
	next.Name, next.UID = "next", "next"
	next.Spec.ResourceClaims[0].ResourceClaimName = &another.Name
	if err := s.client.ResourceV1().ResourceClaims(mine.Namespace).Delete(t.Context(), mine.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until(set)
	s.sets.Sample(set, []*corev1.Pod{next})
	until(set, "a")
}

// site is a fleet with the sets of its nodes, and what the engine was told last.
type site struct {
	sets   *Sets
	client *fake.Clientset
	within []string
	// versions is the last one that was given to an object.
	versions int
}

// add has an object be there.
func (s *site) add(t *testing.T, o runtime.Object) {
	t.Helper()
	object, err := meta.Accessor(o)
	if err != nil {
		t.Fatal(err)
	}
	s.versions++
	object.SetResourceVersion(strconv.Itoa(s.versions))
	if err := s.client.Tracker().Add(o); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, objects []runtime.Object) *site {
	s := &site{client: fake.NewClientset()}
	factory := informers.NewSharedInformerFactory(s.client, 0)
	host, err := filter.New(t.Context(), filter.Options{Client: s.client, Informers: factory,
		OwnsDriver: func(name string) bool { return name == filtertest.Driver }})
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(t.Context().Done())
	if err := host.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	config := &Config{Filter: host, Now: func() unit.Time { return 0 }, Log: slog.New(slog.DiscardHandler)}
	fl := New(config)
	config.Report = func(e engine.Event) {
		s.within = nil
		for name, id := range fl.places.ids {
			if e.Kind == engine.Confined && e.Outside.Within[id>>6]&(1<<(id&63)) != 0 {
				s.within = append(s.within, name)
			}
		}
		slices.Sort(s.within)
	}
	for _, o := range objects {
		switch o := o.(type) {
		case *corev1.Node:
			fl.TakeNode(o, false)
		case *corev1.Pod:
			host.SetPod(o)
		}
	}
	fl.Survey()
	cl, err := fl.ClusterOf(&stored.Rest{})
	if err != nil {
		t.Fatal(err)
	}
	fl.Adopt(cl)
	s.sets = NewSets(config, fl)
	return s
}
