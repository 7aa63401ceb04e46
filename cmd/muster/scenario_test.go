package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/musterdl/muster/catalogue"
)

// What cannot be asked is refused before anything runs, with what could be.
func TestScenarioRefuses(t *testing.T) {
	for _, c := range []struct{ args, says string }{
		{"--without sleep", "the steps are profile"},
		{"--only sleep", "the steps are profile"},
		{"--goal fame", "expected one of throughput"},
		{"--goal all --factorial", "full compositions"},
		{"--without run --only flow", "none of the others can be"},
		{"--seeds 0", "expected 1 or more"},
		{"tomorrow", "unknown command"},
	} {
		cmd := root()
		cmd.SetArgs(append([]string{"scenario", "day"}, strings.Fields(c.args)...))
		cmd.SetOut(&bytes.Buffer{})
		cmd.SetErr(&bytes.Buffer{})
		if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.args, err, c.says)
		}
	}
}

func TestScenarioRows(t *testing.T) {
	for _, c := range []struct {
		o    dayOptions
		want string
	}{
		{dayOptions{goal: "cost"}, "full, the nulls, without profile, without allocate, without schedule, without pipeline, without flow, without run"},
		{dayOptions{goal: "cost", without: []string{"flow"}}, "full, the nulls, without flow"},
		{dayOptions{goal: "cost", only: []string{"flow", "run"}}, "full, the nulls, only flow, only run"},
		{dayOptions{goal: "all"}, "full, full, full, full, full, full"},
	} {
		rows, err := c.o.rows()
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, r := range rows {
			names = append(names, r.Name)
			if left := len(catalogue.Steps) - len(r.Null); strings.HasPrefix(r.Name, "only") && left != 1 || strings.HasPrefix(r.Name, "without") && left != 5 {
				t.Errorf("%s leaves %d steps at work", r.Name, left)
			}
		}
		if got := strings.Join(names, ", "); got != c.want {
			t.Errorf("%+v: %s, want %s", c.o, got, c.want)
		}
	}
}
