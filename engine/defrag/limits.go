package defrag

import (
	"math"

	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/queue"
)

// allowed returns the device models, of a set, of which the queues of a waiting job let
// it take milli more, and where there is none, what stands in the way. Nothing that is
// moved changes what is held, so that this is the same before and after.
func allowed(v plan.View, job plan.JobID, models uint64, milli int64) (uint64, plan.Reason) {
	tree, j := v.Queues(), v.Job(job)
	if len(tree.Queues) == 0 {
		return models, plan.Reason{}
	}
	u := usage{v: v, all: len(v.Cluster().Models), by: make([][]int64, len(tree.Queues)), mine: make([][]int64, len(tree.Queues))}
	u.count(tree, j.User)
	why := plan.Reason{}
	own := map[int32]bool{}
	for at := v.QueueOf(j.Tenant); at >= 0; at = tree.Queues[at].Parent {
		q := &tree.Queues[at]
		own[at] = true
		models = u.within(models, q.Limit, nil, u.by[at], milli, plan.Reason{Code: plan.QueueLimit, A: int64(at)}, &why)
		models = u.within(models, q.Borrow, q.Guarantee, u.by[at], milli, plan.Reason{Code: plan.BorrowLimit, A: int64(at)}, &why)
		models = u.within(models, q.UserLimit, nil, u.mine[at], milli, plan.Reason{Code: plan.UserLimit, A: int64(at)}, &why)
	}
	for at := range tree.Queues {
		if q := &tree.Queues[at]; len(q.Keep) > 0 && !own[int32(at)] {
			models = u.beside(models, q.Keep, u.by[at], milli, int64(at), &why)
		}
	}
	return models, why
}

// usage is what queues hold, by device model, and of all models behind them.
type usage struct {
	v    plan.View
	all  int
	by   [][]int64
	mine [][]int64 // of one user
}

func (u *usage) count(tree *queue.Tree, user int32) {
	for at := range tree.Queues {
		u.by[at], u.mine[at] = make([]int64, u.all+1), make([]int64, u.all+1)
	}
	for id := range plan.RunID(u.v.RunSlots()) {
		r := u.v.Run(id)
		if r.Status == plan.Gone || r.Status == plan.Stopping {
			continue
		}
		j := u.v.Job(r.Job)
		u.v.GrantsOf(id, func(g plan.Grant) {
			if g.Device == plan.None {
				return
			}
			model := u.v.Node(g.Node).Model
			for at := u.v.QueueOf(j.Tenant); at >= 0; at = tree.Queues[at].Parent {
				for _, m := range [...]int{int(model), u.all} {
					u.by[at][m] += int64(g.Reserve)
					if j.User == user {
						u.mine[at][m] += int64(g.Reserve)
					}
				}
			}
		})
	}
}

// amount is what a list says of a model, or of all together; none is what is left out.
func (u *usage) amount(list []queue.Amount, model int, none int64) int64 {
	for i := range list {
		at := u.all
		if id, ok := u.v.Cluster().ModelID(list[i].Model); ok && list[i].Model != "" {
			at = int(id)
		}
		if at == model {
			none = list[i].Milli
		}
	}
	return none
}

// within takes those models out of a set of which milli more would pass a bound, with
// what is guaranteed added to it.
func (u *usage) within(models uint64, bound, base []queue.Amount, used []int64, milli int64, code plan.Reason, why *plan.Reason) uint64 {
	left := func(m int) int64 {
		most := u.amount(bound, m, -1)
		if most < 0 {
			return math.MaxInt64
		}
		return most + u.amount(base, m, 0) - used[m]
	}
	for m := range u.all {
		if room := min(left(m), left(u.all)); models&(1<<m) != 0 && room < milli {
			models &^= 1 << m
			code.B = max(0, room)
			*why = code
		}
	}
	return models
}

// beside takes those models out of which another queue keeps what is idle.
func (u *usage) beside(models uint64, keep []queue.Amount, used []int64, milli, at int64, why *plan.Reason) uint64 {
	for m := range u.all {
		if models&(1<<m) == 0 {
			continue
		}
		of := m
		if u.amount(keep, m, 0) == 0 {
			of = u.all
		}
		kept := max(0, u.amount(keep, of, 0)-used[of])
		if kept > 0 && u.v.Room().FreeMilli(1<<m)-kept < milli {
			models &^= 1 << m
			*why = plan.Reason{Code: plan.KeptBack, A: at, B: kept}
		}
	}
	return models
}
