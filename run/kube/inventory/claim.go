package inventory

import (
	"cmp"
	"context"
	"math"
	"regexp"
	"slices"

	"github.com/musterdl/muster/model/unit"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/cel"
)

// kind is one kind of device or partition that drivers offer; one device stands for
// all of a kind.
type kind struct {
	sample
	model string
	part  *Part // nil for whole devices
}

func kindsOf(machines []Machine) []kind {
	var all []kind
	seen := map[[3]string]bool{}
	note := func(k kind, part string) {
		key := [3]string{k.driver, k.model, part}
		if k.device != nil && !seen[key] {
			seen[key] = true
			all = append(all, k)
		}
	}
	for i := range machines {
		m := &machines[i]
		note(kind{m.kind, m.Model.Name, nil}, "")
		for j := range m.Parts {
			note(kind{m.Parts[j].kind, m.Model.Name, &m.Parts[j]}, m.Parts[j].Name)
		}
	}
	return all
}

// claimed lists what a pod's resource claims ask for. A claim that several pods share
// is counted for each until it is allocated.
func (r *Reader) claimed(pod *corev1.Pod, claims Claims) ([]wish, Problem) {
	var all []wish
	for _, pc := range pod.Spec.ResourceClaims {
		spec, p := claimSpec(pod, pc, claims)
		if !p.None() {
			return nil, p
		}
		if spec == nil {
			continue
		}
		for i := range spec.Devices.Requests {
			ws, p := r.deviceRequest(pc.Name, &spec.Devices.Requests[i])
			if !p.None() {
				return nil, p
			}
			all = append(all, ws...)
		}
	}
	return all, Problem{}
}

// claimSpec finds what a pod's claim asks; nil where its devices are there already,
// held by an earlier pod of the same claim.
func claimSpec(pod *corev1.Pod, pc corev1.PodResourceClaim, claims Claims) (*resourcev1.ResourceClaimSpec, Problem) {
	switch {
	case claims == nil:
		return nil, wrong("claim %s: resource claims are not read here", pc.Name)
	case pc.ResourceClaimName != nil:
		c := claims.Claim(pod.Namespace, *pc.ResourceClaimName)
		if c == nil {
			return nil, later("claim %s: there is no ResourceClaim %s", pc.Name, *pc.ResourceClaimName)
		}
		if c.Status.Allocation != nil && len(c.Status.ReservedFor) > 0 {
			return nil, Problem{}
		}
		return &c.Spec, Problem{}
	case pc.ResourceClaimTemplateName != nil:
		t := claims.Template(pod.Namespace, *pc.ResourceClaimTemplateName)
		if t == nil {
			return nil, later("claim %s: there is no ResourceClaimTemplate %s", pc.Name, *pc.ResourceClaimTemplateName)
		}
		return &t.Spec.Spec, Problem{}
	}
	return nil, wrong("claim %s: expected resourceClaimName or resourceClaimTemplateName", pc.Name)
}

// deviceRequest reads one request of a claim. Of alternatives the first counts: it is
// what the allocator tries first; a pod that can only have a later one is not placed.
func (r *Reader) deviceRequest(claim string, d *resourcev1.DeviceRequest) ([]wish, Problem) {
	where := "claim " + claim + ", request " + d.Name
	var e resourcev1.ExactDeviceRequest
	switch {
	case d.Exactly != nil:
		e = *d.Exactly
	case len(d.FirstAvailable) > 0:
		s := d.FirstAvailable[0]
		e = resourcev1.ExactDeviceRequest{DeviceClassName: s.DeviceClassName, Selectors: s.Selectors,
			AllocationMode: s.AllocationMode, Count: s.Count, Capacity: s.Capacity}
	default:
		return nil, wrong("%s: expected exactly or firstAvailable", where)
	}
	if e.AdminAccess != nil && *e.AdminAccess {
		return nil, Problem{} // monitors devices that others hold
	}
	switch e.AllocationMode {
	case "", resourcev1.DeviceAllocationModeExactCount:
	case resourcev1.DeviceAllocationModeAll:
		return nil, wrong("%s: allocationMode All: how many devices that is depends on the node; expected ExactCount with a count", where)
	default:
		return nil, wrong("%s: allocationMode %q: expected ExactCount", where, e.AllocationMode)
	}
	count := cmp.Or(e.Count, 1)
	if count < 0 || count > mostDevices {
		return nil, wrong("%s: count is %d: expected 1 to 10,000", where, count)
	}
	return r.request(where, e.DeviceClassName, e.Selectors, count, e.Capacity)
}

// request is a number of devices of a class.
func (r *Reader) request(where, className string, selectors []resourcev1.DeviceSelector, count int64, capacity *resourcev1.CapacityRequirements) ([]wish, Problem) {
	class := r.classes[className]
	if class == nil {
		return nil, later("%s: there is no DeviceClass %s", where, className)
	}
	inClass, p := r.matching(where, r.kinds, class.Spec.Selectors)
	if !p.None() {
		return nil, p
	}
	if len(inClass) == 0 {
		if r.foreign(class, selectors) {
			return nil, Problem{}
		}
		return nil, later("%s: no node has a device of DeviceClass %s", where, className)
	}
	found, p := r.matching(where, inClass, selectors)
	if !p.None() {
		return nil, p
	}
	if len(found) == 0 {
		// A selector may name one device by its UUID, which the sample is not.
		found = inClass
	}
	return r.wishesOf(where, found, count, capacity)
}

// wishesOf makes wishes of the kinds that match. Where whole devices match as well as
// partitions, whole ones are counted, as the allocator may give either.
func (r *Reader) wishesOf(where string, found []kind, count int64, capacity *resourcev1.CapacityRequirements) ([]wish, Problem) {
	driver := found[0].driver
	if slices.ContainsFunc(found, func(k kind) bool { return k.driver != driver }) {
		return nil, wrong("%s: devices of several drivers match: expected a class or selector for one driver", where)
	}
	if slices.ContainsFunc(found, func(k kind) bool { return k.part == nil }) {
		found = slices.DeleteFunc(slices.Clone(found), func(k kind) bool { return k.part != nil })
	}
	w := wish{what: where, count: count, by: payer{driver: driver}}
	for _, k := range found {
		share, memory, ok := k.consumes(capacity)
		if !ok {
			continue
		}
		w.models = append(w.models, k.model)
		w.share, w.memory = max(w.share, share), max(w.memory, memory)
		w.apart = w.apart || k.part == nil
	}
	if len(w.models) == 0 {
		return nil, later("%s: no device has the capacity that is asked", where)
	}
	w.models = unique(w.models)
	if w.share >= unit.Whole {
		w.share, w.memory = unit.Whole, 0
	}
	return []wish{w}, Problem{}
}

// consumes is the share and memory that one allocation takes of a kind's device; not
// ok where the device cannot have it.
func (k *kind) consumes(asked *resourcev1.CapacityRequirements) (unit.Milli, unit.MiB, bool) {
	if asked != nil {
		for name, q := range asked.Requests {
			if c, ok := capacityNamed(k.device, k.driver, name); !ok || q.Sign() < 0 || c.Value.Cmp(q) < 0 {
				return 0, 0, false
			}
		}
	}
	switch {
	case k.part != nil:
		return k.part.Milli, k.part.Memory, true
	case !shared(k.device):
		return unit.Whole, 0, true
	}
	return share(k.device, func(name resourcev1.QualifiedName, c resourcev1.DeviceCapacity) (resource.Quantity, bool) {
		var want *resource.Quantity
		if asked != nil {
			for n, q := range asked.Requests {
				if qualified(k.driver, n) == qualified(k.driver, name) {
					want = &q
				}
			}
		}
		return rounded(c, want)
	})
}

// share is the largest part of any capacity of a shared device that is consumed, and
// the memory of it.
func share(d *resourcev1.Device, consumed func(resourcev1.QualifiedName, resourcev1.DeviceCapacity) (resource.Quantity, bool)) (most unit.Milli, memory unit.MiB, ok bool) {
	most = 1
	for name, c := range d.Capacity {
		q, ok := consumed(name, c)
		if !ok {
			return 0, 0, false
		}
		if all := c.Value.AsApproximateFloat64(); all > 0 {
			most = max(most, unit.Milli(min(math.Ceil(1000*q.AsApproximateFloat64()/all-1e-9), 1000)))
		}
		if unqualified(string(name)) == "memory" {
			if m, says := mebibytes(q); says == "" {
				memory = max(memory, m)
			}
		}
	}
	if len(d.Capacity) == 0 {
		most = 1 // nothing to run out of: any number may share it
	}
	return most, memory, true
}

// rounded is what is consumed of a capacity for a wish, by its request policy: the
// default without a wish, else the next legal amount.
func rounded(c resourcev1.DeviceCapacity, want *resource.Quantity) (resource.Quantity, bool) {
	policy := c.RequestPolicy
	if want == nil {
		if policy != nil && policy.Default != nil {
			return *policy.Default, true
		}
		return c.Value, true
	}
	q := *want
	if policy == nil {
		return q, q.Cmp(c.Value) <= 0
	}
	if len(policy.ValidValues) > 0 {
		i := slices.IndexFunc(policy.ValidValues, func(v resource.Quantity) bool { return v.Cmp(q) >= 0 })
		if i < 0 {
			return q, false
		}
		return policy.ValidValues[i], true
	}
	if rng := policy.ValidRange; rng != nil {
		if rng.Min != nil && q.Cmp(*rng.Min) < 0 {
			q = *rng.Min
		}
		if rng.Min != nil && rng.Step != nil && rng.Step.Sign() > 0 {
			least, step := rng.Min.Value(), rng.Step.Value()
			if over := (q.Value() - least) % step; over > 0 && q.Value() < math.MaxInt64-step {
				q = *resource.NewQuantity(q.Value()+step-over, q.Format)
			}
		}
		if rng.Max != nil && q.Cmp(*rng.Max) > 0 {
			return q, false
		}
	}
	return q, q.Cmp(c.Value) <= 0
}

func capacityNamed(d *resourcev1.Device, driver string, name resourcev1.QualifiedName) (resourcev1.DeviceCapacity, bool) {
	for n, c := range d.Capacity {
		if qualified(driver, n) == qualified(driver, name) {
			return c, true
		}
	}
	return resourcev1.DeviceCapacity{}, false
}

// qualified is a name with its domain, which is the driver's where it has none.
func qualified(driver string, name resourcev1.QualifiedName) string {
	if unqualified(string(name)) == string(name) {
		return driver + "/" + string(name)
	}
	return string(name)
}

// matching are the kinds whose sample passes all selectors.
func (r *Reader) matching(where string, kinds []kind, selectors []resourcev1.DeviceSelector) ([]kind, Problem) {
	for _, s := range selectors {
		if s.CEL == nil {
			return nil, wrong("%s: a selector of an unknown kind: expected cel", where)
		}
		program, ok := r.programs[s.CEL.Expression]
		if !ok {
			program = cel.GetCompiler(cel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true}).
				CompileCELExpression(s.CEL.Expression, cel.Options{})
			r.programs[s.CEL.Expression] = program
		}
		if program.Error != nil {
			return nil, wrong("%s: selector %q: %s", where, s.CEL.Expression, program.Error.Detail)
		}
		var passed []kind
		for _, k := range kinds {
			// An error is a field that this device lacks: another driver's, mostly.
			ok, _, err := program.DeviceMatches(context.Background(), cel.Device{Driver: k.driver, Attributes: k.device.Attributes,
				Capacity: k.device.Capacity, AllowMultipleAllocations: k.device.AllowMultipleAllocations})
			if err == nil && ok {
				passed = append(passed, k)
			}
		}
		kinds = passed
	}
	return kinds, Problem{}
}

var driverNamed = regexp.MustCompile(`device\.driver\s*==\s*["']([^"']+)["']`)

// foreign reports whether the selectors name only drivers that the rules ignore.
func (r *Reader) foreign(class *resourcev1.DeviceClass, selectors []resourcev1.DeviceSelector) bool {
	found := false
	for _, list := range [][]resourcev1.DeviceSelector{class.Spec.Selectors, selectors} {
		for _, s := range list {
			if s.CEL == nil {
				continue
			}
			for _, m := range driverNamed.FindAllStringSubmatch(s.CEL.Expression, -1) {
				if !r.rules.ignores(m[1]) {
					return false
				}
				found = true
			}
		}
	}
	return found
}
