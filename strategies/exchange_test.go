package strategies_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/internal/spec"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/overlap"
)

// asked makes the strategies that a block names before its fields, in the place of each the null
// of its part where the stage plays without. Fields are decoded into.
func asked[T any](s *stage, list []string, part *strategy.Part, into any) (names []string, made []T, err error) {
	fields := slices.IndexFunc(list, func(w string) bool { return strings.Contains(w, "=") })
	if fields < 0 {
		fields = len(list)
	}
	for _, name := range list[:fields] {
		choice := name
		if s.instead != nil {
			choice = part.Null
		}
		filled, err := (catalogue.Composition{Choices: catalogue.Choices{part: choice}}).Fill(catalogue.Env{Seed: 1})
		if err != nil {
			return nil, nil, err
		}
		names, made = append(names, name), append(made, strategy.In[T](filled, part))
	}
	return names, made, decode(list[fields:], into)
}

// decode reads words KEY=VALUE.
func decode(list []string, into any) error {
	var fields []string
	for _, w := range list {
		key, value, _ := strings.Cut(w, "=")
		fields = append(fields, key+": "+value)
	}
	return spec.Decode("block", flow(fields), into)
}

// exchange says in which messages strategies send the gradients of a stage, and what an
// iteration then takes. A line of the input is a layer, its name first.
func (s *stage) exchange(list []string, layers string) (string, error) {
	var is struct {
		Start        unit.Duration
		MicrosPerKiB float64 `yaml:"micros-per-kib"`
		Memory       unit.MiB
	}
	names, made, err := asked[overlap.Merger](s, list, overlap.GradientsPart, &is)
	if err != nil {
		return "", err
	}
	if layers != "" {
		s.layers = layers
	}
	c := overlap.Costs{Start: is.Start, MicrosPerKiB: is.MicrosPerKiB, Memory: is.Memory}
	for line := range strings.Lines(s.layers) {
		var l struct {
			Forward, Input, Weight unit.Duration
			KiB                    int64 `yaml:"kib"`
			Output, Activation     int64
		}
		if err := decode(words(strings.TrimSpace(line))[1:], &l); err != nil {
			return "", err
		}
		c.Layers = append(c.Layers, pipeline.Stage{Forward: l.Forward, Input: l.Input, Weight: l.Weight,
			ParamKiB: l.KiB, OutputKiB: l.Output, ActivationKiB: l.Activation})
	}
	var said strings.Builder
	for i, m := range made {
		plan := m.Merge(&c)
		t, why := plan.Time(&c)
		if why != "" {
			return "", fmt.Errorf("%s: %s", names[i], why)
		}
		order := plan.Order(len(c.Layers))
		fmt.Fprintf(&said, "%s sends", names[i])
		for _, size := range plan.Sizes {
			fmt.Fprintf(&said, " %v", order[:size])
			order = order[size:]
		}
		if plan.Split {
			said.WriteString(" in halves")
		}
		fmt.Fprintf(&said, ": %s, of which %s are exposed\n", t.Iteration, t.Exposed())
	}
	return said.String(), nil
}

// experts says in how many chunks strategies have tokens go through a layer of experts.
func (s *stage) experts(list []string) (string, error) {
	var e overlap.Experts
	names, made, err := asked[overlap.Chunker](s, list, overlap.ExpertsPart, &e)
	if err != nil {
		return "", err
	}
	var said strings.Builder
	for i, chunker := range made {
		choice := chunker.Chunk(&e)
		t, why := e.Time(choice)
		if why != "" {
			return "", fmt.Errorf("%s: %s", names[i], why)
		}
		codec := "no codec"
		if choice.Codec > 0 {
			codec = e.Codecs[choice.Codec-1].Name
		}
		fmt.Fprintf(&said, "%s: %d chunks, %s, %s: %s, of which %s compute and send at once\n", names[i], choice.Chunks, choice.Kind, codec, t.Iteration, t.Overlap)
	}
	return said.String(), nil
}
