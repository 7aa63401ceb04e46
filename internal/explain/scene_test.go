package explain_test

import (
	"fmt"
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

// scene is a real engine with a composed scheduler, to which a text says what happens.
type scene struct {
	strategy string
	cluster  cluster.Cluster
	tree     queue.Tree
	e        *engine.Engine // made when something happens
	now      unit.Time
	wake     unit.Time
}

func (s *scene) engine() (*engine.Engine, error) {
	if s.e != nil {
		return s.e, nil
	}
	composition, err := catalogue.Resolve(s.strategy)
	if err != nil {
		return nil, err
	}
	built, err := composition.Build(catalogue.Env{Seed: 1}, false)
	if err != nil {
		return nil, err
	}
	s.e = engine.New(&s.cluster, built.Scheduler, engine.DefaultPolicy())
	if len(s.tree.Queues) > 0 {
		return s.e, s.step(engine.Event{Kind: engine.Shares, Queues: &s.tree})
	}
	return s.e, nil
}

// step feeds events at the present instant and confirms what is decided.
func (s *scene) step(events ...engine.Event) error {
	for {
		for i := range events {
			if err := s.e.Accept(&events[i]); err != nil {
				return err
			}
		}
		out := s.e.Step(s.now, events)
		events, s.wake = nil, out.Wake
		for _, c := range out.Ready {
			kind := engine.Started
			if c.Verb == plan.Stop {
				kind = engine.Stopped
			}
			events = append(events, engine.Event{Kind: kind, Job: c.Job, Attempt: c.Attempt})
		}
		if err := s.e.State().Check(); err != nil {
			return err
		}
		if len(events) == 0 {
			return nil
		}
	}
}

// line carries out one line of a scene.
func (s *scene) line(text string) error {
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
		return s.step(engine.Event{Kind: engine.Pause})
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
	switch verb {
	case "end":
		ev.Kind = engine.Exited
	case "fail":
		ev.Kind, ev.Class = engine.Exited, plan.UserFailure
	case "hold":
		ev.Kind = engine.Hold
	default:
		return fmt.Errorf("unknown verb %q", verb)
	}
	return s.step(ev)
}

// node is something that happens to a node: "close node1 from=1h to=3h".
func (s *scene) node(ev engine.Event, args []string) error {
	for i := range s.cluster.Nodes {
		if s.cluster.Nodes[i].Name == args[0] {
			ev.Node, ev.Device = plan.NodeID(i), plan.DeviceID(s.cluster.Nodes[i].First)
		}
	}
	if s.cluster.Nodes[ev.Node].Name != args[0] {
		return fmt.Errorf("there is no node %q", args[0])
	}
	return each(args[1:], func(key, value string) error {
		at, err := unit.ParseDuration(value)
		if key == "from" {
			ev.From = s.now.Add(at)
		} else {
			ev.To = s.now.Add(at)
		}
		return err
	}, func() error { return s.step(ev) })
}

// each calls f for every key=value, then done.
func each(args []string, f func(key, value string) error, done func() error) error {
	for _, arg := range args {
		key, value, _ := strings.Cut(arg, "=")
		if err := f(key, value); err != nil {
			return fmt.Errorf("%s: %w", arg, err)
		}
	}
	return done()
}

// nodes adds "nodes 2 V100 devices=8 memory=16GiB cores=48 host=256GiB".
func (s *scene) nodes(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("nodes: how many, and of which model")
	}
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	devices, node, model := 8, cluster.Node{CPU: 48 * unit.Whole, Memory: 256 << 10}, cluster.Model{Name: args[1], Memory: 16 << 10, Speed: 1}
	return each(args[2:], func(key, value string) (err error) {
		switch key {
		case "devices":
			devices, err = strconv.Atoi(value)
		case "memory":
			model.Memory, err = unit.ParseMiB(value)
		case "cores":
			node.CPU, err = unit.ParseMilli(value)
		case "host":
			node.Memory, err = unit.ParseMiB(value)
		default:
			err = fmt.Errorf("unknown key")
		}
		return err
	}, func() error {
		if len(s.cluster.Racks) == 0 {
			s.cluster.AddRack(cluster.Rack{Name: "rack0"})
		}
		node.Model = s.cluster.AddModel(model)
		for range n {
			node.Name = fmt.Sprint("node", len(s.cluster.Nodes))
			s.cluster.AddNode(node, devices)
		}
		return nil
	})
}

// queue adds "queue research limit=8 guarantee=4 keep=2 borrow=2 user-limit=3 preempt=1".
func (s *scene) queue(args []string) error {
	if len(s.tree.Queues) == 0 {
		s.tree = queue.Flat()
	}
	q := queue.Queue{Name: args[0], Weight: 1000}
	if cut := strings.LastIndexByte(q.Name, '/'); cut > 0 {
		q.Parent = s.tree.Find(q.Name[:cut])
	}
	return each(args[1:], func(key, value string) error {
		milli, err := unit.ParseMilli(value)
		amount := []queue.Amount{{Milli: int64(milli)}}
		switch key {
		case "limit":
			q.Limit = amount
		case "guarantee":
			q.Guarantee = amount
		case "keep":
			q.Keep = amount
		case "borrow":
			q.Borrow = amount
		case "user-limit":
			q.UserLimit = amount
		case "preempt":
			q.Preempt = true
		default:
			err = fmt.Errorf("unknown key")
		}
		return err
	}, func() error {
		s.tree.Queues = append(s.tree.Queues, q)
		return nil
	})
}

// job is one worker with one device.
func job(name, tenant string) workload.Job {
	return workload.Job{Name: name, Tenant: tenant, Resources: workload.Resources{Gang: 1, Devices: 1, Share: unit.Whole}, Retries: 9, Checkpoint: workload.Checkpoint{OnRequest: true}}
}

// submit submits "submit NAME gang=2 devices=8 ...".
func (s *scene) submit(args []string) error {
	j := job(args[0], "")
	number := func(value string) int32 { n, _ := strconv.Atoi(value); return int32(n) }
	return each(args[1:], func(key, value string) (err error) {
		switch key {
		case "tenant":
			j.Tenant = value
		case "user":
			j.User = value
		case "gang":
			j.Gang = number(value)
		case "devices":
			j.Devices = number(value)
		case "priority":
			j.Priority = number(value)
		case "share":
			j.Share, err = unit.ParseMilli(value)
		case "model":
			j.Models = []string{value}
		case "memory":
			j.Memory, err = unit.ParseMiB(value)
		case "cores":
			j.CPU, err = unit.ParseMilli(value)
		case "host":
			j.HostMemory, err = unit.ParseMiB(value)
		case "estimate":
			j.Estimate, err = unit.ParseDuration(value)
		case "after":
			j.After = strings.Split(value, ",")
		default:
			err = fmt.Errorf("unknown key")
		}
		return err
	}, func() error { return s.step(engine.Event{Kind: engine.Submit, Spec: &j}) })
}

// pass lets time go by, and the engine be woken when it wants to.
func (s *scene) pass(args []string) error {
	d, err := unit.ParseDuration(args[0])
	if err != nil {
		return err
	}
	until := s.now.Add(d)
	for s.wake > s.now && s.wake <= until {
		s.now = s.wake
		if err := s.step(); err != nil {
			return err
		}
	}
	s.now = until
	return s.step(engine.Event{Kind: engine.Tick})
}

// play makes a scene of a text.
func play(t testing.TB, strategy, text string) *scene {
	t.Helper()
	s := &scene{strategy: strategy, wake: unit.Never}
	for line := range strings.Lines(text) {
		if err := s.line(strings.TrimSpace(line)); err != nil {
			t.Fatalf("%s: %v", strings.TrimSpace(line), err)
		}
	}
	return s
}
