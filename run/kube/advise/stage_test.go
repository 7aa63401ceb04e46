package advise

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run/kube/api"
	"github.com/musterdl/muster/run/kube/apitest"
)

// rival is a scheduler that knows no gangs: it binds pod by pod, oldest first, to the
// first node with enough free devices.
type rival struct {
	t       tester
	client  *apitest.Client
	nodes   map[string]*corev1.Node
	pods    map[types.UID]*corev1.Pod
	patient time.Duration // for which it leaves a partial gang alone before it evicts it; 0 is for ever
	partial map[string]time.Time
	order   func(*corev1.Pod) string // of pods of one age; nil is by name
}

func devicesOf(p *corev1.Pod) int64 {
	q := p.Spec.Containers[0].Resources.Requests[apitest.Device]
	return q.Value()
}

func (r *rival) run(now time.Time) {
	for {
		changes := r.client.Next()
		for i := range changes {
			switch o := changes[i].Object.(type) {
			case *corev1.Node:
				put(r.nodes, o.Name, o, changes[i].Gone)
			case *corev1.Pod:
				put(r.pods, o.UID, o, changes[i].Gone)
			}
		}
		if !r.bind() {
			break
		}
	}
	r.evict(now)
}

// bind binds what fits, and reports whether anything did.
func (r *rival) bind() (any bool) {
	free := map[string]int64{}
	var names []string
	for name, n := range r.nodes {
		q := n.Status.Allocatable[apitest.Device]
		if ready(n) && !n.Spec.Unschedulable {
			free[name] = q.Value()
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var waiting []*corev1.Pod
	for _, p := range r.pods {
		if p.Spec.NodeName != "" && !ended(p) {
			free[p.Spec.NodeName] -= devicesOf(p)
		} else if p.Spec.NodeName == "" && p.DeletionTimestamp == nil && len(p.Spec.SchedulingGates) == 0 {
			waiting = append(waiting, p)
		}
	}
	slices.SortFunc(waiting, func(a, b *corev1.Pod) int {
		if c := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); c != 0 {
			return c
		}
		if r.order != nil {
			return strings.Compare(r.order(a), r.order(b))
		}
		return strings.Compare(a.Name, b.Name)
	})
	for _, p := range waiting {
		for _, name := range names {
			if free[name] < devicesOf(p) {
				continue
			}
			if err := r.client.Bind(r.t.Context(), p, name, nil); err != nil {
				r.t.Fatal(err)
			}
			free[name] -= devicesOf(p)
			any = true
			break
		}
	}
	return any
}

// evict lets go of gangs that were partial for too long, so that nothing is stuck for
// ever.
func (r *rival) evict(now time.Time) {
	if r.patient == 0 {
		return
	}
	bound, waits := map[string][]*corev1.Pod{}, map[string]bool{}
	for _, p := range r.pods {
		name := p.Labels["batch.kubernetes.io/job-name"]
		switch {
		case name == "" || ended(p):
		case p.Spec.NodeName == "":
			waits[name] = true
		case p.DeletionTimestamp == nil:
			bound[name] = append(bound[name], p)
		}
	}
	for name, pods := range bound {
		if !waits[name] {
			delete(r.partial, name)
			continue
		}
		if _, was := r.partial[name]; !was {
			r.partial[name] = now
		}
		if now.Sub(r.partial[name]) < r.patient {
			continue
		}
		delete(r.partial, name)
		for _, p := range pods {
			if err := r.client.Evict(r.t.Context(), p, "partial"); err != nil {
				r.t.Fatal(err)
			}
		}
	}
}

// tester is what testing and rapid have in common.
type tester interface {
	apitest.T
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Context() context.Context
	Output() io.Writer
}

// stage plays a rival in a World, and an Adviser that looks on.
type stage struct {
	t       tester
	w       *apitest.World
	rival   *rival
	eyes    *apitest.Client
	adviser *Adviser
	check   func()
	reused  map[string]bool // names that another object has had
}

const rivalName = "rival"

func newStage(t tester, strategy string, o Options) *stage {
	c, err := catalogue.Resolve(strategy)
	if err != nil {
		t.Fatal(err)
	}
	o.Scheduler, o.Strategy = rivalName, c
	o.Log = slog.New(slog.DiscardHandler)
	if testing.Verbose() {
		o.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	w := apitest.New(apitest.Options{Scheduler: rivalName, T: t})
	s := &stage{t: t, w: w, eyes: w.NewClient("eyes"), adviser: a, check: func() {}, reused: map[string]bool{}}
	s.rival = &rival{t: t, client: w.Client, nodes: map[string]*corev1.Node{}, pods: map[types.UID]*corev1.Pod{}, partial: map[string]time.Time{}}
	return s
}

func (s *stage) now() unit.Time { return unit.Time(s.w.Now().UnixMicro()) }

// look has the rival act and the Adviser see what comes of it.
func (s *stage) look() {
	for {
		s.rival.run(s.w.Now())
		changes := s.eyes.Next()
		s.observe(changes)
		if len(changes) == 0 {
			return
		}
	}
}

func (s *stage) observe(changes []api.Change) {
	a := s.adviser
	if len(changes) > 0 {
		a.ahead = append(a.ahead, a.real.apply(s.now(), changes))
	}
	a.known = s.now()
	for range 1_000_000 {
		more, err := a.once()
		if err != nil {
			s.t.Fatal(err)
		}
		if a.engine != nil {
			if err := a.engine.State().Check(); err != nil {
				s.t.Fatal(err)
			}
			s.check()
		}
		if !more {
			return
		}
	}
	s.t.Fatal("it does not come to rest")
}

// until plays for a while, at every instant at which something is due.
func (s *stage) until(end time.Duration) {
	for s.w.Since() < end {
		s.look()
		step := end - s.w.Since()
		if at, due := s.w.Due(); due {
			step = min(step, max(at.Sub(s.w.Now()), 0))
		}
		if s.rival.patient > 0 {
			step = min(step, 10*time.Second)
		}
		s.w.Advance(step)
	}
	s.look()
}

// podOf finds a pod by the beginning of its name.
func (s *stage) podOf(prefix string) string {
	for _, p := range s.w.Pods() {
		if strings.HasPrefix(p.Name, prefix) {
			return p.Name
		}
	}
	s.t.Fatalf("there is no pod %s...", prefix)
	return ""
}
