package gavel

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/mechanism/rank"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Policy is the strategy. Beside the configuration and the question that is out, all
// it keeps is its memory.
type Policy struct {
	config Config
	memory
	fresh   *reply // learned and not yet taken in
	posed   unit.Time
	waiting bool // for the answer
	widest  []width
	order   rank.Order
	round   Round     // of this decision, with the memory of those before, as all below
	figures []float64 // its rows
	who     []int     // whose they are, by place among p.jobs
}

// width is how many devices a job wants, in thousandths, and its place among p.jobs.
type width struct {
	milli int64
	job   int
}

var (
	_ allocate.Joint       = (*Policy)(nil)
	_ allocate.Rotating    = (*Policy)(nil)
	_ allocate.Slow        = (*Policy)(nil)
	_ strategy.Remembering = (*Policy)(nil)
)

// New returns the policy; the configuration must be valid.
func New(c Config) *Policy {
	return &Policy{config: c, memory: memory{roundEnd: -1, divided: -1}, posed: -1}
}

// question is what Solve needs to know; what it is about goes out and comes back.
type question struct {
	Jobs    []plan.JobID
	Room    []int64
	Problem Problem
}

// reply is a division, in millionths of a job's time.
type reply struct {
	Jobs []plan.JobID
	Room []int64
	X    [][]int64
	Twin bool `json:",omitempty"` // the twin divided
}

const micro = 1e6

// Question asks for a division when jobs have come or gone, or devices have, and the
// last one is old enough.
func (p *Policy) Question(v plan.View, jobs []plan.JobID) []byte {
	young := p.divided >= 0 && v.Now() < p.divided.Add(p.config.recompute())
	if len(jobs) == 0 || young || p.fresh != nil || p.posed == v.Now() {
		return nil
	}
	types := survey(v)
	stale := p.ended || !slices.Equal(types.room, p.room) ||
		slices.ContainsFunc(jobs, func(id plan.JobID) bool { i, ok := p.find(id); return !ok || !p.jobs[i].answered })
	if !stale {
		return nil
	}
	q := question{Room: types.room, Problem: Problem{Policy: p.config.Policy, Price: prices(v)}}
	for _, w := range types.room {
		q.Problem.Room = append(q.Problem.Room, float64(w)/1000)
	}
	for _, id := range jobs {
		if gang := v.Shape(id).Milli(v.Shape(id).Gang); gang > 0 {
			q.Jobs = append(q.Jobs, id)
			q.Problem.add(v, id, types.rates(v, id, make([]float64, len(types.room))), float64(gang)/1000)
		}
	}
	p.posed, p.waiting = v.Now(), true
	b, err := json.Marshal(q)
	if err != nil {
		panic("gavel: " + err.Error()) // plain figures always encode
	}
	return b
}

// add appends one job to the problem.
func (p *Problem) add(v plan.View, id plan.JobID, rates []float64, gang float64) {
	j, done := v.Job(id), v.Work(id)
	left, known := v.Left(id)
	if !known {
		left = max(done, unit.Hour)
	}
	age, slo := v.Now().Sub(j.Submit), unit.Duration(0)
	if j.Deadline > 0 {
		slo = max(j.Deadline-age, unit.Second)
	}
	p.Rate, p.Gang = append(p.Rate, rates), append(p.Gang, gang)
	p.Steps, p.Done = append(p.Steps, max(left.Seconds(), 1)), append(p.Done, done.Seconds())
	p.AgeSec, p.SLOSec = append(p.AgeSec, age.Seconds()), append(p.SLOSec, slo.Seconds())
}

// Solve divides; it follows from the question alone. Where the program fails its twin
// answers.
func (p *Policy) Solve(asked []byte) ([]byte, error) {
	var q question
	if err := json.Unmarshal(asked, &q); err != nil {
		return nil, fmt.Errorf("gavel's question: %w", err)
	}
	var s Shares
	exact := len(q.Jobs) <= p.config.MostJobs
	if exact {
		var err error
		s, err = Divide(q.Problem)
		exact = err == nil
	}
	if !exact {
		var err error
		if s, err = Greedy(q.Problem); err != nil {
			return nil, fmt.Errorf("gavel's division: %w", err)
		}
	}
	r := reply{Jobs: q.Jobs, Room: q.Room, Twin: !exact}
	for _, x := range s.X {
		parts := make([]int64, len(x))
		for k := range x {
			parts[k] = int64(math.Round(x[k] * micro))
		}
		r.X = append(r.X, parts)
	}
	return json.Marshal(r)
}

// Learn keeps a division until the next decision; one that cannot be read is none.
func (p *Policy) Learn(answer []byte) {
	p.fresh, p.waiting = &reply{}, false
	if json.Unmarshal(answer, p.fresh) != nil || len(p.fresh.Jobs) != len(p.fresh.X) {
		p.fresh = nil
	}
}

// Turn is a round: jobs share time by design, and in each round those go on that have had less than their part.
func (p *Policy) Turn() unit.Duration { return p.config.round() }

// Wishes keeps the round's types until its end, or until a new division has come, and
// then assigns them anew. Within a round only who waits is given what is free. A job
// that is to change its type is stopped first; its devices' next job follows.
func (p *Policy) Wishes(v plan.View, jobs []plan.JobID, into []allocate.Wish) ([]allocate.Wish, unit.Time) {
	types := survey(v)
	p.book(v, jobs, len(types.room))
	if p.fresh != nil {
		p.adopt(v.Now(), p.fresh)
		p.fresh, p.roundEnd = nil, v.Now()
	}
	if v.Now() >= p.roundEnd {
		p.roundEnd = v.Now().Add(p.config.round())
		for i := range p.jobs {
			p.jobs[i].kind = plan.None
		}
	}
	if !p.waiting || p.posed != v.Now() { // else the answer is at hand: whoever waits waits for it
		p.assign(v, types)
	}
	own := plan.Reason{Code: plan.RoundPlan}
	if p.twin > 0 {
		own.A, own.B = p.twin, int64(p.config.MostJobs)
	}
	p.widest = p.widest[:0]
	for i := range p.jobs {
		s := &p.jobs[i]
		shape := v.Shape(s.job)
		milli := shape.Milli(shape.Gang)
		if milli == 0 || s.kind != plan.None && (s.on == plan.None || s.on == s.kind) {
			p.widest = append(p.widest, width{milli, i})
		} else if p.twin > 0 && s.kind == plan.None && v.RunOf(s.job) == plan.None {
			into = append(into, allocate.Wish{Job: s.job, Reason: own}) // it waits as it would without, and is told why
		}
	}
	p.order.Begin(len(p.widest))
	for i := range p.widest {
		p.order.Keys[i] = math.MaxInt64 - uint64(p.widest[i].milli) // the widest first
	}
	for _, i := range p.order.Sort() {
		wide := &p.widest[i]
		s := &p.jobs[wide.job]
		w := allocate.Wish{Job: s.job, Workers: v.Shape(s.job).Gang, Reason: own}
		if wide.milli > 0 {
			w.Models = 1 << s.kind
		}
		into = append(into, w)
	}
	if len(jobs) == 0 {
		return into, unit.Never
	}
	return into, p.roundEnd
}

// assign gives the jobs without a type one for the rest of the round.
func (p *Policy) assign(v plan.View, types kinds) {
	r := &p.round
	r.Credit, r.Room = float64(p.config.round())/2, r.Room[:0]
	r.X, r.Got, r.Deficit, r.Rate, r.Gang = r.X[:0], r.Got[:0], r.Deficit[:0], r.Rate[:0], r.Gang[:0]
	for _, w := range types.room {
		r.Room = append(r.Room, int(w))
	}
	n := len(types.room)
	speed := make([]float64, n) // of a type for all jobs together
	p.who, p.figures = p.who[:0], append(p.figures[:0], make([]float64, 4*n*len(p.jobs))...)
	left := p.figures
	row := func() (row []float64) { // another job's, by type
		row, left = left[:n:n], left[n:]
		return row
	}
	for i := range p.jobs {
		s := &p.jobs[i]
		shape := v.Shape(s.job)
		gang := int(shape.Milli(shape.Gang))
		if gang == 0 {
			continue
		}
		rates := types.rates(v, s.job, row())
		if fastest := slices.Max(rates); fastest > 0 {
			for k, rate := range rates {
				speed[k] += rate / fastest
			}
		}
		if s.kind != plan.None {
			r.Room[s.kind] -= gang
			clear(rates) // it has its type; what it got still counts
		}
		p.who = append(p.who, i)
		r.X, r.Got, r.Deficit = append(r.X, floats(s.x, row())), append(r.Got, floats(s.got, row())), append(r.Deficit, floats(s.deficit, row()))
		r.Rate, r.Gang = append(r.Rate, rates), append(r.Gang, gang)
	}
	r.Turn = p.turn(speed)
	for i, k := range r.Assign() {
		if k >= 0 {
			p.jobs[p.who[i]].kind = int32(k)
		}
	}
}

// turn is the order in which types are filled: the fastest first; the agnostic policy,
// which does not know, draws it.
func (p *Policy) turn(speed []float64) []int {
	turn := make([]int, len(speed))
	for k := range turn {
		turn[k] = k
	}
	if p.config.Policy == Agnostic {
		rand.New(rand.NewPCG(p.config.Seed, uint64(p.roundEnd))).Shuffle(len(turn), func(i, j int) { turn[i], turn[j] = turn[j], turn[i] })
		return turn
	}
	slices.SortStableFunc(turn, func(a, b int) int { return cmp.Compare(speed[b], speed[a]) })
	return turn
}

func floats(xs []int64, fs []float64) []float64 {
	for i, x := range xs {
		fs[i] = float64(x)
	}
	return fs
}

// kinds are the device types as they are now, by model, in thousandths of a device.
type kinds struct {
	room   []int64 // that runs may be on
	widest []int64 // on the largest node
}

func survey(v plan.View) kinds {
	t := kinds{make([]int64, v.Room().Models()), make([]int64, v.Room().Models())}
	for id := range plan.NodeID(v.Nodes()) {
		n := v.Node(id)
		if n.Status != plan.Up {
			continue
		}
		t.widest[n.Model] = max(t.widest[n.Model], int64(n.Count)*1000)
		for d := n.First; d < n.First+plan.DeviceID(n.Count); d++ {
			if !v.Device(d).Status.Out() {
				t.room[n.Model] += 1000
			}
		}
	}
	return t
}

// rates are a job's believed rates as a gang, 1 being what it asked for; on several
// nodes where none can hold it.
func (t kinds) rates(v plan.View, id plan.JobID, rates []float64) []float64 {
	shape := v.Shape(id)
	need := shape.Milli(shape.Gang)
	for k := range rates {
		if need <= t.room[k] {
			rates[k] = float64(v.Rate(id, int32(k), shape.Gang, need > t.widest[k])) / micro
		}
	}
	return rates
}

// prices are what a device of each model costs per hour, 1 where nobody says.
func prices(v plan.View) []float64 {
	price := make([]float64, v.Room().Models())
	for k := range price {
		price[k] = 1
	}
	for i := range v.Cluster().Nodes {
		if n := &v.Cluster().Nodes[i]; n.MilliPerHour > 0 && n.Count > 0 {
			price[n.Model] = float64(n.MilliPerHour) / 1000 / float64(n.Count)
		}
	}
	return price
}

// modelOf is the device model a job's run is on; None where it has none.
func modelOf(v plan.View, id plan.JobID) (model int32) {
	run := v.RunOf(id)
	if model = plan.None; run != plan.None {
		v.GrantsOf(run, func(g plan.Grant) { model = v.Node(g.Node).Model })
	}
	return model
}
