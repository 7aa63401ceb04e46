package catalogue_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/model/strategy"
)

// TestParts: every part has a name and a rank of its own, is of a step that there is or
// leaves that to its strategies, and names nothing that there is not.
func TestParts(t *testing.T) {
	parts := catalogue.Parts()
	named := func(name string) bool {
		return slices.ContainsFunc(parts, func(p *strategy.Part) bool { return p.Name == name })
	}
	for i, p := range parts {
		if p.Name == "" || i > 0 && p.Rank == parts[i-1].Rank || slices.ContainsFunc(parts[:i], func(o *strategy.Part) bool { return o.Name == p.Name }) {
			t.Errorf("%q has no name or rank of its own", p.Name)
		}
		if p.Step != "" && !slices.Contains(catalogue.Steps, p.Step) {
			t.Errorf("%s is of step %q", p.Name, p.Step)
		}
		for _, choice := range []string{p.Null, p.Default} {
			if e, _ := catalogue.Find(choice); choice != "" && e.Part != p && !slices.Contains(p.Words, choice) {
				t.Errorf("%s is filled by %q, which is no choice of it", p.Name, choice)
			}
		}
		if len(p.Forbids) > 0 && p.Does == "" {
			t.Errorf("%s does not say in words why it stands alone", p.Name)
		}
		for _, other := range p.Forbids {
			if !named(other) {
				t.Errorf("%s forbids %q, which is no part", p.Name, other)
			}
		}
	}
	for _, e := range catalogue.All {
		if e.Part.Step != "" && e.Step != e.Part.Step {
			t.Errorf("%s is of step %s and its part %s of step %s", e.Name, e.Step, e.Part.Name, e.Part.Step)
		}
	}
}

// parrot is a part that there is in this test only, with a strategy that repeats.
type parrot interface{ Say(string) string }

type repeats struct{ Times int }

func (r repeats) Say(word string) (said string) {
	for range r.Times {
		said += word
	}
	return said
}

// TestNewPart: a new part is its declaration and its first strategy. It is read from names
// and files with its options, listed in its rank, put back to its null, and had by its
// contract.
func TestNewPart(t *testing.T) {
	part := strategy.NewPart[parrot](strategy.Part{Name: "say", Rank: 35, Step: "allocate", Null: "once", Default: "once"})
	catalogue.List(t, repeats{Times: 1}, strategy.Description{Name: "once", Part: part})
	catalogue.List(t, repeats{Times: 2}, strategy.Description{Name: "twice", Part: part})
	for ref, want := range map[string]string{"fifo": "a", "fifo+twice": "aa", "order: fifo\nsay: twice\noptions: {twice: {times: 3}}\n": "aaa"} {
		c, err := catalogue.Resolve(ref)
		if err != nil {
			t.Fatal(err)
		}
		built, err := c.Build(catalogue.Env{}, false)
		if err != nil {
			t.Fatal(err)
		}
		filled, err := built.Composition.Fill(catalogue.Env{})
		if said := strategy.In[parrot](filled, part).Say("a"); err != nil || said != want {
			t.Errorf("%s says %q, %v", ref, said, err)
		}
		if c, err = c.Without("allocate"); err != nil || c.Choices[part] != "once" {
			t.Errorf("without its step it is %q, %v", c.Choices[part], err)
		}
	}
	if _, err := catalogue.Read("my.yaml", []byte("say: thrice\n")); err == nil || err.Error() != `my.yaml: say: there is no say strategy named "thrice": choose one of once, twice` {
		t.Error(err)
	}
	if got := (catalogue.Choices{part: "twice"}).String(); got != "say: twice" {
		t.Errorf("it is listed as %q", got)
	}
}

// TestForPlans: what only planners ask says so and is described as everything is; it fulfils
// its part, whose null is there too, and no composition takes it.
func TestForPlans(t *testing.T) {
	for _, e := range catalogue.ForPlans {
		if e.Idea == "" || e.Source == "" || e.Goal == "" || e.Needs == "" || !strings.HasPrefix(e.Live, "cannot, because ") || len(e.Acts) > 0 {
			t.Errorf("%s: its description lacks something, or it acts on runs", e.Name)
		}
		if found, _ := catalogue.Find(e.Name); found.Part != e.Part || slices.Contains(catalogue.Parts(), e.Part) {
			t.Errorf("%s is found as another strategy's name, or its part is one of compositions", e.Name)
		}
		for _, name := range []string{e.Name, e.Part.Null} {
			filled, err := catalogue.Composition{Choices: catalogue.Choices{e.Part: name}}.Fill(catalogue.Env{})
			if err != nil || len(filled) != 1 || !e.Part.Fulfils(filled[e.Part].Strategy) {
				t.Errorf("%s for plans: %v, %v", name, filled, err)
			}
		}
		if _, err := catalogue.Resolve("fifo+" + e.Name); err == nil || !strings.Contains(err.Error(), "only planners ask") {
			t.Errorf("a composition takes %s: %v", e.Name, err)
		}
	}
}
