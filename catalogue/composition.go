package catalogue

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/musterdl/muster/internal/spec"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/profile"
	"github.com/musterdl/muster/run"
)

// Composition says which strategy fills each part. The same composition configures every
// driver.
type Composition struct {
	Name    string
	Choices Choices
	// Text is what it was read from: names, or a whole file.
	Text string

	options map[string]any // by strategy; one that is not there has its defaults
}

// Choices are the names of what fills the parts; several strategies of a chain have "/"
// between them. A part without one is left open.
type Choices map[*strategy.Part]string

// String writes the choices as in "size: fixed, place: first-fit".
func (c Choices) String() string {
	var list []string
	for _, p := range Parts() {
		if c[p] != "" {
			list = append(list, p.Name+": "+c[p])
		}
	}
	return strings.Join(list, ", ")
}

// Parts are the parts that a composition may fill, by rank.
func Parts() []*strategy.Part {
	all := []*strategy.Part{run.RestartPart}
	for _, e := range All {
		if !slices.Contains(all, e.Part) {
			all = append(all, e.Part)
		}
	}
	slices.SortFunc(all, byRank)
	return all
}

func byRank(a, b *strategy.Part) int { return cmp.Compare(a.Rank, b.Rank) }

// Null is what one would do without any of the six steps.
func Null() Composition {
	return Composition{Name: "null", Choices: choices(func(p *strategy.Part) string { return p.Null })}
}

// defaults fill the parts that a user left open.
func defaults() Composition {
	return Composition{Choices: choices(func(p *strategy.Part) string { return p.Default })}
}

func choices(of func(p *strategy.Part) string) Choices {
	c := Choices{}
	for _, p := range Parts() {
		c[p] = of(p)
	}
	return c
}

// Steps are the six steps in order, as --without names them.
var Steps = []string{"profile", "allocate", "schedule", "pipeline", "flow", "run"}

// House is the strategy that decides where none is named, live and simulated. What is named without an order
// has the order fifo, as ever.
const House = "muster"

// Resolve reads what a user gives as --strategy: the name of a strategy (which is
// then used with what comes with it and defaults for the rest), several joined by
// "+", a script as script:PATH, or a YAML file. A claim may give the lines of such a file in its place.
func Resolve(ref string) (Composition, error) {
	if strings.Contains(ref, "\n") {
		return Read("composition", []byte(ref))
	}
	c, err := named(ref)
	if err == nil {
		return c, nil // also where a file is called so, as this program may be
	}
	if data, err := os.ReadFile(ref); err == nil {
		return Read(ref, data)
	}
	return c, err
}

// ResolveLive reads what names a strategy for a cluster that does not know true running
// times. Its text is all that others get, so a file that has no name is given its own.
func ResolveLive(ref string) (Composition, error) {
	c, err := Resolve(ref)
	if err != nil {
		return c, err
	}
	if c.Name == ref && c.Text != ref {
		named := fmt.Sprintf("%s\nname: %q\n", c.Text, filepath.Base(ref))
		if again, err := Parse(ref, named); err == nil { // not of every form of YAML
			c = again
		}
	}
	return c.Live()
}

// mostText is how long a composition may be, in bytes: it is kept in journals and answers.
const mostText = 64 << 10

// Parse reads what Text holds; file is what mistakes are said to be in.
func Parse(file, text string) (Composition, error) {
	if len(text) > mostText {
		return Composition{}, fmt.Errorf("%s: found a strategy of %d bytes, expected at most %d", file, len(text), mostText)
	}
	if strings.Contains(text, ":") {
		return Read(file, []byte(text))
	}
	return named(text)
}

// named composes the strategies whose names are joined by "+".
func named(ref string) (Composition, error) {
	if strings.HasPrefix(ref, scripted) {
		return fromScript(ref)
	}
	c, said := Composition{Name: ref, Text: ref}, Choices{}
	for _, name := range strings.Split(ref, "+") {
		e, ok := Find(name)
		if !ok {
			return c, fmt.Errorf("%q is neither a strategy (see muster strategies) nor a file that can be read", name)
		}
		if !slices.Contains(Parts(), e.Part) {
			return c, fmt.Errorf("%s is a strategy for %s, which only planners ask: no run goes by it, so leave it out", name, e.Part.Name)
		}
		if before := said[e.Part]; before != "" && e.Part.Chain != nil {
			name = before + chained + name
		}
		said[e.Part] = name
		c = c.over(Composition{Choices: e.With})
		c.Choices[e.Part] = name
	}
	return c, nil
}

// chained stands between the names of strategies that share a part.
const chained = "/"

// Read reads a composition file: the parts by name, and under options: the options
// of any strategy by its name.
func Read(name string, data []byte) (Composition, error) {
	c, parts := Composition{Text: string(data), Choices: Choices{}, options: map[string]any{}}, Parts()
	names, options := make([]string, len(parts)), spec.Fields{}
	for _, e := range All {
		if e.options != nil {
			options = append(options, spec.Field{Name: e.Name, Into: e.options()})
		}
	}
	file := spec.Fields{{Name: "options", Into: &options}, {Name: "name", Into: &c.Name}}
	for i, p := range parts {
		file = append(file, spec.Field{Name: p.Name, Into: &names[i]})
	}
	if err := spec.Decode(name, data, &file); err != nil {
		return Composition{}, err
	}
	for i, p := range parts {
		c.Choices[p] = names[i]
	}
	for _, f := range options {
		e, _ := Find(f.Name)
		c.options[f.Name] = e.pointed(f.Into)
	}
	if c.Name == "" {
		c.Name = name
	}
	return c, c.check(name)
}

// check says which part of a file has a choice that it cannot have.
func (c Composition) check(file string) error {
	for _, p := range Parts() {
		choice := c.Choices[p]
		switch {
		case choice == "":
		case p.Words != nil:
			if !slices.Contains(p.Words, choice) {
				return fmt.Errorf("%s: %s is %q: expected %s", file, p.Name, choice, strings.Join(p.Words, " or "))
			}
		default:
			for _, n := range strings.Split(choice, chained) {
				if e, ok := Find(n); !ok || e.Part != p {
					return fmt.Errorf("%s: %s: %w", file, p.Name, unknown(p, n))
				}
			}
		}
	}
	return nil
}

// over fills c's open parts from d.
func (c Composition) over(d Composition) Composition {
	c.Choices = maps.Clone(c.Choices)
	if c.Choices == nil {
		c.Choices = Choices{}
	}
	for p, name := range d.Choices {
		c.Choices[p] = cmp.Or(c.Choices[p], name)
	}
	if c.options == nil {
		c.options = d.options
	}
	return c
}

// Live is the composition for a driver that cannot tell true run times: to name an
// estimator that wants them is a mistake.
func (c Composition) Live() (Composition, error) {
	e, err := c.over(defaults()).make(profile.EstimatePart, Env{})
	if err != nil {
		return c, err
	}
	if _, truth := strategy.Can[profile.Oracular](e); !truth {
		return c, nil
	}
	return c, fmt.Errorf("%s: the estimator %s wants true run times, which only a simulation has: use declared or history", c.Name, c.Choices[profile.EstimatePart])
}

// Without puts a step's null in the place of what the composition has for it.
func (c Composition) Without(step string) (Composition, error) {
	if !slices.Contains(Steps, step) {
		last := len(Steps) - 1
		return c, fmt.Errorf("there is no step %q: the steps are %s and %s", step, strings.Join(Steps[:last], ", "), Steps[last])
	}
	c = c.over(Composition{})
	for _, p := range Parts() {
		e, _ := Find(c.Choices[p])
		if cmp.Or(p.Step, e.Step) == step {
			c.Choices[p] = p.Null
		}
	}
	return c, nil
}

// clash says which parts do not go together; nil where all do.
func (c Composition) clash() error {
	for _, p := range Parts() {
		for _, q := range Parts() {
			name, choice := c.Choices[p], c.Choices[q]
			if name != "" && slices.Contains(p.Forbids, q.Name) && choice != "" && choice != q.Null && choice != q.Default {
				return fmt.Errorf("%s: %s %s and takes the place of %s: remove %s, or %s", c.Name, name, p.Does, q.Name, choice, name)
			}
		}
	}
	return nil
}

// Refuse says why a driver cannot obey the composition: which of its parts does what, why
// that cannot be done there, and what would work in its place. It is nil where it can.
func (c Composition) Refuse(a strategy.Ability) error {
	full := c.over(defaults())
	for _, p := range Parts() {
		for _, name := range strings.Split(full.Choices[p], chained) {
			e, _ := Find(name)
			if act := a.Lacks(c.Acts(e)); act != "" {
				return fmt.Errorf("the strategy %s cannot be obeyed %s: its %s %s %s (%s), and %s; %s",
					c.Name, a.Driver, p.Name, name, act.Does(), act, cmp.Or(a.Why[act], "this driver cannot"), instead(p, a))
			}
		}
	}
	return nil
}

// KeepsDeadlines reports whether one of its strategies promises the jobs that it takes their deadlines.
func (c Composition) KeepsDeadlines() bool {
	full := c.over(defaults())
	return slices.ContainsFunc(Parts(), func(p *strategy.Part) bool {
		e, _ := Find(full.Choices[p])
		return e.KeepsDeadlines
	})
}

// Acts are what a strategy does with runs under the composition's options.
func (c Composition) Acts(e Entry) []strategy.Act {
	if o, ok := strategy.Can[strategy.Acting](c.optionsOf(e)); ok {
		return append(o.Acts(), e.Acts...)
	}
	return e.Acts
}

// optionsOf are the options of a strategy; nil where it has none.
func (c Composition) optionsOf(e Entry) any {
	if options, given := c.options[e.Name]; given || e.options == nil {
		return options
	}
	return e.pointed(e.options())
}

// instead says what a user may put in a part's place that a driver can obey.
func instead(part *strategy.Part, a strategy.Ability) string {
	var names []string
	for _, e := range All {
		if e.Part == part && a.Lacks(e.Acts) == "" {
			names = append(names, e.Name)
		}
	}
	if len(names) == 0 {
		return "leave the part out, or ask muster simulate"
	}
	return "what works as its " + part.Name + ": " + strings.Join(names, ", ")
}
