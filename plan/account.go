package plan

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
)

// Account is what one user of one tenant has used of one device model. Of a job
// everything that occupies devices is charged, starting and stopping included;
// while a run is suspended it is not.
type Account struct {
	Tenant, User, Model int32
	// Held is what is occupied at this moment, in thousandths of devices, since Since.
	Held  int64
	Since unit.Time
	// Used is all that was used up to Since.
	Used unit.DeviceTime
	// Past is what was used and is not forgotten yet, in thousandths of a device times
	// seconds, as of the last ageing; Aged is Used at that moment.
	Past int64
	Aged unit.DeviceTime
	// Before is what of Used is of jobs that are not known any more, of all models; it
	// stands in the first of an owner's accounts.
	Before unit.DeviceTime
}

// AgeEvery is how often past use is aged.
const AgeEvery = 5 * unit.Minute

// used is an account's use up to now.
func (a *Account) used(now unit.Time) unit.DeviceTime {
	return a.Used.Plus(unit.Use(a.Held, now.Sub(a.Since)))
}

// AccountsOf returns the first of the accounts, one per device model, of a user of a
// tenant, opening them if there are none.
func (s *State) AccountsOf(tenant, user int32) int32 {
	key := [2]int32{tenant, user}
	if s.ledger == nil {
		s.ledger = map[[2]int32]int32{}
		for i := 0; i < len(s.Accounts); i += len(s.Cluster.Models) {
			s.ledger[[2]int32{s.Accounts[i].Tenant, s.Accounts[i].User}] = int32(i)
		}
	}
	id, ok := s.ledger[key]
	if !ok {
		id = int32(len(s.Accounts))
		for m := range s.Cluster.Models {
			s.Accounts = append(s.Accounts, Account{Tenant: tenant, User: user, Model: int32(m), Since: s.Now})
		}
		s.ledger[key] = id
	}
	return id
}

// charge begins or ends charging a run for what it holds.
func (s *State) charge(run RunID, begin bool) {
	r := &s.Runs[run]
	if r.Charged == begin {
		return
	}
	j := &s.Jobs[r.Job]
	if begin {
		s.touchRun(run).Charged = true
		r.ChargedAt = s.Now
	} else {
		s.touchRun(run).Charged = false
		s.touchJob(r.Job).Used = j.Used.Plus(unit.Use(s.holds(run), s.Now.Sub(r.ChargedAt)))
	}
	for i := r.First; i != None; i = s.Grants[i].OfRun {
		g := &s.Grants[i]
		if g.Device == None {
			continue
		}
		id := j.Account + s.Nodes[g.Node].Model
		a := s.touchAccount(id)
		a.Used, a.Since = a.used(s.Now), s.Now
		if begin {
			a.Held += int64(g.Reserve)
		} else {
			a.Held -= int64(g.Reserve)
		}
	}
}

// holds is what a run's grants reserve of devices, in thousandths.
func (s *State) holds(run RunID) (milli int64) {
	for i := s.Runs[run].First; i != None; i = s.Grants[i].OfRun {
		if s.Grants[i].Device != None {
			milli += int64(s.Grants[i].Reserve)
		}
	}
	return milli
}

func (s *State) touchAccount(id int32) *Account {
	if s.log != nil {
		s.log.add(undoAccount, id)
		s.log.accounts = append(s.log.accounts, s.Accounts[id])
	}
	return &s.Accounts[id]
}

// SetQueues gives the cluster another tree of queues. Tenants keep their accounts.
func (s *State) SetQueues(t queue.Tree) {
	if s.Queues.HalfLife == 0 { // nothing was aged until now, and nothing is held against anybody
		s.AgedAt = s.Now - s.Now%unit.Time(AgeEvery)
		for i := range s.Accounts {
			s.Accounts[i].Aged = s.Accounts[i].used(s.Now)
		}
	}
	s.Queues = t
	s.queueOf = s.queueOf[:0]
}

// Age forgets a part of past use at every multiple of AgeEvery up to now. What is
// held changes at events only, so that it does not matter when it is called as long
// as it is before the next event.
func (s *State) Age(now unit.Time) {
	if s.Queues.HalfLife == 0 || now < s.AgedAt.Add(AgeEvery) {
		return
	}
	steps := int64(now.Sub(s.AgedAt) / AgeEvery)
	keep := keeps(s.Queues.HalfLife)
	for i := range s.Accounts {
		a := &s.Accounts[i]
		// What was held through the steps is charged step by step, the first with what
		// came before the last event.
		first := a.used(s.AgedAt.Add(AgeEvery)).Minus(a.Aged)
		a.Past = fade(a.Past, keep) + first.MilliSeconds()
		if each := unit.Use(a.Held, AgeEvery).MilliSeconds(); steps > 1 {
			a.Past = later(a.Past, each, keep, steps-1)
		}
		a.Aged = a.used(s.AgedAt.Add(unit.Duration(steps) * AgeEvery))
	}
	s.AgedAt = s.AgedAt.Add(unit.Duration(steps) * AgeEvery)
	s.Ages++
}

// later ages past use by several steps in each of which as much is used.
func later(past, each int64, keep uint64, steps int64) int64 {
	for ; steps > 0; steps-- {
		next := fade(past, keep) + each
		if next == past {
			break // nothing changes any more
		}
		past = next
	}
	return past
}

// keeps is the part of past use that is left after one step, in parts of 2^32.
func keeps(halfLife unit.Duration) uint64 {
	return uint64(math.Exp2(-float64(AgeEvery)/float64(halfLife)) * (1 << 32))
}

func fade(past int64, keep uint64) int64 {
	hi, lo := bits.Mul64(uint64(past), keep)
	return int64(hi<<32 | lo>>32)
}

// Queues is the tree of queues; without queues all jobs are in one.
func (v View) Queues() *queue.Tree { return &v.s.Queues }

// QueueOf is the index in the tree of the queue that a tenant's jobs are in.
func (v View) QueueOf(tenant int32) int32 {
	s := v.s
	for int(tenant) >= len(s.queueOf) {
		s.queueOf = append(s.queueOf, s.Queues.Find(s.Tenants[len(s.queueOf)]))
	}
	return s.queueOf[tenant]
}

// Tenant returns a tenant's name.
func (v View) Tenant(id int32) string { return v.s.Tenants[id] }

// User returns a user's name.
func (v View) User(id int32) string { return v.s.Users[id] }

// Accounts is the number of accounts.
func (v View) Accounts() int { return len(v.s.Accounts) }

// Account returns an account by its number, with its use up to now.
func (v View) Account(id int) Account {
	a := v.s.Accounts[id]
	a.Used, a.Since = a.used(v.s.Now), v.s.Now
	return a
}

// Ages counts how often past use was aged: ranks that come from it hold until then.
func (v View) Ages() int64 { return v.s.Ages }

// JobUsed is what a job has used of devices up to now, starts and stops included.
func (v View) JobUsed(id JobID) unit.DeviceTime {
	j := &v.s.Jobs[id]
	used := j.Used
	for _, run := range [...]RunID{j.Run, j.Leaving} {
		if run != None && v.s.Runs[run].Charged {
			used = used.Plus(unit.Use(v.s.holds(run), v.s.Now.Sub(v.s.Runs[run].ChargedAt)))
		}
	}
	return used
}

// Balance proves that every device-hour is in the books once: what all jobs used is
// what all accounts say, in all and of each tenant and user, and what the accounts
// hold at this moment is what the runs' grants reserve.
func (s *State) Balance() error {
	v := s.View()
	type owner struct{ tenant, user int32 }
	jobs, books := map[owner]unit.DeviceTime{}, map[owner]unit.DeviceTime{}
	held := make([]int64, len(s.Accounts))
	for id := range s.Jobs {
		j := &s.Jobs[id]
		o := owner{j.Tenant, j.User}
		jobs[o] = jobs[o].Plus(v.JobUsed(JobID(id)))
	}
	for id := range s.Runs {
		if r := &s.Runs[id]; r.Status != Gone && r.Charged {
			for i := r.First; i != None; i = s.Grants[i].OfRun {
				if g := &s.Grants[i]; g.Device != None {
					held[s.Jobs[r.Job].Account+s.Nodes[g.Node].Model] += int64(g.Reserve)
				}
			}
		}
	}
	for i := range s.Accounts {
		a := v.Account(i)
		o := owner{a.Tenant, a.User}
		books[o] = books[o].Plus(a.Used)
		jobs[o] = jobs[o].Plus(a.Before)
		if held[i] != a.Held {
			return fmt.Errorf("account %d (%s, %s, %s) holds %d thousandths, the runs' grants say %d", i,
				v.Tenant(a.Tenant), v.User(a.User), s.Cluster.Models[a.Model].Name, a.Held, held[i])
		}
	}
	for i := range s.Accounts {
		o := owner{s.Accounts[i].Tenant, s.Accounts[i].User}
		if jobs[o] != books[o] {
			return fmt.Errorf("the jobs of %s, %s used %v, their accounts say %v", v.Tenant(o.tenant), v.User(o.user), jobs[o], books[o])
		}
	}
	return nil
}
