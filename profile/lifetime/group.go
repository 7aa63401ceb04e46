package lifetime

import (
	"slices"
	"strings"
	"unicode"

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

// whoReports is the group's part of those who report, whether they declared a time or not: what is
// counted of them is a part of what they foretold.
func (g group) whoReports() group {
	g.declared = false
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
