package driver

import (
	"context"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/musterdl/muster/run/kube/api"
	"github.com/musterdl/muster/run/kube/filter"
	"github.com/musterdl/muster/run/kube/gang"
)

// Riders are pods of a gang that ask for no device while the others do: the head of a
// Ray cluster, a launcher, a parameter server. The engine's workers are alike, and it
// would keep devices idle for them. They ride along: they start and stop with the gang,
// on its nodes where they fit or else anywhere, and what they use counts as others' use.

// sortRiders finds out which roles of a gang ride.
func (c *Core) sortRiders(e *entry) {
	e.riders, e.riding = nil, 0
	if len(e.gang.Roles) < 2 || !c.fleet.Known() {
		return
	}
	most, devices := int32(0), make([]int32, len(e.gang.Roles))
	for i := range e.gang.Roles {
		if t := e.gang.Roles[i].Template; t != nil {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: e.key.Namespace, Name: e.key.Name}, Spec: t.Spec}
			if need, problem := c.fleet.Ask(pod); problem.None() {
				devices[i] = need.Devices
			}
		}
		most = max(most, devices[i])
	}
	for i := range devices {
		if most > 0 && devices[i] == 0 && e.gang.Roles[i].Template != nil {
			e.riders = append(e.riders, i)
			e.riding += e.gang.Roles[i].Count
		}
	}
}

// rides reports whether a pod is a rider.
func (e *entry) rides(p *corev1.Pod) bool {
	if len(e.riders) == 0 {
		return false
	}
	role, _, ok := e.gang.Place(p)
	return ok && slices.Contains(e.riders, role)
}

// along are the riders among the members of a gang.
func (e *entry) along(s *gang.State) (list []*member) {
	for _, p := range s.Members {
		if e.rides(p) {
			list = append(list, e.pods[p.UID])
		}
	}
	return list
}

// board finds nodes for the riders that have none, beside the pods of the gang that are
// about to be bound, and reports whether there are such.
func (rn *runs) board(e *entry, fresh []int, riders []*member) (boarding []filter.Placed, ok bool) {
	x := e.run
	var placed []filter.Placed
	for _, i := range fresh {
		placed = append(placed, filter.Placed{Pod: x.workers[i].pod.pod, Node: x.workers[i].node})
	}
	for _, m := range riders {
		if m.pod.Spec.NodeName != "" || x.boarded[m.pod.UID] != "" {
			continue
		}
		node, found := rn.berth(x, m.pod, placed)
		if !found {
			return nil, false
		}
		p := filter.Placed{Pod: m.pod, Node: node}
		placed, boarding = append(placed, p), append(boarding, p)
	}
	return boarding, true
}

// berth is a node where a rider fits beside what is placed: one of the gang's, or else
// the first that is allowed.
func (rn *runs) berth(x *execution, p *corev1.Pod, placed []filter.Placed) (string, bool) {
	var nodes []string
	for i := range x.workers {
		if !slices.Contains(nodes, x.workers[i].node) {
			nodes = append(nodes, x.workers[i].node)
		}
	}
	if rn.config.Filter == nil {
		return nodes[0], true
	}
	if set, err := rn.config.Filter.Nodes(context.Background(), p); err == nil {
		nodes = append(nodes, set.Allowed...)
	}
	for _, node := range nodes {
		refusal, err := rn.config.Filter.Check(context.Background(), append(slices.Clone(placed), filter.Placed{Pod: p, Node: node}))
		if err == nil && refusal == nil {
			return node, true
		}
	}
	return "", false
}

// bindRider puts a rider on its node.
func (rn *runs) bindRider(e *entry, at filter.Placed) {
	x, hold, pods := e.run, rn.config.Filter, rn.config.Pods
	if x.boarded == nil {
		x.boarded = map[types.UID]string{}
	}
	x.boarded[at.Pod.UID] = at.Node
	notes := map[string]string{noteJob: strconv.Itoa(int(e.job)), noteAttempt: strconv.Itoa(int(x.attempt))}
	rn.box.do(Task{Lane: Binding, About: at.Pod.Name,
		Do: func(ctx context.Context) error {
			if hold == nil {
				return pods.Bind(ctx, at.Pod, at.Node, notes)
			}
			return reserveAndBind(ctx, hold, pods, at.Pod, at.Node, notes)
		},
		Then: func(err error) {
			if err != nil && !api.IsConflict(err) {
				delete(x.boarded, at.Pod.UID) // another node is looked for
			}
			rn.again.stir(e)
		}})
}

// ashore sends riders away and returns how many are not gone yet.
func (rn *runs) ashore(e *entry, why string, evict bool) (left int) {
	if len(e.riders) == 0 {
		return 0
	}
	for _, p := range e.list() {
		bound := p.Spec.NodeName != "" || e.run.boarded[p.UID] != ""
		if !bound || !e.rides(p) || ended(p) || p.DeletionTimestamp != nil && rn.fleet.Shut(p.Spec.NodeName) {
			continue
		}
		left++
		if evict && p.Spec.NodeName != "" {
			rn.evict(e, p, why)
		}
	}
	return left
}
