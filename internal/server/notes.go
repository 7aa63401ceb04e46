package server

import (
	"context"
	"fmt"
	"slices"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/internal/access"
	"github.com/musterdl/muster/internal/spec"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// notes say what was asked for in a submission that was taken and is not held here.
func (b *submissions) notes(ctx context.Context, jobs []workload.Job) (list []string) {
	limited := slices.ContainsFunc(jobs, func(j workload.Job) bool { return j.Memory+j.HostMemory > 0 || j.CPU > 0 })
	if limited && b.notHeld != "" {
		list = append(list, b.notHeld)
	}
	due := slices.IndexFunc(jobs, func(j workload.Job) bool { return j.Deadline > 0 })
	var more []string
	err := b.reader.ask(ctx, func(v plan.View) {
		if c, err := catalogue.Parse("strategy", b.plane.StrategyText()); due >= 0 && err == nil && !c.KeepsDeadlines() {
			more = append(more, fmt.Sprintf("%s makes no promise about deadlines: muster show %s says when that job is expected to end", b.plane.Strategy(), jobs[due].Name))
		}
		more = append(more, strangers(v.Queues(), jobs, access.From(ctx).SeesAll())...)
	})
	if err != nil { // the jobs are there all the same
		return list
	}
	return append(list, more...)
}

// strangers says of tenants that no queue is for where their jobs went, and whom else who sees all may have meant.
func strangers(tree *queue.Tree, jobs []workload.Job, seesAll bool) (list []string) {
	if len(tree.Queues) < 2 {
		return nil
	}
	var names []string
	for i := range tree.Queues[1:] {
		names = append(names, tree.Queues[1+i].Name)
	}
	said := map[string]bool{"": true}
	for i := range jobs {
		tenant := jobs[i].Tenant
		if said[tenant] || tree.Find(tenant) != 0 {
			continue
		}
		said[tenant] = true
		words := fmt.Sprintf("no queue is for tenant %q: what it submits is outside of every queue's share", tenant)
		if near := spec.Nearest(tenant, names); near != "" && seesAll {
			words += fmt.Sprintf("; did you mean %q?", near)
		}
		list = append(list, words)
	}
	return list
}
