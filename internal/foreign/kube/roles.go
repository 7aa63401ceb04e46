package kube

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/musterdl/muster/model/unit"
)

// Role is a group of like pods of one object.
type Role struct {
	Name  string
	Count int
	GPUs  int // of each pod
	// Parts is set where what is asked for is a part of a GPU, by MIG or time slices.
	Parts  string
	CPU    unit.Milli
	Memory unit.MiB
	// Main is the container that computes: the first with a GPU, else the first.
	Main Container
}

// Roles are the groups of pods of an object, and false where its kind is none we know. A
// driver's or leader's role comes first.
func (o *Object) Roles() ([]Role, bool, error) {
	groups, known := o.groups()
	var roles []Role
	for _, g := range groups {
		r, err := roleOf(g.Name, deref(g.Replicas, 1), g.Template.Spec.Containers)
		if err != nil {
			return nil, known, err
		}
		if r.Count > 0 {
			roles = append(roles, r)
		}
	}
	return roles, known, nil
}

func deref(n *int, otherwise int) int {
	if n == nil {
		return otherwise
	}
	return *n
}

func (o *Object) groups() (groups []replicas, known bool) {
	s := &o.Spec
	add := func(name string, n *int, t Template) { groups = append(groups, replicas{name, n, t}) }
	switch o.Kind {
	case "Job":
		groups = slices.Clone(s.Tasks) // Volcano's
		if s.Template != nil {
			add("", s.Parallelism, *s.Template)
		}
	case "JobSet":
		for _, r := range s.ReplicatedJobs {
			n := deref(r.Replicas, 1) * deref(r.Template.Spec.Parallelism, 1)
			if t := r.Template.Spec.Template; t != nil {
				add(r.Name, &n, *t)
			}
		}
	case "PyTorchJob", "TFJob", "MPIJob", "XGBoostJob", "PaddleJob", "JAXJob":
		groups = s.kubeflow()
	case "RayJob", "RayCluster":
		c := &s.rayCluster
		if s.RayClusterSpec != nil {
			c = s.RayClusterSpec
		}
		if c.HeadGroupSpec != nil {
			add("head", nil, c.HeadGroupSpec.Template)
		}
		for _, g := range c.WorkerGroupSpecs {
			add(g.GroupName, g.Replicas, g.Template)
		}
	case "LeaderWorkerSet":
		if s.LeaderWorkerTemplate != nil {
			groups = s.LeaderWorkerTemplate.groups()
		}
	case "Workload":
		for _, p := range s.PodSets {
			add(p.Name, &p.Count, p.Template)
		}
	case "Pod":
		var t Template
		t.Spec.Containers = s.Containers
		add("", nil, t)
	default:
		return nil, false
	}
	return groups, true
}

// leading are the roles that come before the others.
var leading = []string{"Launcher", "Chief", "Master", "Coordinator"}

func (s *Spec) kubeflow() (groups []replicas) {
	for _, specs := range []map[string]replicas{s.PyTorchReplicaSpecs, s.TFReplicaSpecs, s.MPIReplicaSpecs, s.XGBReplicaSpecs, s.PaddleReplicaSpecs, s.JAXReplicaSpecs} {
		for _, name := range slices.Sorted(maps.Keys(specs)) {
			g := specs[name]
			g.Name = strings.ToLower(name)
			if slices.Contains(leading, name) {
				groups = slices.Insert(groups, 0, g)
			} else {
				groups = append(groups, g)
			}
		}
	}
	return groups
}

func (l *leaderWorker) groups() []replicas {
	size, one := deref(l.Size, 1), 1
	if l.LeaderTemplate == nil {
		return []replicas{{"worker", &size, l.WorkerTemplate}}
	}
	rest := size - 1
	return []replicas{{"leader", &one, *l.LeaderTemplate}, {"worker", &rest, l.WorkerTemplate}}
}

func roleOf(name string, count int, containers []Container) (Role, error) {
	r := Role{Name: name, Count: count}
	if len(containers) == 0 {
		return r, fmt.Errorf("%s: expected a container in its template", cmp.Or(name, "the job"))
	}
	r.Main = containers[0]
	for i := range containers {
		gpus := 0
		asked := containers[i].asked()
		for _, resource := range slices.Sorted(maps.Keys(asked)) {
			switch amount, err := quantity(asked[resource]); {
			case err != nil:
				return r, fmt.Errorf("%s: %s: %w", cmp.Or(name, "the job"), resource, err)
			case resource == "cpu":
				r.CPU += unit.Milli(math.Ceil(amount * 1000))
			case resource == "memory":
				r.Memory += unit.MiB(math.Ceil(amount / (1 << 20)))
			case IsGPU(resource):
				gpus += int(amount)
			case strings.Contains(resource, "/mig-") || strings.Contains(resource, "gpu.shared"):
				gpus, r.Parts = gpus+int(amount), resource
			}
		}
		if r.GPUs == 0 && gpus > 0 {
			r.Main = containers[i]
		}
		r.GPUs += gpus
	}
	return r, nil
}

// asked is what a container requests, and beside it what it is limited to.
func (c *Container) asked() map[string]json.RawMessage {
	all := maps.Clone(c.Resources.Limits)
	if all == nil {
		all = map[string]json.RawMessage{}
	}
	maps.Copy(all, c.Resources.Requests)
	return all
}

// IsGPU says whether a resource counts whole devices: nvidia.com/gpu, amd.com/gpu, and those of other makers.
func IsGPU(resource string) bool {
	_, name, extended := strings.Cut(resource, "/")
	return extended && (name == "gpu" || name == "neuron" || name == "tpu" || name == "npu" || name == "gaudi")
}

var suffixes = map[string]float64{"": 1, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15,
	"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50}

// quantity reads an amount as Kubernetes writes it: a number or a string.
func quantity(raw json.RawMessage) (float64, error) {
	s := strings.Trim(string(raw), `"`)
	number := strings.TrimRight(s, "mkMGTPKi")
	scale, known := suffixes[s[len(number):]]
	x, err := strconv.ParseFloat(number, 64)
	if err != nil || !known || !(x >= 0 && x*scale < 1e18) {
		return 0, fmt.Errorf("%q: expected a quantity, as in 8, 500m or 16Gi", s)
	}
	return x * scale, nil
}
