package advise

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run/kube/gang"
)

// story is what really becomes of a gang, as far as it is known.
type story struct {
	key      gang.Key
	name     string
	pods     map[types.UID]*corev1.Pod
	since    map[types.UID]unit.Time // when a pod got its node
	decided  bool                    // whether it is followed
	followed bool
	made     []*corev1.Pod     // pods that were made of a template, for a Job that is suspended
	shown    map[types.UID]int // pods that the other world has, with the number of their gates
	lost     bool              // a pod of it failed or went: what is made then is made again

	size      int64
	saves     bool // what it has done outlives a stop
	succeeded bool // a pod of it did
	// apart says that its pods do not wait for one another: one succeeded before all
	// had a node.
	apart bool

	held
	turn turn

	started unit.Time // when all had a node first; Never before
	ended   unit.Time // Never before
	ending  ending
}

// held is for how long the pods of a gang had nodes.
type held struct {
	at      unit.Time     // up to when the sums count
	ran     unit.Duration // for which all had a node, but for what was lost
	before  unit.Duration // ran, when it was last lost
	total   unit.Duration // for which all had a node
	used    int64         // microseconds for which pods had a node, added up
	longest unit.Duration // of one pod
}

// ending is how a gang ended.
type ending uint8

const (
	open      ending = iota
	finished         // well
	failed           // by itself, and not well
	withdrawn        // somebody took it away
)

// turn is how a gang stands after a batch of changes.
type turn struct {
	held    int64 // pods that have a node
	whole   bool  // all have that must
	partial bool  // some have, and others that are there have not
	over    bool
}

func newStory(key gang.Key, at unit.Time) *story {
	return &story{key: key, name: key.String(), pods: map[types.UID]*corev1.Pod{}, since: map[types.UID]unit.Time{}, shown: map[types.UID]int{},
		held: held{at: at}, size: 1, started: unit.Never, ended: unit.Never}
}

// age adds up what lasted until now.
func (s *story) age(at unit.Time) {
	if d := at.Sub(s.at); d > 0 && !s.turn.over {
		s.used += s.turn.held * int64(d)
		if s.turn.whole {
			s.ran, s.total = s.ran+d, s.total+d
		}
	}
	s.at = max(s.at, at)
}

// length is how long the gang has really run, and whether that is all it does. Pods of
// a gang wait for one another, so it runs while all of them have a node, and what it
// did is lost when none has any more. Where they do not wait, it is what one of them
// took, or their mean.
func (s *story) length(now unit.Time) (d unit.Duration, known bool) {
	since := max(now.Sub(s.at), 0)
	if s.turn.over {
		since = 0
	}
	if !s.apart {
		if s.turn.whole {
			return s.ran + since, s.turn.over
		}
		return s.ran, s.turn.over
	}
	return max(s.longestOf(since), unit.Duration((s.used+s.turn.held*int64(since))/s.size)), s.turn.over
}

// longestOf is the longest that a pod has had a node, when more has passed since the
// sums count.
func (s *story) longestOf(more unit.Duration) unit.Duration {
	longest := s.longest
	for _, at := range s.since {
		if !s.turn.over {
			longest = max(longest, s.at.Add(more).Sub(at))
		}
	}
	return longest
}

// never reports whether the gang ended without ever having run.
func (s *story) never() bool { return s.turn.over && s.started == unit.Never && !s.apart }

// read brings the story up to date with the gang's pods and owner.
func (s *story) read(at unit.Time, owners gang.Owners) {
	s.age(at)
	if s.turn.over {
		return
	}
	pods := make([]*corev1.Pod, 0, len(s.pods))
	for _, p := range s.pods {
		pods = append(pods, p)
	}
	g, _ := gang.Read(s.key, pods, owners)
	state := g.State(pods)
	if g.Size > 0 {
		s.size, s.saves = int64(g.Size), g.Job.Checkpoint.OnRequest || g.Job.Checkpoint.Every > 0
	}
	was := s.turn
	s.turn = turn{held: int64(len(s.since))}
	s.succeeded = s.succeeded || state.Succeeded > 0
	members := int32(len(state.Members))
	if s.ends(&g, &state) {
		s.longest = s.longestOf(0)
		s.turn = turn{over: true} // what is left of its pods is on its way out
	} else {
		s.turn.whole = state.Bound > 0 && state.Bound == members && state.Phase >= gang.PartlyBound && state.Phase <= gang.Running
		s.turn.partial = state.Bound > 0 && state.Bound < members
	}
	s.apart = s.apart || s.succeeded && s.started == unit.Never
	if s.turn.whole && s.started == unit.Never {
		s.started = at
	}
	switch {
	case s.turn.over:
		s.ended = at
		if s.ending == withdrawn {
			s.ran = max(s.ran, s.before)
		}
	case was.held > 0 && s.turn.held == 0 && !s.succeeded && !s.saves:
		s.before, s.ran = s.ran, 0
	}
}

// ends finds out how the gang ended, if it did: by its owner's account, or when all of
// its pods succeeded and that has not been told yet.
func (s *story) ends(g *gang.Gang, state *gang.State) bool {
	switch {
	case state.Phase == gang.Succeeded, state.Needed == 0 && g.Size > 0 && state.Succeeded > 0 && len(state.Members) == 0:
		s.ending = finished
	case state.Phase == gang.Failed:
		s.ending = failed
	case state.Phase == gang.Gone:
		s.ending = withdrawn
	default:
		return false
	}
	return true
}

// put takes a pod in as it is now.
func (s *story) put(at unit.Time, p *corev1.Pod, gone bool) {
	if gone {
		s.leave(at, p.UID)
		s.lost = s.lost || !ended(s.pods[p.UID])
		delete(s.pods, p.UID)
		return
	}
	s.pods[p.UID] = p
	s.lost = s.lost || p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodFailed
	if p.Spec.NodeName == "" || ended(p) {
		s.leave(at, p.UID)
	} else if _, was := s.since[p.UID]; !was {
		s.since[p.UID] = at
	}
}

func (s *story) leave(at unit.Time, uid types.UID) {
	since, was := s.since[uid]
	if was && !s.turn.over {
		s.longest = max(s.longest, at.Sub(since))
	}
	delete(s.since, uid)
}

// bound reports whether a pod of the gang has or had a node.
func (s *story) bound() bool {
	for _, p := range s.pods {
		if p.Spec.NodeName != "" {
			return true
		}
	}
	return false
}

// ended reports whether a pod occupies nothing any more.
func ended(p *corev1.Pod) bool {
	return p == nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// daemon reports whether a pod belongs to its node.
func daemon(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.OwnerReferences, func(r metav1.OwnerReference) bool { return r.Kind == "DaemonSet" || r.Kind == "Node" })
}
