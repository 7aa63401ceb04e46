package driver

import (
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/kube/gang"
)

// What is here is for who plays a Core in a world that only might have been: there no
// object says when a gang has ended.

// JobOf is the engine's job of a gang, plan.None before the engine has it.
func (c *Core) JobOf(key gang.Key) plan.JobID {
	if e := c.roster.gangs[key]; e != nil {
		return e.job
	}
	return plan.None
}

// End has a job's run end well, by itself. Its pods are nobody's until they are told to be
// gone.
func (c *Core) End(job plan.JobID) {
	if e := c.roster.byJob[job]; e != nil && e.run != nil {
		c.runs.exit(e, plan.NoFailure, nil)
	}
}
