package reproduce

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/experiment/reproduce/stand"
	"github.com/musterdl/muster/internal/spec"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/run/simulated"
)

// Claim is the headline experiment of a system as data: claim.yaml in the folder of its
// strategy. CLAIMS.md describes the file.
type Claim struct {
	About
	Ground

	Arrivals   float64           `yaml:"arrivals"` // pack: what arrives, over what the devices hold
	Strategies map[string]string `yaml:"strategies"`
	// HistorySeeds are those whose jobs $HISTORY stands for in a strategy.
	HistorySeeds int `yaml:"history-seeds"`
	Seeds        int `yaml:"seeds"`
	QuickSeeds   int `yaml:"quick-seeds"`
	// Inner is SCORE GOAL: figures of simulate or pack whose order among the strategies is
	// compared; a minus before the one of which less is better.
	Inner string `yaml:"inner"`
	// Bands says where the bands come from: catalogue, paper, artefact or ours.
	Bands   string   `yaml:"bands"`
	Metrics []Metric `yaml:"metrics"`
	Plots   []Plot   `yaml:"plots"`

	// Entry is the strategy that makes the claim.
	Entry catalogue.Entry `yaml:"-"`
}

// About says what a claim is about.
type About struct {
	Name      string `yaml:"name"`
	System    string `yaml:"system"`
	Source    string `yaml:"source"`
	Published string `yaml:"published"` // what was measured there, on what set-up
	Setup     string `yaml:"setup"`     // what is run here, and how it differs
	Kind      string `yaml:"kind"`      // simulate, pack or measure
}

// Ground is what a claim's strategies run on, and what that costs there.
type Ground struct {
	Trace      string            `yaml:"trace"`
	Traces     map[string]string `yaml:"traces"` // several, by label
	Stand      string            `yaml:"stand"`  // in the place of trace and cluster: NAME?key=value
	Stands     map[string]string `yaml:"stands"` // several, by label
	Cluster    string            `yaml:"cluster"`
	Load       float64           `yaml:"load"`
	Limit      int               `yaml:"limit"`
	RestartSec float64           `yaml:"restart-s"`
	// Prices are those of the published set-up besides that of a restart; what it does not
	// name is free there.
	Prices simulated.Prices `yaml:"prices"`
}

// Metric is one published figure beside ours.
type Metric struct {
	Metric    string   `yaml:"metric"`
	Figure    string   `yaml:"figure"`
	Published string   `yaml:"published"`
	Low       *float64 `yaml:"low"`
	High      *float64 `yaml:"high"`
	From      string   `yaml:"from"` // where the band comes from; default the claim's
	Note      string   `yaml:"note"`
	Long      bool     `yaml:"long"` // left out of a quick run

	over  term
	under *term // of a ratio
}

// term is a figure of the runs of one strategy on one trace; without a label, of what
// the strategy measured.
type term struct{ trace, label, figure string }

// sources are where bands come from.
var sources = []string{"catalogue", "paper", "artefact", "ours"}

// by says what decides a metric: a figure that only a Measure returns is a kernel's.
func (m *Metric) by() string {
	if m.over.label == "" || m.under != nil && m.under.label == "" {
		return catalogue.ByKernel
	}
	return catalogue.ByEngine
}

// every stands for all traces of a claim: the mean over them. A label with a * stands
// for those that match it.
const every = "all"

// on lists the traces of a term.
func (c *Claim) on(t term) (list []string) {
	for _, trace := range slices.Sorted(maps.Keys(c.Traces)) {
		if match, _ := path.Match(t.trace, trace); match || t.trace == every {
			list = append(list, trace)
		}
	}
	return list
}

// ReadClaim reads the claim of an entry, strictly: mistakes are said with their line
// and field.
func ReadClaim(e catalogue.Entry) (*Claim, error) {
	file := filepath.Join(e.Name, "claim.yaml")
	c := &Claim{Entry: e, Bands: "catalogue", Ground: Ground{RestartSec: Defaults().Prices.Restart.Seconds()}, Arrivals: 1.3, Seeds: 1}
	if err := spec.Decode(file, e.Claim, c); err != nil {
		return nil, err
	}
	if c.QuickSeeds == 0 {
		c.QuickSeeds = min(c.Seeds, 3)
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	names := map[string]bool{}
	for i := range c.Metrics {
		m := &c.Metrics[i]
		if names[m.Metric] {
			return nil, fmt.Errorf("%s: metrics[%d]: another is called %q too", file, i, m.Metric)
		}
		names[m.Metric] = true
		if err := c.parse(m); err != nil {
			return nil, fmt.Errorf("%s: metrics[%d].figure: %q: %w", file, i, m.Figure, err)
		}
	}
	for i := range c.Plots {
		if err := c.Plots[i].check(c.Metrics); err != nil {
			return nil, fmt.Errorf("%s: plots[%d]: %w", file, i, err)
		}
	}
	return c, nil
}

// check says what is missing.
func (c *Claim) check() error {
	for _, f := range [][2]string{{"name", c.Name}, {"system", c.System}, {"source", c.Source}, {"published", c.Published}, {"setup", c.Setup}} {
		if f[1] == "" {
			return fmt.Errorf("%s is missing", f[0])
		}
	}
	if err := c.where(); err != nil {
		return err
	}
	switch {
	case c.Kind != "simulate" && c.Kind != "pack" && c.Kind != "measure":
		return fmt.Errorf("kind is %q: expected simulate, pack or measure", c.Kind)
	case c.Kind == "measure" && c.Entry.Measure == nil:
		return errors.New("kind is measure, but its line in catalogue/all.go gives no Measure")
	case (c.Kind != "measure" || len(c.Traces) > 0 || c.Cluster != "") && (len(c.Traces) == 0 || !c.standing() && c.Cluster == "" || len(c.Strategies) == 0):
		return fmt.Errorf("kind %s needs trace (or traces), cluster and strategies, or stand (or stands) and strategies", c.Kind)
	case c.Inner != "" && (len(strings.Fields(c.Inner)) != 2 || c.Kind == "measure"):
		return errors.New("inner is expected to be SCORE GOAL, of kind simulate or pack")
	case c.Seeds < 1 || c.QuickSeeds < 1 || c.QuickSeeds > c.Seeds:
		return fmt.Errorf("seeds is %d and quick-seeds %d: expected at least 1, and no more in the quick run", c.Seeds, c.QuickSeeds)
	case c.HistorySeeds > 0 && c.Kind != "simulate":
		return errors.New("history-seeds are for kind simulate")
	case len(c.Metrics) == 0:
		return errors.New("there are no metrics")
	}
	return nil
}

// standing reports whether the claim runs on stands of its own.
func (c *Claim) standing() bool { return c.Stand != "" || len(c.Stands) > 0 }

// where collects what the strategies are run on, by label.
func (c *Claim) where() error {
	stands := maps.Clone(c.Stands)
	if c.Stand != "" {
		stands = map[string]string{"": c.Stand}
	}
	if c.Trace != "" {
		c.Traces = map[string]string{"": c.Trace}
	}
	if len(stands) == 0 {
		return nil
	}
	if c.Kind == "pack" || len(c.Traces) > 0 || c.Cluster != "" || c.Load != 0 || c.Limit != 0 || c.HistorySeeds != 0 || c.RestartSec != Defaults().Prices.Restart.Seconds() || c.Prices != (simulated.Prices{}) {
		return errors.New("a stand gives the jobs, the cluster and the prices: leave out trace, cluster, load, limit, restart-s, prices and history-seeds, and kind is not pack")
	}
	c.Traces = map[string]string{}
	for label, ref := range stands {
		c.Traces[label] = stand.Prefix + ref
	}
	return nil
}

// parse reads FIGURE LABEL [on TRACE] [/ [FIGURE] LABEL [on TRACE]], or of what the
// strategy measured KEY [/ KEY]. A trace that is named once, at the end, is that of both.
func (c *Claim) parse(m *Metric) error {
	if m.Metric == "" {
		return errors.New("the metric has no name")
	}
	if m.Low != nil && m.High != nil && *m.Low > *m.High {
		return fmt.Errorf("the band is %g to %g", *m.Low, *m.High)
	}
	if m.From = cmp.Or(m.From, c.Bands); !slices.Contains(sources, m.From) {
		return fmt.Errorf("the band is from %q: expected one of %s", m.From, strings.Join(sources, ", "))
	}
	over, under, ratio := strings.Cut(m.Figure, "/")
	over, first, apart := strings.Cut(over, " on ")
	under, trace, _ := strings.Cut(under, " on ")
	if !ratio || !apart {
		first, trace = cmp.Or(first, trace), cmp.Or(trace, first)
	}
	var err error
	if m.over, err = c.term(over, first, ""); err != nil || !ratio {
		return err
	}
	t, err := c.term(under, trace, m.over.figure)
	m.under = &t
	return err
}

// term reads one side of a ratio; a figure that it does not name is the given one.
func (c *Claim) term(text, trace, figure string) (t term, err error) {
	words := strings.Fields(text)
	if c.Kind == "measure" && len(words) == 1 && trace == "" {
		return term{figure: words[0]}, nil
	}
	if len(words) == 1 && figure != "" {
		words = []string{figure, words[0]}
	}
	if len(words) != 2 {
		return t, errors.New("expected FIGURE LABEL [on TRACE] [/ LABEL [on TRACE]], or KEY [/ KEY] of what the strategy measures")
	}
	t = term{strings.TrimSpace(trace), words[1], words[0]}
	if _, ok := c.Strategies[t.label]; !ok {
		return t, fmt.Errorf("%q is none of the strategies %s", t.label, strings.Join(slices.Sorted(maps.Keys(c.Strategies)), ", "))
	}
	if len(c.on(t)) == 0 {
		return t, fmt.Errorf("%q is none of the traces %q", t.trace, slices.Sorted(maps.Keys(c.Traces)))
	}
	return t, nil
}

// Claims reads those of the entries that match: all for "", one by its name, or those
// of a step. A name may also be that of a file that holds a claim of another kind than
// measure.
func Claims(name, step string) ([]*Claim, error) {
	if data, err := os.ReadFile(name); err == nil {
		c, err := ReadClaim(catalogue.Entry{Description: strategy.Description{Name: filepath.Dir(name)}, Claim: data})
		return []*Claim{c}, err
	}
	var list []*Claim
	var names []string
	for _, e := range slices.Concat(catalogue.All, catalogue.ForPlans, Grounds()) {
		if e.Claim == nil {
			continue
		}
		c, err := ReadClaim(e)
		if err != nil {
			return nil, err
		}
		names = append(names, c.Name)
		if (name == "" || name == c.Name || name == e.Name) && (step == "" || step == e.Step) {
			list = append(list, c)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("there is no claim %q: choose one of %s", cmp.Or(name, "of step "+step), strings.Join(names, ", "))
	}
	return list, nil
}
