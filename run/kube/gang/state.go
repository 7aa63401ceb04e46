package gang

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/musterdl/muster/plan"
)

// Phase is how far a gang is.
type Phase uint8

// The phases of a gang.
const (
	Unknown Phase = iota
	// Incomplete: pods that must be there before any runs are not, or one of a gang
	// that runs is lost.
	Incomplete
	// Ready: all are there that must be, none has a node.
	Ready
	// PartlyBound: some have a node and some have not, or late ones are still to come.
	PartlyBound
	// AllBound: all have a node, not all run.
	AllBound
	// Running: all run, or wait for their owner to say that it is over.
	Running
	// Succeeded: over, and well.
	Succeeded
	// Failed: over, and not well.
	Failed
	// Gone: deleted before it was over.
	Gone
)

var phaseNames = [...]string{"unknown", "incomplete", "ready", "partly bound", "all bound", "running", "succeeded", "failed", "gone"}

// String names the phase.
func (p Phase) String() string { return phaseNames[p] }

// State is what the pods of a gang amount to.
type State struct {
	Phase Phase
	// Failure says whose failure it is that ended the gang, or, while its owner still
	// tries again, that ended pods which are left to be seen.
	Failure plan.FailureClass
	// Cause is the pod's failure behind that; nil where none is left to be seen.
	Cause *Failure
	// Reason says in words why the phase is this one.
	Reason string
	// Needed is how many live pods the gang must have: Size less what has succeeded.
	Needed int32
	// Members are the live pods of the gang, one for each place, in the order of ranks.
	Members []*corev1.Pod
	// Extra are live pods beside it: more than its size, a second one for a place, or
	// of no role. Under an autoscaler of its owner they are work of their own.
	Extra []*corev1.Pod
	// Bound and Running count members; the others all pods.
	Bound, Running int32
	// Gated pods are live but held back by scheduling gates, Claimless ones until what they claim
	// by a template is made for them, so they are no members.
	Gated, Claimless int32
	// Succeeded are those whose places the gang still has: it may have become smaller.
	Succeeded, Failed, Terminating int32
}

// State tells how far the gang is from its pods, in any order.
func (g *Gang) State(pods []*corev1.Pod) State {
	s := State{}
	roles := make([][]*corev1.Pod, len(g.Roles))
	done := make([]int32, len(g.Roles))
	for _, p := range slices.SortedFunc(slices.Values(pods), byAge) {
		role, index, ok := g.Place(p)
		if s.count(p, ok) {
			continue
		}
		switch {
		case p.Status.Phase == corev1.PodSucceeded && ok && g.Roles[role].lacks(index):
			// It was of a larger size: the owner does not count it any more either.
		case p.Status.Phase == corev1.PodSucceeded:
			s.Succeeded++
			if ok {
				done[role]++
			}
		case !ok:
			s.Extra = append(s.Extra, p)
		default:
			roles[role] = append(roles[role], p)
		}
	}
	var missing []string
	for i := range g.Roles {
		role := &g.Roles[i]
		needed := role.needed(max(done[i], role.done), int32(len(roles[i])))
		members, extra := g.members(roles[i], needed)
		s.Needed += needed
		s.Members, s.Extra = append(s.Members, members...), append(s.Extra, extra...)
		if n := int32(len(members)); n < needed && !role.Late {
			missing = append(missing, fmt.Sprintf("%s %d of %d", role.Name, n, needed))
		}
	}
	g.Sort(s.Members)
	g.Sort(s.Extra)
	s.countMembers()
	if s.Failed > 0 {
		s.Cause = Cause(pods)
		s.Failure, s.Reason = s.Cause.Class, s.Cause.String()
	}
	g.phase(&s, missing)
	return s
}

// count counts a pod that is neither live nor has succeeded, or has a place in the gang and is held back, and reports whether
// it is such.
func (s *State) count(p *corev1.Pod, hasPlace bool) bool {
	waits := hasPlace && p.Spec.NodeName == "" && p.Status.Phase != corev1.PodSucceeded
	switch {
	case p.Status.Phase == corev1.PodFailed:
		s.Failed++
	case p.DeletionTimestamp != nil && p.Status.Phase != corev1.PodSucceeded:
		s.Terminating++
	case waits && len(p.Spec.SchedulingGates) > 0:
		s.Gated++
	case waits && claimless(p):
		s.Claimless++
	default:
		return false
	}
	return true
}

// claimless reports whether a claim of the pod is still to be made from its template. Until then
// nobody can say on which nodes the pod may be, and the scheduler of Kubernetes does not look at
// it either.
func claimless(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Spec.ResourceClaims, func(c corev1.PodResourceClaim) bool {
		_, _, err := resourceclaim.Name(p, &c)
		return err != nil
	})
}

func (s *State) countMembers() {
	for _, p := range s.Members {
		if p.Spec.NodeName != "" {
			s.Bound++
			if p.Status.Phase == corev1.PodRunning {
				s.Running++
			}
		}
	}
}

// needed is how many live pods a role must have after so many have succeeded.
func (r *Role) needed(done, live int32) int32 {
	switch {
	case r.completions == endless:
		return r.Count
	case r.completions == once:
		if done > 0 {
			return min(live, r.Count) // the others end, none is made again
		}
		return r.Count
	}
	return max(min(r.Count, r.completions-done), 0)
}

// lacks reports whether the role has no such place, or has none any more.
func (r *Role) lacks(index int32) bool {
	return r.completions >= 0 && index >= r.completions
}

// members chooses the pods of a role that are in the gang: one for each index, those
// that have a node first, then by index and age, and no more than needed.
func (g *Gang) members(pods []*corev1.Pod, needed int32) (members, extra []*corev1.Pod) {
	index := func(p *corev1.Pod) int32 { _, i, _ := g.Place(p); return i }
	slices.SortStableFunc(pods, func(a, b *corev1.Pod) int {
		unbound := func(p *corev1.Pod) int { return min(len(p.Spec.NodeName), 1) }
		return cmp.Or(unbound(b)-unbound(a), cmp.Compare(index(a), index(b)))
	})
	taken := map[int32]bool{}
	for _, p := range pods {
		i := index(p)
		if int32(len(members)) >= needed || i >= 0 && taken[i] {
			extra = append(extra, p)
			continue
		}
		taken[i] = true
		members = append(members, p)
	}
	return members, extra
}

// phase decides on the phase. missing are the roles that lack pods that must be there
// from the start.
func (g *Gang) phase(s *State, missing []string) {
	live := int32(len(s.Members))
	switch {
	case g.Ending.Phase != Unknown:
		g.ended(s)
	case !g.remade && s.Failed > 0:
		s.Phase = Failed // nobody makes them again
	case g.Missing && live == 0:
		s.Phase, s.Reason = Gone, "what made it is deleted"
	case !g.remade && live == 0 && s.Gated+s.Claimless == 0 && s.Needed > 0:
		s.Phase, s.Reason = Gone, "its pods are deleted"
	case s.Needed == 0 && g.Key.Group > 0 && (g.Key.Kind == kindJobSet || g.Key.Kind == kindTrainJob):
		s.Phase, s.Reason = Succeeded, "its stage is complete"
	case s.Needed == 0 && s.Succeeded > 0 && g.Control.Kind == "" && g.Key.Kind != kindJob:
		s.Phase, s.Reason = Succeeded, "all pods succeeded"
	case s.Needed == 0 && g.Size > 0:
		s.Phase, s.Reason = Running, "all pods have ended; "+g.Key.Kind+" "+g.Key.Name+" has not said so yet"
	case len(missing) > 0 || g.Size == 0:
		s.Phase = Incomplete
		s.Reason = g.incomplete(s, missing)
	case s.Bound == 0:
		s.Phase, s.Reason = Ready, fmt.Sprintf("all %d pods are there", live)
		if live < s.Needed {
			s.Reason = fmt.Sprintf("the %d pods that come first are there, %d come once they run", live, s.Needed-live)
		}
	case s.Bound < live || live < s.Needed:
		s.Phase, s.Reason = PartlyBound, fmt.Sprintf("%d of %d pods have a node", s.Bound, s.Needed)
	case s.Running < live:
		s.Phase, s.Reason = AllBound, fmt.Sprintf("%d of %d pods run", s.Running, s.Needed)
	default:
		s.Phase, s.Reason = Running, fmt.Sprintf("all %d pods run", live)
	}
}

// ended takes the owner's word; the pods that are left say whose failure it was.
func (g *Gang) ended(s *State) {
	s.Phase = g.Ending.Phase
	if s.Phase == Succeeded {
		s.Failure, s.Cause, s.Reason = plan.NoFailure, nil, g.Key.Kind+" "+g.Key.Name+" is complete"
		return
	}
	words := strings.TrimSpace(g.Ending.Reason + ": " + g.Ending.Message)
	if s.Reason != "" {
		words += " (" + s.Reason + ")"
	}
	s.Reason = strings.TrimPrefix(words, ": ")
	switch {
	case g.Ending.Reason == "DeadlineExceeded":
		s.Failure = plan.TimeFailure
	case s.Failure == plan.NoFailure:
		s.Failure = plan.UserFailure
	}
}

// incomplete says in words what the gang waits for.
func (g *Gang) incomplete(s *State, missing []string) string {
	words := fmt.Sprintf("%d of %d pods are there", len(s.Members), s.Needed)
	if len(g.Roles) > 1 && len(missing) > 0 {
		words += " (" + strings.Join(missing, ", ") + ")"
	}
	for _, more := range []struct {
		n    int32
		what string
	}{{s.Gated, "held by scheduling gates"}, {s.Claimless, "waiting for their claims to be made"}, {s.Terminating, "terminating"}, {s.Failed, "failed"}} {
		if more.n > 0 {
			words += fmt.Sprintf(", %d %s", more.n, more.what)
		}
	}
	if g.Suspended {
		words += "; " + g.Control.Kind + " " + g.Control.Name + " is suspended"
	}
	if s.Failed > 0 && s.Reason != "" {
		words += ": " + s.Reason
	}
	return words
}
