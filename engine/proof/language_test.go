package proof

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/cockroachdb/datadriven"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// The language of the scenario files: `cluster`, `jobs` with a job per line, and `run`
// with a trouble per line. All of it is words and key=value.

func decode(text []byte, into any) error { return json.Unmarshal(text, into) }

// command carries out one directive of a file.
func (s *scenario) command(td *datadriven.TestData) (string, error) {
	switch td.Cmd {
	case "cluster":
		return "", s.readCluster(words(td.FullCmd()))
	case "jobs":
		return "", s.readJobs(td.Input)
	case "run":
		return s.run(words(td.FullCmd()), td.Input)
	}
	return "", fmt.Errorf("unknown directive %q: expected cluster, jobs or run", td.Cmd)
}

// readScenario takes the cluster and the jobs out of a file.
func readScenario(path string) (s scenario, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return s, err
	}
	s.packed = 600
	for _, block := range strings.Split(string(text), "\n\n") {
		block, _, _ = strings.Cut(block, "----")
		var lines []string
		for _, line := range strings.Split(block, "\n") {
			if !strings.HasPrefix(line, "#") && line != "" {
				lines = append(lines, line)
			}
		}
		if len(lines) == 0 {
			continue
		}
		switch w := words(lines[0]); w[""] {
		case "cluster":
			err = s.readCluster(w)
		case "jobs":
			err = s.readJobs(strings.Join(lines[1:], "\n"))
		}
		if err != nil {
			return s, fmt.Errorf("%s: %w", path, err)
		}
	}
	return s, nil
}

// fields are the key=value words of a line; the first word alone is under "".
type fields map[string]string

func words(line string) fields {
	f := fields{}
	for i, w := range strings.Fields(line) {
		key, value, found := strings.Cut(w, "=")
		if i == 0 && !found {
			key, value = "", w
		}
		f[key] = value
	}
	return f
}

func (f fields) number(key string, otherwise int64) (int64, error) {
	text, ok := f[key]
	if !ok {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%s=%s is not a number", key, text)
	}
	return n, nil
}

func (f fields) span(key string) (unit.Duration, error) {
	if f[key] == "" {
		return 0, nil
	}
	return unit.ParseDuration(f[key])
}

func (s *scenario) readCluster(f fields) error {
	nodes, err1 := f.number("nodes", 1)
	devices, err2 := f.number("devices", 4)
	memory, err3 := f.number("memory", 16384)
	for _, err := range []error{err1, err2, err3} {
		if err != nil {
			return err
		}
	}
	model := cluster.Model{Name: "gpu", Speed: 1, Memory: unit.MiB(memory)}
	for _, cut := range strings.FieldsFunc(f["cuts"], func(r rune) bool { return r == ',' }) { // 500+500,430+430+140
		if len(model.Geometries) == 0 {
			model.Geometries = append(model.Geometries, cluster.Geometry{Name: "whole"})
		}
		g := cluster.Geometry{Name: cut}
		for _, part := range strings.Split(cut, "+") {
			milli, err := strconv.ParseInt(part, 10, 32)
			if err != nil {
				return fmt.Errorf("cuts: %q is not a number of thousandths", part)
			}
			g.Parts = append(g.Parts, cluster.Part{Milli: unit.Milli(milli), Memory: unit.MiB(memory * milli / 1000)})
		}
		model.Geometries = append(model.Geometries, g)
	}
	s.cluster = cluster.Uniform("test", int(nodes), int(devices), model, 4)
	return nil
}

func (s *scenario) readJobs(text string) error {
	s.jobs = nil
	for _, line := range strings.Split(text, "\n") {
		f := words(line)
		j := job{spec: workload.Job{Name: f[""], Resources: workload.Resources{Devices: 1}, Checkpoint: workload.Checkpoint{OnRequest: true}}}
		gang, err1 := f.number("gang", 1)
		share, err2 := f.number("share", 1000)
		memory, err3 := f.number("memory", 0)
		traffic, err4 := f.number("traffic", 0)
		submit, err5 := f.span("submit")
		run, err6 := f.span("run")
		deadline, err7 := f.span("deadline")
		for _, err := range []error{err1, err2, err3, err4, err5, err6, err7} {
			if err != nil {
				return fmt.Errorf("job %s: %w", f[""], err)
			}
		}
		j.work = run
		j.spec.Gang, j.spec.Share, j.spec.Memory, j.spec.Traffic = int32(gang), unit.Milli(share), unit.MiB(memory), unit.Mbps(traffic)
		j.spec.Submit, j.spec.Estimate, j.spec.Deadline = unit.Time(submit), run, deadline
		for _, size := range strings.FieldsFunc(f["sizes"], func(r rune) bool { return r == ',' }) {
			n, err := strconv.ParseInt(size, 10, 32)
			if err != nil {
				return fmt.Errorf("job %s: size %q is not a number", f[""], size)
			}
			j.spec.Sizes = append(j.spec.Sizes, int32(n))
		}
		s.jobs = append(s.jobs, j)
	}
	s.jobs = sorted(s.jobs)
	return nil
}

// run runs the scenario with the troubles in text and prints what was decided.
func (s *scenario) run(f fields, text string) (string, error) {
	packed, err := f.number("packed", 600)
	if err != nil {
		return "", err
	}
	until, err := f.span("until")
	if err != nil {
		return "", err
	}
	r := *s
	r.strategy, r.until, r.packed = f["strategy"], unit.Time(until), packed
	r.failStart, r.lateStop, r.finishAnyway = map[string]int{}, map[string]unit.Duration{}, map[string]bool{}
	if strategies[r.strategy] == nil {
		return "", fmt.Errorf("there is no strategy %q", r.strategy)
	}
	if f["answers"] == "none" {
		r.answer = func([]byte) []byte { return nil }
	} else {
		r.answer = func(question []byte) (reply []byte) {
			reply, err = python(question)
			return reply
		}
	}
	restarts := false
	for _, line := range strings.Split(text, "\n") {
		if line == "snapshot every-event" {
			restarts = true
		} else if err := r.trouble(words(line)); err != nil {
			return "", err
		}
	}
	h, liveErr := live(r)
	if liveErr != nil {
		return "", fmt.Errorf("%w", liveErr)
	}
	if restarts {
		if err := h.restarted(&r, 1); err != nil {
			return "", err
		}
		if err := h.folded(&r); err != nil {
			return "", err
		}
	}
	return strings.Join(h.lines, "\n") + "\n" + table(h.final.View()), nil
}

// trouble reads one line of what goes wrong.
func (s *scenario) trouble(f fields) error {
	at, err1 := f.span("at")
	lasts, err2 := f.span("for")
	by, err3 := f.span("by")
	times, err4 := f.number("times", 1)
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil {
			return err
		}
	}
	switch f[""] {
	case "":
	case "fail-start":
		s.failStart[f["job"]] = int(times)
	case "late-stop":
		s.lateStop[f["job"]] = by
	case "finish-anyway":
		s.finishAnyway[f["job"]] = true
	case "switch":
		s.switches = append(s.switches, change{unit.Time(at), f["strategy"]})
	case "lose":
		for i := range s.cluster.Nodes {
			if s.cluster.Nodes[i].Name == f["node"] {
				s.lose = append(s.lose, loss{node: plan.NodeID(i), at: unit.Time(at), lasts: lasts, whileStopping: f["while"] == "stopping"})
			}
		}
	default:
		return fmt.Errorf("unknown trouble %q: expected fail-start, late-stop, finish-anyway, lose, switch or snapshot every-event", f[""])
	}
	return nil
}

// print adds a step to what people read: what happened that was no plain progress, and
// a line per change.
func (h *history) print(v plan.View, st *step, out *engine.Out) {
	say := func(format string, args ...any) {
		h.lines = append(h.lines, fmt.Sprintf("%6gs ", st.at.Seconds())+fmt.Sprintf(format, args...))
	}
	for _, e := range st.events {
		switch e.Kind {
		case engine.NodeDown, engine.NodeUp:
			say("- %s is %s", v.Cluster().Nodes[e.Node].Name, map[engine.Kind]string{engine.NodeDown: "lost", engine.NodeUp: "back"}[e.Kind])
		case engine.NotStarted, engine.Exited:
			say("- %s.%d %s", v.Name(e.Job), e.Attempt, map[engine.Kind]string{engine.NotStarted: "could not start", engine.Exited: "is done"}[e.Kind])
		case engine.Switched:
			say("- switch to %s", st.to)
		}
	}
	if out.Commit == nil {
		return
	}
	for _, c := range out.Commit.Changes {
		say("%s", describe(v, &c))
	}
}

// describe puts a change in words.
func describe(v plan.View, c *plan.Change) string {
	var b strings.Builder
	fmt.Fprintf(&b, "#%d %s ", c.ID, c.Verb)
	switch c.Verb {
	case plan.Reshape:
		fmt.Fprintf(&b, "device %d into %s", c.Device, v.Cluster().Models[0].Geometries[c.Shape].Name)
	case plan.Refuse:
		b.WriteString(v.Name(c.Job))
	default:
		fmt.Fprintf(&b, "%s.%d", v.Name(c.Job), c.Attempt)
	}
	if c.Verb == plan.Start {
		b.WriteString(" on")
		v.GrantsOf(c.Run, func(g plan.Grant) {
			fmt.Fprintf(&b, " %d", g.Device)
			if g.Reserve < 1000 {
				fmt.Fprintf(&b, ":%dm", g.Reserve)
			}
		})
	}
	t := c.Terms
	for _, x := range []struct {
		name string
		n    int64
	}{{"batch", int64(t.Share.Batch)}, {"turn", int64(t.Share.Turn)}, {"share", int64(t.Share.Milli)}, {"shift_us", int64(t.Traffic.Shift)}} {
		if x.n != 0 {
			fmt.Fprintf(&b, " %s=%d", x.name, x.n)
		}
	}
	for i, id := range c.After {
		if i == 0 {
			b.WriteString(" after")
		}
		fmt.Fprintf(&b, " #%d", id)
	}
	if words := c.Reason.Words(v); words != "" {
		b.WriteString(": " + words)
	}
	return b.String()
}

// table is how every job ended.
func table(v plan.View) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-6s %-9s %8s %8s %8s %8s %8s\n", "job", "phase", "attempts", "start_s", "end_s", "preempt", "restart")
	for id := range plan.JobID(v.Jobs()) {
		j := v.Job(id)
		at := func(t unit.Time) string {
			if t == unit.Never {
				return "-"
			}
			return strconv.FormatFloat(t.Seconds(), 'f', -1, 64)
		}
		fmt.Fprintf(&b, "%-6s %-9s %8d %8s %8s %8d %8d\n", v.Name(id), j.Phase, j.Attempt, at(j.Started), at(j.Ended), j.Preemptions, j.Restarts)
	}
	return b.String()
}
