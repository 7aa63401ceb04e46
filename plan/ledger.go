package plan

import (
	"iter"

	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/queue/share"
)

// Ledgers open ledgers of the queues of a state, and gather anew from it what is written in them.
type Ledgers struct{ v View }

// Ledgers are the ledgers that its queues may have.
func (v View) Ledgers() Ledgers { return Ledgers{v} }

// Empty is the ledger in which nothing is held yet and nothing was used in the past.
func (of Ledgers) Empty() queue.Ledger {
	names, capacity := of.capacity()
	return queue.NewLedger(of.v.Queues(), names, capacity)
}

// Dealer works out what the queues deserve of the cluster.
func (of Ledgers) Dealer() *share.Dealer {
	names, capacity := of.capacity()
	return share.NewDealer(of.v.Queues(), names, capacity)
}

// capacity is how many thousandths of devices there are of each model.
func (of Ledgers) capacity() (names []string, capacity []int64) {
	models := of.v.Cluster().Models
	names, capacity = make([]string, len(models)), make([]int64, len(models))
	for m := range models {
		names[m], capacity[m] = models[m].Name, of.v.Room().All(1<<m)*1000
	}
	return names, capacity
}

// Held is the ledger with what runs that are not on their way out hold, and what was
// used in the past.
func (of Ledgers) Held() queue.Ledger {
	v, l := of.v, of.Empty()
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
	l.Remember(of.Past())
	return l
}

// Deserved is the ledger with what jobs that wait ask for as well, and what each of its
// branches deserves; live are the jobs that have not ended.
func (of Ledgers) Deserved(live iter.Seq[JobID]) queue.Ledger {
	v, l := of.v, of.Held()
	for id := range live {
		if j := &v.s.Jobs[id]; j.Phase == Waiting {
			models, milli := v.Shape(id).Asks()
			l.Wait(l.Leaf(v.QueueOf(j.Tenant)), models, milli)
		}
	}
	of.Dealer().Aim(&l)
	return l
}

// Asks is what a job of the shape asks for of which device models, for its queue to deserve.
func (s *Shape) Asks() (models uint64, milli int64) {
	if s.Devices == 0 {
		return 0, 0
	}
	return s.Models, s.Milli(s.Gang)
}

// Past is, by queue and without those below it, what was used and is not forgotten,
// in thousandths of a device times seconds.
func (of Ledgers) Past() []int64 {
	v := of.v
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
