package filter

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/version"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	componentversion "k8s.io/component-base/version"
	"k8s.io/component-helpers/nodedeclaredfeatures"
	"k8s.io/component-helpers/resource"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	schedutil "k8s.io/kubernetes/pkg/scheduler/util"
)

// Plain is the signature of pods that ask for nothing but what the engine counts.
const Plain = "plain"

// reach says what the node set of a pod follows from, and with that how much an event makes it necessary to look at again.
type reach int

const (
	ofNode    reach = iota // the node alone, and whether it holds as many pods as it may
	ofItsPods              // the node and the pods on it
	ofCluster              // pods on other nodes, volumes or claims as well
)

// constraints is all that upstream's filters read of a pod, in a canonical form. A field that is left out does not
// bind the pod. It is encoded with encoding/json, which sorts map keys.
type constraints struct {
	Namespace   string                `json:",omitempty"` // where a field below is read in a namespace
	Node        string                `json:",omitempty"`
	Selector    map[string]string     `json:",omitempty"`
	Affinity    *corev1.NodeSelector  `json:",omitempty"`
	Tolerations []string              `json:",omitempty"`
	Features    string                `json:",omitempty"`
	Resources   map[string]int64      `json:",omitempty"`
	Ports       []string              `json:",omitempty"`
	Near        []term                `json:",omitempty"`
	Apart       []term                `json:",omitempty"`
	Spread      []spread              `json:",omitempty"`
	Volumes     []corev1.VolumeSource `json:",omitempty"`
	Claims      []string              `json:",omitempty"`
	Existing    []string              `json:",omitempty"` // anti-affinity of pods that are there and which this one meets
	Pod         string                `json:",omitempty"` // where objects are named after the pod
}

// term is a term of pod affinity or anti-affinity, with the only thing it asks of the pod's own labels.
type term struct {
	corev1.PodAffinityTerm
	Self bool
}

// spread is a constraint of topology spread, with the only things it asks of the pod's own labels.
type spread struct {
	corev1.TopologySpreadConstraint
	Self bool
	Keys map[string]string
}

// Signature returns a word that is equal for pods whose constraints are equal, so that one node set serves them all.
// Pods without any constraint have the signature Plain. Because pods that are there may constrain others by their
// anti-affinity, it holds until pods or nodes change; Nodes does not need it to be remembered.
func (h *Host) Signature(pod *corev1.Pod) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	signature, _ := h.sign(pod)
	return signature
}

func (h *Host) sign(pod *corev1.Pod) (string, reach) {
	c := constraints{
		Node:        pod.Spec.NodeName,
		Selector:    pod.Spec.NodeSelector,
		Tolerations: h.tolerations(pod),
		Resources:   h.counted(pod),
		Ports:       hostPorts(pod),
		Existing:    h.terms.matching(pod, h.namespaceLabels(pod.Namespace)),
		Features:    declaredFeatures(pod),
	}
	h.signAffinity(pod, &c)
	h.signSpread(pod, &c)
	h.signVolumes(pod, &c)
	h.signClaims(pod, &c)
	reach := ofNode
	if len(c.Resources)+len(c.Ports) > 0 {
		reach = ofItsPods
	}
	if len(c.Near)+len(c.Apart)+len(c.Spread)+len(c.Volumes)+len(c.Claims)+len(c.Existing) > 0 {
		reach = ofCluster
		c.Namespace = pod.Namespace
	}
	if reach == ofNode && c.Node == "" && len(c.Selector) == 0 && c.Affinity == nil && len(c.Tolerations) == 0 && c.Features == "" {
		return Plain, reach
	}
	return digest(c), reach
}

// digest hashes a value's encoding. A value that cannot be encoded gets the error, which is no other value's encoding.
func digest(value any) string {
	encoded, err := json.Marshal(value)
	if err != nil {
		encoded = []byte(err.Error())
	}
	sum := sha256.Sum256(encoded)
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:15]))
}

// tolerations leaves out those that no filter reads, and those that the API server adds to every pod as long as no
// node carries the taints they are for.
func (h *Host) tolerations(pod *corev1.Pod) []string {
	var out []string
	for _, t := range pod.Spec.Tolerations {
		added := t.Effect == corev1.TaintEffectNoExecute && t.Operator == corev1.TolerationOpExists && slices.Contains(evictingTaints, t.Key)
		if t.Effect == corev1.TaintEffectPreferNoSchedule || added && h.evicting == 0 {
			continue
		}
		out = append(out, fmt.Sprintf("%q %q %q %q", t.Key, t.Operator, t.Value, t.Effect))
	}
	sort.Strings(out)
	return slices.Compact(out)
}

// counted is what a pod asks for beyond what the engine counts.
func (h *Host) counted(pod *corev1.Pod) map[string]int64 {
	if !asksBeyond(pod, func(name corev1.ResourceName) bool { return engineCounts(name, h.ownsResource) && !h.claimed(name) }) {
		return nil // without adding up quantities, which is most of the cost of a signature
	}
	var out map[string]int64
	for name, quantity := range resource.PodRequests(pod, resource.PodResourcesOptions{}) {
		if quantity.IsZero() || engineCounts(name, h.ownsResource) && !h.claimed(name) {
			continue
		}
		if out == nil {
			out = map[string]int64{}
		}
		out[string(name)] = quantity.MilliValue()
	}
	return out
}

// asksBeyond says that a pod names a resource for which the engine alone does not answer.
func asksBeyond(pod *corev1.Pod, answers func(corev1.ResourceName) bool) bool {
	beyond := func(list corev1.ResourceList) bool {
		for name := range list {
			if !answers(name) {
				return true
			}
		}
		return false
	}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			if beyond(containers[i].Resources.Requests) {
				return true
			}
		}
	}
	return beyond(pod.Spec.Overhead) || pod.Spec.Resources != nil && beyond(pod.Spec.Resources.Requests)
}

// claimed says that a resource may be served by a dynamic claim that the scheduler has to make.
func (h *Host) claimed(name corev1.ResourceName) bool {
	return schedutil.IsDRAExtendedResourceName(name) && h.devices.DeviceClassResolver().GetDeviceClass(name) != nil
}

func hostPorts(pod *corev1.Pod) []string {
	var out []string
	for _, p := range schedutil.GetHostPorts(pod) {
		out = append(out, fmt.Sprintf("%s %s %d", p.HostIP, p.Protocol, p.HostPort))
	}
	sort.Strings(out)
	return out
}

var scheduledVersion, _ = version.Parse(componentversion.Get().String())

// declaredFeatures names the features of the kubelet that the pod needs, as upstream infers them.
func declaredFeatures(pod *corev1.Pod) string {
	if scheduledVersion == nil || !utilfeature.DefaultFeatureGate.Enabled(features.NodeDeclaredFeatures) {
		return ""
	}
	needs, err := nodedeclaredfeatures.DefaultFramework.InferForPodScheduling(&nodedeclaredfeatures.PodInfo{Spec: &pod.Spec}, scheduledVersion)
	if err != nil || needs.IsEmpty() {
		return ""
	}
	return needs.String()
}

func (h *Host) signAffinity(pod *corev1.Pod, c *constraints) {
	a := pod.Spec.Affinity
	if a == nil {
		return
	}
	if a.NodeAffinity != nil {
		c.Affinity = a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	c.Near = h.ownTerms(pod, fwk.GetPodAffinityTerms(a))
	c.Apart = h.ownTerms(pod, fwk.GetPodAntiAffinityTerms(a))
}

func (h *Host) ownTerms(pod *corev1.Pod, required []corev1.PodAffinityTerm) []term {
	var out []term
	for _, t := range required {
		parsed, err := fwk.GetAffinityTerms(pod, []corev1.PodAffinityTerm{t})
		self := err == nil && parsed[0].Matches(pod, h.namespaceLabels(pod.Namespace))
		out = append(out, term{PodAffinityTerm: t, Self: self})
	}
	return out
}

func (h *Host) signSpread(pod *corev1.Pod, c *constraints) {
	for _, s := range pod.Spec.TopologySpreadConstraints {
		if s.WhenUnsatisfiable != corev1.DoNotSchedule {
			continue // counts only for scores
		}
		selector, err := metav1.LabelSelectorAsSelector(s.LabelSelector)
		keys := map[string]string{}
		for _, key := range s.MatchLabelKeys {
			if value, ok := pod.Labels[key]; ok {
				keys[key] = value
			}
		}
		self := err == nil && selector.Matches(labels.Set(pod.Labels))
		c.Spread = append(c.Spread, spread{TopologySpreadConstraint: s, Self: self, Keys: keys})
	}
}

// signVolumes leaves out the kinds of volume that exist on every node.
func (h *Host) signVolumes(pod *corev1.Pod, c *constraints) {
	for _, v := range pod.Spec.Volumes {
		anywhere := v.ConfigMap != nil || v.Secret != nil || v.EmptyDir != nil || v.DownwardAPI != nil ||
			v.Projected != nil || v.HostPath != nil || v.Image != nil || v.NFS != nil || v.GitRepo != nil
		if anywhere {
			continue
		}
		c.Volumes = append(c.Volumes, v.VolumeSource)
		if v.Ephemeral != nil {
			c.Pod = pod.Name
		}
	}
}

// signClaims treats claims made from one template as equal as long as none is allocated, so that a gang of sixty-four
// with a claim each has one node set.
func (h *Host) signClaims(pod *corev1.Pod, c *constraints) {
	for _, reference := range pod.Spec.ResourceClaims {
		name, _, err := resourceclaim.Name(pod, &reference)
		switch {
		case err != nil:
			c.Claims = append(c.Claims, "missing")
			c.Pod = pod.Name
		case name == nil:
			continue // nothing was made for it, and nothing need be
		default:
			c.Claims = append(c.Claims, h.signClaim(pod, *name))
		}
	}
	for name := range c.Resources {
		if h.claimed(corev1.ResourceName(name)) {
			c.Claims = append(c.Claims, "resource "+name)
		}
	}
	sort.Strings(c.Claims)
}

func (h *Host) signClaim(pod *corev1.Pod, name string) string {
	claims := h.devices.ResourceClaims()
	claim, err := claims.Get(pod.Namespace, name)
	if err != nil || claim.DeletionTimestamp != nil || claim.Status.Allocation != nil || claims.GetPendingAllocation(claim.UID) != nil {
		return "name " + name
	}
	return "spec " + digest(claim.Spec)
}

func (h *Host) namespaceLabels(name string) labels.Set {
	namespace, err := h.namespaces.Get(name)
	if err != nil {
		return nil // as upstream: a namespace not yet heard of has no labels
	}
	return namespace.Labels
}
