// Package filtertest is the table of the constraints that Kubernetes puts on where a pod may go: small clusters, each
// with a pod and the nodes that it may be placed on. The test of package filter compares every row with what the
// upstream scheduler decides for the same pod; a test against a real control plane can create the same objects.
package filtertest

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Case is one row.
type Case struct {
	Name    string
	Objects []runtime.Object // nodes, pods that are bound, and the rest; nodes are in zones
	Pod     *corev1.Pod      // the one to place
	Allowed []string         // nodes by all constraints, as upstream decides
	// Open are the nodes when processor, memory, nvidia.com/gpu and devices of Driver are left to the engine; nil where
	// these are the Allowed ones.
	Open []string
}

// Cases returns the table. Every call makes new objects.
func Cases() []Case {
	var all []Case
	for _, part := range []func() []Case{nodeCases, podCases, resourceCases, volumeCases, claimCases} {
		all = append(all, part()...)
	}
	return all
}

func three(changes ...func(*corev1.Node)) []runtime.Object {
	return []runtime.Object{node("a", "east", changes...), node("b", "east"), node("c", "west")}
}

func with(objects []runtime.Object, more ...runtime.Object) []runtime.Object {
	return append(objects, more...)
}

var none = []string{}

func nodeCases() []Case {
	noSchedule, noExecute := corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute
	names := func(values ...string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: values}}}
	}
	big := []runtime.Object{node("a", "east", labelled("cores", "64")), node("b", "east", labelled("cores", "8")), node("c", "west")}
	return []Case{
		{Name: "no constraint", Objects: three(), Pod: pod("p"), Allowed: []string{"a", "b", "c"}},
		{Name: "taint", Objects: three(tainted("team", noSchedule)), Pod: pod("p"), Allowed: []string{"b", "c"}},
		{Name: "taint that only prefers", Objects: three(tainted("team", corev1.TaintEffectPreferNoSchedule)), Pod: pod("p"), Allowed: []string{"a", "b", "c"}},
		{Name: "taint tolerated", Objects: three(tainted("team", noSchedule)), Pod: pod("p", tolerating("team", noSchedule)), Allowed: []string{"a", "b", "c"}},
		{Name: "taint of another effect than tolerated", Objects: three(tainted("team", noExecute)), Pod: pod("p", tolerating("team", noSchedule)), Allowed: []string{"b", "c"}},
		{Name: "every taint tolerated", Objects: three(tainted("team", noExecute), tainted("other", noSchedule)), Pod: pod("p", tolerating("", "")), Allowed: []string{"a", "b", "c"}},
		{Name: "node not ready, default tolerations", Objects: three(tainted(corev1.TaintNodeNotReady, noExecute)), Pod: pod("p", tolerating(corev1.TaintNodeNotReady, noExecute), tolerating(corev1.TaintNodeUnreachable, noExecute)), Allowed: []string{"a", "b", "c"}},
		{Name: "node not ready, no tolerations", Objects: three(tainted(corev1.TaintNodeNotReady, noExecute)), Pod: pod("p"), Allowed: []string{"b", "c"}},
		{Name: "cordoned node", Objects: three(cordoned), Pod: pod("p"), Allowed: []string{"b", "c"}},
		{Name: "cordoned node tolerated", Objects: three(cordoned), Pod: pod("p", tolerating(corev1.TaintNodeUnschedulable, noSchedule)), Allowed: []string{"a", "b", "c"}},
		{Name: "node selector", Objects: three(), Pod: pod("p", selecting(zoneKey, "west")), Allowed: []string{"c"}},
		{Name: "node selector without match", Objects: three(), Pod: pod("p", selecting(zoneKey, "north")), Allowed: none},
		{Name: "node affinity in", Objects: three(), Pod: pod("p", nodeAffinity(expression(zoneKey, corev1.NodeSelectorOpIn, "east"))), Allowed: []string{"a", "b"}},
		{Name: "node affinity not in", Objects: three(), Pod: pod("p", nodeAffinity(expression(zoneKey, corev1.NodeSelectorOpNotIn, "east"))), Allowed: []string{"c"}},
		{Name: "node affinity exists", Objects: big, Pod: pod("p", nodeAffinity(expression("cores", corev1.NodeSelectorOpExists))), Allowed: []string{"a", "b"}},
		{Name: "node affinity greater than", Objects: big, Pod: pod("p", nodeAffinity(expression("cores", corev1.NodeSelectorOpGt, "32"))), Allowed: []string{"a"}},
		{Name: "node affinity, either term", Objects: big, Pod: pod("p", nodeAffinity(expression("cores", corev1.NodeSelectorOpLt, "32"), expression(zoneKey, corev1.NodeSelectorOpIn, "west"))), Allowed: []string{"b", "c"}},
		{Name: "node affinity by name", Objects: three(), Pod: pod("p", nodeAffinity(names("a"))), Allowed: []string{"a"}},
		{Name: "node affinity by a name that is not there", Objects: three(), Pod: pod("p", nodeAffinity(names("z"))), Allowed: none},
		{Name: "node affinity by name and a taint there", Objects: three(tainted("team", noSchedule)), Pod: pod("p", nodeAffinity(names("a"))), Allowed: none},
		{Name: "node name", Objects: three(), Pod: pod("p", on("b")), Allowed: []string{"b"}},
		{Name: "kubelet feature that no node declares", Objects: three(), Pod: pod("p", func(p *corev1.Pod) {
			p.Spec.HostNetwork = true
			p.Spec.HostUsers = new(bool)
		}), Allowed: none},
	}
}

func podCases() []Case {
	host := corev1.LabelHostname
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other", Labels: map[string]string{"team": "vision"}}}
	stranger := pod("q", on("a"), label("app", "db"), func(p *corev1.Pod) { p.Namespace = "other" })
	everywhere := func(t *corev1.PodAffinityTerm) { t.NamespaceSelector = selector("team", "vision") }
	two := func(p *corev1.Pod) { p.Spec.TopologySpreadConstraints[0].MinDomains = new(int32(3)) }
	keyed := func(p *corev1.Pod) { p.Spec.TopologySpreadConstraints[0].MatchLabelKeys = []string{"version"} }
	return []Case{
		{Name: "pod affinity to a zone", Objects: with(three(), pod("q", on("a"), label("app", "db"))), Pod: pod("p", near(zoneKey, "app", "db")), Allowed: []string{"a", "b"}},
		{Name: "pod affinity to nobody", Objects: three(), Pod: pod("p", near(zoneKey, "app", "db")), Allowed: none},
		{Name: "pod affinity to itself, the first of its kind", Objects: three(), Pod: pod("p", label("app", "db"), near(zoneKey, "app", "db")), Allowed: []string{"a", "b", "c"}},
		{Name: "pod affinity by a label nodes lack", Objects: three(), Pod: pod("p", label("app", "db"), near("rack", "app", "db")), Allowed: none},
		{Name: "pod anti-affinity by host", Objects: with(three(), pod("q", on("a"), label("app", "db"))), Pod: pod("p", apart(host, "app", "db")), Allowed: []string{"b", "c"}},
		{Name: "pod anti-affinity by zone", Objects: with(three(), pod("q", on("a"), label("app", "db"))), Pod: pod("p", apart(zoneKey, "app", "db")), Allowed: []string{"c"}},
		{Name: "pod anti-affinity of a pod that is there", Objects: with(three(), pod("q", on("a"), apart(zoneKey, "app", "web"))), Pod: pod("p", label("app", "web")), Allowed: []string{"c"}},
		{Name: "pod anti-affinity of a pod that is there, of others", Objects: with(three(), pod("q", on("a"), apart(zoneKey, "app", "web"))), Pod: pod("p", label("app", "db")), Allowed: []string{"a", "b", "c"}},
		{Name: "pod anti-affinity stays in its namespace", Objects: with(three(), ns, stranger), Pod: pod("p", apart(host, "app", "db")), Allowed: []string{"a", "b", "c"}},
		{Name: "pod anti-affinity with a selector of namespaces", Objects: with(three(), ns, stranger), Pod: pod("p", apart(host, "app", "db", everywhere)), Allowed: []string{"b", "c"}},
		{Name: "topology spread by zone", Objects: with(three(), pod("q", on("a"), label("app", "db"))), Pod: pod("p", label("app", "db"), spreading(1, zoneKey, "app", "db")), Allowed: []string{"c"}},
		{Name: "topology spread with room for skew", Objects: with(three(), pod("q", on("a"), label("app", "db"))), Pod: pod("p", label("app", "db"), spreading(2, zoneKey, "app", "db")), Allowed: []string{"a", "b", "c"}},
		{Name: "topology spread with too few domains", Objects: with(three(), pod("q", on("a"), label("app", "db")), pod("r", on("c"), label("app", "db"))), Pod: pod("p", label("app", "db"), spreading(1, zoneKey, "app", "db"), two), Allowed: none},
		{Name: "topology spread by a label nodes lack", Objects: three(), Pod: pod("p", spreading(1, "rack", "app", "db")), Allowed: none},
		{Name: "topology spread within a version", Objects: with(three(), pod("q", on("a"), label("app", "db"), label("version", "1"))), Pod: pod("p", label("app", "db"), label("version", "2"), spreading(1, zoneKey, "app", "db"), keyed), Allowed: []string{"a", "b", "c"}},
		{Name: "host port", Objects: with(three(), pod("q", on("a"), hostPort(8080, ""))), Pod: pod("p", hostPort(8080, "")), Allowed: []string{"b", "c"}},
		{Name: "host port on one address", Objects: with(three(), pod("q", on("a"), hostPort(8080, "127.0.0.1"))), Pod: pod("p", hostPort(8080, "127.0.0.2")), Allowed: []string{"a", "b", "c"}},
		{Name: "host port on one address and on all", Objects: with(three(), pod("q", on("a"), hostPort(8080, "127.0.0.1"))), Pod: pod("p", hostPort(8080, "")), Allowed: []string{"b", "c"}},
	}
}

func resourceCases() []Case {
	always := corev1.ContainerRestartPolicyAlways
	all := []string{"a", "b", "c"}
	full := func(pairs ...string) []runtime.Object { return with(three(), pod("q", on("a"), asking(pairs...))) }
	whole := func(pairs ...string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Resources = &corev1.ResourceRequirements{Requests: list(pairs...)} }
	}
	over := func(pairs ...string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Overhead = list(pairs...) }
	}
	return []Case{
		{Name: "processor", Objects: full("cpu", "6"), Pod: pod("p", asking("cpu", "4")), Allowed: []string{"b", "c"}, Open: all},
		{Name: "memory", Objects: full("memory", "30Gi"), Pod: pod("p", asking("memory", "4Gi")), Allowed: []string{"b", "c"}, Open: all},
		{Name: "gpus", Objects: full("nvidia.com/gpu", "8"), Pod: pod("p", asking("nvidia.com/gpu", "1")), Allowed: []string{"b", "c"}, Open: all},
		{Name: "more than any node has", Objects: three(), Pod: pod("p", asking("cpu", "9")), Allowed: none, Open: all},
		{Name: "local storage", Objects: full("ephemeral-storage", "90Gi"), Pod: pod("p", asking("ephemeral-storage", "20Gi")), Allowed: []string{"b", "c"}},
		{Name: "huge pages", Objects: full("hugepages-2Mi", "1Gi"), Pod: pod("p", asking("hugepages-2Mi", "2Mi")), Allowed: []string{"b", "c"}},
		{Name: "another device", Objects: full("example.com/fpga", "1"), Pod: pod("p", asking("example.com/fpga", "2", "nvidia.com/gpu", "1")), Allowed: []string{"b", "c"}},
		{Name: "a device no node has", Objects: three(), Pod: pod("p", asking("example.com/tpu", "1")), Allowed: none},
		{Name: "pods per node", Objects: with(three(offering("pods", "1")), pod("q", on("a"))), Pod: pod("p"), Allowed: []string{"b", "c"}},
		{Name: "init container larger than the rest", Objects: full("ephemeral-storage", "60Gi"), Pod: pod("p", asking("ephemeral-storage", "1Gi"), initAsking(nil, "ephemeral-storage", "50Gi")), Allowed: []string{"b", "c"}},
		{Name: "init container smaller than the rest", Objects: full("ephemeral-storage", "60Gi"), Pod: pod("p", asking("ephemeral-storage", "40Gi"), initAsking(nil, "ephemeral-storage", "40Gi")), Allowed: all},
		{Name: "sidecar adds up", Objects: full("ephemeral-storage", "60Gi"), Pod: pod("p", asking("ephemeral-storage", "40Gi"), initAsking(&always, "ephemeral-storage", "1Gi")), Allowed: []string{"b", "c"}},
		{Name: "sidecar of a pod that is there", Objects: with(three(), pod("q", on("a"), initAsking(&always, "cpu", "6"))), Pod: pod("p", asking("cpu", "4")), Allowed: []string{"b", "c"}, Open: all},
		{Name: "overhead of the runtime", Objects: full("ephemeral-storage", "60Gi"), Pod: pod("p", asking("ephemeral-storage", "40Gi"), over("ephemeral-storage", "1Gi")), Allowed: []string{"b", "c"}},
		{Name: "request of the whole pod", Objects: full("cpu", "6"), Pod: pod("p", whole("cpu", "3"), asking("cpu", "1")), Allowed: []string{"b", "c"}, Open: all},
		{Name: "priority does not matter for room", Objects: with(three(), pod("q", on("a"), asking("ephemeral-storage", "90Gi"), priority(1))), Pod: pod("p", asking("ephemeral-storage", "20Gi"), priority(1000)), Allowed: []string{"b", "c"}},
	}
}

func volumeCases() []Case {
	late, now := storagev1.VolumeBindingWaitForFirstConsumer, storagev1.VolumeBindingImmediate
	once, oncePod := corev1.ReadWriteOnce, corev1.ReadWriteOncePod
	provisioned := storageClass("cloud", late)
	provisioned.Provisioner = "csi.example.com"
	provisioned.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: zoneKey, Values: []string{"east"}}}}}
	limited := func(n string) *storagev1.CSINode {
		return &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: n}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
			{Name: "csi.example.com", NodeID: n, Allocatable: &storagev1.VolumeNodeResources{Count: new(int32(1))}}}}}
	}
	attached := func(name, claim string) *corev1.PersistentVolume {
		v := volume(name, "cloud", "a", claim)
		v.Spec.NodeAffinity = nil
		v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com", VolumeHandle: name}}
		return v
	}
	zoned := attached("v", "data")
	zoned.Labels = map[string]string{zoneKey: "west"}
	return []Case{
		{Name: "claim bound to a local volume", Objects: with(three(), storageClass("local", late), volume("v", "local", "b", "data"), volumeClaim("data", "local", "v", once)), Pod: pod("p", mounting("data")), Allowed: []string{"b"}},
		{Name: "claim that waits for its first pod, one volume", Objects: with(three(), storageClass("local", late), volume("v", "local", "c", ""), volumeClaim("data", "local", "", once)), Pod: pod("p", mounting("data")), Allowed: []string{"c"}},
		{Name: "claim that waits for its first pod, no volume", Objects: with(three(), storageClass("local", late), volumeClaim("data", "local", "", once)), Pod: pod("p", mounting("data")), Allowed: none},
		{Name: "claim to be provisioned in a zone", Objects: with(three(), provisioned, volumeClaim("data", "cloud", "", once)), Pod: pod("p", mounting("data")), Allowed: []string{"a", "b"}},
		{Name: "immediate claim not bound yet", Objects: with(three(), storageClass("fast", now), volumeClaim("data", "fast", "", once)), Pod: pod("p", mounting("data")), Allowed: none},
		{Name: "volume claim that is not there", Objects: three(), Pod: pod("p", mounting("data")), Allowed: none},
		{Name: "volume with the label of a zone", Objects: with(three(), provisioned, zoned, volumeClaim("data", "cloud", "v", once)), Pod: pod("p", mounting("data")), Allowed: []string{"c"}},
		{Name: "claim for one pod, in use", Objects: with(three(), storageClass("local", late), volume("v", "local", "b", "data"), volumeClaim("data", "local", "v", oncePod), pod("q", on("b"), mounting("data"))), Pod: pod("p", mounting("data")), Allowed: none},
		{Name: "claim for one pod, free", Objects: with(three(), storageClass("local", late), volume("v", "local", "b", "data"), volumeClaim("data", "local", "v", oncePod)), Pod: pod("p", mounting("data")), Allowed: []string{"b"}},
		{Name: "as many volumes as a node attaches", Objects: with(three(), provisioned, limited("a"), limited("b"), limited("c"), attached("v", "data"), volumeClaim("data", "cloud", "v", once),
			attached("w", "logs"), volumeClaim("logs", "cloud", "w", once), pod("q", on("a"), mounting("logs"))), Pod: pod("p", mounting("data")), Allowed: []string{"b", "c"}},
		{Name: "volumes that every node has", Objects: three(), Pod: pod("p", func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		}), Allowed: []string{"a", "b", "c"}},
	}
}

func claimCases() []Case {
	devices := func() []runtime.Object {
		return with(three(), deviceClass(), slice("a", "d0", "d1"), slice("b", "d0"))
	}
	backed := deviceClass()
	backed.Spec.ExtendedResourceName = new("example.com/npu")
	gpus := deviceClass()
	gpus.Spec.ExtendedResourceName = new("nvidia.com/gpu")
	bare := offering("nvidia.com/gpu", "0")
	return []Case{
		{Name: "claim of one device", Objects: with(devices(), claim("one", 1)), Pod: pod("p", claiming("one")), Allowed: []string{"a", "b"}},
		{Name: "claim of two devices", Objects: with(devices(), claim("two", 2)), Pod: pod("p", claiming("two")), Allowed: []string{"a"}},
		{Name: "claim of more than there is", Objects: with(devices(), claim("many", 3)), Pod: pod("p", claiming("many")), Allowed: none},
		{Name: "claim while devices are in use", Objects: with(devices(), allocated(claim("held", 1), "a", "q", "d0"), pod("q", on("a"), claiming("held")), claim("two", 2)), Pod: pod("p", claiming("two")), Allowed: none, Open: []string{"a"}},
		{Name: "claim that is allocated", Objects: with(devices(), allocated(claim("one", 1), "b", "", "d0")), Pod: pod("p", claiming("one")), Allowed: []string{"b"}},
		{Name: "claim that is not there", Objects: devices(), Pod: pod("p", claiming("one")), Allowed: none},
		{Name: "claim of a class that is not there", Objects: with(three(), slice("a", "d0"), claim("one", 1)), Pod: pod("p", claiming("one")), Allowed: none},
		{Name: "device resource that a claim serves", Objects: with(three(offering("example.com/npu", "1")), backed, slice("b", "d0")), Pod: pod("p", asking("example.com/npu", "1")), Allowed: []string{"a", "b"}},
		{Name: "gpus that a claim serves", Objects: []runtime.Object{node("a", "east"), node("b", "east", bare), node("c", "west", bare), gpus, slice("b", "d0")}, Pod: pod("p", asking("nvidia.com/gpu", "1")), Allowed: []string{"a", "b"}},
	}
}
