package scheduletest

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/musterdl/muster/engine/compose"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// Scenarios runs the text files below a folder against strategies composed anew for
// each. A scenario is
//
//	simulate nodes=1 devices=2 uplink=100 restart=1m
//	NAME at=10s run=5m gang=2 ...
//	----
//	what was decided when, and when jobs ended
//
// with one line per job; "go test -args -rewrite" writes what is expected anew. A job's keys are
// at, run, gang, sizes (joined by /), declared, tenant, class, priority and traffic.
func Scenarios(t *testing.T, folder string, parts func() compose.Parts) {
	datadriven.Walk(t, folder, func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "simulate" {
				d.Fatalf(t, "unknown command %q: expected simulate", d.Cmd)
			}
			said, err := scenario(d, parts())
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			return said
		})
	})
}

// scenario simulates one and says what happened.
func scenario(d *datadriven.TestData, parts compose.Parts) (string, error) {
	nodes, devices, uplink, restart := 1, 1, unit.Mbps(0), unit.Duration(0)
	for _, arg := range d.CmdArgs {
		var err error
		switch value := strings.Join(arg.Vals, ""); arg.Key {
		case "nodes":
			nodes, err = strconv.Atoi(value)
		case "devices":
			devices, err = strconv.Atoi(value)
		case "uplink":
			var n int
			n, err = strconv.Atoi(value)
			uplink = unit.Mbps(n)
		case "restart":
			restart, err = unit.ParseDuration(value)
		default:
			err = fmt.Errorf("unknown key: expected nodes, devices, uplink or restart")
		}
		if err != nil {
			return "", fmt.Errorf("%s: %w", arg.Key, err)
		}
	}
	var jobs Jobs
	for line := range strings.Lines(d.Input) {
		job, err := parseJob(strings.Fields(line))
		if err != nil {
			return "", fmt.Errorf("%s: %w", strings.TrimSpace(line), err)
		}
		jobs = append(jobs, job)
	}
	var said strings.Builder
	config := Config(Nodes(nodes, devices, uplink), jobs, parts)
	config.Prices.Restart = restart
	observe(&config, func(v plan.View, c *plan.Commit) {
		for i := range c.Changes {
			say(&said, v, c.At, &c.Changes[i])
		}
	})
	o, err := Run(config)
	for _, j := range o.Jobs {
		fmt.Fprintf(&said, "%s %s after %s\n", j.Name, j.Outcome, j.End.Sub(j.Submit))
	}
	return said.String(), err
}

func say(said *strings.Builder, v plan.View, at unit.Time, c *plan.Change) {
	fmt.Fprintf(said, "%s: %s %s", unit.Duration(at), c.Verb, v.Name(c.Job))
	if c.Verb == plan.Start {
		if r := v.Run(c.Run); r.Job == c.Job && r.Attempt == c.Attempt && r.Workers > 1 {
			fmt.Fprintf(said, " on %d", r.Workers)
		}
		if c.Terms.Traffic.Class > 0 {
			fmt.Fprintf(said, " in class %d", c.Terms.Traffic.Class)
		}
	}
	fmt.Fprintf(said, " (%s)\n", c.Reason.Words(v))
}

// parseJob reads a job's line.
func parseJob(fields []string) (Job, error) {
	var j Job
	if len(fields) == 0 {
		return j, fmt.Errorf("empty line: expected a name and keys")
	}
	j.Name, j.Gang, j.Devices, j.Share = fields[0], 1, 1, unit.Whole
	j.Checkpoint = workload.Checkpoint{OnRequest: true}
	for _, field := range fields[1:] {
		key, value, _ := strings.Cut(field, "=")
		if err := setKey(&j, key, value); err != nil {
			return j, fmt.Errorf("%s: %w", key, err)
		}
	}
	return j, nil
}

func setKey(j *Job, key, value string) error {
	var err error
	var at unit.Duration
	switch key {
	case "at":
		at, err = unit.ParseDuration(value)
		j.Submit = unit.Time(at)
	case "run":
		j.Duration, err = unit.ParseDuration(value)
	case "declared":
		j.Estimate, err = unit.ParseDuration(value)
	case "tenant":
		j.Tenant = value
	case "class":
		j.Class = value
	case "gang":
		j.Gang, err = whole(value)
	case "priority":
		j.Priority, err = whole(value)
	case "traffic":
		var n int32
		n, err = whole(value)
		j.Traffic = unit.Mbps(n)
	case "sizes":
		for size := range strings.SplitSeq(value, "/") {
			n, err := whole(size)
			if err != nil {
				return err
			}
			j.Sizes = append(j.Sizes, n)
		}
	default:
		return fmt.Errorf("unknown key: expected at, run, gang, sizes, declared, tenant, class, priority or traffic")
	}
	return err
}

func whole(text string) (int32, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	return int32(n), err
}
