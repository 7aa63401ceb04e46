// Package catalogue is the one list of all strategies, with their descriptions as
// data, and the one place that builds a Scheduler from names and options. The
// command line's help, the documentation and the console are made from it; nothing
// else imports a strategy.
package catalogue

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/musterdl/muster/model/sharing"
	"github.com/musterdl/muster/model/strategy"
)

// Entry is one strategy: what it says about itself, the options it takes, and how
// it is made from them.
type Entry struct {
	strategy.Description
	// With are the parts that come with it unless the user names others.
	With Choices
	// Claim is the experiment of its system as data (experiment/reproduce/CLAIMS.md), and Measure
	// the function of one of kind measure; most parts have neither.
	Claim   []byte
	Measure Measure

	options func() any         // a pointer to the default options; nil where there are none
	pointed func(any) any      // what such a pointer points to
	make    func(any, Env) any // from options
}

// Env is what strategies are given besides their options.
type Env struct {
	Seed uint64
	// Services is what was profiled beforehand of services on the devices there are; nil is
	// nothing. Options that name models of their own go before it.
	Services *sharing.Law
	// Pairs is what was profiled beforehand of training that shares a device; nil is nothing.
	Pairs sharing.Pairs
	// Break names a system, or a strategy that is of none: its strategies' deciding methods are taken away, to see that
	// its claim notices. Nobody else sets it.
	Break string
}

func entry(d strategy.Description, make func(any, Env) any) Entry {
	if d.Step == "" {
		d.Step = d.Part.Step
	}
	return Entry{Description: d, make: make}
}

// plain is a strategy without options.
func plain(d strategy.Description, value any) Entry {
	return entry(d, func(any, Env) any { return value })
}

// fresh is a strategy without options that remembers something, so that each use
// needs one of its own.
func fresh(d strategy.Description, make func() any) Entry {
	return entry(d, func(any, Env) any { return make() })
}

// tuned is a strategy with options.
func tuned[C any](d strategy.Description, defaults func() C, make func(C, Env) any) Entry {
	e := entry(d, func(c any, env Env) any { return make(c.(C), env) })
	e.options, e.pointed = func() any { c := defaults(); return &c }, func(c any) any { return *c.(*C) }
	return e
}

// with names the parts that come with a strategy.
func (e Entry) with(c Choices) Entry {
	e.With = c
	return e
}

// byPartAndName puts strategies in the order in which they are listed, whatever the order they are written in.
func byPartAndName(all []Entry) []Entry {
	slices.SortFunc(all, func(a, b Entry) int { return cmp.Or(byRank(a.Part, b.Part), strings.Compare(a.Name, b.Name)) })
	return all
}

// every is all strategies that there are, those that only planners ask too.
func every(yield func(Entry) bool) {
	for _, list := range [][]Entry{All, ForPlans} {
		for _, e := range list {
			if !yield(e) {
				return
			}
		}
	}
}

// Find returns the entry of a name.
func Find(name string) (Entry, bool) {
	for e := range every {
		if e.Name == name {
			return e, true
		}
	}
	return Entry{}, false
}

// Names lists the strategies of a part, or all of them for nil.
func Names(part *strategy.Part) []string {
	var names []string
	for e := range every {
		if part == nil || e.Part == part {
			names = append(names, e.Name)
		}
	}
	return names
}

func unknown(part *strategy.Part, name string) error {
	names := Names(part)
	slices.Sort(names)
	return fmt.Errorf("there is no %s strategy named %q: choose one of %s", part.Name, name, strings.Join(names, ", "))
}
