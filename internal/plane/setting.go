package plane

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/cluster"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/schedule"
)

// setting is what decisions depend on besides events. Every start of a control
// plane journals it, so that a journal can be decided again by itself.
type setting struct {
	Strategy string           `json:"strategy"` // as catalogue.Parse reads it
	Seed     uint64           `json:"seed"`
	Policy   engine.Policy    `json:"policy"`
	Cluster  *cluster.Cluster `json:"cluster"`
}

// setting encodes the configuration's own.
func (c *Config) setting() ([]byte, error) {
	b, err := json.Marshal(setting{c.Strategy.Text, c.Seed, c.Policy, c.Cluster})
	if err != nil {
		return nil, fmt.Errorf("encoding the setting: %w", err)
	}
	return b, nil
}

// decider follows the settings that a history goes through.
type decider struct{ current []byte }

// follow looks for a start of the control plane among events about to be applied,
// and gives the decisions to the strategy it was started with, if that is another
// than before.
func (d *decider) follow(e *engine.Engine, events []engine.Event) error {
	for i := range events {
		now := events[i].Setting
		if events[i].Kind != engine.Rebuilt || bytes.Equal(now, d.current) {
			continue
		}
		s, err := parseSetting(now)
		if err != nil {
			return err
		}
		first := d.current == nil
		d.current = now
		if first {
			continue // the engine was made with it
		}
		sched, err := s.scheduler()
		if err != nil {
			return err
		}
		e.Switch(sched)
	}
	return nil
}

func parseSetting(data []byte) (s setting, err error) {
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("decoding a setting: %w", err)
	}
	return s, nil
}

func (s *setting) scheduler() (schedule.Scheduler, error) {
	c, err := catalogue.Parse("journal", s.Strategy)
	if err != nil {
		return nil, err
	}
	built, err := c.Build(catalogue.Env{Seed: s.Seed}, true)
	return built.Scheduler, err
}
