package explain

import (
	"math"

	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/queue"
)

// sums are what the queues hold, each with those below it, by device model and in all
// behind that; user is the same of the job's user alone.
type sums struct {
	used, user [][]int64
}

// sumUp adds up what runs that are not on their way out hold.
func sumUp(v plan.View, user int32) (s sums) {
	list, models := v.Queues().Queues, len(v.Cluster().Models)
	for range list {
		s.used, s.user = append(s.used, make([]int64, models+1)), append(s.user, make([]int64, models+1))
	}
	if len(list) == 0 {
		return s
	}
	for id := range plan.RunID(v.RunSlots()) {
		r := v.Run(id)
		if r.Status == plan.Gone || r.Status == plan.Stopping {
			continue
		}
		j := v.Job(r.Job)
		at := v.QueueOf(j.Tenant)
		v.GrantsOf(id, func(g plan.Grant) {
			if g.Device == plan.None {
				return
			}
			for _, m := range [...]int32{v.Node(g.Node).Model, int32(models)} {
				s.used[at][m] += int64(g.Reserve)
				if j.User == user {
					s.user[at][m] += int64(g.Reserve)
				}
			}
		})
	}
	for i := len(list) - 1; i > 0; i-- { // parents come before their children
		for m := range models + 1 {
			s.used[list[i].Parent][m] += s.used[i][m]
			s.user[list[i].Parent][m] += s.user[i][m]
		}
	}
	return s
}

// amount is what a list says of a model, or of all models together; none if nothing.
func amount(v plan.View, list []queue.Amount, model int, none int64) int64 {
	for _, a := range list {
		id, known := v.Cluster().ModelID(a.Model)
		if a.Model == "" && model == len(v.Cluster().Models) || a.Model != "" && known && int(id) == model {
			return a.Milli
		}
	}
	return none
}

// bound is a limit that stands in the way.
type bound struct {
	code  plan.ReasonCode
	queue int32
	model int // len(models) is all of them together
	most  int64
	used  int64
}

// tightest is the limit on the job's way to the root that keeps it from every model,
// if there is one; left are the models that no limit keeps it from.
func (q *question) tightest() (why bound, left uint64) {
	left = q.shape.Models & (1<<len(q.v.Cluster().Models) - 1)
	if len(q.sums.used) == 0 || q.wants() == 0 {
		return why, left
	}
	list := q.v.Queues().Queues
	for at := q.v.QueueOf(q.job.Tenant); at >= 0; at = list[at].Parent {
		of := &list[at]
		for _, c := range [...]struct {
			code plan.ReasonCode
			list []queue.Amount
			used []int64
		}{{plan.QueueLimit, of.Limit, q.sums.used[at]}, {plan.BorrowLimit, of.Borrow, q.sums.used[at]}, {plan.UserLimit, of.UserLimit, q.sums.user[at]}} {
			for m := range len(q.v.Cluster().Models) {
				if left&(1<<m) == 0 || len(c.list) == 0 {
					continue
				}
				b := bound{code: c.code, queue: at, most: math.MaxInt64}
				for _, model := range [...]int{m, len(q.v.Cluster().Models)} {
					most := amount(q.v, c.list, model, -1)
					if most < 0 {
						continue
					}
					if c.code == plan.BorrowLimit {
						most += amount(q.v, of.Guarantee, model, 0)
					}
					if b.most == math.MaxInt64 || most-c.used[model] < b.most-b.used {
						b.model, b.most, b.used = model, most, c.used[model]
					}
				}
				if b.most != math.MaxInt64 && b.most-b.used < q.wants() {
					left &^= 1 << m
					why = b
				}
			}
			if left == 0 {
				return why, 0
			}
		}
	}
	return why, left
}

// kept is what queues that the job is not in keep idle of a model, and the first of
// them.
func (q *question) kept(model int) (queue int32, milli int64) {
	queue = plan.None
	all := len(q.v.Cluster().Models)
	for i := range q.sums.used {
		of := &q.v.Queues().Queues[i]
		if len(of.Keep) == 0 || q.in(int32(i), q.job.Tenant) {
			continue
		}
		keep := max(0, amount(q.v, of.Keep, model, 0)-q.sums.used[i][model])
		if amount(q.v, of.Keep, model, 0) == 0 {
			keep = max(0, amount(q.v, of.Keep, all, 0)-q.sums.used[i][all])
		}
		if keep > milli { // each alone stands in the way, they do not add up
			queue, milli = int32(i), keep
		}
	}
	return queue, milli
}

// in reports whether a tenant's jobs are in a queue or below it.
func (q *question) in(queue, tenant int32) bool {
	for at := q.v.QueueOf(tenant); at >= 0; at = q.v.Queues().Queues[at].Parent {
		if at == queue {
			return true
		}
	}
	return false
}

// guaranteed reports whether a job's smallest size is within what a queue that it is
// in is guaranteed.
func (q *question) guaranteed(id plan.JobID) bool {
	if len(q.sums.used) < 2 {
		return false
	}
	shape, list, all := q.v.Shape(id), q.v.Queues().Queues, len(q.v.Cluster().Models)
	n := shape.Gang
	if shape.Elastic() {
		n = min(n, shape.Sizes[0])
	}
	for at := q.v.QueueOf(q.v.Job(id).Tenant); at >= 0; at = list[at].Parent {
		for m := range all {
			if shape.Models&(1<<m) == 0 {
				continue
			}
			g, used := amount(q.v, list[at].Guarantee, m, 0), q.sums.used[at][m]
			if g == 0 {
				g, used = amount(q.v, list[at].Guarantee, all, 0), q.sums.used[at][all]
			}
			if g > 0 && used+shape.Milli(n) <= g {
				return true
			}
		}
	}
	return false
}
