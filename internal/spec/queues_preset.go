package spec

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/musterdl/muster/experiment/trace"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/queue/share"
	"github.com/musterdl/muster/model/unit"
)

// QueuePreset returns the queues that a name stands for on a cluster of so many
// devices; ok is whether the name is one of a preset and written right.
//
//   - venus and philly have a queue for each virtual cluster of that name
//     (trace.VirtualClusters): its guarantee is its part of the devices, whole ones by
//     largest remainder, its weight its size. What a queue does not use, others may.
//   - queues:NxG is ManyQueues: N queues in G groups, for measurements.
func QueuePreset(name string, devices int) (t queue.Tree, ok bool) {
	if size, many := strings.CutPrefix(name, "queues:"); many {
		n, g, _ := strings.Cut(size, "x")
		queues, err := strconv.ParseUint(n, 10, 32)
		groups, err2 := strconv.ParseUint(g, 10, 32)
		if err != nil || err2 != nil || groups < 1 || queues < groups || queues+groups > maxQueues {
			return queue.Tree{}, false
		}
		return ManyQueues(int(queues), int(groups), devices), true
	}
	clusters := trace.VirtualClusters(name)
	if clusters == nil {
		return queue.Tree{}, false
	}
	t = queue.Flat()
	sizes := make([]int64, len(clusters))
	for i, c := range clusters {
		sizes[i] = c.Size
	}
	for i, whole := range share.Split(int64(devices), sizes) {
		q := queue.Queue{Name: clusters[i].Name, Weight: int32(sizes[i] * int64(unit.Whole))}
		if whole > 0 {
			q.Guarantee = []queue.Amount{{Milli: whole * int64(unit.Whole)}}
		}
		t.Queues = append(t.Queues, q)
	}
	return t, true
}

// ManyQueues makes a tree of queues group0/queue0, group1/queue1, ... in so many groups,
// after which they are dealt out in turn. Half of the devices are guaranteed, to all
// queues alike as far as thousandths go; weights are 1 to 4, in turn.
func ManyQueues(queues, groups, devices int) queue.Tree {
	t := queue.Flat()
	alike := make([]int64, queues)
	for i := range alike {
		alike[i] = 1
	}
	guarantees := share.Split(int64(devices)*int64(unit.Whole)/2, alike)
	for g := range groups {
		group := int32(len(t.Queues))
		name := fmt.Sprintf("group%d", g)
		t.Queues = append(t.Queues, queue.Queue{Name: name, Weight: int32(unit.Whole)})
		for i := g; i < queues; i += groups {
			q := queue.Queue{Name: fmt.Sprintf("%s/queue%d", name, i), Parent: group, Weight: int32(unit.Whole) * int32(1+i%4)}
			if guarantees[i] > 0 {
				q.Guarantee = []queue.Amount{{Milli: guarantees[i]}}
			}
			t.Queues = append(t.Queues, q)
		}
	}
	return t
}

// QueuesFlag returns the queues that a flag --queues names for a cluster, nil where it
// was not given.
func QueuesFlag(ref string, c *cluster.Cluster) (*queue.Tree, error) {
	if ref == "" {
		return nil, nil
	}
	t, err := ResolveQueues(ref, c)
	if err != nil {
		return nil, fmt.Errorf("--queues: %w", err)
	}
	return &t, nil
}

// ResolveQueues returns the queues that ref names for a cluster: a preset, or a file,
// whose device models must be the cluster's.
func ResolveQueues(ref string, c *cluster.Cluster) (queue.Tree, error) {
	if t, ok := QueuePreset(ref, len(c.Devices)); ok {
		return t, nil
	}
	if strings.HasPrefix(ref, "queues:") {
		return queue.Tree{}, fmt.Errorf("queues %q: expected queues:NxG, N queues in G groups, at most %d of both, as in queues:1000x30", ref, maxQueues)
	}
	data, err := ReadFile(ref)
	if errors.Is(err, fs.ErrNotExist) {
		return queue.Tree{}, fmt.Errorf("queues %q: no such file or preset; %s", ref, didYouMean(ref, []string{"venus", "philly", "queues:NxG"}))
	}
	if err != nil {
		return queue.Tree{}, fmt.Errorf("read file of queues: %w", err)
	}
	return Queues(ref, data, c)
}
