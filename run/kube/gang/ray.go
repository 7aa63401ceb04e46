package gang

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// readRayCluster reads a RayCluster of its own, or one of a RayService.
func (r *reader) readRayCluster() {
	r.suspends("spec", "suspend")
	r.retries = maxRetries // its operator makes pods again for ever
	if _, has := controller(r.top.GetOwnerReferences()); has {
		// Whoever made the cluster replaces it when it does not serve.
		r.gang.Stop, r.gang.Control, r.gang.SuspendField = Evict, corev1.ObjectReference{}, ""
	}
	r.rayRoles(at(r.top.Object, "spec"), "spec", r.top)
}

// readRayJob reads a RayJob, which makes a cluster of its own name each time it is
// resumed; its spec stays.
func (r *reader) readRayJob() {
	o := r.top.Object
	r.suspends("spec", "suspend")
	r.rayRoles(at(o, "spec", "rayClusterSpec"), "spec.rayClusterSpec", nil)
	r.retried(o, 0, "spec", "backoffLimit")
	r.seconds(o, "spec.activeDeadlineSeconds", "spec", "activeDeadlineSeconds")
	switch textAt(o, "status", "jobDeploymentStatus") {
	case "Complete":
		r.gang.Ending = Ending{Phase: Succeeded, Reason: textAt(o, "status", "jobStatus"), Message: textAt(o, "status", "message")}
		if s := r.gang.Ending.Reason; s == "FAILED" || s == "STOPPED" {
			r.gang.Ending.Phase = Failed
		}
	case "Failed":
		r.gang.Ending = Ending{Phase: Failed, Reason: textAt(o, "status", "reason"), Message: textAt(o, "status", "message")}
	}
}

// rayRoles reads head and worker groups. Under Ray's own autoscaler the gang is what
// it never goes below; pods above that come beside it.
func (r *reader) rayRoles(spec any, field string, resized *unstructured.Unstructured) {
	g := r.gang
	scales := boolAt(spec, "enableInTreeAutoscaling")
	g.Roles = []Role{{Name: "head", Count: 1, raw: at(spec, "headGroupSpec", "template"), completions: endless}}
	roles := map[string]int{}
	for i, w := range listAt(spec, "workerGroupSpecs") {
		path := fmt.Sprintf("%s.workerGroupSpecs[%d]", field, i)
		name := textAt(w, "groupName")
		hosts := r.count(w, bounds{1, maxGang, 1}, path+".numOfHosts", "numOfHosts")
		n := r.count(w, bounds{0, maxGang, 0}, path+".minReplicas", "minReplicas")
		if !scales {
			n = max(n, r.count(w, bounds{0, maxGang, 0}, path+".replicas", "replicas"))
		}
		if boolAt(w, "suspend") {
			n = 0
		}
		role := Role{Name: name, Count: scaled(int64(n), hosts), raw: at(w, "template"), completions: endless}
		if !scales && hosts == 1 && resized != nil {
			role.grow = []Target{{reference(resized), []string{path + ".replicas"}}}
		}
		roles[name] = len(g.Roles)
		g.Roles = append(g.Roles, role)
	}
	g.place = func(p *corev1.Pod) (int, int32, bool) {
		if p.Labels[labelRayType] == "head" {
			return 0, 0, true
		}
		role, ok := roles[p.Labels[labelRayGroup]]
		return role, noIndex, ok
	}
}
