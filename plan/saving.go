package plan

import "github.com/musterdl/muster/model/unit"

// Checkpointing is how a job keeps its work.
type Checkpointing struct {
	Every, Save, Load unit.Duration
	OnRequest         bool
	// Failed is that it saved nothing when it was last asked to, as its owner says that it does:
	// it counts as one that does not, and OnRequest is false until it does.
	Failed bool
}

// Asked reports whether a job is asked to save before it is stopped: also one that did not the last time.
func (c Checkpointing) Asked() bool { return c.OnRequest || c.Failed }

// Saves reports whether a job saves at all, when asked or by itself.
func (c Checkpointing) Saves() bool { return c.OnRequest || c.Every > 0 }

// Answer notes whether a job that was asked to save did.
func (c *Checkpointing) Answer(saved bool) {
	if c.Asked() {
		c.OnRequest, c.Failed = saved, !saved
	}
}
