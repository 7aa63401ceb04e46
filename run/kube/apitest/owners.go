package apitest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// endJob says that a Job is over.
func (co *controllers) endJob(job *unstructured.Unstructured, s *jobState, kind, reason, message string) {
	co.reportJob(job, s)
	job = co.store.byUID[job.GetUID()].(*unstructured.Unstructured)
	conditions := co.conditions(list(job.Object, "status.conditions"), kind, "True", reason, message)
	status := maps.Clone(job.Object["status"].(map[string]any))
	status["conditions"] = conditions
	if kind == "Complete" {
		status["completionTime"] = co.clock.stamp().UTC().Format("2006-01-02T15:04:05Z")
	}
	co.setStatus(job, status)
}

// reportJob writes a Job's status where it has changed.
func (co *controllers) reportJob(job *unstructured.Unstructured, s *jobState) {
	old, _ := job.Object["status"].(map[string]any)
	status := map[string]any{}
	maps.Copy(status, old)
	var running, ready, leaving int64
	for _, p := range co.store.children(job.GetUID()) {
		switch {
		case active(p):
			running++
			if p.Status.Phase == corev1.PodRunning {
				ready++
			}
		case !ended(p):
			leaving++
		}
	}
	succeeded := s.succeeded
	if s.indexed {
		succeeded = int64(s.within(number(job.Object, "spec.completions", 0)))
	}
	status["active"], status["ready"], status["terminating"] = running, ready, leaving
	status["succeeded"], status["failed"] = succeeded, s.failures
	conditions, _ := old["conditions"].([]any)
	switch {
	case truth(job.Object, "spec.suspend"):
		conditions = co.conditions(conditions, "Suspended", "True", "JobSuspended", "Job suspended")
		delete(status, "startTime")
	case hasCondition(job, "Suspended"):
		conditions = co.conditions(conditions, "Suspended", "False", "JobResumed", "Job resumed")
		fallthrough
	default:
		if status["startTime"] == nil {
			status["startTime"] = co.clock.stamp().UTC().Format("2006-01-02T15:04:05Z")
		}
	}
	if len(conditions) > 0 {
		status["conditions"] = conditions
	}
	if !same(old, status) {
		co.setStatus(job, status)
	}
}

// same compares two statuses; lists that changed are other lists.
func same(a, b map[string]any) bool {
	return maps.EqualFunc(a, b, func(x, y any) bool {
		l, isList := x.([]any)
		m, isAlso := y.([]any)
		if isList && isAlso {
			return len(l) == len(m) && (len(l) == 0 || &l[0] == &m[0])
		}
		return !isList && !isAlso && x == y
	})
}

func (co *controllers) setStatus(o *unstructured.Unstructured, status map[string]any) {
	c, err := edited(o, "status", status)
	co.judge.must(err)
	co.store.put(c)
}

// Labels that the JobSet controller puts on Jobs and pods.
const (
	labelSet      = "jobset.sigs.k8s.io/jobset-name"
	labelPart     = "jobset.sigs.k8s.io/replicatedjob-name"
	labelReplicas = "jobset.sigs.k8s.io/replicatedjob-replicas"
	labelNumber   = "jobset.sigs.k8s.io/job-index"
	labelAttempt  = "jobset.sigs.k8s.io/restart-attempt"
)

// setState is what the JobSet controller knows of a JobSet beside its object.
type setState struct {
	restarts int64
}

func (co *controllers) setChanged(u *unstructured.Unstructured, gone bool) {
	if gone {
		delete(co.sets, u.GetUID())
		return
	}
	if co.sets[u.GetUID()] == nil {
		co.sets[u.GetUID()] = &setState{}
	}
}

// syncJobSet is one look of the JobSet controller.
func (co *controllers) syncJobSet(set *unstructured.Unstructured) {
	s := co.sets[set.GetUID()]
	if s == nil || hasCondition(set, "Completed", "Failed") {
		return
	}
	jobs := map[string]*unstructured.Unstructured{}
	failed := false
	for _, uid := range slices.Clone(co.store.below[set.GetUID()]) {
		job, ok := co.store.byUID[uid].(*unstructured.Unstructured)
		if !ok || idOf(job).kind != kindJob {
			continue
		}
		if job.GetLabels()[labelAttempt] != strconv.FormatInt(s.restarts, 10) {
			co.store.drop(job) // of an earlier attempt
			continue
		}
		failed = failed || hasCondition(job, "Failed")
		jobs[job.GetName()] = job
	}
	switch {
	case failed && s.restarts < number(set.Object, "spec.failurePolicy.maxRestarts", 0):
		s.restarts++
		co.mark(set.GetUID())
		return
	case failed:
		co.endJobSet(set, "Failed", "FailedJobs", "jobset failed due to one or more job failures")
		return
	}
	left := 0
	ready := map[string]bool{} // parts on whose completion others wait
	for i, part := range list(set.Object, "spec.replicatedJobs") {
		done := co.syncPart(set, s, jobs, i, part, ready)
		ready[text(part, "name")+" Complete"] = done
		if !done {
			left++
		}
	}
	if left == 0 {
		co.endJobSet(set, "Completed", "AllJobsCompleted", "jobset completed successfully")
	}
}

// syncPart makes and changes the Jobs of one replicated job, and reports whether they
// have all completed.
func (co *controllers) syncPart(set *unstructured.Unstructured, s *setState, jobs map[string]*unstructured.Unstructured, i int, part any, ready map[string]bool) bool {
	for _, d := range list(part, "dependsOn") {
		if !ready[text(d, "name")+" "+text(d, "status")] {
			return false
		}
	}
	name, replicas, done, up := text(part, "name"), number(part, "replicas", 1), int64(0), int64(0)
	suspended := truth(set.Object, "spec.suspend")
	for n := range replicas {
		jobName := fmt.Sprintf("%s-%s-%d", set.GetName(), name, n)
		job := jobs[jobName]
		if job == nil {
			co.makePart(set, s, part, jobName, n)
			continue
		}
		if hasCondition(job, "Complete") {
			done++
			continue
		}
		if pods := number(job.Object, "status.ready", 0) + number(job.Object, "status.succeeded", 0); pods >= number(job.Object, "spec.parallelism", 1) {
			up++
		}
		c := job
		if truth(c.Object, "spec.suspend") != suspended {
			c = co.edit(c, "spec.suspend", suspended)
		}
		if co.options.ElasticJobSets {
			for _, field := range []string{"parallelism", "completions"} {
				want := fieldAt(part, "template.spec."+field)
				if want != nil && fieldAt(c.Object, "spec."+field) != want {
					c = co.edit(c, "spec."+field, want)
				}
			}
		}
		if c != job {
			co.store.put(c)
		}
	}
	ready[name+" Ready"] = done+up == replicas
	return done == replicas
}

// edit is edited for fields that are there for sure.
func (co *controllers) edit(o *unstructured.Unstructured, path string, value any) *unstructured.Unstructured {
	c, err := edited(o, path, value)
	co.judge.must(err)
	return c
}

// makePart makes a Job of a JobSet.
func (co *controllers) makePart(set *unstructured.Unstructured, s *setState, part any, name string, n int64) {
	labels := map[string]any{labelSet: set.GetName(), labelPart: text(part, "name"), labelReplicas: strconv.FormatInt(number(part, "replicas", 1), 10),
		labelNumber: strconv.FormatInt(n, 10), labelAttempt: strconv.FormatInt(s.restarts, 10)}
	spec, _ := fieldAt(part, "template.spec").(map[string]any)
	o := any(map[string]any{"apiVersion": "batch/v1", "kind": "Job", "spec": spec,
		"metadata": map[string]any{"name": name, "namespace": set.GetNamespace()}})
	for path, value := range map[string]any{
		"metadata.labels":               join(fieldAt(part, "template.metadata.labels"), labels),
		"metadata.annotations":          join(fieldAt(part, "template.metadata.annotations"), nil),
		"spec.suspend":                  truth(set.Object, "spec.suspend"),
		"spec.template.metadata.labels": join(fieldAt(spec, "template.metadata.labels"), labels)} {
		var err error
		o, err = with(o, value, split(path)...)
		co.judge.must(err)
	}
	job := &unstructured.Unstructured{Object: o.(map[string]any)}
	job.SetOwnerReferences(ownedBy(set))
	co.judge.must(co.store.add(defaulted(job))) // its spec is a copy: a field was set
}

// join puts two sets of labels together.
func join(a any, b map[string]any) map[string]any {
	all := map[string]any{}
	m, _ := a.(map[string]any)
	maps.Copy(all, m)
	maps.Copy(all, b)
	return all
}

// endJobSet says that a JobSet is over.
func (co *controllers) endJobSet(set *unstructured.Unstructured, kind, reason, message string) {
	status := map[string]any{}
	old, _ := set.Object["status"].(map[string]any)
	maps.Copy(status, old)
	status["conditions"] = co.conditions(list(old, "conditions"), kind, "True", reason, message)
	co.setStatus(set, status)
	if kind != "Failed" {
		return
	}
	for _, uid := range slices.Clone(co.store.below[set.GetUID()]) {
		if job, ok := co.store.byUID[uid].(*unstructured.Unstructured); ok && !finished(job) {
			co.store.drop(job)
		}
	}
}

// syncReplicaSet is one look of the ReplicaSet controller.
func (co *controllers) syncReplicaSet(set *unstructured.Unstructured) {
	pods := slices.DeleteFunc(co.store.children(set.GetUID()), func(p *corev1.Pod) bool { return !active(p) })
	want := int(number(set.Object, "spec.replicas", 1))
	if len(pods) > want {
		slices.SortStableFunc(pods, dispensable)
		co.dismiss(pods[:len(pods)-want])
	}
	for range want - len(pods) {
		p := co.fromTemplate(set, co.template(fieldAt(set.Object, "spec.template")))
		p.Name = co.store.unique(set.GetName())
		co.judge.must(co.store.add(p))
	}
}

// defaulted fills in what the API server does for a Job that nobody was told of yet.
func defaulted(job *unstructured.Unstructured) *unstructured.Unstructured {
	spec, ok := job.Object["spec"].(map[string]any)
	if !ok {
		return job
	}
	if spec["parallelism"] == nil && spec["completions"] == nil {
		spec["completions"] = int64(1)
	}
	for name, value := range map[string]any{"parallelism": int64(1), "backoffLimit": int64(6), "completionMode": "NonIndexed"} {
		if spec[name] == nil {
			spec[name] = value
		}
	}
	return job
}

// collectRecords deletes the records of an object that is gone.
func (rs *records) collectRecords(owner types.UID) {
	for name, r := range rs.jobs {
		for _, ref := range r.value.OwnerReferences {
			if ref.UID == owner {
				rs.dropRecord(name)
			}
		}
	}
}
