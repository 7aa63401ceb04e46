// Package protocol is what a decider in another process is told, and what it may answer:
// one line of JSON each (docs/external.md). What is told is all that lives and the room
// there is; what is answered is read strictly, and refused with the field that is wrong.
package protocol

import (
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Version is the version of the protocol that is spoken here. It is raised when a script that keeps to
// this one would be misled; fields that are added do not raise it.
const Version = 1

// Question is what a script is told: all that lives, and the room there is.
type Question struct {
	Protocol int        `json:"protocol"`
	NowSec   float64    `json:"now_s"`
	Before   plan.JobID `json:"before"` // smaller ids were submitted by now
	Models   []Model    `json:"models"`
	Nodes    []Node     `json:"nodes"`
	Jobs     []Job      `json:"jobs"` // by id
}

// Model is a device model: FreeDevices counts wholly free ones, Free the parts of
// shared ones too.
type Model struct {
	Name        string  `json:"name"`
	Speed       float64 `json:"speed"`
	Devices     int64   `json:"devices"`
	FreeDevices int64   `json:"free_devices"`
	Free        float64 `json:"free"`
}

// Node is a node and the wholly free devices there.
type Node struct {
	Name        string `json:"name"`
	Model       string `json:"model"`
	Devices     int32  `json:"devices"`
	FreeDevices int32  `json:"free_devices"`
	Up          bool   `json:"up"`
}

// Job is one that waits or runs. What is not known is null.
type Job struct {
	ID       plan.JobID `json:"id"`
	Name     string     `json:"name"`
	Phase    string     `json:"phase"`
	Tenant   string     `json:"tenant"`
	Class    string     `json:"class"`
	Priority int32      `json:"priority"`
	Workers  int32      `json:"workers"` // as it asked for
	Sizes    []int32    `json:"sizes"`   // the numbers of workers it may have, ascending
	Devices  float64    `json:"devices_per_worker"`
	MiB      int32      `json:"memory_mib"`       // of each device
	Models   []string   `json:"models,omitempty"` // those it may use; left out are all

	SubmitSec   float64  `json:"submit_s"`
	WaitedSec   float64  `json:"waited_s"`
	EstimateSec *float64 `json:"estimate_s"`
	LeftSec     *float64 `json:"left_s"`
	DeadlineSec *float64 `json:"deadline_s"`
	ServiceSec  float64  `json:"service_device_s"`
	Run         *Run     `json:"run"`
}

// Run is where a job runs, and on what.
type Run struct {
	Status  string   `json:"status"`
	Workers int32    `json:"workers"`
	Model   string   `json:"model"`
	Nodes   []string `json:"nodes"`
}

// Ask writes down the situation.
func Ask(v plan.View, jobs []plan.JobID) Question {
	q := Question{Protocol: Version, NowSec: unit.Duration(v.Now()).Seconds(), Before: plan.JobID(v.Jobs())}
	for m := range v.Cluster().Models {
		of, only := &v.Cluster().Models[m], uint64(1)<<m
		q.Models = append(q.Models, Model{Name: of.Name, Speed: of.Speed, Devices: v.Room().All(only),
			FreeDevices: v.Room().Free(only), Free: float64(v.Room().FreeMilli(only)) / 1000})
	}
	for id := range plan.NodeID(v.Nodes()) {
		n, of := v.Node(id), &v.Cluster().Nodes[id]
		q.Nodes = append(q.Nodes, Node{Name: of.Name, Model: v.Cluster().Models[n.Model].Name, Devices: n.Count,
			FreeDevices: n.FreeDevices, Up: n.Status == plan.Up})
	}
	q.Jobs = make([]Job, 0, len(jobs))
	for _, id := range jobs {
		q.Jobs = append(q.Jobs, describe(v, id))
	}
	return q
}

func describe(v plan.View, id plan.JobID) Job {
	j, shape := v.Job(id), v.Shape(id)
	w := Job{ID: id, Name: v.Name(id), Phase: j.Phase.String(), Tenant: v.Tenant(j.Tenant), Class: v.Class(j.Class), Priority: j.Priority,
		Workers: shape.Gang, Sizes: sizes(shape), Devices: float64(shape.Milli(1)) / 1000, MiB: shape.Memory,
		SubmitSec: unit.Duration(j.Submit).Seconds(), WaitedSec: v.WaitedFor(id).Seconds(),
		ServiceSec: float64(v.Service(id)) / 1000 / float64(unit.Second)}
	all := uint64(1)<<len(v.Cluster().Models) - 1
	for m := range v.Cluster().Models {
		if shape.Models&all != all && shape.Models&(1<<m) != 0 {
			w.Models = append(w.Models, v.Cluster().Models[m].Name)
		}
	}
	if j.Estimate > 0 {
		w.EstimateSec = seconds(j.Estimate)
	}
	if left, known := v.Left(id); known {
		w.LeftSec = seconds(left)
	}
	if j.Deadline > 0 {
		w.DeadlineSec = seconds(unit.Duration(j.Submit.Add(j.Deadline)))
	}
	if j.Run != plan.None {
		r := v.Run(j.Run)
		w.Run = &Run{Status: r.Status.String(), Workers: r.Workers, Nodes: []string{}}
		v.GrantsOf(j.Run, func(g plan.Grant) {
			w.Run.Model = v.Cluster().Models[v.Node(g.Node).Model].Name
			if name := v.Cluster().Nodes[g.Node].Name; !slices.Contains(w.Run.Nodes, name) {
				w.Run.Nodes = append(w.Run.Nodes, name)
			}
		})
	}
	return w
}

// sizes are the legal numbers of workers, ascending.
func sizes(shape *plan.Shape) []int32 {
	all := []int32{shape.Gang}
	for _, n := range shape.Sizes {
		if n > 0 && n != shape.Gang {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	return all
}

func seconds(d unit.Duration) *float64 {
	s := d.Seconds()
	return &s
}
