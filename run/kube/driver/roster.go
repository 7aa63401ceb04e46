package driver

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/kube/gang"
)

// roster is who there is: the gangs, by what they are called in Kubernetes and in the engine.
type roster struct {
	gangs  map[gang.Key]*entry
	byJob  map[plan.JobID]*entry
	byName map[string]*entry
	ofName map[types.NamespacedName][]*entry // by the object that makes the gang
	used   map[string]bool                   // names of jobs that are over, which are not used again
}

// entryOf is the gang of a key, which may be new.
func (ro *roster) entryOf(key gang.Key) *entry {
	e := ro.gangs[key]
	if e == nil {
		e = &entry{key: key, pods: map[types.UID]*member{}, job: plan.None}
		ro.gangs[key] = e
		object := types.NamespacedName{Namespace: key.Namespace, Name: key.Name}
		ro.ofName[object] = append(ro.ofName[object], e)
	}
	return e
}

// drop forgets a gang; its job's name is not used again.
func (ro *roster) drop(e *entry) {
	delete(ro.gangs, e.key)
	delete(ro.byName, e.name)
	delete(ro.byJob, e.job)
	object := types.NamespacedName{Namespace: e.key.Namespace, Name: e.key.Name}
	if ro.ofName[object] = slices.DeleteFunc(ro.ofName[object], func(o *entry) bool { return o == e }); len(ro.ofName[object]) == 0 {
		delete(ro.ofName, object)
	}
	ro.retire(e.name)
}

// call has a gang's job be called so until the engine has it, or has refused it.
func (ro *roster) call(e *entry, name string) {
	e.name = name
	ro.byName[name] = e
}

// uncall takes that back.
func (ro *roster) uncall(name string) { delete(ro.byName, name) }

// retire keeps a name of a job that is over from being used again.
func (ro *roster) retire(name string) { ro.used[name] = true }

// know takes in which job of the engine's a gang is.
func (ro *roster) know(e *entry, job plan.JobID, name string) {
	e.job = job
	ro.byJob[job] = e
	ro.call(e, name)
}

// spec is a job of the engine's as it was submitted.
func (ro *roster) spec(id plan.JobID) *workload.Job {
	if e := ro.byJob[id]; e != nil {
		return e.spec
	}
	return &workload.Job{Resources: workload.Resources{Gang: 1, Share: unit.Whole}}
}

// waitedFor are the sets of nodes that jobs without a run may go to.
func (ro *roster) waitedFor() map[int32]bool {
	sets := map[int32]bool{}
	for _, e := range ro.byJob {
		if e.spec != nil && !e.over && e.run == nil && e.spec.NodeSet > 0 {
			sets[e.spec.NodeSet] = true
		}
	}
	return sets
}

// free is a name for the gang's job that no other has.
func (ro *roster) free(e *entry) string {
	if o := ro.byName[e.gang.Name]; o == nil || o == e {
		if !ro.used[e.gang.Name] {
			return e.gang.Name
		}
	}
	for n := 2; ; n++ {
		name := fmt.Sprintf("%s.%d", e.gang.Name, n)
		if ro.byName[name] == nil && !ro.used[name] {
			return name
		}
	}
}
