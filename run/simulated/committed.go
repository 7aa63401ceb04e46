package simulated

import (
	"fmt"

	"github.com/musterdl/muster/plan"
)

// committed hashes and writes a commit, counts what it does to jobs, and shows it to those who
// watch. Where the configuration asks for checks, the commit must obey the law.
func (s *Simulation) committed(v plan.View, c *plan.Commit) error {
	s.line = c.AppendJSON(s.line[:0], v)
	s.hash.Write(s.line)
	if s.config.Decisions != nil {
		if _, err := s.config.Decisions.Write(s.line); err != nil {
			return fmt.Errorf("writing decisions: %w", err)
		}
	}
	for i := range c.Changes {
		s.count(v, c.Changes[i].Job)
	}
	if s.config.Check {
		if err := v.Law(c); err != nil {
			return err
		}
	}
	if s.config.Commit != nil {
		s.config.Commit(v, c)
	}
	return nil
}
