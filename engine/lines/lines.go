// Package lines says whom to try next: jobs that wait, in classes with a heap each, and those
// that run, the worst ranked first. Nobody sorts a queue.
//
// Waiting jobs of equal shape and owner form a class. When the best job of a class cannot be
// placed, none of them can, and the class is blocked: it is not tried again until whoever
// knows of room that it could use opens it. What a decision costs is what changed, not how
// long the queue is. Classes of one shape and about one length are in one file, and are blocked
// and opened together, sixty-four to a word.
//
// It knows shapes by their numbers and jobs by their keys. What queues allow it is told where it
// asks (Takers); it sees no draft.
package lines

import (
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Kind is what jobs have in common that cannot be placed if one of them cannot: where
// they are filed and what they ask for, their user where users have limits, and, where
// short work may fill in around claims, about how long they take.
type Kind struct {
	Owner
	Shape, Step int32
}

// Owner is who has jobs that wait: a queue, in it a user where users have limits, and guests apart.
type Owner struct {
	Leaf, User int32
	Guest      bool // they are guests, and want devices of their own
}

// Class is the waiting jobs of one kind.
type Class struct {
	Kind
	id      int32
	in      *file
	place   int32 // there
	waiting heap
}

// Best is the job of a class that ranks first. A class that First hands out has jobs; it may be emptied after that.
func (c *Class) Best() *Item { return &c.waiting.items[0] }

// Items are the jobs of a class, the best first and the others in no order, to be read.
func (c *Class) Items() []Item { return c.waiting.items }

// Alike is how many jobs it has, or 1 where a job is in no class.
func (c *Class) Alike() int {
	if c == nil {
		return 1
	}
	return len(c.waiting.items)
}

// Blocked reports whether the best job of a class is not worth a try.
func (c *Class) Blocked() bool { return c.in.blocked.has(c.place) }

// Rules say in which order those who wait are tried.
type Rules struct {
	Strict bool // nobody passes a blocked class
	Short  bool // those who take less time go first, whatever their rank
}

// Tree is the branches of the queues in which classes are filed, those below a branch behind it.
type Tree interface {
	Branches() int
	Parent(b int32) int32
	Below(b int32) []int32
}

// Lines are the jobs that wait, in their classes, and those that run.
type Lines struct {
	rules Rules
	branches
	files
	ranks
	classes []*Class
	class   map[Kind]*Class
	owner   map[Owner]int32
	pos     []int32 // by job: where it is in its heap
	home    []int32 // by job: its class, or where it is else
	timers  timers
	active  int          // jobs waiting or running
	aside   []plan.JobID // wait for a better place, and are in no class
	passed  []passed     // were passed over in this pass, and are in no class
	heads   []*Class     // scratch of BestFirst
	next    []int
}

// Where a job is that waits in no class.
const (
	nowhere   = -1
	atRunning = -2
	inLine    = -3 // waits for a joint decider
)

// passed is a job that was passed over, with the leaf in which it waits.
type passed struct {
	Item
	leaf int32
}

// New returns empty lines.
func New(rules Rules, tree Tree) *Lines {
	l := &Lines{rules: rules, branches: newBranches(tree), class: map[Kind]*Class{}, owner: map[Owner]int32{}}
	l.running = heap{pos: &l.pos, worst: true}
	return l
}

// Grow makes room for so many jobs.
func (l *Lines) Grow(jobs int) {
	for len(l.home) < jobs {
		l.home, l.pos = append(l.home, nowhere), append(l.pos, -1)
		l.timers.grow()
	}
}

// Active is how many jobs wait or run.
func (l *Lines) Active() int { return l.active }

// Filed reports whether a job is in any line.
func (l *Lines) Filed(job plan.JobID) bool { return l.home[job] != nowhere }

// InLine reports whether a job waits for a joint decider.
func (l *Lines) InLine(job plan.JobID) bool { return l.home[job] == inLine }

// Runs reports whether a job is filed as one that runs.
func (l *Lines) Runs(job plan.JobID) bool { return l.home[job] == atRunning }

// ClassOf is the class that a job waits in, nil if it waits in none.
func (l *Lines) ClassOf(job plan.JobID) *Class {
	if at := l.home[job]; at >= 0 {
		return l.classes[at]
	}
	return nil
}

// Classes are all classes, with those that are empty, to be read.
func (l *Lines) Classes() []*Class { return l.classes }

// File puts a job that waits in the class of its kind, where its rank holds until an instant,
// and returns the class.
func (l *Lines) File(k Kind, it Item, until unit.Time) *Class {
	c := l.class[k]
	if c == nil {
		c = l.newClass(k)
	}
	c.waiting.push(it)
	l.enter(it.Job, c.id)
	l.timers.set(until, it.Job)
	l.refile(c)
	return c
}

// FileInLine puts a job in the line of a joint decider.
func (l *Lines) FileInLine(job plan.JobID) { l.enter(job, inLine) }

// FileRunning puts a job among those that run, without a rank.
func (l *Lines) FileRunning(job plan.JobID) { l.enter(job, atRunning) }

func (l *Lines) enter(job plan.JobID, at int32) {
	l.home[job] = at
	l.active++
}

// Drop takes a job out of wherever it is filed. Where it was the best of its class the next may
// be tried, if it may fit where the best did not.
func (l *Lines) Drop(job plan.JobID, mayFit bool) {
	switch at := l.home[job]; {
	case at == nowhere:
		return
	case at >= 0:
		c := l.classes[at]
		if mayFit && l.pos[job] == 0 {
			l.Unblock(c)
		}
		c.waiting.remove(job)
		l.refile(c)
	case l.pos[job] >= 0:
		l.running.remove(job)
	}
	l.home[job] = nowhere
	l.active--
	l.timers.set(unit.Never, job)
}

// LayAside takes a job out of its line that waits for a better place: it counts as active all the same.
func (l *Lines) LayAside(job plan.JobID, mayFit bool) {
	l.Drop(job, mayFit)
	l.active++
	l.aside = append(l.aside, job)
}

// RecallAside returns the jobs that were laid aside, and are to be filed again. They are valid
// until the next is laid aside.
func (l *Lines) RecallAside() []plan.JobID {
	jobs := l.aside
	l.active -= len(jobs)
	l.aside = l.aside[:0]
	return jobs
}

// PassOver takes the best job of a class out of it until RecallPassed: it counts as active, and
// is ahead of those who pass it, all the same.
func (l *Lines) PassOver(c *Class, mayFit bool) {
	it := *c.Best()
	l.Drop(it.Job, mayFit)
	l.active++
	l.passed = append(l.passed, passed{it, c.Leaf})
}

// RecallPassed returns the jobs that were passed over, and are to be filed again. They are valid
// until the next is passed over.
func (l *Lines) RecallPassed() (jobs []passed) {
	jobs = l.passed
	l.active -= len(jobs)
	l.passed = l.passed[:0]
	return jobs
}

// Ranked is a job as it is ranked among those that run; false if it is not.
func (l *Lines) Ranked(job plan.JobID) (Item, bool) {
	if l.home[job] != atRunning || l.pos[job] < 0 {
		return Item{}, false
	}
	return l.running.items[l.pos[job]], true
}

// Until sets when the rank of a job runs out; Never is not.
func (l *Lines) Until(at unit.Time, job plan.JobID) { l.timers.set(at, job) }

// Expires is when the next rank runs out.
func (l *Lines) Expires() unit.Time { return l.timers.next() }

// TakeExpired takes out the timer of the job whose rank ran out first, if one has by now.
func (l *Lines) TakeExpired(now unit.Time) (plan.JobID, bool) { return l.timers.popDue(now) }

// ranks are the jobs that run and were ranked.
type ranks struct {
	running heap // worst first
}

// Rank ranks a job that runs among the others.
func (r *ranks) Rank(it Item) { r.running.push(it) }

// Unrank is the reverse of Rank.
func (r *ranks) Unrank(job plan.JobID) { r.running.remove(job) }

// Rerank gives a job that is ranked another key.
func (r *ranks) Rerank(it Item) { r.running.rerank(it) }

// Lowest is the worst ranked job that runs; false if none is ranked.
func (r *ranks) Lowest() (Item, bool) {
	if len(r.running.items) == 0 {
		return Item{}, false
	}
	return r.running.items[0], true
}
