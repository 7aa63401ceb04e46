package gang

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Labels and annotations of others.
const (
	labelCompletionIndex  = "batch.kubernetes.io/job-completion-index" // label and annotation
	labelPodIndex         = "apps.kubernetes.io/pod-index"
	labelReplicatedJob    = "jobset.sigs.k8s.io/replicatedjob-name"
	labelJobIndex         = "jobset.sigs.k8s.io/job-index"
	labelLWS              = "leaderworkerset.sigs.k8s.io/name"
	labelLWSGroup         = "leaderworkerset.sigs.k8s.io/group-index"
	labelLWSWorker        = "leaderworkerset.sigs.k8s.io/worker-index"
	annotationLWSTopology = "leaderworkerset.sigs.k8s.io/exclusive-topology"
	labelReplicaType      = "training.kubeflow.org/replica-type"
	labelReplicaIndex     = "training.kubeflow.org/replica-index"
	labelJobRole          = "training.kubeflow.org/job-role"
	labelRayType          = "ray.io/node-type"
	labelRayGroup         = "ray.io/group"
	labelKueueQueue       = "kueue.x-k8s.io/queue-name"
	labelKueueIndex       = "kueue.x-k8s.io/pod-group-pod-index"
)

// grouping is the group that a pod says it is in.
type grouping struct {
	kind, name string
	field      string // that says so
	size       string // the label of its size, where no object has it
}

// groupLabels are where groups are named, in the order in which they are looked for:
// the label or annotation, and the one that holds the size where no object does.
var groupLabels = []struct{ kind, name, size string }{
	{kindPlugins, "scheduling.x-k8s.io/pod-group", ""},
	{kindPluginsOld, "pod-group.scheduling.sigs.k8s.io", ""},
	{kindLightweight, "pod-group.scheduling.sigs.k8s.io/name", "pod-group.scheduling.sigs.k8s.io/min-available"},
	{kindVolcano, "scheduling.volcano.sh/group-name", ""},
	{kindVolcano, "scheduling.k8s.io/group-name", ""},
	{kindKoordinator, "gang.scheduling.koordinator.sh/name", "gang.scheduling.koordinator.sh/min-available"},
	{kindKueue, "kueue.x-k8s.io/pod-group-name", "kueue.x-k8s.io/pod-group-total-count"},
	{kindYuniKorn, "yunikorn.apache.org/app-id", yunikornGroups},
	{kindYuniKorn, "applicationId", yunikornGroups},
	{kindGang, AnnotationGang, AnnotationGangSize},
}

const (
	yunikornGroups = "yunikorn.apache.org/task-groups"
	yunikornGroup  = "yunikorn.apache.org/task-group-name"
)

// groupSize is where an object of a group says how many pods must be there.
var groupSize = map[string][]string{
	kindPodGroup:   {"spec", "schedulingPolicy", "gang", "minCount"},
	kindPlugins:    {"spec", "minMember"},
	kindPluginsOld: {"spec", "minMember"},
	kindVolcano:    {"spec", "minMember"},
}

// exact are groups whose size is that of all their pods, not the least.
var exact = []string{kindKueue, kindGang}

// groupOf returns the group a pod says it is in.
func groupOf(pod *corev1.Pod) (grouping, bool) {
	if s := pod.Spec.SchedulingGroup; s != nil && s.PodGroupName != nil && *s.PodGroupName != "" {
		return grouping{kindPodGroup, *s.PodGroupName, "spec.schedulingGroup.podGroupName", ""}, true
	}
	for _, l := range groupLabels {
		name := valueOf(pod.Labels, pod.Annotations, l.name)
		if name == "" || l.kind == kindYuniKorn && pod.Annotations[yunikornGroup] == "" {
			continue // an application of YuniKorn without task groups is no gang
		}
		_, where := labelled(pod.Labels, pod.Annotations, l.name)
		return grouping{l.kind, name, where, l.size}, true
	}
	return grouping{}, false
}

// labelled returns the value of a label, or else of an annotation, and which it was.
func labelled(labels, annotations map[string]string, name string) (value, where string) {
	if v, ok := labels[name]; ok {
		return v, "label " + name
	}
	if v, ok := annotations[name]; ok {
		return v, "annotation " + name
	}
	return "", "label " + name
}

// valueOf returns the value of a label, or else of an annotation.
func valueOf(labels, annotations map[string]string, name string) string {
	if v, ok := labels[name]; ok {
		return v
	}
	return annotations[name]
}

// readGroup reads a gang that its pods' labels make.
func (r *reader) readGroup() {
	g := r.gang
	g.Stop, g.remade, r.retries = Evict, true, maxRetries
	for _, p := range r.pods {
		if !controlled(p) {
			g.Stop, g.remade, r.retries = EvictForGood, false, 0
		}
	}
	if path := groupSize[r.key.Kind]; path != nil {
		g.Size = r.count(content(r.top), perGroup, strings.Join(path, "."), path...)
		r.priority(content(r.top))
	} else {
		g.Size = r.labelledSize()
	}
	g.Roles = alike(r.pods, g.Size)
	shapes := map[string]int{}
	for i, role := range g.Roles {
		shapes[demand(&role.Template.Spec)] = i
	}
	g.place = func(p *corev1.Pod) (int, int32, bool) {
		role, ok := shapes[demand(&p.Spec)]
		index, indexed := indexIn(p.Labels, labelKueueIndex)
		if !indexed || len(g.Roles) > 1 {
			index = noIndex
		}
		return role, index, ok
	}
	live := 0
	for _, p := range r.pods {
		if p.DeletionTimestamp == nil && !finished(p) {
			live++
		}
		r.endsWith(p)
	}
	if slices.Contains(exact, r.key.Kind) && g.Size > 0 && live > int(g.Size) {
		r.problem(Problem{Reason: ReasonContradiction, Field: "the size of the group", Found: fmt.Sprintf("%d pods for a size of %d", live, g.Size),
			Expected: "as many pods as the size says", Do: "correct the size on all pods, or delete those too many: until then the gang waits", Holds: true})
	}
}

// endsWith ends a group of which a member's Job has failed for good.
func (r *reader) endsWith(p *corev1.Pod) {
	ref, has := controller(p.OwnerReferences)
	if k, _ := kindOf(ref); !has || k.Name != kindJob || p.Status.Phase != corev1.PodFailed {
		return
	}
	if o, ok := found(r.owners, ref, p.Namespace); ok {
		r.ends(o, "", "Failed")
	}
}

// labelledSize reads the size that the pods of a group agree upon. Only pods that
// are live have a say, so that a wrong one is mended by deleting it.
func (r *reader) labelledSize() int32 {
	i := slices.IndexFunc(groupLabels, func(l struct{ kind, name, size string }) bool { return l.kind == r.key.Kind })
	if i < 0 || len(r.pods) == 0 {
		return 0
	}
	label := groupLabels[i].size
	size, said := int32(0), ""
	for _, p := range r.living() {
		value, where := labelled(p.Labels, p.Annotations, label)
		n, ok := parseIndex(value)
		if label == yunikornGroups {
			n, ok = taskGroups(value)
		}
		if !ok || n < 1 || n > maxGang {
			r.problem(Problem{Reason: ReasonSize, Object: called(kindPod, p.Namespace, p.Name), Field: where, Found: show(value),
				Expected: fmt.Sprintf("the number of pods of the gang, 1 to %d", maxGang), Do: "set it on every pod of the gang: until then the gang waits", Holds: true})
			return 0
		}
		if size != 0 && n != size {
			r.problem(Problem{Reason: ReasonContradiction, Object: called(kindPod, p.Namespace, p.Name), Field: where, Found: strconv.Itoa(int(n)),
				Expected: fmt.Sprintf("%d as on pod %s", size, said), Do: "give all pods of the gang the same size: until then the gang waits", Holds: true})
			return 0
		}
		if size == 0 {
			size, said = n, p.Name
		}
	}
	return size
}

// living are the pods that are neither finished nor on their way out; all where none
// is left.
func (r *reader) living() []*corev1.Pod {
	var live []*corev1.Pod
	for _, p := range r.pods {
		if p.DeletionTimestamp == nil && !finished(p) {
			live = append(live, p)
		}
	}
	if len(live) == 0 {
		return r.pods
	}
	return live
}

// taskGroups adds up the members of YuniKorn's task groups.
func taskGroups(text string) (int32, bool) {
	var groups []struct {
		MinMember int64 `json:"minMember"`
	}
	if json.Unmarshal([]byte(text), &groups) != nil {
		return 0, false
	}
	sum := int64(0)
	for _, g := range groups {
		if g.MinMember < 0 || g.MinMember > maxGang || sum > maxGang {
			return 0, false
		}
		sum += g.MinMember
	}
	return int32(min(sum, maxGang+1)), true
}

// demand is what decides where a pod may run, as text: pods of the same demand are
// made from one template as far as a scheduler is concerned.
func demand(spec *corev1.PodSpec) string {
	type ask struct {
		Resources corev1.ResourceRequirements
		Restart   *corev1.ContainerRestartPolicy `json:",omitempty"`
	}
	var d struct {
		Containers, Init []ask
		Selector         map[string]string
		Affinity         *corev1.Affinity
		Tolerations      []corev1.Toleration
		Claims           []corev1.PodResourceClaim
		Overhead         corev1.ResourceList
	}
	for i := range spec.Containers {
		d.Containers = append(d.Containers, ask{Resources: spec.Containers[i].Resources})
	}
	for i := range spec.InitContainers {
		d.Init = append(d.Init, ask{spec.InitContainers[i].Resources, spec.InitContainers[i].RestartPolicy})
	}
	d.Selector, d.Affinity, d.Tolerations, d.Overhead = spec.NodeSelector, spec.Affinity, spec.Tolerations, spec.Overhead
	for _, c := range spec.ResourceClaims {
		if c.ResourceClaimName != nil && c.ResourceClaimTemplateName == nil {
			c.ResourceClaimName = nil // a claim of the pod's own, like those of the others
		}
		d.Claims = append(d.Claims, c)
	}
	text, err := json.Marshal(d)
	if err != nil {
		return "" // quantities that cannot be written are all alike
	}
	return string(text)
}

// alike sorts the pods of a group into roles by demand, the first pod's first. Pods
// that are not there yet are taken to be of the largest role.
func alike(pods []*corev1.Pod, size int32) []Role {
	var roles []Role
	index := map[string]int{}
	for _, p := range pods {
		d := demand(&p.Spec)
		i, ok := index[d]
		if !ok {
			i = len(roles)
			index[d] = i
			roles = append(roles, Role{Name: "group-" + strconv.Itoa(i), Template: templateOf(p)})
		}
		if p.DeletionTimestamp == nil && !finished(p) || p.Status.Phase == corev1.PodSucceeded {
			roles[i].Count++
		}
	}
	if len(roles) == 0 {
		return nil
	}
	largest, sum := 0, int32(0)
	for i := range roles {
		sum += roles[i].Count
		if roles[i].Count > roles[largest].Count {
			largest = i
		}
	}
	roles[largest].Count += max(size-sum, 0)
	for over, i := max(sum-size, 0), len(roles)-1; over > 0 && i >= 0; i-- {
		less := min(over, roles[i].Count)
		roles[i].Count -= less
		over -= less
	}
	for i := range roles {
		roles[i].completions = roles[i].Count
	}
	return roles
}
