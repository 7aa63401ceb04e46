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
	groups, known := kinds[o.Kind]
	if !known {
		return nil, false, nil
	}
	var roles []Role
	for _, g := range groups(&o.Spec) {
		r, err := roleOf(g.Name, Given(g.Replicas, 1), g.Template.Spec.Containers)
		if err != nil {
			return nil, true, err
		}
		if r.Count > 0 {
			roles = append(roles, r)
		}
	}
	return roles, true, nil
}

// Given is what is given, and something else where nothing is.
func Given[T any](v *T, otherwise T) T {
	if v == nil {
		return otherwise
	}
	return *v
}

// kinds are the kinds of objects that run something, with the groups of like pods in each.
var kinds = map[string]func(s *Spec) []replicas{
	"Job":             (*Spec).job,
	"JobSet":          (*Spec).jobSet,
	"PyTorchJob":      (*Spec).kubeflow,
	"TFJob":           (*Spec).kubeflow,
	"MPIJob":          (*Spec).kubeflow,
	"XGBoostJob":      (*Spec).kubeflow,
	"PaddleJob":       (*Spec).kubeflow,
	"JAXJob":          (*Spec).kubeflow,
	"RayJob":          (*Spec).ray,
	"RayCluster":      (*Spec).ray,
	"LeaderWorkerSet": (*Spec).leaderWorkers,
	"Workload":        (*Spec).workload,
	"Pod":             (*Spec).pod,
}

// job is of Kubernetes' own jobs, and of Volcano's, which have tasks.
func (s *Spec) job() []replicas {
	if s.Template == nil {
		return s.Tasks
	}
	return append(slices.Clone(s.Tasks), replicas{"", s.Parallelism, *s.Template})
}

func (s *Spec) jobSet() (groups []replicas) {
	for _, r := range s.ReplicatedJobs {
		job := &r.Template.Spec
		n := min(Given(r.Replicas, 1), mostPods+1) * min(Given(job.Parallelism, 1), mostPods+1)
		if job.Template != nil {
			groups = append(groups, replicas{r.Name, &n, *job.Template})
		}
	}
	return groups
}

func (s *Spec) ray() (groups []replicas) {
	c := cmp.Or(s.RayClusterSpec, &s.rayCluster)
	if c.HeadGroupSpec != nil {
		groups = append(groups, replicas{"head", nil, c.HeadGroupSpec.Template})
	}
	for _, g := range c.WorkerGroupSpecs {
		groups = append(groups, replicas{g.GroupName, g.Replicas, g.Template})
	}
	return groups
}

func (s *Spec) workload() (groups []replicas) {
	for _, p := range s.PodSets {
		groups = append(groups, replicas{p.Name, &p.Count, p.Template})
	}
	return groups
}

func (s *Spec) pod() []replicas {
	var t Template
	t.Spec.Containers = s.Containers
	return []replicas{{"", nil, t}}
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

func (s *Spec) leaderWorkers() []replicas {
	l := s.LeaderWorkerTemplate
	if l == nil {
		return nil
	}
	size, one := Given(l.Size, 1), 1
	if l.LeaderTemplate == nil {
		return []replicas{{"worker", &size, l.WorkerTemplate}}
	}
	rest := size - 1
	return []replicas{{"leader", &one, *l.LeaderTemplate}, {"worker", &rest, l.WorkerTemplate}}
}

// mostPods is far more than any job has: more is a slip, and not worked out.
const mostPods = 1_000_000

func roleOf(name string, count int, containers []Container) (Role, error) {
	r := Role{Name: name, Count: count}
	switch {
	case len(containers) == 0:
		return r, fmt.Errorf("%s: expected a container in its template", cmp.Or(name, "the job"))
	case count > mostPods:
		return r, fmt.Errorf("%s: found %d pods, expected at most %d", cmp.Or(name, "the job"), count, mostPods)
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
				r.CPU += unit.Milli(math.Ceil(min(amount, 1e12) * 1000))
			case resource == "memory":
				r.Memory += unit.MiB(math.Ceil(amount / (1 << 20)))
			case IsGPU(resource):
				gpus += int(min(amount, 1e9))
			case strings.Contains(resource, "/mig-") || strings.Contains(resource, "gpu.shared"):
				gpus, r.Parts = gpus+int(min(amount, 1e9)), resource
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

// devices are the names of whole devices behind those of their makers.
var devices = []string{"gpu", "neuron", "tpu", "npu", "gaudi"}

// IsGPU says whether a resource counts whole devices: nvidia.com/gpu, amd.com/gpu, and those of other makers.
func IsGPU(resource string) bool {
	_, name, extended := strings.Cut(resource, "/")
	return extended && slices.Contains(devices, name)
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
