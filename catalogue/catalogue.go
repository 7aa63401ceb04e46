// Package catalogue is the one list of all strategies, with their descriptions as
// data, and the one place that builds a Scheduler from names and options. The
// command line's help, the documentation and the console are made from it; nothing
// else imports a strategy.
package catalogue

import (
	"fmt"
	"reflect"
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
	With Composition
	// Claim is the experiment of its system as data (experiment/reproduce/CLAIMS.md), and Measure
	// the function of one of kind measure; most parts have neither.
	Claim   []byte
	Measure Measure

	options func() any         // a pointer to the default options; nil where there are none
	make    func(any, Env) any // from a pointer to options
}

// Env is what strategies are given besides their options.
type Env struct {
	Seed uint64
	// Services is what was profiled beforehand of services on the devices there are; nil is
	// nothing. Options that name models of their own go before it.
	Services *sharing.Law
	// Break names a system: its strategies' deciding methods are taken away, to see that
	// its claim notices. Nobody else sets it.
	Break string
}

// plain is a strategy without options.
func plain(d strategy.Description, value any) Entry {
	return Entry{Description: d, make: func(any, Env) any { return value }}
}

// fresh is a strategy without options that remembers something, so that each use
// needs one of its own.
func fresh(d strategy.Description, make func() any) Entry {
	return Entry{Description: d, make: func(any, Env) any { return make() }}
}

// tuned is a strategy with options.
func tuned[C any](d strategy.Description, defaults func() C, make func(C, Env) any) Entry {
	return Entry{Description: d,
		options: func() any { c := defaults(); return &c },
		make:    func(c any, env Env) any { return make(*c.(*C), env) }}
}

// with names the parts that come with a strategy.
func (e Entry) with(c Composition) Entry {
	e.With = c
	return e
}

// Find returns the entry of a name.
func Find(name string) (Entry, bool) {
	for _, e := range All {
		if e.Name == name {
			return e, true
		}
	}
	return Entry{}, false
}

// Names lists the strategies of a part, or all of them for "".
func Names(part string) []string {
	var names []string
	for _, e := range All {
		if part == "" || e.Part == part {
			names = append(names, e.Name)
		}
	}
	return names
}

// optionsType is a struct with one field per strategy that takes options, named as
// the strategy is, so that a file of options is decoded strictly and with the place
// of every mistake.
func optionsType() reflect.Type {
	var fields []reflect.StructField
	for i, e := range All {
		if e.options == nil {
			continue
		}
		fields = append(fields, reflect.StructField{Name: fmt.Sprintf("F%d", i),
			Type: reflect.TypeOf(e.options()).Elem(), Tag: reflect.StructTag(`yaml:"` + e.Name + `"`)})
	}
	return reflect.StructOf(fields)
}

// defaultOptions is a value of optionsType with everybody's defaults.
func defaultOptions() reflect.Value {
	v := reflect.New(optionsType()).Elem()
	for i, e := range All {
		if e.options != nil {
			v.FieldByName(fmt.Sprintf("F%d", i)).Set(reflect.ValueOf(e.options()).Elem())
		}
	}
	return v
}

func unknown(part, name string) error {
	names := Names(part)
	slices.Sort(names)
	return fmt.Errorf("there is no %s strategy named %q: choose one of %s", part, name, strings.Join(names, ", "))
}
