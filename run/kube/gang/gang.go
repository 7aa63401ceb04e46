// Package gang finds which gang a pod of the scheduler muster belongs to, and what
// that gang asks for, so that nobody has to learn a new kind of job: a gang is a Job,
// a JobSet, a TrainJob, a Kubeflow job, one group of a LeaderWorkerSet, a RayCluster
// or RayJob, a pod group of Kubernetes 1.36 or of the ecosystem, or a pod by itself.
//
// It is pure: objects in, jobs out. It holds no client, reads no clock and starts
// nothing; owners are looked up through the caller. Find goes from a pod up to the
// key of its gang, Read from a key down to the gang, Gang.State says how far its pods
// are. What an object says wrongly is a Problem in words, never an error or a panic:
// an annotation that is garbage is left out, a gang whose size cannot be known is
// held.
//
// Who decides:
//   - The highest owner of a kind in Kinds decides (Pod, Job, JobSet, TrainJob).
//     Owners of other kinds above it (CronJob, Workflow, RayService) are not asked.
//   - Labels of pod groups decide where there is no such owner, and where the owner
//     is a rigid Job of one pod that belongs to a larger group. Elsewhere owners win:
//     they can be suspended, a label cannot.
//   - Pods of ReplicaSets, StatefulSets and DaemonSets are jobs of one worker each, as
//     services scale one by one.
//   - A Job is a gang of min(parallelism, completions) pods. Where completions are
//     more, its pods follow each other and the gang is those that run at a time;
//     towards the end it is only as many as are left to complete.
//   - Pods that are made only when others run (a launcher that waits for its workers,
//     workers of a leader that must be ready) are late: they belong to the gang and
//     its size, but it is ready without them.
//   - Replicated jobs of a JobSet that wait for others to complete (the initializers
//     of Kubeflow Trainer) never run beside them: these are stages, a gang each.
package gang

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/musterdl/muster/model/workload"
)

// Owners looks up the objects that pods refer to.
type Owners interface {
	// Find returns the object of the reference's group, kind and name; namespace is
	// empty for a Namespace. The version in the reference may be another than the one
	// the object is kept in, the UID may be empty. The object is only read.
	Find(ref metav1.OwnerReference, namespace string) (*unstructured.Unstructured, bool)
}

// Key names a gang for as long as what made it exists: it does not change when pods
// are made again. The zero Key is none.
type Key struct {
	Namespace string
	Kind      string
	Name      string
	// UID is empty for groups that exist only as a label of their pods.
	UID types.UID
	// Group is the group of a LeaderWorkerSet, the ordinal of a StatefulSet's pod, and
	// the stage of a JobSet counted back from the last, which is 0.
	Group int32
}

// Compare orders keys by namespace, kind, name, group, UID.
func (k Key) Compare(l Key) int {
	return cmp.Or(strings.Compare(k.Namespace, l.Namespace), strings.Compare(k.Kind, l.Kind), strings.Compare(k.Name, l.Name),
		cmp.Compare(k.Group, l.Group), strings.Compare(string(k.UID), string(l.UID)))
}

// String is the name of the gang as a job of Muster: namespace/name for a Job,
// namespace/kind/name for what may have the name of a Job too, with the index behind
// it where one object makes several gangs. No two kinds share a name, as names in
// Kubernetes have no slash.
func (k Key) String() string {
	name := k.Namespace + "/" + k.Name
	if k.Kind != kindJob {
		name = k.Namespace + "/" + strings.ToLower(k.Kind) + "/" + k.Name
	}
	if k.Kind == kindLWS || k.Kind == kindStatefulSet || k.Group > 0 {
		name += "/" + strconv.Itoa(int(k.Group))
	}
	return name
}

// Stop is how a gang is stopped so that it can be resumed.
type Stop uint8

// The ways to stop a gang.
const (
	// Evict: evict the pods; their owner makes them again, and they wait unbound.
	Evict Stop = iota
	// EvictForGood: evict the pods; nobody makes them again, the job is over.
	EvictForGood
	// Suspend: set the field SuspendField of Control; its controller deletes the pods,
	// and makes them again when the field is cleared.
	Suspend
)

// String names the way.
func (s Stop) String() string { return [...]string{"evict", "evict for good", "suspend"}[s] }

// Role is the pods of a gang that are made from one template.
type Role struct {
	Name  string
	Count int32
	// Late pods are made only once the others run.
	Late bool
	// Template is what such a pod asks for: a pod that is there (with what admission
	// added to it), or else its owner's template. nil where neither can be read.
	Template *corev1.PodTemplateSpec

	// completions is how many pods must succeed in all: Count, more (they follow each
	// other), endless (they are made again), or once (after the first success none is
	// made again).
	completions int32
	// done is how many have succeeded by their owner's account.
	done int32
	raw  any    // the owner's template
	said string // muster.dev/elastic on the template of its Job
	grow []Target
}

// Special values of Role.completions.
const (
	once    = -1
	endless = -2
)

// Target is an object with the fields that hold a number of workers.
type Target struct {
	Object corev1.ObjectReference
	// Fields are paths such as spec.replicatedJobs[1].template.spec.parallelism; all
	// are set to the same number in one write.
	Fields []string
}

// Resize is how the number of workers of an elastic gang is changed: the fields of
// the first target that the API server lets change are set to the size less Others.
type Resize struct {
	Targets []Target
	// Others is the number of pods that the fields do not count.
	Others int32
}

// Gang is a Muster job as Kubernetes has it.
type Gang struct {
	Key Key
	// Name is the name of the job, Key as text.
	Name string
	// Size is the number of pods of the gang as its owner has it now; Job.Gang is what
	// was asked for at first.
	Size int32
	// First is how many of them are made before any of them runs.
	First int32
	// Roles are in the order of ranks; their counts add up to Size.
	Roles []Role

	Stop Stop
	// Control is the object that is suspended; Kind is empty where none is.
	Control      corev1.ObjectReference
	SuspendField string
	Suspended    bool
	Resize       Resize
	Ending       Ending
	// Missing says that the object that Key names is not there, or no longer.
	Missing bool

	// Job is what is asked. Devices, Share, Memory, CPU and HostMemory are left to who
	// knows the devices; Roles has the templates.
	Job workload.Job

	remade bool // somebody makes pods again that fail or are evicted
	place  func(*corev1.Pod) (role int, index int32, ok bool)
}

// Ending is how a gang ended by its owner's account.
type Ending struct {
	// Phase is Succeeded, Failed, or Unknown while it is not over.
	Phase           Phase
	Reason, Message string
}

// noIndex is the index of a pod whose place is its age: pods of a plain Job, workers
// of Ray, pod groups.
const noIndex = -1

// Place returns the role of a pod in Roles and its index there, -1 where its kind
// gives it none. ok is false for a pod that has no role in this gang.
func (g *Gang) Place(pod *corev1.Pod) (role int, index int32, ok bool) {
	if g.place == nil || len(g.Roles) == 0 {
		return 0, noIndex, len(g.Roles) > 0
	}
	role, index, ok = g.place(pod)
	return role, index, ok && role >= 0 && role < len(g.Roles)
}

// Rank returns the rank of a pod in its gang: completion index, global index of a
// JobSet, replica index, index in a group, head first. Pods without an index all have
// the rank of the first of their role; Sort puts them in order.
func (g *Gang) Rank(pod *corev1.Pod) (int32, bool) {
	role, index, ok := g.Place(pod)
	if !ok {
		return 0, false
	}
	rank := max(index, 0)
	for _, r := range g.Roles[:role] {
		rank += max(r.Count, r.completions)
	}
	return rank, true
}

// Sort orders pods by rank, then age, then name with numbers as numbers; pods without
// a role come last.
func (g *Gang) Sort(pods []*corev1.Pod) {
	type ranked struct {
		pod  *corev1.Pod
		rank int64
	}
	all := make([]ranked, len(pods))
	for i, p := range pods {
		all[i] = ranked{p, 1 << 32}
		if rank, ok := g.Rank(p); ok {
			all[i].rank = int64(rank)
		}
	}
	slices.SortFunc(all, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), byAge(a.pod, b.pod))
	})
	for i := range all {
		pods[i] = all[i].pod
	}
}

// byAge orders pods by creation, name and UID.
func byAge(a, b *corev1.Pod) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), natural(a.Name, b.Name), strings.Compare(string(a.UID), string(b.UID)))
}

// natural compares names with runs of digits as numbers: w-2 before w-10.
func natural(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		i, j := digits(x), digits(y)
		if i == 0 || j == 0 {
			if x[0] != y[0] {
				return cmp.Compare(x[0], y[0])
			}
			x, y = x[1:], y[1:]
			continue
		}
		m, n := strings.TrimLeft(x[:i], "0"), strings.TrimLeft(y[:j], "0")
		if c := cmp.Or(cmp.Compare(len(m), len(n)), strings.Compare(m, n)); c != 0 {
			return c
		}
		x, y = x[i:], y[j:]
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(a, b))
}

// digits is the length of the run of digits that s begins with.
func digits(s string) int {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return i
}

// reference points at an object for events and writes.
func reference(o *unstructured.Unstructured) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID()}
}

// called is what an object is called in a message.
func called(kind, namespace, name string) string {
	return fmt.Sprintf("%s %s/%s", kind, namespace, name)
}
