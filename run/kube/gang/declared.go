package gang

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/musterdl/muster/mechanism/control"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// defaultGrace is how long a pod has between the termination signal and its end where
// it does not say.
const defaultGrace = 30 * unit.Second

// declared fills in what the annotations say.
func (r *reader) declared(j *workload.Job) {
	j.Tenant, j.User = r.key.Namespace, r.key.Namespace
	if name, ok := annotated(r, AnnotationQueue, "the namespace is its queue", parseName); ok {
		j.Tenant = name
	} else if name, ok := annotated(r, labelKueueQueue, "the namespace is its queue", parseName); ok {
		j.Tenant = name
	}
	if name, ok := annotated(r, AnnotationUser, "the namespace is its user", parseName); ok {
		j.User = name
	}
	r.elastic(j)
	j.Estimate, _ = annotated(r, AnnotationWork, "its run time is not known", parseSpan)
	j.Deadline, _ = annotated(r, AnnotationDeadline, "it has no deadline", func(s string) (unit.Duration, error) { return parseDeadline(s, j.Submit) })
	j.Models, _ = annotated(r, AnnotationModels, "it runs on any", parseModels)
	j.Skew, _ = annotated(r, AnnotationSkew, "it is taken as 0", parseSkew)
	j.Traffic, _ = annotated(r, AnnotationTraffic, "it is not known", parseTraffic)
	j.Class, _ = annotated(r, AnnotationProfile, "its kind of work is not known", func(s string) (string, error) {
		if !printable(s) {
			return "", fmt.Errorf("one word such as resnet50/64 of at most %d bytes", maxName)
		}
		return s, nil
	})
	j.Law, _ = annotated(r, AnnotationLaw, "it is under none", func(s string) (string, error) {
		if law, ok := control.Find(s); ok && s != "" {
			return law.Name, nil
		}
		names := make([]string, len(control.Laws))
		for i, l := range control.Laws {
			names[i] = l.Name
		}
		return "", fmt.Errorf("one of %q", names)
	})
	if c, ok := annotated(r, AnnotationCheckpoint, "it is taken not to save", parseCheckpoint); ok {
		j.Checkpoint = r.saved(c)
	}
	r.disagree()
}

// saved holds a checkpoint against the time that its pods are given to end.
func (r *reader) saved(c saving) workload.Checkpoint {
	if !c.OnRequest {
		return c.Checkpoint
	}
	grace := unit.Forever
	for i := range r.gang.Roles {
		if t := r.gang.Roles[i].Template; t != nil {
			given := defaultGrace
			if s := t.Spec.TerminationGracePeriodSeconds; s != nil {
				given = unit.Duration(min(max(*s, 0), 365*86400)) * unit.Second
			}
			grace = min(grace, given)
		}
	}
	if c.Save > grace || grace == 0 {
		r.problem(Problem{Reason: ReasonAnnotation, Field: "annotation " + AnnotationCheckpoint, Found: fmt.Sprintf("save=%v on request, with pods killed after %v", c.Save, grace),
			Expected: "a save that fits in terminationGracePeriodSeconds", Do: "raise that of all pods of the gang; it is taken not to save on request"})
		c.OnRequest = false
	} else if !c.timed && grace != unit.Forever {
		c.Save = grace
	}
	return c.Checkpoint
}

// source is a thing that may carry annotations.
type source struct {
	object              string
	labels, annotations map[string]string
}

// sources are where annotations of the gang are looked for: the owners from the top,
// then what its pods are made of in the order of ranks. The namespace is last and
// speaks of queue and user only.
func (r *reader) sources(name string) []source {
	var all []source
	for _, o := range []*unstructured.Unstructured{r.top, r.below} {
		if o != nil {
			all = append(all, source{r.object, o.GetLabels(), o.GetAnnotations()})
		}
	}
	for i := range r.gang.Roles {
		if t := r.gang.Roles[i].Template; t != nil {
			all = append(all, source{r.object, t.Labels, t.Annotations})
		}
	}
	if name == AnnotationQueue || name == AnnotationUser || name == labelKueueQueue {
		ref := metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: r.key.Namespace}
		if o, ok := found(r.owners, ref, ""); ok {
			all = append(all, source{"Namespace " + r.key.Namespace, o.GetLabels(), o.GetAnnotations()})
		}
	}
	return all
}

// annotated reads an annotation, or a label where that may hold it. A value that
// cannot be read is reported, with what is done without it, and does not count.
func annotated[T any](r *reader, name, without string, parse func(string) (T, error)) (T, bool) {
	var none T
	for _, s := range r.sources(name) {
		value, where := "", "annotation "+name
		if name == labelKueueQueue || slices.ContainsFunc(annotations, func(a Annotation) bool { return a.Name == name && a.Label }) {
			value, where = labelled(s.labels, s.annotations, name)
		} else {
			value = s.annotations[name]
		}
		if value == "" {
			continue
		}
		v, err := parse(value)
		if err == nil {
			return v, true
		}
		r.problem(Problem{Reason: ReasonAnnotation, Object: s.object, Field: where, Found: quote(value), Expected: err.Error(), Do: "correct it; until then " + without})
		return none, false
	}
	return none, false
}

// disagree reports pods of one role that say different things; the first by rank
// counts.
func (r *reader) disagree() {
	for _, p := range r.living() {
		role, _, ok := r.gang.Place(p)
		if !ok || r.gang.Roles[role].Template == nil {
			continue
		}
		for _, a := range annotations {
			t := r.gang.Roles[role].Template
			first, value := valueOf(t.Labels, t.Annotations, a.Name), valueOf(p.Labels, p.Annotations, a.Name)
			if value != first && a.Name != AnnotationGangSize {
				_, where := labelled(p.Labels, p.Annotations, a.Name)
				r.problem(Problem{Reason: ReasonContradiction, Object: called(kindPod, p.Namespace, p.Name), Field: where, Found: show(value),
					Expected: quote(first) + " as on the first pod of its gang", Do: "give all pods the same; that of the first counts"})
				return // one is enough to say so
			}
		}
	}
}

// elastic reads the numbers of workers, and which field changes them.
func (r *reader) elastic(j *workload.Job) {
	g := r.gang
	if g.Missing {
		return
	}
	role, text := r.growing()
	if text == "" && (r.most == 0 || role < 0) {
		return
	}
	field := "annotation " + AnnotationElastic
	without := "its size stays as it is"
	if role < 0 {
		r.problem(Problem{Reason: ReasonAnnotation, Field: field, Found: show(text), Expected: "on one role that can grow while it runs: " + growers,
			Do: "move it to the template of that role, or remove it; " + without})
		return
	}
	others := g.Size - g.Roles[role].Count
	asked := g.Roles[role].Count
	if n, ok := annotated(r, AnnotationWorkers, "it is taken to have been submitted as it is", parseCount); ok {
		asked = n
	}
	if text == "" {
		text, field = fmt.Sprintf("%d-%d", r.least, r.most), "spec.elasticPolicy"
	}
	sizes, err := parseSizes(text, asked)
	if err != nil {
		r.problem(Problem{Reason: ReasonAnnotation, Field: field, Found: quote(text), Expected: err.Error(), Do: "correct it; until then " + without})
		return
	}
	j.Gang = asked + others
	for _, n := range sizes {
		j.Sizes = append(j.Sizes, n+others)
	}
	g.Resize = Resize{Targets: g.Roles[role].grow, Others: others}
}

// growers says which owners can be resized.
const growers = "a Job that is indexed with as many completions as parallelism or has more completions, a replicated job of one such replica, " +
	"the workers of a Kubeflow job, or a group of a RayCluster without its own autoscaler and of one host"

// parseCount reads a number of workers.
func parseCount(s string) (int32, error) {
	n, ok := parseIndex(s)
	if !ok || n < 1 || n > maxGang {
		return 0, fmt.Errorf("a number of workers from 1 to %d", maxGang)
	}
	return n, nil
}

// growing finds the role that grows and what is said of it: the one whose template
// says so, or the only one that can where their owner does. The role is -1 where it
// cannot be told.
func (r *reader) growing() (int, string) {
	can, say, text := []int(nil), []int(nil), ""
	for i := range r.gang.Roles {
		role := &r.gang.Roles[i]
		if len(role.grow) > 0 {
			can = append(can, i)
		}
		if s := saysElastic(role); s != "" {
			say, text = append(say, i), s
		}
	}
	if r.top != nil {
		if s := r.top.GetAnnotations()[AnnotationElastic]; s != "" && len(say) == 0 {
			say, text = can, s
		}
	}
	if text == "" && r.most > 0 {
		say = can
	}
	if len(say) != 1 || !slices.Contains(can, say[0]) {
		return -1, text
	}
	return say[0], text
}

// saysElastic is the annotation of a role: on its pods, or on their template.
func saysElastic(role *Role) string {
	if t := role.Template; t != nil && t.Annotations[AnnotationElastic] != "" {
		return t.Annotations[AnnotationElastic]
	}
	if role.said != "" {
		return role.said
	}
	return textAt(role.raw, "metadata", "annotations", AnnotationElastic)
}

// finished reports whether a pod has run to its end.
func finished(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}
