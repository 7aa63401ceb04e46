package catalogue

import (
	"slices"
	"strings"
	"testing"
)

// TestSurvey: every system is on the map once for a challenge, under a goal that has a
// column.
func TestSurvey(t *testing.T) {
	if len(survey) != 14 {
		t.Errorf("%d challenges", len(survey))
	}
	for _, c := range survey {
		seen := map[string]bool{}
		for _, s := range c.systems {
			if s.granularity == "" || !slices.Contains(goals, s.goal) {
				t.Errorf("%s: %q, %q", c.id, s.granularity, s.goal)
			}
			for _, n := range s.names {
				if seen[n] {
					t.Errorf("%s has %s twice", c.id, n)
				}
				seen[n] = true
			}
		}
	}
	for _, e := range All {
		if !slices.Contains(goals, e.Goal) {
			t.Errorf("%s is after %q: expected one of %v", e.Name, e.Goal, goals)
		}
		for _, c := range e.Challenges {
			if err := (Selection{Challenge: c}).Check(); err != nil {
				t.Errorf("%s: %v", e.Name, err)
			}
		}
	}
}

func TestSelection(t *testing.T) {
	names := func(s Selection) string {
		var list []string
		for _, l := range Listing(s) {
			list = append(list, l.Name)
		}
		return " " + strings.Join(list, " ") + " "
	}
	if len(Listing(Selection{})) != len(All)+len(ForPlans) {
		t.Error("an empty selection does not select all")
	}
	for _, c := range []struct {
		of           Selection
		with, absent string
	}{
		{Selection{Challenge: "C8"}, "tiresias", "fgd"},
		{Selection{Challenge: "C1"}, "fgd", "tiresias"},
		{Selection{Step: "allocate"}, "fgd", "tiresias"},
		{Selection{Step: "flow", Goal: "throughput"}, "max-min", "fgd"},
	} {
		got := names(c.of)
		if !strings.Contains(got, " "+c.with+" ") || strings.Contains(got, " "+c.absent+" ") {
			t.Errorf("%+v selects%s", c.of, got)
		}
	}
	missing := (Selection{Challenge: "C8"}).Missing()
	if slices.Contains(missing, "Tiresias") || !slices.Contains(missing, "OSDL") && !have("OSDL") {
		t.Errorf("missing of C8: %v", missing)
	}
	for _, s := range []Selection{{Challenge: "C15"}, {Goal: "fame"}, {Step: "sleep"}} {
		if s.Check() == nil {
			t.Errorf("%+v was accepted", s)
		}
	}
}
