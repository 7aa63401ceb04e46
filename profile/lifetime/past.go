// Package lifetime is how long jobs run, as a distribution, by what finished and running jobs tell.
//
// Of those who came to a step of running time, what part ended there: that is counted for all jobs,
// for those of like size, kind, tenant, user, command and name, and for a user's latest, and each is weighed
// against what the coarser ones say (Kaplan and Meier 1958, with a prior). Running times are counted as on the
// workers that a job asked for; of one with a declared time they are counted as parts of that, so
// that a declaration is worth what its user's earlier ones were. Where a change of work comes, the
// latest jobs tell within a few of them, if jobs in a row are alike at all.
package lifetime

import (
	"slices"
	"strings"
	"unicode"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// group is what jobs have in common. Those with a declared time are apart from others, since what
// is counted of them is a part of that.
type group struct {
	declared                                 bool
	tenant, user, class, gang, command, name int32
}

const anyone = -1

// levels is how many groups a job is part of.
const levels = 7

// parts lists the groups that a job is part of, the coarsest first.
func (g group) parts() [levels]group {
	d, user := g.declared, g.ofUser()
	command := user
	command.command = g.command
	return [levels]group{{d, anyone, anyone, anyone, anyone, anyone, anyone}, {d, anyone, anyone, anyone, g.gang, anyone, anyone},
		{d, anyone, anyone, g.class, g.gang, anyone, anyone}, {d, g.tenant, anyone, g.class, g.gang, anyone, anyone}, user, command, g}
}

// ofUser is the group of the same user's jobs, whatever they run and are called.
func (g group) ofUser() group {
	g.command, g.name = anyone, anyone
	return g
}

// names numbers what jobs are called and what they run, for all of whom that is alike.
type names struct {
	number map[string]int32
	called []int32 // by job
	runs   []int32 // by job; anyone where it is unknown
}

// alike are the numbers of what a job runs and of what it is called, less the words that have a digit:
// these tell one job from the next.
func (n *names) alike(v plan.View, id plan.JobID) (runs, called int32) {
	for next := plan.JobID(len(n.called)); next <= id; next++ {
		n.called = append(n.called, n.numberOf(v.Name(next)))
		runs := int32(anyone)
		if command := v.Command(next); command != "" {
			runs = n.numberOf(command)
		}
		n.runs = append(n.runs, runs)
	}
	return n.runs[id], n.called[id]
}

func (n *names) numberOf(text string) int32 {
	words := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	words = slices.DeleteFunc(words, func(w string) bool { return strings.ContainsFunc(w, unicode.IsDigit) })
	name := strings.Join(words, " ")
	number, known := n.number[name]
	if !known {
		number = int32(len(n.number))
		n.number[name] = number
	}
	return number
}

func (p *Past) groupOf(v plan.View, id plan.JobID) group {
	j := v.Job(id)
	runs, called := p.names.alike(v, id)
	return group{j.Declared > 0, j.Tenant, j.User, j.Class, v.Shape(id).Gang, runs, called}
}

// recents are how many of a group's latest jobs are counted once more, and how many of them what is
// known without them weighs as much as, where jobs in a row are half as much alike as they could be:
// steps of eight, and the fewer the jobs the sooner believed. How well the next job's running time
// was foretold on months of Venus, Philly and PAI decided.
var recents = [...]struct {
	jobs  int
	prior float64
}{{256, 30}, {32, 10}, {4, 3}}

// row is the jobs of a user as they were submitted, of like size and kind.
type row struct {
	latest []plan.JobID // the latest last
	// How many have ended, the sum of the steps where they did, and of their squares; and of how
	// many neighbours in the row both did, and the sum of the squares of the steps between.
	ended, sum, squares, pairs, apart int64
}

// alike is how much jobs in a row are alike, by the steps where they ended: 0 where neighbours are as
// far apart as any two, 1 where they end in the same step. It is believed as jobs of the group are.
func (r *row) alike(prior float64) float64 {
	if r.pairs == 0 {
		return 0
	}
	n := float64(r.ended)
	mean := float64(r.sum) / n
	anyTwo, beside := 2*(float64(r.squares)/n-mean*mean), float64(r.apart)/float64(r.pairs)
	if beside == 0 {
		return n / (n + prior)
	}
	return max(0, 1-beside/anyTwo) * n / (n + prior)
}

// neighbours are the jobs of its group that were submitted before and after a job; None where there
// is none.
type neighbours struct{ before, after plan.JobID }

// counts are how many jobs of a group ended in each step, and how many have come so far and go on.
type counts struct{ ended, open [Steps]float64 }

// spread is how an end counts in the steps around its own: whoever is like a job takes about as
// long. Sixteenths add up to the same in whatever order.
var spread = [...]float64{2. / 16, 3. / 16, 6. / 16, 3. / 16, 2. / 16}

// end counts an end.
func (c *counts) end(step int) {
	for i, part := range spread {
		c.ended[min(Steps-1, max(0, step+i-len(spread)/2))] += part
	}
}

// weigh takes what the jobs counted say into what is known without them: of those who came to a
// step, what part ended there. That is done step by step, so that where few have come so far the
// many still speak. It returns how many jobs there are; none, or as many as before, say nothing new.
func (c *counts) weigh(prior, before float64, hazard *[Steps]float64) (jobs float64) {
	for s := range Steps {
		jobs += c.ended[s] + c.open[s]
	}
	if jobs == before {
		return jobs
	}
	come := jobs
	for s := range Steps {
		hazard[s] = (c.ended[s] + prior*hazard[s]) / (come + prior)
		come = max(0, come-c.ended[s]-c.open[s])
	}
	return jobs
}

// ending is an end that is not taken in yet.
type ending struct {
	job plan.JobID
	group
	at   unit.Time
	step int
}

// Config tunes what is learned.
type Config struct {
	Refresh unit.Duration // how often what happened is taken in; tables hold in between
	Prior   float64       // how many jobs of a group weigh as much as what coarser groups say
}

// Past is what jobs tell. It follows from the State alone: what a refresh takes in is what was so
// at its instant, whenever it is made.
type Past struct {
	config Config
	names  names
	groups map[group]*counts
	rows   map[group]*row
	ended  []ending     // not yet taken in
	step   []int16      // by job: where it ended, counted from 1; 0 is not yet
	beside []neighbours // by job
	open   []plan.JobID
	seen   plan.JobID // jobs before it are in rows, and in open or over
	epoch  int64
	wanted int64 // thousandths of devices that those ask for who had come when the period began, and go on or wait
	there  int64 // thousandths of devices that there were when the period was first looked at
	tables map[group]*Table
}

// New returns a past in which nothing has happened.
func New(c Config) *Past {
	return &Past{config: c, names: names{number: map[string]int32{}}, groups: map[group]*counts{}, rows: map[group]*row{}, tables: map[group]*Table{}, epoch: -1}
}

// Learn takes in how long a finished job ran.
func (p *Past) Learn(v plan.View, id plan.JobID) {
	j := v.Job(id)
	p.ended = append(p.ended, ending{id, p.groupOf(v, id), j.Ended, StepOf(Ran(v, id) / Scale(&j))})
}

// Of is what is known of a job's running time in the present period.
func (p *Past) Of(v plan.View, id plan.JobID) *Table {
	p.refresh(v)
	return p.tableOf(v, p.groupOf(v, id))
}

// Until is when the present period ends.
func (p *Past) Until() unit.Time { return p.instant().Add(p.config.Refresh) }

// Wait is for how long a job had waited when the present period began.
func (p *Past) Wait(v plan.View, id plan.JobID) unit.Duration {
	p.refresh(v)
	j := v.Job(id)
	waited := j.Waited
	if j.Phase.Waits() {
		waited += max(0, p.instant().Sub(j.Since))
	}
	return waited
}

// FairWait is for how long a job, in seconds, had waited when the present period began, as if
// devices were shared evenly: the more all who are there ask for, the slower that goes on.
func (p *Past) FairWait(v plan.View, id plan.JobID) float64 {
	waited := p.Wait(v, id) // which looks at what the devices are asked for
	return waited.Seconds() / max(1, float64(p.wanted)/float64(p.there))
}

// Alone reports whether a job takes more than half of all devices: two like it never run side by side.
func (p *Past) Alone(v plan.View, id plan.JobID) bool {
	p.refresh(v)
	shape := v.Shape(id)
	return 2*shape.Milli(shape.Gang) > p.there
}

// Ran is how long a job has run, in seconds, as on the workers that it asked for.
func Ran(v plan.View, id plan.JobID) float64 {
	s := v.Shape(id)
	return float64(v.Service(id)) / float64(max(1, s.Milli(s.Gang))) / 1e6
}

// Scale is what running times of a job are counted in: in seconds, or, of one whose time was
// declared, so that an hour is what was declared.
func Scale(j *plan.Job) float64 {
	if j.Declared > 0 {
		return j.Declared.Seconds() / 3600
	}
	return 1
}

// instant is when the present period began.
func (p *Past) instant() unit.Time {
	return unit.Time(0).Add(unit.Duration(p.epoch) * p.config.Refresh)
}

// refresh takes in who came and what ended before the present period, and who was at work when it
// began.
func (p *Past) refresh(v plan.View) {
	epoch := int64(v.Now()) / int64(p.config.Refresh)
	if epoch == p.epoch {
		return
	}
	p.epoch = epoch
	clear(p.tables)
	p.step = append(p.step, make([]int16, v.Jobs()-len(p.step))...)
	for ; int(p.seen) < v.Jobs() && v.Job(p.seen).Submit < p.instant(); p.seen++ {
		p.come(p.groupOf(v, p.seen), p.seen)
	}
	later := p.ended[:0]
	for _, e := range p.ended {
		if e.at >= p.instant() {
			later = append(later, e)
			continue
		}
		p.end(e)
	}
	p.ended = later
	for _, c := range p.groups {
		c.open = [Steps]float64{}
	}
	p.wanted, p.there = 0, 1000*int64(max(1, v.Devices()))
	still := p.open[:0]
	for _, id := range p.open {
		step, goes, over := p.standing(v, id)
		if goes {
			p.count(p.groupOf(v, id), func(c *counts) { c.open[step]++ })
		}
		if !over {
			still = append(still, id)
			shape := v.Shape(id)
			p.wanted += shape.Milli(shape.Gang)
		}
	}
	p.open = still
}

// come takes in a job that was submitted.
func (p *Past) come(of group, id plan.JobID) {
	p.open = append(p.open, id)
	r := p.rows[of.ofUser()]
	if r == nil {
		r = &row{}
		p.rows[of.ofUser()] = r
	}
	last := plan.JobID(plan.None)
	if n := len(r.latest); n > 0 {
		last = r.latest[n-1]
		p.beside[last].after = id
	}
	p.beside = append(p.beside, neighbours{last, plan.None})
	if most := recents[0].jobs; len(r.latest) == 2*most {
		r.latest = append(r.latest[:0], r.latest[most:]...)
	}
	r.latest = append(r.latest, id)
}

// end takes in a job that ended, in whatever order.
func (p *Past) end(e ending) {
	p.step[e.job] = int16(e.step + 1)
	p.count(e.group, func(c *counts) { c.end(e.step) })
	r, step := p.rows[e.ofUser()], int64(e.step)
	r.ended, r.sum, r.squares = r.ended+1, r.sum+step, r.squares+step*step
	for _, other := range [2]plan.JobID{p.beside[e.job].before, p.beside[e.job].after} {
		if other != plan.None && p.step[other] > 0 {
			between := step + 1 - int64(p.step[other])
			r.pairs, r.apart = r.pairs+1, r.apart+between*between
		}
	}
}

// standing is how far a job had come at the instant, whether it went on then, and whether it was
// over. Waits since its first start count as running: when they were, the State does not keep.
func (p *Past) standing(v plan.View, id plan.JobID) (step int, goes, over bool) {
	j := v.Job(id)
	if j.Phase.Over() && j.Ended < p.instant() {
		return 0, false, true
	}
	if j.Started >= p.instant() {
		return 0, false, false
	}
	return StepOf(p.instant().Sub(j.Started).Seconds() / Scale(&j)), true, false
}

// count adds to each group that a job is part of.
func (p *Past) count(of group, add func(*counts)) {
	last := group{}
	for i, g := range of.parts() {
		if i > 0 && g == last {
			continue
		}
		last = g
		c := p.groups[g]
		if c == nil {
			c = &counts{}
			p.groups[g] = c
		}
		add(c)
	}
}

// tableOf goes from what is known of all jobs to what is known of a group, and from there to what
// its latest jobs tell.
func (p *Past) tableOf(v plan.View, of group) *Table {
	if t := p.tables[of]; t != nil {
		return t
	}
	hazard, before := unknown, 0.
	last := group{}
	for i, g := range of.parts() {
		if i > 0 && g == last {
			continue
		}
		last = g
		if c := p.groups[g]; c != nil {
			before = c.weigh(p.config.Prior, before, &hazard)
		}
	}
	if r := p.rows[of.ofUser()]; r != nil {
		p.recall(v, r, &hazard)
	}
	t := newTable(&hazard)
	p.tables[of] = t
	return t
}

// recall weighs in what a group's latest jobs tell, the more the more jobs in a row are alike.
func (p *Past) recall(v plan.View, row *row, hazard *[Steps]float64) {
	alike := row.alike(p.config.Prior)
	if alike == 0 {
		return
	}
	for _, r := range recents {
		var c counts
		for _, id := range row.latest[max(0, len(row.latest)-r.jobs):] {
			if ended := p.step[id]; ended > 0 {
				c.end(int(ended) - 1)
			} else if step, goes, _ := p.standing(v, id); goes {
				c.open[step]++
			}
		}
		c.weigh(r.prior*(1-alike)/alike, 0, hazard)
	}
}
