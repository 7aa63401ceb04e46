// Package scenetest lets a text say what happens to a cluster, for tests of what is told
// of it: "submit late tenant=research devices=4", "pass 1h", "cordon node0".
package scenetest

import (
	_ "embed" // of the situations
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// Situations is a file of texts, for each of which is known what keeps one job of it
// from running.
//
//go:embed testdata/situations.txt
var Situations string

// Scene is a real engine with a composed scheduler, to which a text says what happens.
type Scene struct {
	Strategy string
	Cluster  cluster.Cluster
	Tree     queue.Tree
	Now      unit.Time
	// Engine is made when something happens. Begun, where it is given, is called then, and
	// Stepped before each step with what happens at that instant.
	Engine  *engine.Engine
	Begun   func() error
	Stepped func(now unit.Time, events []engine.Event) error

	wake unit.Time
	deaf bool // nobody carries out what is decided
}

// New returns a scene without anything in it.
func New(strategy string) *Scene { return &Scene{Strategy: strategy, wake: unit.Never} }

func (s *Scene) engine() (*engine.Engine, error) {
	if s.Engine != nil {
		return s.Engine, nil
	}
	composition, err := catalogue.Resolve(s.Strategy)
	if err != nil {
		return nil, err
	}
	built, err := composition.Build(catalogue.Env{Seed: 1}, false)
	if err != nil {
		return nil, err
	}
	s.Engine = engine.New(&s.Cluster, built.Scheduler, engine.DefaultPolicy())
	if s.Begun != nil {
		if err := s.Begun(); err != nil {
			return nil, err
		}
	}
	if len(s.Tree.Queues) > 0 {
		return s.Engine, s.Step(engine.Event{Kind: engine.Shares, Queues: &s.Tree})
	}
	return s.Engine, nil
}

var carriedOut = map[plan.Verb]engine.Kind{plan.Start: engine.Started, plan.Stop: engine.Stopped, plan.Suspend: engine.Suspended, plan.Resume: engine.Resumed, plan.Reshape: engine.Reshaped}

// Step feeds events at the present instant and confirms what is decided.
func (s *Scene) Step(events ...engine.Event) error {
	for {
		for i := range events {
			if err := s.Engine.Accept(&events[i]); err != nil {
				return err
			}
		}
		if s.Stepped != nil {
			if err := s.Stepped(s.Now, events); err != nil {
				return err
			}
		}
		out := s.Engine.Step(s.Now, events)
		events, s.wake = nil, out.Wake
		for _, c := range out.Ready {
			if kind, ok := carriedOut[c.Verb]; ok && !s.deaf {
				events = append(events, engine.Event{Kind: kind, Job: c.Job, Attempt: c.Attempt, Device: c.Device, Change: c.ID})
			}
		}
		if err := s.Engine.State().Check(); err != nil {
			return err
		}
		if len(events) == 0 {
			return nil
		}
	}
}

// Line carries out one line of a scene.
func (s *Scene) Line(text string) error {
	fields := strings.Fields(text)
	if len(fields) < 1 || strings.HasPrefix(text, "#") {
		return nil
	}
	verb, args := fields[0], fields[1:]
	switch verb {
	case "nodes":
		return s.nodes(args)
	case "queue":
		return s.queue(args)
	}
	e, err := s.engine()
	if err != nil {
		return err
	}
	switch verb {
	case "submit":
		return s.submit(args)
	case "pass":
		return s.pass(args)
	case "pause":
		return s.Step(engine.Event{Kind: engine.Pause})
	case "deaf":
		s.deaf = true
		return nil
	}
	if len(args) == 0 {
		return fmt.Errorf("%s: of what", verb)
	}
	if kind, ok := map[string]engine.Kind{"cordon": engine.Cordon, "down": engine.NodeDown, "lose": engine.DeviceDown, "close": engine.Close}[verb]; ok {
		return s.node(engine.Event{Kind: kind}, args)
	}
	id, ok := e.Find(args[0])
	if !ok {
		return fmt.Errorf("there is no job %q", args[0])
	}
	ev := engine.Event{Job: id, Attempt: e.View().Job(id).Attempt}
	kind, ok := map[string]engine.Kind{"end": engine.Exited, "fail": engine.Exited, "hold": engine.Hold, "release": engine.Release, "cancel": engine.Cancel, "requeue": engine.Requeue, "progress": engine.Observed}[verb]
	if !ok {
		return fmt.Errorf("unknown verb %q", verb)
	}
	switch ev.Kind = kind; verb {
	case "fail":
		ev.Class = plan.UserFailure
	case "progress": // "progress NAME 40", in percent
		if len(args) < 2 {
			return fmt.Errorf("progress: how many percent")
		}
		percent, _ := strconv.Atoi(args[1])
		ev.Progress = int32(percent) * 10_000
	}
	return s.Step(ev)
}

// node is something that happens to a node: "close node1 from=1h to=3h".
func (s *Scene) node(ev engine.Event, args []string) error {
	for i := range s.Cluster.Nodes {
		if s.Cluster.Nodes[i].Name == args[0] {
			ev.Node, ev.Device = plan.NodeID(i), plan.DeviceID(s.Cluster.Nodes[i].First)
		}
	}
	if s.Cluster.Nodes[ev.Node].Name != args[0] {
		return fmt.Errorf("there is no node %q", args[0])
	}
	var from, to unit.Duration
	if err := set(args[1:], map[string]any{"from": &from, "to": &to}); err != nil {
		return err
	}
	ev.From, ev.To = s.Now.Add(from), s.Now.Add(to)
	return s.Step(ev)
}

// set reads every key=value into what the key stands for.
func set(args []string, into map[string]any) error {
	for _, arg := range args {
		key, value, _ := strings.Cut(arg, "=")
		var err error
		var n int
		switch to := into[key].(type) {
		case *string:
			*to = value
		case *[]string:
			*to = strings.Split(value, ",")
		case *bool:
			*to, err = strconv.ParseBool(value)
		case *int32:
			n, err = strconv.Atoi(value)
			*to = int32(n)
		case *unit.Milli:
			*to, err = unit.ParseMilli(value)
		case *unit.MiB:
			*to, err = unit.ParseMiB(value)
		case *unit.Duration:
			*to, err = unit.ParseDuration(value)
		case *[]queue.Amount:
			var milli unit.Milli
			milli, err = unit.ParseMilli(value)
			*to = []queue.Amount{{Milli: int64(milli)}}
		default:
			err = fmt.Errorf("unknown key")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", arg, err)
		}
	}
	return nil
}

// nodes adds "nodes 2 V100 devices=8 memory=16GiB cores=48 host=256GiB".
func (s *Scene) nodes(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("nodes: how many, and of which model")
	}
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	devices, node, model := int32(8), cluster.Node{CPU: 48 * unit.Whole, Memory: 256 << 10}, cluster.Model{Name: args[1], Memory: 16 << 10, Speed: 1}
	if err := set(args[2:], map[string]any{"devices": &devices, "memory": &model.Memory, "cores": &node.CPU, "host": &node.Memory}); err != nil {
		return err
	}
	if len(s.Cluster.Racks) == 0 {
		s.Cluster.AddRack(cluster.Rack{Name: "rack0"})
	}
	node.Model = s.Cluster.AddModel(model)
	for range n {
		node.Name = fmt.Sprint("node", len(s.Cluster.Nodes))
		s.Cluster.AddNode(node, int(devices))
	}
	return nil
}

// queue adds "queue research limit=8 guarantee=4 keep=2 borrow=2 user-limit=3 preempt=1".
func (s *Scene) queue(args []string) error {
	if len(s.Tree.Queues) == 0 {
		s.Tree = queue.Flat()
	}
	q := queue.Queue{Name: args[0], Weight: 1000}
	if cut := strings.LastIndexByte(q.Name, '/'); cut > 0 {
		q.Parent = s.Tree.Find(q.Name[:cut])
	}
	err := set(args[1:], map[string]any{"limit": &q.Limit, "guarantee": &q.Guarantee, "keep": &q.Keep, "borrow": &q.Borrow, "user-limit": &q.UserLimit, "preempt": &q.Preempt})
	s.Tree.Queues = append(s.Tree.Queues, q)
	return err
}

// Job is one worker with one device.
func Job(name, tenant string) workload.Job {
	return workload.Job{Name: name, Tenant: tenant, Resources: workload.Resources{Gang: 1, Devices: 1, Share: unit.Whole}, Retries: 9, Checkpoint: workload.Checkpoint{OnRequest: true}}
}

// submit submits "submit NAME gang=2 devices=8 ...".
func (s *Scene) submit(args []string) error {
	j := Job(args[0], "")
	loses := false
	if err := set(args[1:], map[string]any{"loses": &loses, "tenant": &j.Tenant, "user": &j.User, "gang": &j.Gang, "devices": &j.Devices, "priority": &j.Priority, "share": &j.Share, "model": &j.Models,
		"memory": &j.Memory, "cores": &j.CPU, "host": &j.HostMemory, "estimate": &j.Estimate, "limit": &j.TimeLimit, "array": &j.Array, "retries": &j.Retries,
		"opportunistic": &j.Opportunistic, "after": &j.After, "stages": &j.Pipeline.Stages}); err != nil {
		return err
	}
	if loses { // its work, whenever it is stopped
		j.Retries, j.Checkpoint = 0, workload.Checkpoint{}
	}
	if n := j.Pipeline.Stages; n > 0 { // a layer for each
		j.Pipeline.Microbatches, j.Pipeline.Layers = 4, slices.Repeat([]workload.Layer{{Forward: unit.Second, Backward: unit.Second}}, int(n))
	}
	return s.Step(engine.Event{Kind: engine.Submit, Spec: &j})
}

// pass lets time go by, and the engine be woken when it wants to.
func (s *Scene) pass(args []string) error {
	d, err := unit.ParseDuration(args[0])
	if err != nil {
		return err
	}
	until := s.Now.Add(d)
	for s.wake > s.Now && s.wake <= until {
		s.Now = s.wake
		if err := s.Step(); err != nil {
			return err
		}
	}
	s.Now = until
	return s.Step(engine.Event{Kind: engine.Tick})
}

// Play carries out a text.
func (s *Scene) Play(t testing.TB, text string) *Scene {
	t.Helper()
	for line := range strings.Lines(text) {
		if err := s.Line(strings.TrimSpace(line)); err != nil {
			t.Fatalf("%s: %v", strings.TrimSpace(line), err)
		}
	}
	return s
}
