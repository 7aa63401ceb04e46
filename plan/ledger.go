package plan

import (
	"iter"

	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/queue/share"
)

// Ledger opens the ledger of the queues of a state, in which nothing is held yet and
// nothing was used in the past.
func (v View) Ledger() queue.Ledger {
	names, capacity := v.capacity()
	return queue.NewLedger(v.Queues(), names, capacity)
}

// Dealer works out what the queues deserve of the cluster.
func (v View) Dealer() *share.Dealer {
	names, capacity := v.capacity()
	return share.NewDealer(v.Queues(), names, capacity)
}

// capacity is how many thousandths of devices there are of each model.
func (v View) capacity() (names []string, capacity []int64) {
	models := v.Cluster().Models
	names, capacity = make([]string, len(models)), make([]int64, len(models))
	for m := range models {
		names[m], capacity[m] = models[m].Name, v.Room().All(1<<m)*1000
	}
	return names, capacity
}

// Held is the ledger with what runs that are not on their way out hold, and what was
// used in the past.
func (v View) Held() queue.Ledger {
	l := v.Ledger()
	for id := range RunID(v.RunSlots()) {
		if r := v.Run(id); r.Status != Gone && r.Status != Stopping {
			leaf, user := l.Leaf(v.QueueOf(v.s.Jobs[r.Job].Tenant)), v.s.Jobs[r.Job].User
			v.GrantsOf(id, func(g Grant) {
				if g.Device != None {
					l.Use(leaf, user, v.s.Nodes[g.Node].Model, int64(g.Reserve))
				}
			})
		}
	}
	l.Remember(v.Past())
	return l
}

// Deserved is the ledger with what jobs that wait ask for as well, and what each of its
// branches deserves; live are the jobs that have not ended.
func (v View) Deserved(live iter.Seq[JobID]) queue.Ledger {
	l := v.Held()
	for id := range live {
		if j := &v.s.Jobs[id]; j.Phase == Waiting {
			models, milli := v.Asks(id)
			l.Wait(l.Leaf(v.QueueOf(j.Tenant)), models, milli)
		}
	}
	v.Dealer().Aim(&l)
	return l
}

// Asks is what a job asks for of which device models, for its queue to deserve.
func (v View) Asks(job JobID) (models uint64, milli int64) {
	shape := v.Shape(job)
	if shape.Devices == 0 {
		return 0, 0
	}
	return shape.Models, shape.Milli(shape.Gang)
}

// Past is, by queue and without those below it, what was used and is not forgotten,
// in thousandths of a device times seconds.
func (v View) Past() []int64 {
	past := make([]int64, max(1, len(v.s.Queues.Queues)))
	for id := range v.s.Accounts {
		past[v.QueueOf(v.s.Accounts[id].Tenant)] += v.s.Accounts[id].Past
	}
	return past
}

// MayTake returns the device models, of a set, of which the queues of a job let it take
// milli, and where there is none, which claim stands in the way.
func (v View) MayTake(l *queue.Ledger, job JobID, models uint64, milli int64) (uint64, queue.Bar) {
	j := &v.s.Jobs[job]
	return l.Allow(l.Leaf(v.QueueOf(j.Tenant)), j.User, models, milli, v.Room())
}

// MayEver is MayTake as if nobody held anything: what it refuses is refused whatever runs.
func (v View) MayEver(l *queue.Ledger, job JobID, models uint64, milli int64) (uint64, queue.Bar) {
	return l.Ever(l.Leaf(v.QueueOf(v.s.Jobs[job].Tenant)), models, milli)
}

// Barred is the reason as which a claim in the way is recorded.
func Barred(b queue.Bar) Reason {
	if b.Kind == queue.NoBar {
		return Reason{}
	}
	return Reason{Code: barCodes[b.Kind], A: int64(b.Queue), B: b.Left()}
}

var barCodes = [...]ReasonCode{queue.AtLimit: QueueLimit, queue.AtBorrow: BorrowLimit, queue.AtUser: UserLimit, queue.KeptByOne: KeptBack}
