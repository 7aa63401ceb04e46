package apitest

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Labels that the Job controller puts on pods.
const (
	labelIndex = "batch.kubernetes.io/job-completion-index" // label and annotation
	labelJob   = "batch.kubernetes.io/job-name"
	labelOf    = "batch.kubernetes.io/controller-uid"
)

// controllers are those of Jobs, JobSets, ReplicaSets and disruption budgets: each looks at its
// object when something about it has changed, and does what it lacks.
type controllers struct {
	options  *Options
	clock    *clock
	store    *store
	kubelets *kubelets
	judge    *judge
	jobs     map[types.UID]*jobState
	sets     map[types.UID]*setState
	marked   map[types.UID]bool
}

// maxBackoff is the longest that a Job waits before it makes a pod again.
const maxBackoff = 10 * time.Minute

// jobState is what the Job controller knows of a Job beside its object.
type jobState struct {
	of        *controllers
	indexed   bool
	done      map[int]bool // completion indexes that succeeded
	succeeded int64        // pods that did
	failures  int64
	streak    int // failures since the last success
	last      time.Time
	ignores   bool // disruptions do not count as failures
	gang      *gangState
	template  *corev1.PodTemplateSpec
	raw       map[string]any // what template was read from
}

// jobOf is what is known of a Job, which may be new.
func (co *controllers) jobOf(u *unstructured.Unstructured) *jobState {
	s := co.jobs[u.GetUID()]
	if s == nil {
		s = &jobState{of: co, indexed: text(u.Object, "spec.completionMode") == "Indexed", done: map[int]bool{}, ignores: ignoresDisruption(u.Object)}
		co.jobs[u.GetUID()] = s
	}
	return s
}

func (co *controllers) forgetJob(uid types.UID) { delete(co.jobs, uid) }

// ignoresDisruption reports whether a Job's failure policy forgives evictions.
func ignoresDisruption(job any) bool {
	return slices.ContainsFunc(list(job, "spec.podFailurePolicy.rules"), func(rule any) bool {
		return text(rule, "action") == "Ignore" && slices.ContainsFunc(list(rule, "onPodConditions"), func(c any) bool {
			return text(c, "type") == string(corev1.DisruptionTarget)
		})
	})
}

// count counts the end of a pod, once. One that is deleted by anybody but its Job
// counts as failed as soon as that is known.
func (s *jobState) count(ps *podState, p *corev1.Pod) {
	failed := p.Status.Phase == corev1.PodFailed || p.DeletionTimestamp != nil && p.Status.Phase != corev1.PodSucceeded
	switch {
	case ps.counted:
	case p.Status.Phase == corev1.PodSucceeded:
		ps.counted = true
		s.succeeded++
		s.streak = 0
		if i, ok := indexOf(p); ok {
			s.done[i] = true
		}
	case failed:
		ps.counted = true
		if s.ignores && disrupted(p) {
			return
		}
		s.failures++
		s.streak++
		s.last = s.of.clock.now
	}
}

func disrupted(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue
	})
}

func indexOf(p *corev1.Pod) (int, bool) {
	i, err := strconv.Atoi(p.Annotations[labelIndex])
	return i, err == nil
}

// finished reports that a Job is over.
func finished(job *unstructured.Unstructured) bool { return hasCondition(job, "Complete", "Failed") }

// left is how many more pods of a Job have to succeed, and how many may run at a time.
func (s *jobState) left(job any) (completions, parallelism int64) {
	parallelism = number(job, "spec.parallelism", 1)
	completions = number(job, "spec.completions", -1)
	switch {
	case completions < 0 && s.succeeded > 0:
		return 0, parallelism
	case completions < 0:
		return parallelism, parallelism
	case s.indexed:
		return completions - int64(s.within(completions)), parallelism
	}
	return max(completions-s.succeeded, 0), parallelism
}

// within counts the indexes below a limit that succeeded.
func (s *jobState) within(limit int64) (n int) {
	for i := range s.done {
		if int64(i) < limit {
			n++
		}
	}
	return n
}

// syncJob is one look of the Job controller.
func (co *controllers) syncJob(job *unstructured.Unstructured) {
	s := co.jobs[job.GetUID()]
	if s == nil || finished(job) {
		return
	}
	pods := co.store.children(job.GetUID())
	running := slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return !active(p) })
	left, parallelism := s.left(job.Object)
	switch {
	case s.failures > number(job.Object, "spec.backoffLimit", 6):
		co.dismiss(running)
		co.endJob(job, s, "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
		return
	case left == 0 && len(running) == 0:
		co.endJob(job, s, "Complete", "CompletionsReached", "Reached expected number of succeeded pods")
		return
	case truth(job.Object, "spec.suspend"):
		co.dismiss(running)
	default:
		co.staff(job, s, running, int(min(left, parallelism)))
	}
	co.reportJob(co.store.byUID[job.GetUID()].(*unstructured.Unstructured), s)
}

// dismiss deletes pods that their owner no longer wants, which is no failure.
func (co *controllers) dismiss(pods []*corev1.Pod) {
	for _, p := range pods {
		co.kubelets.dismiss(p)
	}
}

// staff makes the pods that a Job lacks and deletes those it has too many of.
func (co *controllers) staff(job *unstructured.Unstructured, s *jobState, running []*corev1.Pod, want int) {
	if s.indexed {
		limit := number(job.Object, "spec.completions", 0)
		over := slices.DeleteFunc(slices.Clone(running), func(p *corev1.Pod) bool {
			i, _ := indexOf(p)
			return int64(i) < limit
		})
		co.dismiss(over)
		running = slices.DeleteFunc(running, func(p *corev1.Pod) bool { return slices.Contains(over, p) })
	}
	if surplus := len(running) - want; surplus > 0 {
		if number(job.Object, "spec.completions", -1) >= 0 || s.succeeded == 0 {
			slices.SortStableFunc(running, dispensable)
			co.dismiss(running[:surplus])
		}
		return
	}
	if lacking := want - len(running); lacking > 0 {
		if ready := s.last.Add(s.backoff()); s.streak > 0 && ready.After(co.clock.now) {
			uid := job.GetUID()
			co.clock.after(ready.Sub(co.clock.now), func() { co.mark(uid) })
			return
		}
		co.hire(job, s, running, lacking)
	}
}

// backoff is how long after its last failure a Job waits.
func (s *jobState) backoff() time.Duration {
	d := s.of.options.Timing.Backoff
	for range min(s.streak-1, 20) {
		d *= 2
	}
	return min(d, maxBackoff)
}

// dispensable orders pods by which a Job deletes first: not bound, not running, the
// highest index, the youngest.
func dispensable(a, b *corev1.Pod) int {
	i, _ := indexOf(a)
	j, _ := indexOf(b)
	return cmp.Or(cmp.Compare(stage(a), stage(b)), cmp.Compare(j, i), cmp.Compare(b.UID, a.UID))
}

func stage(p *corev1.Pod) int {
	switch {
	case p.Spec.NodeName == "":
		return 0
	case p.Status.Phase != corev1.PodRunning:
		return 1
	}
	return 2
}

// hire makes pods of a Job, of an indexed one those of the lowest indexes that lack
// one.
func (co *controllers) hire(job *unstructured.Unstructured, s *jobState, running []*corev1.Pod, lacking int) {
	taken := map[int]bool{}
	for _, p := range running {
		if i, ok := indexOf(p); ok {
			taken[i] = true
		}
	}
	for i := 0; lacking > 0; i++ {
		if s.indexed && int64(i) >= number(job.Object, "spec.completions", 0) {
			return
		}
		if s.indexed && (taken[i] || s.done[i]) {
			continue
		}
		p := co.fromTemplate(job, s.pods(job))
		p.Labels = merged(p.Labels, map[string]string{labelJob: job.GetName(), "job-name": job.GetName(), labelOf: string(job.GetUID()), "controller-uid": string(job.GetUID())})
		name := job.GetName()
		if s.indexed {
			index := strconv.Itoa(i)
			name += "-" + index
			p.Labels[labelIndex] = index
			p.Annotations = merged(p.Annotations, map[string]string{labelIndex: index})
		}
		p.Name = co.store.unique(name)
		co.judge.must(co.store.add(p))
		lacking--
	}
}

// pods is the template of a Job's pods, read again when it has changed.
func (s *jobState) pods(job *unstructured.Unstructured) *corev1.PodTemplateSpec {
	raw, _ := fieldAt(job.Object, "spec.template").(map[string]any)
	if s.template == nil || reflect.ValueOf(raw).Pointer() != reflect.ValueOf(s.raw).Pointer() {
		s.template, s.raw = s.of.template(raw), raw
	}
	return s.template
}

// template reads the template of a pod.
func (co *controllers) template(raw any) *corev1.PodTemplateSpec {
	t := &corev1.PodTemplateSpec{}
	m, _ := raw.(map[string]any)
	co.judge.must(runtime.DefaultUnstructuredConverter.FromUnstructured(m, t))
	return t
}

// fromTemplate is a pod that an object makes; its name is to be filled in.
func (co *controllers) fromTemplate(owner object, t *corev1.PodTemplateSpec) *corev1.Pod {
	return admitted(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: owner.GetNamespace(), Labels: t.Labels, Annotations: t.Annotations, OwnerReferences: ownedBy(owner)},
		Spec:       t.Spec})
}

// admitted is a pod with what the API server fills in.
func admitted(p *corev1.Pod) *corev1.Pod {
	if p.Spec.TerminationGracePeriodSeconds == nil {
		grace := int64(30)
		p.Spec.TerminationGracePeriodSeconds = &grace
	}
	orElse(&p.Spec.SchedulerName, corev1.DefaultSchedulerName)
	orElse(&p.Spec.RestartPolicy, corev1.RestartPolicyAlways)
	orElse(&p.Status.Phase, corev1.PodPending)
	return p
}

func merged(maps_ ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, m := range maps_ {
		maps.Copy(all, m)
	}
	return all
}

// mark has the controller of an object look at it soon; many changes are one look.
func (co *controllers) mark(uid types.UID) {
	if co.marked[uid] || co.clock.frozen {
		return
	}
	co.marked[uid] = true
	co.clock.after(co.options.Timing.Controller, func() {
		delete(co.marked, uid)
		co.sync(uid)
	})
}

// sync is one look of a controller at its object.
func (co *controllers) sync(uid types.UID) {
	switch o := co.store.byUID[uid].(type) {
	case *policyv1.PodDisruptionBudget:
		co.syncBudget(o)
	case *unstructured.Unstructured:
		switch idOf(o).kind {
		case kindJob:
			co.syncJob(o)
		case kindJobSet:
			co.syncJobSet(o)
		case kindReplicaSet:
			co.syncReplicaSet(o)
		}
	}
}
