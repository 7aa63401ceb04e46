// Package strategies_test plays the texts that stand beside the strategies, each of which
// shows the one idea of its strategy.
package strategies_test

import (
	"cmp"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/script"
	"github.com/musterdl/muster/internal/spec"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/report"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/run/simulated/world"
)

// TestTexts plays the texts STEP/NAME/testdata/*.txt. A text says
//
//	play las+oracle on=gpus:1x2 restart=30s las.quantum=20s
//	first  run=200s
//	second run=200s at=90s workers=2 sizes=[1, 2]
//	----
//	what was decided when and why, and when jobs ended
//
// The words after play are strategies as --strategy takes them, then options of theirs and
// the fields of settings. A line for each job has the fields of a job file, besides those of
// truth. A play without jobs plays those of the play before it; ends is a play that says
// only when jobs ended. The blocks cluster and queues hold such a file for the plays below.
// What only planners ask is asked by exchange and experts, in exchange_test.go.
//
//	go test ./strategies -run Texts/schedule/las -args -rewrite
//
// writes anew what is expected.
func TestTexts(t *testing.T) {
	for _, path := range texts(t) {
		t.Run(name(path), func(t *testing.T) {
			s := &stage{}
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				said, err := s.command(d)
				if err != nil {
					d.Fatalf(t, "%v", err)
				}
				return said
			})
		})
	}
}

// texts are the files of all texts. Scripts that they name are run in this folder.
func texts(t *testing.T) []string {
	scripts := &script.Host{Log: slog.New(slog.DiscardHandler)}
	catalogue.Scripts = func(command []string, limit unit.Duration) catalogue.Exchange {
		return scripts.Process(command, time.Duration(limit)*time.Microsecond)
	}
	t.Cleanup(func() {
		catalogue.Scripts = nil
		scripts.Close()
	})
	paths, err := filepath.Glob("*/*/testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("there are no texts below here: %v", err)
	}
	return paths
}

// name is what the test of a text is called: STEP/NAME/TEXT.
func name(path string) string {
	return strings.Replace(strings.TrimSuffix(filepath.ToSlash(path), ".txt"), "/testdata", "", 1)
}

// stage is where the plays of one text run.
type stage struct {
	cluster, queues, jobs, layers string
	// instead changes the composition of each play; nil leaves it.
	instead func(c *catalogue.Composition)
}

// command carries out one block of a text.
func (s *stage) command(d *datadriven.TestData) (string, error) {
	switch d.Cmd {
	case "cluster":
		s.cluster = d.Input
	case "queues":
		s.queues = d.Input
	case "play", "ends":
		if d.Input != "" {
			s.jobs = d.Input
		}
		return s.play(words(d.FullCmd())[1:], d.Cmd == "play")
	case "exchange":
		return s.exchange(words(d.FullCmd())[1:], d.Input)
	case "experts":
		return s.experts(words(d.FullCmd())[1:])
	default:
		return "", fmt.Errorf("unknown block %q: expected cluster, queues, play, ends, exchange or experts", d.Cmd)
	}
	return "", nil
}

// settings are what a play may say besides its strategies.
type settings struct {
	On      string // a preset of clusters, where no block describes one
	Seed    uint64
	Until   unit.Duration // when to stop looking; 0 is the last end
	Restart unit.Duration // what a resumed job loses
	Prices  simulated.Prices
	Observe unit.Duration // how often jobs report their loss
	Losses  []loss
	Slows   []slow
}

// slow is a device, or the uplink of the node that it is on, that takes so many times as long for a time;
// 0 is for ever.
type slow struct {
	Device  plan.DeviceID
	Link    bool
	At, For unit.Duration
	Times   float64
}

// world is nature as a play sets it.
func (s *settings) world(c *cluster.Cluster) (w world.Config) {
	for _, l := range s.Slows {
		is := world.Slow{From: unit.Time(l.At), Device: l.Device, Times: l.Times}
		if l.For > 0 {
			is.Until = unit.Time(l.At + l.For)
		}
		if l.Link {
			is.Device, is.Link = plan.None, c.NodeLink(c.Devices[l.Device].Node)
		}
		w.Slow = append(w.Slow, is)
	}
	return w
}

// loss is a node that is lost for a time; 0 is for good.
type loss struct {
	Node    plan.NodeID
	At, For unit.Duration
}

// events are what is lost and comes back.
func (s *settings) events() (all []simulated.Later) {
	for _, l := range s.Losses {
		all = append(all, simulated.Later{At: unit.Time(l.At), Event: engine.Event{Kind: engine.NodeDown, Node: l.Node}})
		if l.For > 0 {
			all = append(all, simulated.Later{At: unit.Time(l.At + l.For), Event: engine.Event{Kind: engine.NodeUp, Node: l.Node}})
		}
	}
	slices.SortStableFunc(all, func(a, b simulated.Later) int { return cmp.Compare(a.At, b.At) })
	return all
}

// play simulates the jobs on the cluster.
func (s *stage) play(words []string, decisions bool) (string, error) {
	if len(words) == 0 {
		return "", fmt.Errorf("play: expected strategies, as in play srtf+oracle")
	}
	set, options := settings{On: "gpus:1x1", Seed: 1}, map[string][]string{}
	var plain []string
	for _, w := range words[1:] {
		key, value, ok := strings.Cut(w, "=")
		of, option, is := strings.Cut(key, ".")
		switch {
		case !ok:
			return "", fmt.Errorf("%q: expected KEY=VALUE", w)
		case is:
			options[of] = append(options[of], option+": "+value)
		default:
			plain = append(plain, key+": "+value)
		}
	}
	if err := spec.Decode("play", flow(plain), &set); err != nil {
		return "", err
	}
	built, err := s.build(words[0], options, set.Seed)
	if err != nil {
		return "", err
	}
	jobs, err := readJobs(s.jobs)
	if err != nil {
		return "", err
	}
	c, first, err := s.setting(set.On)
	if err != nil {
		return "", err
	}
	set.Prices.Restart = set.Restart
	var said strings.Builder
	config := simulated.Config{Cluster: c, Beginning: simulated.Beginning{First: first}, Jobs: jobs.Source(), Scheduler: built.Scheduler, Policy: engine.DefaultPolicy(), TellTruth: built.TellTruth,
		Prices: set.Prices, Later: set.events(), World: set.world(c), ObserveEvery: set.Observe, Until: unit.Time(set.Until), Check: true,
		Hooks: simulated.Hooks{Commit: func(v plan.View, c *plan.Commit) {
			for i := range c.Changes {
				if decisions {
					fmt.Fprintln(&said, decided(v, c.At, &c.Changes[i]))
				}
			}
		}}}
	o, err := scheduletest.Run(config)
	for i, j := range o.Jobs {
		fmt.Fprintf(&said, "%s %s", j.Name, j.Outcome)
		if j.Outcome != report.Unfinished {
			fmt.Fprintf(&said, " after %s", j.JCT())
		}
		if d := jobs[i].Deadline; d > 0 && j.JCT() > d {
			said.WriteString(", late")
		}
		said.WriteString("\n")
	}
	return said.String(), err
}

// build makes the Scheduler of the strategies that are named, with options by strategy.
func (s *stage) build(ref string, options map[string][]string, seed uint64) (catalogue.Built, error) {
	c, err := catalogue.Resolve(ref)
	if err != nil {
		return catalogue.Built{}, err
	}
	if s.instead != nil {
		s.instead(&c)
	}
	var lines, given []string
	for _, p := range catalogue.Parts() {
		if c.Choices[p] != "" {
			lines = append(lines, p.Name+": "+c.Choices[p])
		}
	}
	for of, list := range options {
		given = append(given, of+": "+string(flow(list)))
	}
	slices.Sort(given)
	lines = append(lines, "options: "+string(flow(given)))
	if c, err = catalogue.Read("play", []byte(strings.Join(lines, "\n"))); err != nil {
		return catalogue.Built{}, err
	}
	return c.Build(catalogue.Env{Seed: seed}, false)
}

// setting is the cluster of a play, with the event of its queues.
func (s *stage) setting(preset string) (c *cluster.Cluster, first []engine.Event, err error) {
	if s.cluster != "" {
		c, err = spec.Cluster("cluster", []byte(s.cluster))
	} else {
		c, err = spec.Resolve(preset, spec.ResolveOptions{})
	}
	if err != nil || s.queues == "" {
		return c, nil, err
	}
	tree, err := spec.Queues("queues", []byte(s.queues), c)
	return c, []engine.Event{{Kind: engine.Shares, Queues: &tree}}, err
}

// truth is what a job's line may say besides the fields of a job file: when it comes, and
// what is true of it.
type truth struct {
	At, Run, FailAfter       unit.Duration
	Busy, Sensitivity, Merge float64
	Loss                     []float64
	Really                   []workload.Offer // its menu, where it is another one than is believed
	Drifts                   []workload.Drift
	Deaf                     bool
}

// readJobs reads a line for each job. One that says nothing else declares its true run time
// (estimate=none declares none) and saves when it is asked to.
func readJobs(text string) (jobs scheduletest.Jobs, err error) {
	for line := range strings.Lines(text) {
		list := words(strings.TrimSpace(line))
		known, fields := []string{}, []string{"name: " + list[0]}
		var says []string
		for _, w := range list[1:] {
			key, value, _ := strings.Cut(w, "=")
			says = append(says, key)
			switch {
			case w == "estimate=none":
			case slices.Contains([]string{"at", "run", "fail-after", "busy", "sensitivity", "merge", "loss", "really", "drifts", "deaf"}, key):
				known = append(known, key+": "+value)
			default:
				fields = append(fields, key+": "+value)
			}
		}
		var is truth
		if err := spec.Decode(list[0], flow(known), &is); err != nil {
			return nil, err
		}
		read, err := spec.Jobs(list[0], flow(fields))
		if err != nil {
			return nil, err
		}
		for _, j := range read[0].Copies() {
			j.Submit = unit.Time(is.At)
			if !slices.Contains(says, "estimate") {
				j.Estimate = is.Run
			}
			if !slices.Contains(says, "checkpoint") {
				j.Checkpoint.OnRequest = true
			}
			t := workload.Truth{Duration: is.Run, FailAfter: is.FailAfter, Busy: is.Busy, Sensitivity: is.Sensitivity, Merge: is.Merge, Menu: is.Really, Drifts: is.Drifts, Deaf: is.Deaf}
			copy(t.Loss[:], is.Loss)
			jobs = append(jobs, scheduletest.Job{Job: j, Truth: t})
		}
	}
	slices.SortStableFunc(jobs, func(a, b scheduletest.Job) int { return cmp.Compare(a.Submit, b.Submit) })
	return jobs, nil
}

// words are those of a line, where what is in brackets is part of one word.
func words(line string) []string {
	depth := 0
	return strings.FieldsFunc(line, func(r rune) bool {
		switch r {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		return r == ' ' && depth == 0
	})
}

// flow is a mapping of YAML on one line.
func flow(fields []string) []byte { return []byte("{" + strings.Join(fields, ", ") + "}") }

// TestTextsNotice takes the strategies of a text's step away, for their nulls: then something
// else must come out. The text of a null must play others too, which do otherwise.
func TestTextsNotice(t *testing.T) {
	for _, path := range texts(t) {
		t.Run(name(path), func(t *testing.T) {
			step, _, _ := strings.Cut(path, "/")
			changed, differs := false, false
			whole, without := &stage{}, &stage{}
			without.instead = func(c *catalogue.Composition) {
				for _, p := range catalogue.Parts() {
					if e, _ := catalogue.Find(c.Choices[p]); e.Step == step && e.Name != p.Null {
						c.Choices[p], changed = p.Null, true
					}
				}
			}
			last := map[string]string{}
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				one, err := whole.command(d)
				if err != nil {
					t.Fatal(err)
				}
				other, err := without.command(d)
				before, again := last[d.Cmd]
				differs = differs || err != nil || one != other || again && d.Input == "" && one != before
				last[d.Cmd] = one
				return d.Expected
			})
			if !differs {
				t.Errorf("the same comes out without the strategies of step %s (taken away: %t)", step, changed)
			}
		})
	}
}
