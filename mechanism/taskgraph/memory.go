package taskgraph

import "fmt"

// pool is a memory pool at work.
type pool struct {
	held, peak int64 // KiB
	limit      int64 // 0 once it is exceeded and reported
	whole      int32 // the pool that it is part of, as its id plus 1; 0 is none
}

// declare sets limits and parts.
func (c *clock) declare() error {
	for i, p := range c.g.Pools {
		if p.LimitKiB < 0 {
			return fmt.Errorf("memory pool %d (%s): limit %d must not be negative", i, p.Name, p.LimitKiB)
		}
		c.memory[i].limit = p.LimitKiB
		for _, part := range p.Parts {
			if part < 0 || int(part) >= i || c.memory[part].whole != 0 {
				return fmt.Errorf("memory pool %d (%s): part %d: expected an earlier pool that is part of no other", i, p.Name, part)
			}
			c.memory[part].whole = int32(i) + 1
		}
	}
	return nil
}

// alloc takes what a task needs when it starts.
func (c *clock) alloc(task *Task, t int32) {
	if task.AllocKiB > 0 {
		c.hold(task.Pool, task.AllocKiB, t)
	}
	if len(c.g.Memory) > 0 {
		for _, m := range c.g.Memory[task.Memory] {
			c.hold(m.Pool, m.AllocKiB, t)
		}
	}
}

// free gives back what a task frees when it ends.
func (c *clock) free(task *Task) {
	if task.FreeKiB > 0 {
		c.drop(task.Pool, task.FreeKiB)
	}
	if len(c.g.Memory) > 0 {
		for _, m := range c.g.Memory[task.Memory] {
			c.drop(m.Pool, m.FreeKiB)
		}
	}
}

// hold adds to a pool and to those that it is part of.
func (c *clock) hold(p int32, kib int64, t int32) {
	for p++; p > 0; p = c.memory[p-1].whole {
		x := &c.memory[p-1]
		x.held += kib
		x.peak = max(x.peak, x.held)
		if x.limit > 0 && x.held > x.limit {
			x.limit = 0
			c.line.Over = append(c.line.Over, Excess{Pool: p - 1, Task: t, At: c.now})
		}
	}
}

// drop takes from a pool and from those that it is part of.
func (c *clock) drop(p int32, kib int64) {
	for p++; p > 0; p = c.memory[p-1].whole {
		c.memory[p-1].held -= kib
	}
}
