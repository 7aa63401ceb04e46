package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/model/strategy"
)

// TestRefusesWhatPodsCannot: of all strategies those are refused where they are read that
// do more than start and stop pods, by name, unless they are only to advise.
func TestRefusesWhatPodsCannot(t *testing.T) {
	for _, e := range catalogue.All {
		if e.Name == "oracle" || e.Name == "noisy" {
			f := flags{strategy: e.Name}
			if _, err := f.composition(); err == nil || !strings.Contains(err.Error(), "wants true run times") {
				t.Errorf("%s: %v", e.Name, err)
			}
			continue
		}
		f := flags{strategy: e.Name}
		_, err := f.composition()
		c, _ := catalogue.Resolve(e.Name)
		acts := c.Acts(e) // with its default options
		named := func(a strategy.Act) bool {
			return strings.Contains(err.Error(), "cannot be obeyed on Kubernetes: its "+e.Part.Name+" "+e.Name+" "+a.Does())
		}
		if (err == nil) != (len(acts) == 0) || err != nil && !slices.ContainsFunc(acts, named) {
			t.Errorf("%s, which does %q: %v", e.Name, acts, err)
		}
		f.advise = true
		if _, err := f.composition(); err != nil {
			t.Errorf("%s, to advise: %v", e.Name, err)
		}
	}
}
