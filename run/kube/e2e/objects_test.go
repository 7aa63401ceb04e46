package e2e

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// objects are one of each kind of work, all submitted at once: each is bound as a
// whole on nodes where it may be, has a record, and says what became of it.
func (s *site) objects() {
	s.claimed()
	s.start("objects")
	s.apply(kindsOfWork)
	began := time.Now()
	s.indexed()
	s.plain()
	s.jobSet()
	s.claim()
	s.labelled("leader", "Gang", "lws", 3)
	s.labelled("plugin", "PodGroup", "plug", 2)
	s.labelled("native", "PodGroup", "native", 3)
	s.late()
	s.t.Logf("all bound and recorded after %v; muster-kube took %v of CPU and %d MiB", time.Since(began).Round(time.Millisecond),
		s.CPU("objects"), s.RSSBytes("objects")>>20)
}

// claimed offers the devices of some nodes through dynamic resource allocation.
func (s *site) claimed() {
	s.apply(`
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.nvidia.com}
spec: {selectors: [{cel: {expression: "device.driver == 'gpu.nvidia.com'"}}]}
`)
	for i := range s.options.claims {
		node := fmt.Sprintf("%s-dra-%04d", s.name, i)
		slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node}}
		slice.Spec = resourcev1.ResourceSliceSpec{Driver: "gpu.nvidia.com", NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1}}
		product, kind := "NVIDIA H100", "gpu"
		for d := range devices {
			slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: fmt.Sprintf("gpu-%d", d), Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
				"productName": {StringValue: &product}, "type": {StringValue: &kind}}})
		}
		if _, err := s.client.ResourceV1().ResourceSlices().Create(s.ctx, slice, metav1.CreateOptions{}); err != nil {
			s.t.Fatal(err)
		}
	}
}

// late has the volume of a pod be made after the pod.
func (s *site) late() {
	s.apply(`
apiVersion: v1
kind: Pod
metadata: {name: late, namespace: NS, labels: {app: late}}
spec:
  schedulerName: SCHEDULER
  containers: [{name: main, image: none, volumeMounts: [{name: data, mountPath: /data}], resources: {limits: {nvidia.com/gpu: 1}}}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
`)
	s.described("pod", "late", `persistentvolumeclaim "data" not found`)
	s.apply(`
apiVersion: v1
kind: PersistentVolume
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, storageClassName: none, hostPath: {path: /data}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: NS}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, storageClassName: none}
`)
	s.legal(s.bound(20*time.Second, "app=late", 1), s.name)
}

// kindsOfWork is the work. The nodes of this scenario all have the label of its pool;
// an indexed Job asks for it, so that a place elsewhere would not be legal.
const kindsOfWork = `
apiVersion: batch/v1
kind: Job
metadata: {name: indexed, namespace: NS}
spec:
  completionMode: Indexed
  parallelism: 4
  completions: 4
  template:
    metadata:
      labels: {e2e/gang: indexed, e2e/size: "4"}
    spec:
      schedulerName: SCHEDULER
      restartPolicy: Never
      nodeSelector: {kubernetes.io/hostname: NS-0005}
      containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: 2, cpu: 1, memory: 1Gi}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: plain, namespace: NS, labels: {app: plain}}
spec:
  schedulerName: SCHEDULER
  containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: 3}}}]
---
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: set, namespace: NS}
spec:
  replicatedJobs:
  - name: leader
    replicas: 1
    template:
      spec:
        parallelism: 1
        completions: 1
        template:
          metadata:
            labels: {e2e/gang: set, e2e/size: "5"}
          spec:
            schedulerName: SCHEDULER
            containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: 1}}}]
  - name: workers
    replicas: 2
    template:
      spec:
        parallelism: 2
        completions: 2
        template:
          metadata:
            labels: {e2e/gang: set, e2e/size: "5"}
          spec:
            schedulerName: SCHEDULER
            containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: 1}}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: two, namespace: NS}
spec: {spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: gpu.nvidia.com, count: 2}}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: claims, namespace: NS, labels: {app: claims}}
spec:
  schedulerName: SCHEDULER
  resourceClaims: [{name: gpus, resourceClaimTemplateName: two}]
  containers: [{name: main, image: none, resources: {claims: [{name: gpus}]}}]
---
apiVersion: v1
kind: Pod
metadata: {name: claims-too, namespace: NS, labels: {app: claims}}
spec:
  schedulerName: SCHEDULER
  resourceClaims: [{name: gpus, resourceClaimTemplateName: two}]
  containers: [{name: main, image: none, resources: {claims: [{name: gpus}]}}]
---
apiVersion: v1
kind: Pod
metadata: {name: leader-0, namespace: NS, labels: {app: leader, e2e/gang: leader, e2e/size: "3", muster.dev/gang: lws, muster.dev/gang-size: "3"}}
spec:
  schedulerName: SCHEDULER
  containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: 1}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: leader-1, namespace: NS, labels: {app: leader, e2e/gang: leader, e2e/size: "3", muster.dev/gang: lws, muster.dev/gang-size: "3"}}
spec:
  schedulerName: SCHEDULER
  containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: 4}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: leader-2, namespace: NS, labels: {app: leader, e2e/gang: leader, e2e/size: "3", muster.dev/gang: lws, muster.dev/gang-size: "3"}}
spec:
  schedulerName: SCHEDULER
  containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: 4}}}]
---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: plug, namespace: NS}
spec: {minMember: 2}
---
apiVersion: v1
kind: Pod
metadata: {name: plugin-0, namespace: NS, labels: {app: plugin, e2e/gang: plugin, e2e/size: "2", scheduling.x-k8s.io/pod-group: plug}}
spec:
  schedulerName: SCHEDULER
  containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: 2}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: plugin-1, namespace: NS, labels: {app: plugin, e2e/gang: plugin, e2e/size: "2", scheduling.x-k8s.io/pod-group: plug}}
spec:
  schedulerName: SCHEDULER
  containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: 2}}}]
---
apiVersion: scheduling.k8s.io/v1alpha2
kind: PodGroup
metadata: {name: native, namespace: NS}
spec: {schedulingPolicy: {gang: {minCount: 3}}}
---
apiVersion: v1
kind: Pod
metadata: {name: native-0, namespace: NS, labels: {app: native, e2e/gang: native, e2e/size: "3"}}
spec:
  schedulerName: SCHEDULER
  schedulingGroup: {podGroupName: native}
  containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: 1}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: native-1, namespace: NS, labels: {app: native, e2e/gang: native, e2e/size: "3"}}
spec:
  schedulerName: SCHEDULER
  schedulingGroup: {podGroupName: native}
  containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: 1}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: native-2, namespace: NS, labels: {app: native, e2e/gang: native, e2e/size: "3"}}
spec:
  schedulerName: SCHEDULER
  schedulingGroup: {podGroupName: native}
  containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: 1}}}]
`

// legal checks the nodes of pods and what their bindings left on them.
func (s *site) legal(list []corev1.Pod, node string) {
	s.t.Helper()
	for i := range list {
		p := &list[i]
		if !strings.HasPrefix(p.Spec.NodeName, node) {
			s.t.Errorf("%s is on %s, want %s", p.Name, p.Spec.NodeName, node)
		}
		if p.Annotations["muster.dev/attempt"] == "" || p.Annotations["muster.dev/job"] == "" {
			s.t.Errorf("%s has no notes of its binding: %v", p.Name, p.Annotations)
		}
	}
}

func (s *site) indexed() {
	list := s.bound(20*time.Second, "job-name=indexed", 4)
	s.legal(list, s.name+"-0005")
	var on []string
	for i := range list {
		on = append(on, strings.Split(list[i].Annotations["muster.dev/on-devices"], ",")...)
	}
	slices.Sort(on)
	if len(slices.Compact(on)) != devices {
		s.t.Errorf("the four pods were given devices %v of one node, want all eight once", on)
	}
	j := s.recorded("Job", "indexed", "active")
	if j.Spec.Gang != 4 || j.Spec.DevicesPerWorker != 2 || j.Status.Workers != 4 || len(j.Status.Placement) != 1 || j.Status.Placement[0].Node != s.name+"-0005" {
		s.t.Errorf("the record of the indexed Job: %+v, %+v", j.Spec, j.Status)
	}
	if len(j.OwnerReferences) != 1 || j.OwnerReferences[0].Name != "indexed" {
		s.t.Errorf("its record is owned by %v", j.OwnerReferences)
	}
	s.described("pod", list[0].Name, "Scheduled", "bound to "+s.name+"-0005 by muster, attempt 1")
}

func (s *site) plain() {
	s.legal(s.bound(10*time.Second, "app=plain", 1), s.name)
	if j := s.recorded("Pod", "plain", "active"); j.Spec.DevicesPerWorker != 3 || j.Status.Started == nil {
		s.t.Errorf("the record of the pod: %+v, %+v", j.Spec, j.Status)
	}
	s.described("pod", "plain", "bound to "+s.name)
}

func (s *site) jobSet() {
	s.legal(s.bound(20*time.Second, "jobset.sigs.k8s.io/jobset-name=set", 5), s.name)
	if j := s.recorded("JobSet", "set", "active"); j.Spec.Gang != 5 || j.Status.Workers != 5 {
		s.t.Errorf("the record of the JobSet: %+v, %+v", j.Spec, j.Status)
	}
}

// claim looks that the devices that two pods have claimed are there, and not the same.
func (s *site) claim() {
	list := s.bound(20*time.Second, "app=claims", 2)
	s.legal(list, s.name+"-dra-")
	got := map[string]string{}
	for i := range list {
		status := list[i].Status.ResourceClaimStatuses
		if len(status) != 1 || status[0].ResourceClaimName == nil {
			s.t.Fatalf("%s has no claim: %+v", list[i].Name, status)
		}
		c, err := s.client.ResourceV1().ResourceClaims(s.name).Get(s.ctx, *status[0].ResourceClaimName, metav1.GetOptions{})
		if err != nil {
			s.t.Fatal(err)
		}
		if c.Status.Allocation == nil || len(c.Status.Allocation.Devices.Results) != 2 || len(c.Status.ReservedFor) != 1 || c.Status.ReservedFor[0].UID != list[i].UID {
			s.t.Fatalf("the claim of %s: %+v", list[i].Name, c.Status)
		}
		for _, r := range c.Status.Allocation.Devices.Results {
			if r.Pool != list[i].Spec.NodeName {
				s.t.Errorf("%s on %s has a device of %s", list[i].Name, list[i].Spec.NodeName, r.Pool)
			}
			if other := got[r.Pool+"/"+r.Device]; other != "" {
				s.t.Errorf("%s and %s have both %s of %s", other, list[i].Name, r.Device, r.Pool)
			}
			got[r.Pool+"/"+r.Device] = list[i].Name
		}
	}
	if j := s.recorded("Pod", "claims", "active"); j.Spec.DevicesPerWorker != 2 {
		s.t.Errorf("the record of the pod with a claim: %+v", j.Spec)
	}
}

// labelled looks at a gang that its pods' labels make.
func (s *site) labelled(app, kind, name string, n int) {
	s.legal(s.bound(20*time.Second, "app="+app, n), s.name)
	if j := s.recorded(kind, name, "active"); int(j.Spec.Gang) != n {
		s.t.Errorf("the record of %s %s: %+v", kind, name, j.Spec)
	}
}
