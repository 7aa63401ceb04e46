// Package kube reads Kubernetes objects as people write them and as kubectl prints them,
// as far as they say what a job runs, on what, and when: without the types of any
// operator, so that the program stays light. run/kube/gang reads the same of pods that live.
package kube

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/musterdl/muster/internal/spec"
)

// Object is one Kubernetes object.
type Object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string
	Metadata   struct {
		Name, Namespace   string
		CreationTimestamp string
		Labels            map[string]string
	}
	Spec   Spec
	Status struct {
		StartTime, CompletionTime, EndTime string
		Conditions                         []Condition
	}
}

// Condition is one entry of what an object's controller says of it.
type Condition struct{ Type, Status, LastTransitionTime string }

// Spec has what the kinds we know say of their pods, and what queues say of themselves; a kind fills its own fields.
type Spec struct {
	// Job, and what JobSets and Volcano jobs have in common with it
	Parallelism, Completions *int
	CompletionMode           string
	Template                 *Template
	BackoffLimit             *int
	ActiveDeadlineSeconds    int64
	ReplicatedJobs           []replicatedJob
	// Kubeflow
	PyTorchReplicaSpecs, TFReplicaSpecs, MPIReplicaSpecs, XGBReplicaSpecs, PaddleReplicaSpecs, JAXReplicaSpecs map[string]replicas
	// Ray
	Entrypoint     string
	RayClusterSpec *rayCluster
	rayCluster
	// LeaderWorkerSet
	Replicas             *int
	LeaderWorkerTemplate *leaderWorker
	// Volcano
	Tasks []replicas
	Queue string
	// Kueue's workloads
	PodSets   []podSet
	QueueName string
	Priority  int32
	// a pod
	Containers []Container

	Quotas
}

type replicatedJob struct {
	Name     string
	Replicas *int
	Template struct{ Spec Spec }
}

type replicas struct {
	Name     string
	Replicas *int
	Template Template
}

type rayCluster struct {
	HeadGroupSpec    *rayGroup
	WorkerGroupSpecs []rayGroup
}

type rayGroup struct {
	GroupName string
	Replicas  *int
	Template  Template
}

type leaderWorker struct {
	Size           *int
	LeaderTemplate *Template
	WorkerTemplate Template
}

type podSet struct {
	Name     string
	Count    int
	Template Template
}

// Template is what pods are made by.
type Template struct {
	Spec struct {
		Containers []Container
	}
}

// Container is one program of a pod.
type Container struct {
	Image, WorkingDir string
	Command, Args     []string
	Env               []struct {
		Name, Value string
		ValueFrom   json.RawMessage
	}
	Resources struct {
		Limits, Requests map[string]json.RawMessage
	}
}

// list is what kubectl prints of several objects.
type list struct{ Items []json.RawMessage }

// Objects reads the objects of a file: JSON or YAML, one, several or a list of them.
func Objects(data []byte) ([]Object, error) {
	var all []Object
	documents, err := documents(data)
	if err != nil {
		return nil, err
	}
	for _, doc := range documents {
		var l list
		if err := json.Unmarshal(doc, &l); err != nil {
			return nil, err
		}
		if l.Items == nil {
			l.Items = []json.RawMessage{doc}
		}
		for _, item := range l.Items {
			var o Object
			if err := json.Unmarshal(item, &o); err != nil {
				return nil, fmt.Errorf("a %s object: %w", o.Kind, err)
			}
			all = append(all, o)
		}
	}
	return all, nil
}

// documents turns the documents of YAML into JSON. A file that is JSON already may be of any size.
func documents(data []byte) (all [][]byte, err error) {
	if trimmed := bytes.TrimSpace(data); len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(trimmed) {
		return [][]byte{trimmed}, nil
	}
	read, err := spec.Documents[map[string]any](data)
	for _, doc := range read {
		text, err := json.Marshal(doc)
		if err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	return all, err
}

// Each hands the objects of a list in JSON to visit, one by one, with the line on which each
// begins, so that a list of any size can be read. One that does not read is handed over with its error.
func Each(in io.Reader, visit func(line int, o *Object, err error)) error {
	lines := &counter{in: in, starts: []int64{0}}
	d := json.NewDecoder(lines)
	one := func() error {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return fmt.Errorf("line %d: not JSON: %w", lines.line(d.InputOffset()), err)
		}
		var o Object
		err := json.Unmarshal(raw, &o)
		visit(lines.line(d.InputOffset()-int64(len(raw))), &o, err)
		return nil
	}
	if _, err := d.Token(); err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return fmt.Errorf("line %d: not JSON: %w", lines.line(d.InputOffset()), err)
		}
		if key != "items" {
			var skipped json.RawMessage
			if err := d.Decode(&skipped); err != nil {
				return fmt.Errorf("line %d: not JSON: %w", lines.line(d.InputOffset()), err)
			}
			continue
		}
		if open, err := d.Token(); err != nil || open != json.Delim('[') {
			return errors.New("items: expected a list, as kubectl get -o json prints it")
		}
		for d.More() {
			if err := one(); err != nil {
				return err
			}
		}
		if _, err := d.Token(); err != nil {
			return fmt.Errorf("line %d: the list ends early: %w", lines.line(d.InputOffset()), err)
		}
	}
	return nil
}

// counter knows where lines begin in what was read through it; of what lies behind it keeps only the number.
type counter struct {
	in     io.Reader
	at     int64
	before int     // lines that are no longer kept
	starts []int64 // of the lines since
}

// Read reads on.
func (c *counter) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	for i, b := range p[:n] {
		if b == '\n' {
			c.starts = append(c.starts, c.at+int64(i)+1)
		}
	}
	c.at += int64(n)
	return n, err
}

// line is the number of the line that has a place, from 1. Places must not go back.
func (c *counter) line(at int64) int {
	i := 0
	for i < len(c.starts) && c.starts[i] <= at {
		i++
	}
	if i > 1 {
		c.starts = c.starts[i-1:]
		c.before += i - 1
	}
	return c.before + 1
}

// Span is when an object's job started and ended, as its status says it; empty where it has not.
func (o *Object) Span() (start, end string) {
	start, end = o.Status.StartTime, cmp.Or(o.Status.CompletionTime, o.Status.EndTime)
	for _, c := range o.Status.Conditions {
		if c.Status != "True" {
			continue
		}
		switch c.Type {
		case "Admitted", "Running", "StartupPolicyCompleted":
			start = cmp.Or(start, c.LastTransitionTime)
		case "Finished", "Complete", "Completed", "Failed", "Succeeded":
			end = cmp.Or(end, c.LastTransitionTime)
		}
	}
	return start, end
}
