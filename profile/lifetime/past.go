// Package lifetime is how long jobs run, as a distribution, by what finished and running jobs tell.
//
// Of those who came to a step of running time, what part ended there: that is counted for all jobs,
// for those of like size, kind, tenant, user, command and name, and for a user's latest, and each is weighed
// against what the coarser ones say (Kaplan and Meier 1958, with a prior). Running times are counted as on the
// workers that a job asked for; of one with a declared time they are counted as parts of that, so
// that a declaration is worth what its user's earlier ones were. Where a change of work comes, the
// latest jobs tell within a few of them, if jobs in a row are alike at all.
//
// A job that runs and reports its progress foretells a time, too (plan.State.ObserveProgress). Of jobs that did
// it is counted in a second book what part of that time they took, and what this says is weighed against
// what is known without a report. So before any of them has ended reports change nothing, and in the end
// those of a user are worth what his earlier ones were. Only one report of a job counts, the one that the State keeps: who could
// tell another later would have a record of the one and be ranked by the other.
package lifetime

import (
	"cmp"
	"math"
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// ending is an end that is not taken in yet.
type ending struct {
	job plan.JobID
	group
	at         unit.Time
	step, told int // told is by what it foretold, None where that was nothing
}

// Config tunes what is learned.
type Config struct {
	Refresh unit.Duration // how often what happened is taken in, and sooner where a sixteenth more is known; tables hold in between
	Prior   float64       // how many jobs of a group weigh as much as what coarser groups say
}

// Past is what jobs tell. It follows from the State alone: what a refresh takes in is what was so
// at its instant, whenever it is made.
type Past struct {
	config  Config
	names   names
	times   *book     // of all jobs, in their own scale
	told    *book     // of those who report, in the time that they foretold
	heard   unit.Time // reports before it are taken in
	ended   []ending  // not yet taken in
	open    []plan.JobID
	seen    plan.JobID  // jobs before it are in rows, and in open or over
	at      unit.Time   // when the present period began
	facts   int         // how many submissions and ends begin the next one
	stale   bool        // something that was so when the period began is known only now
	learned []unit.Time // when jobs ended, as they were told
	knows   []bool      // who they were
	wanted  int64       // thousandths of devices that those ask for who had come when the period began, and go on or wait
	there   int64       // thousandths of devices that there were when the period was first looked at
	tables  map[shown]*Table
	fresh   map[group]int // how many jobs of each kind had waited and never started when the present period began
	served  []int64       // by job, what it had been served then
}

// shown is what a table is of. With a report it is in another scale, so many steps away.
type shown struct {
	group
	told bool
	away int
}

// New returns a past in which nothing has happened.
func New(c Config) *Past {
	p := &Past{config: c, names: names{number: map[string]int32{}}, tables: map[shown]*Table{}, fresh: map[group]int{}, at: -1, facts: 1}
	p.times = newBook(true, func(v plan.View, id plan.JobID) (int, bool, bool) { return p.standing(v, id, false) })
	p.told = newBook(false, func(v plan.View, id plan.JobID) (int, bool, bool) { return p.standing(v, id, true) })
	return p
}

// Learn takes in how long a finished job ran.
func (p *Past) Learn(v plan.View, id plan.JobID) {
	if more := v.Jobs() - len(p.knows); more > 0 {
		p.knows = append(p.knows, make([]bool, more)...)
	}
	if p.knows[id] {
		return // a scheduler that builds its caches anew tells of everybody again
	}
	p.knows[id] = true
	j := v.Job(id)
	e := ending{id, p.groupOf(v, id), j.Ended, StepOf(Ran(v, id) / Scale(&j)), plan.None}
	if j.Foretold > 0 {
		e.told = StepOf(Ran(v, id) / foretold(&j))
	}
	p.ended = append(p.ended, e)
	p.learned = append(p.learned, j.Ended)
	p.stale = p.stale || j.Ended < p.at
}

// Of is what is known of a job's running time in the present period, whatever it reports.
func (p *Past) Of(v plan.View, id plan.JobID) *Table {
	p.refresh(v)
	return p.tableOf(v, shown{group: p.groupOf(v, id)})
}

// Told is Of with the job's report of progress, if it had made one before the period. It also returns the unit in
// which the table counts.
func (p *Past) Told(v plan.View, id plan.JobID) (t *Table, scale float64) {
	p.refresh(v)
	j := v.Job(id)
	of := shown{group: p.groupOf(v, id)}
	if scale = Scale(&j); p.reported(v, id) {
		of.told, of.away, scale = true, away(&j), foretold(&j)
	}
	return p.tableOf(v, of), scale
}

// reported says whether a job had made a report before the present period.
func (p *Past) reported(v plan.View, id plan.JobID) bool {
	total, at := v.Foretold(id)
	return total > 0 && at < p.at
}

// Until is when the present period ends, if nothing more becomes known.
func (p *Past) Until() unit.Time {
	return (p.at/unit.Time(p.config.Refresh) + 1) * unit.Time(p.config.Refresh)
}

// Since is when the present period began: what was so then is known.
func (p *Past) Since(v plan.View) unit.Time {
	p.refresh(v)
	return p.at
}

// Wait is for how long a job had waited when the present period began.
func (p *Past) Wait(v plan.View, id plan.JobID) unit.Duration {
	p.refresh(v)
	j := v.Job(id)
	waited := j.Waited
	if j.Phase.Waits() {
		waited += max(0, p.at.Sub(j.Since))
	}
	return waited
}

// FairWait is for how long a job, in seconds, had waited when the present period began, as if
// devices were shared evenly: the more all who are there ask for, the slower that goes on.
func (p *Past) FairWait(v plan.View, id plan.JobID) float64 {
	waited := p.Wait(v, id) // which looks at what the devices are asked for
	return waited.Seconds() / max(1, float64(p.wanted)/float64(p.there))
}

// Alone reports whether a job takes more than half of the devices that there were when it was last looked: two
// like it never run side by side.
func (p *Past) Alone(v plan.View, id plan.JobID) bool {
	shape := v.Shape(id)
	return 2*shape.Milli(shape.Gang) > p.there
}

// Alike is how much alike two jobs are taken to be, of 1: nothing unless they are of one user and size, run the
// same and are called alike, and neither reports how long it takes.
func (p *Past) Alike(v plan.View, a, b plan.JobID) float64 {
	p.refresh(v)
	of := p.groupOf(v, a)
	r := p.times.rows[of.ofUser()]
	if of != p.groupOf(v, b) || r == nil || p.reported(v, a) || p.reported(v, b) {
		return 0
	}
	return p.times.alike(r, p.config.Prior)
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

// away is by how many steps a job takes fewer in what it foretold than in its own scale.
func away(j *plan.Job) int {
	return int(math.Round(perDoubling * math.Log2(j.Foretold.Seconds()/3600/Scale(j))))
}

// foretold is what running times of a job that reports are counted in: so that an hour is what it
// foretold, to the nearest step of its own scale. So what is known in that is known in this.
func foretold(j *plan.Job) float64 {
	return Scale(j) * math.Exp2(float64(away(j))/perDoubling)
}

// newsEvery is the part by which what is known grows before it counts at once: of few jobs each
// submission and each end does.
const newsEvery = 16

// begun is when the period began that is the present one: at the last full refresh, or when as much
// had become known as is news.
func (p *Past) begun(v plan.View) unit.Time {
	now, known := v.Now(), v.Jobs()+len(p.learned)
	begun := max(p.at, now-now%unit.Time(p.config.Refresh))
	if known < p.facts {
		return begun
	}
	last := p.facts
	for p.facts <= known {
		last = p.facts
		p.facts += max(1, p.facts/newsEvery)
	}
	at := slices.Clone(p.learned)
	for id := range plan.JobID(v.Jobs()) {
		at = append(at, v.Job(id).Submit)
	}
	slices.Sort(at)
	return max(begun, at[last-1]+1) // with all of that instant
}

// refresh takes in who came and what ended by the beginning of the present period, and who was at work
// then.
func (p *Past) refresh(v plan.View) {
	begun := p.begun(v)
	late := p.stale || int(p.seen) < v.Jobs() && v.Job(p.seen).Submit < p.at
	if begun == p.at && !late {
		return
	}
	p.at, p.stale = begun, false
	p.served = plan.ServedBefore(v, p.instant(), p.served)
	clear(p.tables)
	for ; int(p.seen) < v.Jobs() && v.Job(p.seen).Submit < p.at; p.seen++ {
		p.open = append(p.open, p.seen)
		p.times.come(p.groupOf(v, p.seen), p.seen)
	}
	p.hear(v)
	later := p.ended[:0]
	for _, e := range p.ended {
		if e.at >= p.at {
			later = append(later, e)
			continue
		}
		p.times.end(e.group, e.job, e.step)
		if e.told != plan.None {
			p.told.end(e.whoReports(), e.job, e.told)
		}
	}
	p.ended = later
	p.weighOpen(v)
}

// hear takes in who made a report before the present period, as they did.
func (p *Past) hear(v plan.View) {
	var told []plan.JobID
	for _, id := range p.open {
		if _, at := v.Foretold(id); at >= p.heard && p.reported(v, id) {
			told = append(told, id)
		}
	}
	slices.SortFunc(told, func(a, b plan.JobID) int {
		_, first := v.Foretold(a)
		_, second := v.Foretold(b)
		return cmp.Or(cmp.Compare(first, second), cmp.Compare(a, b))
	})
	for _, id := range told {
		p.told.come(p.groupOf(v, id).whoReports(), id)
	}
	p.heard = p.at
}

// weighOpen counts the jobs that still run, by how long they have, and adds up the devices that all live jobs ask for.
func (p *Past) weighOpen(v plan.View) {
	for _, b := range [...]*book{p.times, p.told} {
		for _, c := range b.groups {
			c.open = [Steps]float64{}
		}
	}
	p.wanted, p.there = 0, 1000*int64(max(1, v.Devices()))
	still := p.open[:0]
	clear(p.fresh)
	for _, id := range p.open {
		step, goes, over := p.times.standing(v, id)
		if goes {
			p.times.count(p.groupOf(v, id), func(c *counts) { c.open[step]++ })
			if p.reported(v, id) {
				step, _, _ := p.told.standing(v, id)
				p.told.count(p.groupOf(v, id).whoReports(), func(c *counts) { c.open[step]++ })
			}
		}
		if !over {
			still = append(still, id)
			if !goes && v.Job(id).Submit < p.instant() {
				p.fresh[p.groupOf(v, id)]++
			}
			shape := v.Shape(id)
			p.wanted += shape.Milli(shape.Gang)
		}
	}
	p.open = still
}

// instant is the last before the present period. Who came and who ended then is known when the period begins, but not
// yet who starts then, or stops.
func (p *Past) instant() unit.Time { return p.at - 1 }

// ran is for how many seconds a job had run when the present period began, as on the workers that it asked for.
func (p *Past) ran(v plan.View, id plan.JobID) float64 {
	s := v.Shape(id)
	return float64(p.served[id]) / float64(max(1, s.Milli(s.Gang))) / 1e6
}

// standing is how far a job had come at the instant, in its own scale or in what it foretold, whether
// it went on then, and whether it was over.
func (p *Past) standing(v plan.View, id plan.JobID, told bool) (step int, goes, over bool) {
	j := v.Job(id)
	if j.Phase.Over() && j.Ended < p.at {
		return 0, false, true
	}
	if j.Started >= p.instant() {
		return 0, false, false
	}
	scale := Scale(&j)
	if told {
		scale = foretold(&j)
	}
	return StepOf(p.ran(v, id) / scale), true, false
}

// tableOf goes from what is known of nobody to what is known of a group, and from there to what the
// reports of such jobs are worth, for one that reports.
func (p *Past) tableOf(v plan.View, of shown) *Table {
	if t := p.tables[of]; t != nil {
		return t
	}
	hazard := unknown
	p.times.weigh(v, of.group, p.config.Prior, &hazard)
	if of.told {
		hazard = shifted(&hazard, of.away)
		p.told.weigh(v, of.whoReports(), p.config.Prior, &hazard)
	}
	t := newTable(&hazard)
	p.tables[of] = t
	return t
}

// Others is how many jobs of its kind wait for their first start beside a job, as far as they are likely to take the
// same time, while nobody knows that time since none of the kind has ended.
func (p *Past) Others(v plan.View, id plan.JobID) float64 {
	p.refresh(v)
	of := p.groupOf(v, id)
	if p.times.kinds[of] > 0 || p.reported(v, id) {
		return 0
	}
	n := p.fresh[of]
	if j := v.Job(id); j.Submit < p.instant() && j.Started >= p.instant() {
		n--
	}
	return max(0, 1-p.times.all.within2(anyDoubling*nearer)/anyDoubling) * float64(max(0, n))
}
