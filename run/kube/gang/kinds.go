package gang

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Kinds of gangs. Those of labels only are words of Muster.
const (
	kindPod         = "Pod"
	kindStatefulSet = "StatefulSet"
	kindJob         = "Job"
	kindJobSet      = "JobSet"
	kindTrainJob    = "TrainJob"
	kindPyTorchJob  = "PyTorchJob"
	kindMPIJob      = "MPIJob"
	kindTFJob       = "TFJob"
	kindXGBoostJob  = "XGBoostJob"
	kindPaddleJob   = "PaddleJob"
	kindJAXJob      = "JAXJob"
	kindLWS         = "LeaderWorkerSet"
	kindRayCluster  = "RayCluster"
	kindRayJob      = "RayJob"

	kindPodGroup    = "PodGroup"
	kindPlugins     = "PodGroup.x-k8s"
	kindPluginsOld  = "PodGroup.sigs"
	kindLightweight = "PodGroup.label"
	kindVolcano     = "PodGroup.volcano"
	kindKoordinator = "PodGroup.koordinator"
	kindKueue       = "PodGroup.kueue"
	kindYuniKorn    = "PodGroup.yunikorn"
	kindGang        = "Gang"
)

// Kind is a kind of object that is read to find gangs: what to watch, and what to ask
// rights for. Kinds that a cluster does not have are left out.
type Kind struct {
	// Name is Kind of a Key.
	Name       string
	APIVersion string
	Kind       string
	Resource   string // in the plural
	// Suspends says that gangs are stopped by a write to it.
	Suspends bool
	// Resizes says that gangs are resized by a write to it.
	Resizes bool

	under []string // the owners above it that are asked
	spec  string   // where Kubeflow has its replica specs
}

// kinds are all that are read. A pod's owner is looked up along under only: a Job
// whose owner is of no kind here, or of one that does not manage its pods as a gang
// (the submitter of a RayJob), is a gang of its own.
var kinds = []Kind{
	{Name: kindPod, APIVersion: "v1", Kind: "Pod", Resource: "pods", under: []string{kindStatefulSet}},
	{Name: kindStatefulSet, APIVersion: "apps/v1", Kind: "StatefulSet", Resource: "statefulsets", under: []string{kindPod, kindLWS}},
	{Name: kindJob, APIVersion: "batch/v1", Kind: "Job", Resource: "jobs", Suspends: true, Resizes: true, under: []string{kindJobSet, kindMPIJob}},
	{Name: kindJobSet, APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet", Resource: "jobsets", Suspends: true, Resizes: true, under: []string{kindTrainJob}},
	{Name: kindTrainJob, APIVersion: "trainer.kubeflow.org/v1alpha1", Kind: "TrainJob", Resource: "trainjobs", Suspends: true},
	{Name: kindPyTorchJob, APIVersion: "kubeflow.org/v1", Kind: "PyTorchJob", Resource: "pytorchjobs", Suspends: true, Resizes: true, spec: "pytorchReplicaSpecs"},
	{Name: kindMPIJob, APIVersion: "kubeflow.org/v2beta1", Kind: "MPIJob", Resource: "mpijobs", Suspends: true, Resizes: true, spec: "mpiReplicaSpecs"},
	{Name: kindTFJob, APIVersion: "kubeflow.org/v1", Kind: "TFJob", Resource: "tfjobs", Suspends: true, Resizes: true, spec: "tfReplicaSpecs"},
	{Name: kindXGBoostJob, APIVersion: "kubeflow.org/v1", Kind: "XGBoostJob", Resource: "xgboostjobs", Suspends: true, Resizes: true, spec: "xgbReplicaSpecs"},
	{Name: kindPaddleJob, APIVersion: "kubeflow.org/v1", Kind: "PaddleJob", Resource: "paddlejobs", Suspends: true, Resizes: true, spec: "paddleReplicaSpecs"},
	{Name: kindJAXJob, APIVersion: "kubeflow.org/v1", Kind: "JAXJob", Resource: "jaxjobs", Suspends: true, Resizes: true, spec: "jaxReplicaSpecs"},
	{Name: kindLWS, APIVersion: "leaderworkerset.x-k8s.io/v1", Kind: "LeaderWorkerSet", Resource: "leaderworkersets"},
	{Name: kindRayCluster, APIVersion: "ray.io/v1", Kind: "RayCluster", Resource: "rayclusters", Suspends: true, Resizes: true, under: []string{kindRayJob}},
	{Name: kindRayJob, APIVersion: "ray.io/v1", Kind: "RayJob", Resource: "rayjobs", Suspends: true},
	{Name: kindPodGroup, APIVersion: "scheduling.k8s.io/v1alpha2", Kind: "PodGroup", Resource: "podgroups"},
	{Name: kindPlugins, APIVersion: "scheduling.x-k8s.io/v1alpha1", Kind: "PodGroup", Resource: "podgroups"},
	{Name: kindPluginsOld, APIVersion: "scheduling.sigs.k8s.io/v1alpha1", Kind: "PodGroup", Resource: "podgroups"},
	{Name: kindVolcano, APIVersion: "scheduling.volcano.sh/v1beta1", Kind: "PodGroup", Resource: "podgroups"},
}

// Kinds returns all kinds of objects that are read, but for Pod and Namespace.
func Kinds() []Kind { return append([]Kind(nil), kinds[1:]...) }

// kindNamed returns the kind of a Key.
func kindNamed(name string) (Kind, bool) {
	for _, k := range kinds {
		if k.Name == name {
			return k, true
		}
	}
	return Kind{}, false
}

// kindOf returns the kind that a reference is to; versions do not matter.
func kindOf(ref metav1.OwnerReference) (Kind, bool) {
	for _, k := range kinds {
		if k.Kind == ref.Kind && apiGroup(k.APIVersion) == apiGroup(ref.APIVersion) {
			return k, true
		}
	}
	return Kind{}, false
}

func apiGroup(version string) string {
	group, _, ok := strings.Cut(version, "/")
	if !ok {
		return ""
	}
	return group
}

// ref is a reference to an object of the kind.
func (k Kind) ref(key Key) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: k.APIVersion, Kind: k.Kind, Name: key.Name, UID: key.UID}
}

// found looks an object up. One of another UID is another object, which has taken the
// name since; that is as good as none.
func found(owners Owners, ref metav1.OwnerReference, namespace string) (*unstructured.Unstructured, bool) {
	if owners == nil || ref.Name == "" {
		return nil, false
	}
	o, ok := owners.Find(ref, namespace)
	if !ok || o == nil || o.Object == nil || ref.UID != "" && o.GetUID() != ref.UID {
		return nil, false
	}
	return o, true
}

// controller returns the reference to what makes an object again.
func controller(refs []metav1.OwnerReference) (metav1.OwnerReference, bool) {
	for _, r := range refs {
		if r.Controller != nil && *r.Controller {
			return r, true
		}
	}
	return metav1.OwnerReference{}, false
}

// controlled reports whether somebody makes the pod again.
func controlled(pod *corev1.Pod) bool {
	_, ok := controller(pod.OwnerReferences)
	return ok
}
