package gang

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// defaultBackoff is how often a Job tries again where it does not say.
const defaultBackoff = 6

// readJob reads a batch/v1 Job.
func (r *reader) readJob() {
	g, o := r.gang, r.top.Object
	if ref, has := controller(r.top.GetOwnerReferences()); has && ref.Kind == kindRayJob {
		g.Stop, g.remade = Evict, true // the submitter's Job: its owner sets suspend as it likes
	} else {
		r.suspends("spec", "suspend")
	}
	spec := at(o, "spec")
	role := r.jobRole("pods", spec, "spec", 1)
	if n, set, ok := wholeAt(o, "status", "succeeded"); set && ok && n > 0 {
		role.done = int32(min(n, maxGang))
	}
	fields := elasticFields(spec, "spec")
	if fields != nil {
		role.grow = []Target{{reference(r.top), fields}}
	}
	g.Roles = []Role{role}
	g.place = func(p *corev1.Pod) (int, int32, bool) { return 0, completionIndex(p), true }
	r.retried(spec, defaultBackoff, "backoffLimit")
	r.seconds(spec, "spec.activeDeadlineSeconds", "activeDeadlineSeconds")
	r.ends(r.top, "Complete", "Failed")
}

// jobRole reads the pods of a Job or of the replicas of one.
func (r *reader) jobRole(name string, spec any, field string, replicas int32) Role {
	par := int64(r.count(spec, perObject, field+".parallelism", "parallelism"))
	role := Role{Name: name, raw: at(spec, "template"), Count: scaled(par, replicas)}
	total, set, ok := wholeAt(spec, "completions")
	switch {
	case !set && textAt(spec, "completionMode") == "Indexed":
		role.completions = role.Count // the API server does not let this happen
	case !set && par > 1:
		role.completions = once
	case !set:
	case !ok || total < 0:
		r.problem(Problem{Reason: ReasonSize, Field: field + ".completions", Found: show(at(spec, "completions")), Expected: "a number from 0",
			Do: "correct it: until then the gang waits", Holds: true})
	default:
		role.Count = scaled(min(par, total), replicas)
		role.completions = scaled(min(total, maxGang), replicas)
	}
	return role
}

// scaled multiplies within what fits; sums above the limit are reported once all
// roles are read.
func scaled(n int64, by int32) int32 { return int32(min(n*int64(by), maxGang+1)) }

// elasticFields are the fields of a Job's spec that change its number of pods while it
// runs: an indexed Job needs as many completions as parallelism; one with more
// completions than pods, or with none, changes its parallelism only.
func elasticFields(spec any, path string) []string {
	par, _, _ := wholeAt(spec, "parallelism")
	total, set, _ := wholeAt(spec, "completions")
	indexed := textAt(spec, "completionMode") == "Indexed"
	switch {
	case indexed && set && total == par:
		return []string{path + ".parallelism", path + ".completions"}
	case !indexed && (!set || total > par):
		return []string{path + ".parallelism"}
	}
	return nil // fewer pods would never complete it, or more are never made
}

// completionIndex is the index of a pod of an indexed Job.
func completionIndex(p *corev1.Pod) int32 {
	if n, ok := indexIn(p.Labels, labelCompletionIndex); ok {
		return n
	}
	if n, ok := indexIn(p.Annotations, labelCompletionIndex); ok {
		return n
	}
	return noIndex
}

// stages sorts the replicated jobs of a JobSet into those that run at a time, counted
// back from the last, which is 0: one that depends on another's completion comes
// after it. late are those made only when others are ready.
func stages(jobset *unstructured.Unstructured) (stage map[string]int32, late map[string]bool) {
	stage, late = map[string]int32{}, map[string]bool{}
	jobs := listAt(content(jobset), "spec", "replicatedJobs")
	inOrder := textAt(content(jobset), "spec", "startupPolicy", "startupPolicyOrder") == "InOrder"
	last := int32(0)
	for i, j := range jobs { // a job depends on earlier ones only
		name := textAt(j, "name")
		late[name] = inOrder && i > 0
		for _, d := range listAt(j, "dependsOn") {
			after := stage[textAt(d, "name")]
			if textAt(d, "status") == "Complete" {
				after++
			} else {
				late[name] = true
			}
			stage[name] = max(stage[name], after)
		}
		last = max(last, stage[name])
	}
	for _, j := range jobs {
		name := textAt(j, "name")
		stage[name] = last - stage[name]
	}
	return stage, late
}

// stageOf is the stage of a replicated job.
func stageOf(jobset *unstructured.Unstructured, replicatedJob string) int32 {
	stage, _ := stages(jobset)
	return stage[replicatedJob]
}

// readTrainJob reads a job of Kubeflow Trainer, whose pods are those of the JobSet of
// its name.
func (r *reader) readTrainJob() {
	r.suspends("spec", "suspend")
	r.ends(r.top, "Complete", "Failed")
	ending := r.gang.Ending
	r.seconds(r.top.Object, "spec.activeDeadlineSeconds", "spec", "activeDeadlineSeconds")
	if r.below = r.child(kindJobSet, r.top.GetName()); r.below == nil {
		if ending.Phase == Unknown {
			r.problem(Problem{Reason: ReasonSize, Found: "no JobSet of its name", Expected: "the JobSet that Kubeflow Trainer makes of it",
				Do: "see that the trainer's controller runs: until then the gang waits", Holds: true})
		}
		return
	}
	r.readJobSet(r.below)
	for i := range r.gang.Roles {
		r.gang.Roles[i].grow = nil // the trainer's spec is immutable, and it would undo a change below it
	}
	r.gang.Ending = ending
}

// readJobSet reads the replicated jobs of the gang's stage.
func (r *reader) readJobSet(js *unstructured.Unstructured) {
	stage, late := stages(js)
	succeeded := map[string]int64{}
	for _, s := range listAt(js.Object, "status", "replicatedJobsStatus") {
		succeeded[textAt(s, "name")], _, _ = wholeAt(s, "succeeded")
	}
	type position struct{ role, width int32 }
	where := map[string]position{}
	for i, j := range listAt(js.Object, "spec", "replicatedJobs") {
		name := textAt(j, "name")
		if stage[name] != r.key.Group {
			continue
		}
		path := fmt.Sprintf("spec.replicatedJobs[%d]", i)
		replicas := r.count(j, perObject, path+".replicas", "replicas")
		spec := at(j, "template", "spec")
		if child := r.elasticChild(js, name, j, replicas); child != nil {
			spec = at(child.Object, "spec")
		}
		role := r.jobRole(name, spec, path+".template.spec", replicas)
		role.Late, role.said = late[name], textAt(j, "template", "metadata", "annotations", AnnotationElastic)
		role.raw = at(j, "template", "spec", "template")
		width := max(role.Count, role.completions) / max(replicas, 1)
		role.done = scaled(max(min(succeeded[name], maxGang), 0), width)
		if fields := elasticFields(spec, path+".template.spec"); fields != nil && replicas == 1 {
			child := corev1.ObjectReference{APIVersion: "batch/v1", Kind: kindJob, Namespace: js.GetNamespace(), Name: childJob(js, name)}
			role.grow = []Target{{reference(js), fields}, {child, elasticFields(spec, "spec")}}
		}
		where[name] = position{int32(len(r.gang.Roles)), width}
		r.gang.Roles = append(r.gang.Roles, role)
		r.seconds(spec, path+".template.spec.activeDeadlineSeconds", "activeDeadlineSeconds")
	}
	r.gang.place = func(p *corev1.Pod) (int, int32, bool) {
		at, ok := where[p.Labels[labelReplicatedJob]]
		index := completionIndex(p)
		if job, has := indexIn(p.Labels, labelJobIndex); has && index >= 0 {
			index += scaled(int64(job), at.width)
		}
		return int(at.role), index, ok
	}
	r.retried(js.Object, 0, "spec", "failurePolicy", "maxRestarts")
	r.ends(js, "Completed", "Failed")
}

// childJob is the name of the first Job of a replicated job.
func childJob(js *unstructured.Unstructured, replicatedJob string) string {
	return js.GetName() + "-" + replicatedJob + "-0"
}

// elasticChild returns the one Job of an elastic replicated job: JobSets before elastic
// ones are immutable, so their Job is resized and knows the size.
func (r *reader) elasticChild(js *unstructured.Unstructured, name string, j any, replicas int32) *unstructured.Unstructured {
	if replicas != 1 || js.GetAnnotations()[AnnotationElastic] == "" && elasticIn(at(j, "template")) == "" {
		return nil
	}
	child := r.child(kindJob, childJob(js, name))
	if child == nil {
		return nil
	}
	if ref, has := controller(child.GetOwnerReferences()); !has || ref.UID != js.GetUID() || child.GetDeletionTimestamp() != nil {
		return nil
	}
	return child
}

// elasticIn is the annotation of a Job's template or of that of its pods.
func elasticIn(jobTemplate any) string {
	if s := textAt(jobTemplate, "metadata", "annotations", AnnotationElastic); s != "" {
		return s
	}
	return textAt(jobTemplate, "spec", "template", "metadata", "annotations", AnnotationElastic)
}

// replicaOrder is the order of ranks of Kubeflow's replica types; others follow by
// name.
var replicaOrder = []string{"launcher", "master", "chief", "ps", "worker", "evaluator"}

// readKubeflow reads the jobs of the Kubeflow training operator and MPI operator.
func (r *reader) readKubeflow(k Kind) {
	g, o := r.gang, r.top.Object
	r.suspends("spec", "runPolicy", "suspend")
	specs, _ := at(o, "spec", k.spec).(map[string]any)
	types := slices.SortedFunc(maps.Keys(specs), func(a, b string) int {
		rank := func(s string) int {
			if i := slices.Index(replicaOrder, strings.ToLower(s)); i >= 0 {
				return i
			}
			return len(replicaOrder)
		}
		if c := rank(a) - rank(b); c != 0 {
			return c
		}
		return strings.Compare(a, b)
	})
	waits := boolAt(o, "spec", "waitForWorkers") || textAt(o, "spec", "launcherCreationPolicy") == "WaitForWorkersReady"
	roles := map[string]int{}
	for _, t := range types {
		name, path := strings.ToLower(t), "spec."+k.spec+"."+t
		role := Role{Name: name, Count: r.count(specs[t], perObject, path+".replicas", "replicas"), raw: at(specs[t], "template"), Late: waits && name == "launcher"}
		if name == "worker" {
			role.grow = []Target{{reference(r.top), []string{path + ".replicas"}}}
		}
		roles[name] = len(g.Roles)
		g.Roles = append(g.Roles, role)
	}
	g.place = func(p *corev1.Pod) (int, int32, bool) {
		name := strings.ToLower(p.Labels[labelReplicaType])
		if name == "" {
			name = strings.ToLower(p.Labels[labelJobRole])
		}
		role, ok := roles[name]
		index, indexed := indexIn(p.Labels, labelReplicaIndex)
		if !indexed {
			index = noIndex
		}
		return role, index, ok
	}
	least, hasLeast, _ := wholeAt(o, "spec", "elasticPolicy", "minReplicas")
	most, hasMost, _ := wholeAt(o, "spec", "elasticPolicy", "maxReplicas")
	if hasLeast && hasMost {
		r.least, r.most = least, most
	}
	r.retried(o, 0, "spec", "runPolicy", "backoffLimit")
	r.seconds(o, "spec.runPolicy.activeDeadlineSeconds", "spec", "runPolicy", "activeDeadlineSeconds")
	r.ends(r.top, "Succeeded", "Failed")
}

// readLeaderWorkerSet reads one group of a LeaderWorkerSet: the leader and its
// workers. It serves until it is deleted.
func (r *reader) readLeaderWorkerSet() {
	g, o := r.gang, r.top.Object
	g.Stop, g.remade, r.retries = Evict, true, maxRetries
	if n, set, ok := wholeAt(o, "spec", "replicas"); len(r.pods) == 0 && ok && set && int64(r.key.Group) >= n {
		g.Missing = true // scaled down
	}
	template := at(o, "spec", "leaderWorkerTemplate")
	size := r.count(template, bounds{1, maxGang, 1}, "spec.leaderWorkerTemplate.size", "size")
	leader := at(template, "leaderTemplate")
	if leader == nil {
		leader = at(template, "workerTemplate")
	}
	// Workers are made only for a leader that is ready, or, where a group has a
	// topology domain to itself, for one that has a node.
	late := textAt(o, "spec", "startupPolicy") == "LeaderReady" || r.top.GetAnnotations()[annotationLWSTopology] != ""
	g.Roles = []Role{{Name: "leader", Count: min(size, 1), raw: leader, completions: endless}}
	if size > 1 {
		g.Roles = append(g.Roles, Role{Name: "workers", Count: size - 1, raw: at(template, "workerTemplate"), Late: late, completions: endless})
	}
	g.place = func(p *corev1.Pod) (int, int32, bool) {
		index, ok := indexIn(p.Labels, labelLWSWorker)
		if index == 0 {
			return 0, 0, ok
		}
		return 1, index - 1, ok
	}
}
