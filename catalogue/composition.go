package catalogue

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/engine/compose"
	"github.com/musterdl/muster/flow"
	"github.com/musterdl/muster/internal/spec"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/profile"
	"github.com/musterdl/muster/schedule"
)

// Composition says which strategy fills each part. An empty part is the null of its
// step. The same composition configures every driver.
type Composition struct {
	Name     string `json:"name,omitempty"`
	Estimate string `json:"estimate,omitempty"`
	Size     string `json:"size,omitempty"`
	Place    string `json:"place,omitempty"`
	Gate     string `json:"gate,omitempty"`
	Order    string `json:"order,omitempty"`
	Reserve  string `json:"reserve,omitempty"`
	Victims  string `json:"victims,omitempty"`
	Cut      string `json:"cut,omitempty"`
	Sequence string `json:"sequence,omitempty"`
	Flow     string `json:"flow,omitempty"`
	// Rate chooses among the places that the placer offers.
	Rate string `json:"rate,omitempty"`
	// Switch prices suspending one job for another.
	Switch string `json:"switch,omitempty"`
	// Joint decides for all jobs at once, in the place of size and order.
	Joint string `json:"joint,omitempty"`
	// Restart is step 6: "on-request" asks jobs to checkpoint before they are stopped,
	// "last-checkpoint" lets them lose what came after their own last one.
	Restart string `json:"restart,omitempty"`

	// Text is what it was read from: names, or a whole file.
	Text string `json:"-" yaml:"-"`

	options reflect.Value // of optionsType; the zero Value is everybody's defaults
}

// Null is what one would do without any of the six steps.
var Null = Composition{Name: "null", Estimate: "declared", Size: "fixed", Place: "first-fit", Gate: "admit-all", Order: "fifo",
	Reserve: "no-reservation", Victims: "newest", Cut: "equal-layers", Sequence: "gpipe", Flow: "max-min", Restart: "last-checkpoint"}

// Default fills the parts that a user left open: the null of each step but the last,
// since nobody wants to lose work that can be kept. Without victims the cheapest give a
// guarantee its room back, and the lowest ranked give way to a better rank.
var Default = Composition{Estimate: "declared", Size: "fixed", Place: "first-fit", Gate: "admit-all", Order: "fifo",
	Reserve: "no-reservation", Cut: "equal-layers", Sequence: "gpipe", Flow: "max-min", Restart: "on-request"}

// Steps are the six steps in order, as --without names them.
var Steps = []string{"profile", "allocate", "schedule", "pipeline", "flow", "run"}

// Resolve reads what a user gives as --strategy: the name of a strategy (which is
// then used with what comes with it and defaults for the rest), several joined by
// "+", a script as script:PATH, or a YAML file. A claim may give the lines of such a file in its place.
func Resolve(ref string) (Composition, error) {
	if strings.Contains(ref, "\n") {
		return Read("composition", []byte(ref))
	}
	if data, err := os.ReadFile(ref); err == nil {
		return Read(ref, data)
	}
	return named(ref)
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

// Parse reads what Text holds; file is what mistakes are said to be in.
func Parse(file, text string) (Composition, error) {
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
	c, placers := Composition{Name: ref, Text: ref}, ""
	for _, name := range strings.Split(ref, "+") {
		e, ok := Find(name)
		if !ok {
			return c, fmt.Errorf("%q is neither a strategy (see muster strategies) nor a file that can be read", name)
		}
		if e.Part == "place" && placers != "" {
			name = placers + chained + name
		}
		if *c.part(e.Part) = name; e.Part == "place" {
			placers = name
		}
		c = c.over(e.With)
	}
	return c, nil
}

// chained stands between the names of placers, of which each job goes to the first
// that takes it.
const chained = "/"

// Read reads a composition file: the parts by name, and under options: the options
// of any strategy by its name.
func Read(name string, data []byte) (Composition, error) {
	texts := reflect.TypeFor[Composition]()
	fields := []reflect.StructField{{Name: "Options", Type: optionsType(), Tag: `yaml:"options"`}}
	for i := range texts.NumField() {
		if f := texts.Field(i); f.IsExported() && f.Name != "Text" {
			fields = append(fields, reflect.StructField{Name: f.Name, Type: f.Type})
		}
	}
	v := reflect.New(reflect.StructOf(fields)).Elem()
	v.FieldByName("Options").Set(defaultOptions())
	if err := spec.Decode(name, data, v.Addr().Interface()); err != nil {
		return Composition{}, err
	}
	c := Composition{options: v.FieldByName("Options"), Text: string(data)}
	for _, f := range fields[1:] {
		reflect.ValueOf(&c).Elem().FieldByName(f.Name).Set(v.FieldByName(f.Name))
	}
	if c.Name == "" {
		c.Name = name
	}
	return c, c.check(name)
}

// check says which part of a file names no strategy of that part.
func (c Composition) check(file string) error {
	for _, p := range parts {
		names := *c.part(p)
		for _, n := range strings.Split(names, chained) {
			if e, ok := Find(n); names != "" && (!ok || e.Part != p) {
				return fmt.Errorf("%s: %s: %w", file, p, unknown(p, n))
			}
		}
	}
	if c.Restart != "" && c.Restart != "on-request" && c.Restart != "last-checkpoint" {
		return fmt.Errorf("%s: restart is %q: expected on-request or last-checkpoint", file, c.Restart)
	}
	return nil
}

// parts are the contracts that a composition fills.
var parts = []string{"estimate", "size", "place", "gate", "order", "reserve", "victims", "cut", "sequence", "flow", "rate", "switch", "joint"}

func (c *Composition) part(name string) *string {
	switch name {
	case "estimate":
		return &c.Estimate
	case "size":
		return &c.Size
	case "place":
		return &c.Place
	case "gate":
		return &c.Gate
	case "order":
		return &c.Order
	case "reserve":
		return &c.Reserve
	case "victims":
		return &c.Victims
	case "cut":
		return &c.Cut
	case "sequence":
		return &c.Sequence
	case "flow":
		return &c.Flow
	case "rate":
		return &c.Rate
	case "switch":
		return &c.Switch
	case "joint":
		return &c.Joint
	}
	panic("catalogue: there is no part " + name)
}

// over fills c's open parts from d.
func (c Composition) over(d Composition) Composition {
	for _, p := range parts {
		if *c.part(p) == "" {
			*c.part(p) = *d.part(p)
		}
	}
	if c.Restart == "" {
		c.Restart = d.Restart
	}
	if !c.options.IsValid() {
		c.options = d.options
	}
	return c
}

// Live is the composition for a driver that cannot tell true run times: to name an
// estimator that wants them is a mistake.
func (c Composition) Live() (Composition, error) {
	var e profile.Estimator
	if err := c.over(Default).fill("estimate", Env{}, &e); err != nil {
		return c, err
	}
	if _, truth := e.(profile.Oracular); !truth {
		return c, nil
	}
	return c, fmt.Errorf("%s: the estimator %s wants true run times, which only a simulation has: use declared or history", c.Name, c.Estimate)
}

// Without puts a step's null in the place of what the composition has for it.
func (c Composition) Without(step string) (Composition, error) {
	var of []string
	switch step {
	case "profile":
		of = []string{"estimate"}
	case "allocate":
		of = []string{"size", "place", "rate", "switch"}
	case "schedule":
		of = []string{"gate", "order", "reserve", "victims"}
	case "pipeline":
		of = []string{"cut", "sequence"}
	case "flow":
		of = []string{"flow"}
	case "run":
		c.Restart = Null.Restart
	default:
		return c, fmt.Errorf("there is no step %q: the steps are profile, allocate, schedule, pipeline, flow and run", step)
	}
	for _, p := range of {
		*c.part(p) = *Null.part(p)
	}
	if e, ok := Find(c.Joint); ok && e.Step == step {
		c.Joint = ""
	}
	return c, nil
}

// WithOptions is the composition with other options of one strategy: a value of its
// configuration. It panics where the strategy has none such: that is ours to know.
func (c Composition) WithOptions(name string, options any) Composition {
	for i, e := range All {
		if e.Name != name {
			continue
		}
		all := defaultOptions()
		if c.options.IsValid() {
			all.Set(c.options)
		}
		all.FieldByName(fmt.Sprintf("F%d", i)).Set(reflect.ValueOf(options))
		c.options = all
		return c
	}
	panic("catalogue: there is no strategy " + name)
}

// clash says which parts do not go together; nil where all do.
func (c Composition) clash() error {
	for _, p := range []string{"size", "order"} {
		if name := *c.part(p); c.Joint != "" && name != "" && name != *Null.part(p) && name != *Default.part(p) {
			return fmt.Errorf("%s: %s decides for all jobs at once and takes the place of %s: remove %s, or %s", c.Name, c.Joint, p, name, c.Joint)
		}
	}
	return nil
}

// Refuse says why a driver cannot obey the composition: which of its parts does what, why
// that cannot be done there, and what would work in its place. It is nil where it can.
func (c Composition) Refuse(a strategy.Ability) error {
	full := c.over(Default)
	for _, p := range parts {
		for _, name := range strings.Split(*full.part(p), chained) {
			e, _ := Find(name)
			if act := a.Lacks(c.Acts(e)); act != "" {
				return fmt.Errorf("the strategy %s cannot be obeyed %s: its %s %s %s (%s), and %s; %s",
					c.Name, a.Driver, p, name, act.Does(), act, cmp.Or(a.Why[act], "this driver cannot"), instead(p, a))
			}
		}
	}
	return nil
}

// Acts are what a strategy does with runs under the composition's options.
func (c Composition) Acts(e Entry) []strategy.Act {
	if o, ok := c.optionsOf(e).(strategy.Acting); ok {
		return append(o.Acts(), e.Acts...)
	}
	return e.Acts
}

// optionsOf points at the options of a strategy; nil where it has none.
func (c Composition) optionsOf(e Entry) any {
	if e.options == nil {
		return nil
	}
	options := e.options()
	if i := slices.IndexFunc(All, func(o Entry) bool { return o.Name == e.Name }); c.options.IsValid() {
		reflect.ValueOf(options).Elem().Set(c.options.FieldByName(fmt.Sprintf("F%d", i)))
	}
	return options
}

// instead says what a user may put in a part's place that a driver can obey.
func instead(part string, a strategy.Ability) string {
	var names []string
	for _, e := range All {
		if e.Part == part && a.Lacks(e.Acts) == "" {
			names = append(names, e.Name)
		}
	}
	if len(names) == 0 {
		return "leave the part out, or ask muster simulate"
	}
	return "what works as its " + part + ": " + strings.Join(names, ", ")
}

// Built is a Scheduler with what a driver has to know of it.
type Built struct {
	Scheduler schedule.Scheduler
	// TellTruth: the estimator wants true run times, which only a simulation has.
	TellTruth bool
	// Knows says in words what the estimator goes by.
	Knows string
	// OnRequest: jobs are asked to checkpoint before they are stopped.
	OnRequest   bool
	Composition Composition
}

// Build makes the Scheduler of a composition.
func (c Composition) Build(env Env, explain bool) (Built, error) {
	if err := c.clash(); err != nil {
		return Built{}, err
	}
	c = c.over(Default)
	p, err := c.Parts(env)
	if err != nil {
		return Built{}, err
	}
	p.Explain = explain
	_, truth := p.Estimator.(profile.Oracular)
	scheduler := schedule.Scheduler(compose.New(p))
	if o, ok := p.Order.(schedule.Controlled); ok {
		scheduler = o.Control(scheduler)
	}
	if c.Joint != "" {
		var decider allocate.Joint
		if err := c.fill("joint", env, &decider); err != nil {
			return Built{}, err
		}
		scheduler = compose.NewJoint(decider, p)
	}
	return Built{Scheduler: scheduler, TellTruth: truth, Knows: knows(c.Estimate, truth), OnRequest: c.Restart != "last-checkpoint", Composition: c}, nil
}

// knows says what an estimator goes by.
func knows(estimate string, truth bool) string {
	switch {
	case estimate == Default.Estimate:
		return "declared times"
	case truth:
		return "true times (" + estimate + ")"
	}
	return estimate
}

// Parts makes the parts of a composition, for its Scheduler and for whoever plans
// beside it.
func (c Composition) Parts(env Env) (compose.Parts, error) {
	c = c.over(Default)
	var p compose.Parts
	var cut, nullCut pipeline.Partitioner
	var sequence, nullSequence pipeline.Ordering
	for _, err := range []error{
		c.fill("estimate", env, &p.Estimator), c.fill("size", env, &p.Sizer), c.placers(env, &p.Placer),
		c.fill("gate", env, &p.Gate), c.fill("order", env, &p.Order), c.fill("reserve", env, &p.Reserve), c.fill("victims", env, &p.Victims),
		c.fill("flow", env, &p.Flow), c.fill("rate", env, &p.Rater), c.fill("switch", env, &p.Switcher), c.fill("cut", env, &cut), c.fill("sequence", env, &sequence),
		Null.fill("cut", env, &nullCut), Null.fill("sequence", env, &nullSequence),
	} {
		if err != nil {
			return compose.Parts{}, err
		}
	}
	if s, ok := p.Rater.(flow.Shaper); ok {
		p.Shaper = s
	} else if s, ok := p.Flow.(flow.Shaper); ok {
		p.Shaper = s
	}
	p.Planner = &compose.Pipelines{Cut: cut, Sequence: sequence, NullCut: nullCut, NullSequence: nullSequence, Name: c.Cut + "+" + c.Sequence}
	return p, nil
}

// placers makes the chain of placers, or the one there is.
func (c Composition) placers(env Env, into *allocate.Placer) error {
	names := strings.Split(c.Place, chained)
	var chain allocate.Chain
	for i, name := range names {
		one := c
		one.Place = name
		var p allocate.Placer
		if err := one.fill("place", env, &p); err != nil {
			return err
		}
		if _, picky := p.(allocate.Picky); !picky && i < len(names)-1 {
			return fmt.Errorf("%s: %s places every job, so that none is left for %s: put it last", c.Name, name, names[i+1])
		}
		chain = append(chain, p)
	}
	if *into = chain; len(chain) == 1 {
		*into = chain[0]
	}
	return nil
}

// fill makes the strategy of one part and stores it where into points.
func (c Composition) fill(part string, env Env, into any) error {
	name := *c.part(part)
	if name == "" {
		return nil // a part that there need not be
	}
	for _, e := range All {
		if e.Name != name || e.Part != part {
			continue
		}
		options := c.optionsOf(e)
		if options != nil {
			if v, ok := reflect.ValueOf(options).Elem().Interface().(interface{ Validate() error }); ok {
				if err := v.Validate(); err != nil {
					return fmt.Errorf("options of %s: %w", name, err)
				}
			}
		}
		made := e.make(options, env)
		if env.Break != "" && env.Break == e.System {
			made = broken(made)
		}
		reflect.ValueOf(into).Elem().Set(reflect.ValueOf(made))
		return nil
	}
	return unknown(part, name)
}
