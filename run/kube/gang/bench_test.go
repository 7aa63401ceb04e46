package gang

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// BenchmarkGang measures what a gang of 64 pods costs: finding the gang of one pod,
// reading it, and telling its state.
func BenchmarkGang(b *testing.B) {
	objs, pods := change(b, "job-indexed.yaml", "parallelism: 4", "parallelism: 64", "completions: 4", "completions: 64", "elastic: 2-8", "elastic: 2-64")
	var all []*corev1.Pod
	for i := range 64 {
		p := pods[0].DeepCopy()
		p.Name, p.Labels[labelCompletionIndex] = fmt.Sprintf("bert-%d-x", i), fmt.Sprint(i)
		all = append(all, p)
	}
	key, _ := Find(all[0], objs)
	g, problems := Read(key, all, objs)
	if g.Size != 64 || len(problems) > 0 {
		b.Fatal(g.Size, problems)
	}
	b.Run("find", func(b *testing.B) {
		for b.Loop() {
			Find(all[7], objs)
		}
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			Read(key, all, objs)
		}
	})
	b.Run("state", func(b *testing.B) {
		for b.Loop() {
			g.State(all)
		}
	})
}
