package view

import (
	"cmp"
	"iter"
	"math/big"
	"slices"

	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/queue/share"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/obstacle"
)

// Shares is how all queues stand, the root first and parents before their children.
type Shares struct {
	AtUs        int64        `json:"at_us"`
	HalfLifeSec float64      `json:"half_life_s"` // 0: past use does not count
	Queues      []QueueShare `json:"queues"`
}

// Amounts are devices of a queue together with the queues below it.
type Amounts struct {
	Guarantee float64 `json:"guarantee_devices"`
	Limit     float64 `json:"limit_devices"` // -1 is none
	Wanted    float64 `json:"wanted_devices"`
	Deserved  float64 `json:"deserved_devices"`
	Used      float64 `json:"used_devices"`
	Borrowed  float64 `json:"borrowed_devices"`
	Lent      float64 `json:"lent_devices"`
	AtRisk    float64 `json:"at_risk_devices"`
}

// ModelAmounts are the amounts of one device model.
type ModelAmounts struct {
	Model string `json:"model"`
	Amounts
}

// QueueShare is how one queue stands.
type QueueShare struct {
	Name     string  `json:"name"` // empty for the root, which all jobs are below
	Parent   string  `json:"parent"`
	Weight   float64 `json:"weight"`
	Priority int32   `json:"priority"`
	// Turn is its place among its siblings in the order in which decisions serve them, 1
	// first, by what they deserve and hold (queue.Ledger); jobs that wait in the parent
	// itself are one more sibling.
	Turn int32 `json:"turn"`
	Amounts
	ByModel []ModelAmounts `json:"by_model,omitempty"` // where there are several models
	// PastHours is past use as decisions count it: less by half after each half-life.
	PastHours float64 `json:"past_device_hours"`
	// InPieces is what a job wants that waits within the guarantee and cannot have it, since
	// as much is free, but in no one piece; 0 where there is none. Of several the largest.
	InPieces   float64 `json:"in_pieces_devices"`
	Waiting    int     `json:"waiting_jobs"`
	Running    int     `json:"running_jobs"`
	Arithmetic string  `json:"arithmetic"` // how Deserved came about
}

// queuesOf is the tree of queues; where there is none, that of one queue.
func queuesOf(v plan.View) *queue.Tree {
	if t := v.Queues(); len(t.Queues) > 0 {
		return t
	}
	return &queue.Tree{Queues: []queue.Queue{queue.Root()}}
}

// vectors makes an empty vector for each queue.
func vectors(queues, models int) []share.Vector {
	all, list := make(share.Vector, queues*models), make([]share.Vector, queues)
	for i := range list {
		list[i] = all[i*models : (i+1)*models]
	}
	return list
}

// SharesOf says who deserves what and has what, as decisions reckon it. Live are the jobs that
// have not ended. What a queue wants is what its runs hold that are not on their way out, and
// what its waiting jobs ask for; a job that may run on several models is counted for the one
// that it has grants of, else in proportion to what there is of them.
func SharesOf(v plan.View, live iter.Seq[plan.JobID]) Shares {
	tree, models, ledger := queuesOf(v), v.Cluster().Models, v.Ledgers().Deserved(live)
	in := share.Input{Tree: tree, Capacity: make(share.Vector, len(models)), Past: make([]int64, len(tree.Queues)),
		Held: vectors(len(tree.Queues), len(models)), Demand: vectors(len(tree.Queues), len(models))}
	past := v.Ledgers().Past()
	for m := range models {
		in.Models = append(in.Models, models[m].Name)
		in.Capacity[m] = v.Room().All(1<<m) * 1000
		for q := range tree.Queues {
			in.Demand[q][m] = ledger.Wanted(ledger.Leaf(int32(q)), int32(m))
		}
	}
	for q, milli := range past {
		in.Past[q] = tree.Average(milli)
	}
	for id := range v.Accounts() {
		a := v.Account(id)
		in.Held[v.QueueOf(a.Tenant)][a.Model] += a.Held
	}
	waiting, running, inPieces := make([]int, len(tree.Queues)), make([]int, len(tree.Queues)), make([]int64, len(tree.Queues))
	asked := map[[2]int32]bool{} // of which queue and shape
	for id := range live {
		j := v.Job(id)
		q := v.QueueOf(j.Tenant)
		switch j.Phase {
		case plan.Active:
			running[q]++
		case plan.Waiting:
			waiting[q]++
			if kind := [2]int32{q, j.Shape}; !asked[kind] {
				asked[kind] = true
				if obstacle.InPieces(v, &ledger, id) {
					inPieces[q] = max(inPieces[q], v.Shape(id).Milli(v.Shape(id).Least()))
				}
			}
		}
	}
	out := Shares{AtUs: int64(v.Now()), HalfLifeSec: tree.HalfLife.Seconds(), Queues: make([]QueueShare, len(tree.Queues))}
	list, turns := share.Compute(in), ledger.Turns()
	for i := len(tree.Queues) - 1; i >= 0; i-- {
		q := &tree.Queues[i]
		out.Queues[i] = QueueShare{Name: q.Name, Weight: whole(q.Weight), Priority: q.Priority, Turn: turns[i], PastHours: float64(past[i]) / 1000 / 3600,
			InPieces: whole(inPieces[i]), Waiting: waiting[i], Running: running[i], Arithmetic: list[i].Arithmetic}
		out.Queues[i].Amounts, out.Queues[i].ByModel = amountsOf(&list[i], q, in.Models)
		if p := q.Parent; p >= 0 {
			out.Queues[i].Parent = tree.Queues[p].Name
			past[p] += past[i]
			waiting[p] += waiting[i]
			running[p] += running[i]
		}
	}
	return out
}

// amountsOf sums a share over the models, and says it by model where there are several.
func amountsOf(s *share.Share, q *queue.Queue, models []string) (all Amounts, each []ModelAmounts) {
	sum := func(x share.Vector) (milli int64) {
		for _, y := range x {
			milli += y
		}
		return milli
	}
	total, byModel := limits(q, models)
	all = Amounts{whole(sum(s.Guarantee)), total, whole(sum(s.Demand)), whole(sum(s.Deserved)), whole(sum(s.Held)), whole(sum(s.Borrowed)), whole(sum(s.Lent)), whole(sum(s.AtRisk))}
	if len(models) == 1 {
		return all, nil
	}
	for m, name := range models {
		each = append(each, ModelAmounts{name, Amounts{whole(s.Guarantee[m]), byModel[m], whole(s.Demand[m]), whole(s.Deserved[m]), whole(s.Held[m]),
			whole(s.Borrowed[m]), whole(s.Lent[m]), whole(s.AtRisk[m])}})
	}
	return all, each
}

// limits are a queue's over all models and by model; -1 is none. Where each model has
// one, there is one over all.
func limits(q *queue.Queue, models []string) (total float64, byModel []float64) {
	total = -1
	byModel = make([]float64, len(models))
	listed, sum := 0, int64(0)
	for m, name := range models {
		byModel[m] = -1
		for _, a := range q.Limit {
			if a.Model == name {
				byModel[m] = whole(a.Milli)
				listed++
				sum += a.Milli
			}
		}
	}
	if listed == len(models) && listed > 0 {
		total = whole(sum)
	}
	for _, a := range q.Limit {
		if a.Model == "" && (total < 0 || whole(a.Milli) < total) {
			total = whole(a.Milli)
		}
	}
	return total, byModel
}

// UsedOf is what each queue of the tree uses together with those below it, in
// thousandths of devices, and the names of the queues.
func UsedOf(v plan.View) (names []string, milli []int64) {
	tree := queuesOf(v)
	names, milli = make([]string, len(tree.Queues)), make([]int64, len(tree.Queues))
	for id := range v.Accounts() {
		a := v.Account(id)
		milli[v.QueueOf(a.Tenant)] += a.Held
	}
	for i := len(tree.Queues) - 1; i >= 0; i-- {
		names[i] = tree.Queues[i].Name
		if p := tree.Queues[i].Parent; p >= 0 {
			milli[p] += milli[i]
		}
	}
	return names, milli
}

// ShareHistory is what queues used at instants of the past.
type ShareHistory struct {
	Queues []string     `json:"queues"`
	Points []SharePoint `json:"points"`
}

// SharePoint is one instant; its numbers are in the order of the queues.
type SharePoint struct {
	AtUs int64     `json:"at_us"`
	Used []float64 `json:"used_devices"`
}

// Accounts are the books of device time.
type Accounts struct {
	AtUs     int64     `json:"at_us"`
	Accounts []Account `json:"accounts"`
	Total    Use       `json:"total"` // of those listed
	Balanced bool      `json:"balanced"`
	Balance  string    `json:"balance"` // in words
}

// Use is device time, in words for people and to the last unit.
type Use struct {
	DeviceHours float64 `json:"device_hours"`
	Exact       string  `json:"used_millidevice_us"` // an integer of up to 128 bits
}

// Account is what one user of one tenant used of one device model.
type Account struct {
	Tenant string `json:"tenant"`
	User   string `json:"user"`
	Model  string `json:"model"`
	Queue  string `json:"queue"` // that the tenant's jobs are in
	Use
	Held      float64 `json:"held_devices"`
	PastHours float64 `json:"past_device_hours"`
}

// AccountsOf lists the accounts that sees admits and that anything is in, by tenant,
// user and model, and their exact sum. Whether the books balance is not known here.
func AccountsOf(v plan.View, sees func(tenant, user string) bool) Accounts {
	out := Accounts{AtUs: int64(v.Now()), Accounts: []Account{}}
	tree := queuesOf(v)
	var total unit.DeviceTime
	for id := range v.Accounts() {
		a := v.Account(id)
		tenant, user := v.Tenant(a.Tenant), v.User(a.User)
		if a.Held == 0 && a.Used == (unit.DeviceTime{}) || !sees(tenant, user) {
			continue
		}
		total = total.Plus(a.Used)
		out.Accounts = append(out.Accounts, Account{Tenant: tenant, User: user, Model: v.Cluster().Models[a.Model].Name,
			Queue: tree.Queues[v.QueueOf(a.Tenant)].Name, Use: useOf(a.Used), Held: whole(a.Held), PastHours: float64(a.Past) / 1000 / 3600})
	}
	slices.SortFunc(out.Accounts, func(a, b Account) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.User, b.User), cmp.Compare(a.Model, b.Model))
	})
	out.Total = useOf(total)
	return out
}

func useOf(t unit.DeviceTime) Use {
	exact := new(big.Int).SetUint64(t.Hi)
	exact.Lsh(exact, 64).Or(exact, new(big.Int).SetUint64(t.Lo))
	return Use{DeviceHours: t.Hours(), Exact: exact.String()}
}
