package plane

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/run"
	"github.com/musterdl/muster/schedule"
)

// setting is what decisions depend on besides events. Every start of a control
// plane journals it, and every switch of the strategy, so that a journal can be
// decided again by itself.
type setting struct {
	Strategy string           `json:"strategy"` // as catalogue.Parse reads it
	Seed     uint64           `json:"seed"`
	Policy   engine.Policy    `json:"policy"`
	Cluster  *cluster.Cluster `json:"cluster"`
	// Undo says of a switch that it goes back to the strategy before the one that it
	// ends, which is then forgotten.
	Undo bool `json:"undo,omitempty"`
}

func (s *setting) encode() ([]byte, error) {
	b, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encoding the setting: %w", err)
	}
	return b, nil
}

// chosen is the composition that a start begins with: the one that it names, or else
// the one that decided last, or at first catalogue.House.
func (c *Config) chosen(last string) (catalogue.Composition, error) {
	switch {
	case c.Strategy.Text != "":
		return c.Strategy, nil
	case last != "":
		return catalogue.Parse("journal", last)
	}
	first, err := catalogue.Parse("journal", catalogue.House)
	if err != nil {
		return first, err
	}
	return first.Live()
}

// setting encodes what a start begins with. The cluster in it is the one that the
// journal began with: what came and went since is told by events.
func (p *Plane) setting() ([]byte, error) {
	c := &p.config
	chosen, err := c.chosen(p.decide.strategy.Text)
	if err == nil {
		err = c.obeys(chosen)
	}
	if err != nil {
		return nil, err
	}
	s := setting{Strategy: chosen.Text, Seed: c.Seed, Policy: c.Policy, Cluster: c.Cluster}
	if p.decide.current != nil {
		was, err := parseSetting(p.decide.current)
		if err != nil {
			return nil, err
		}
		s.Cluster = was.Cluster
	}
	return s.encode()
}

// obeys says what of a strategy the driver cannot carry out.
func (c *Config) obeys(to catalogue.Composition) error {
	if able, ok := c.Driver.(run.Able); ok {
		return to.Refuse(able.Can())
	}
	return nil
}

// decider follows the settings that a history goes through.
type decider struct {
	current  []byte
	strategy catalogue.Composition // of current
	// before are the texts of the strategies that decided before, the latest last. What
	// was gone back from is not among them.
	before []string
}

// follow looks for a start of the control plane, or a switch of its strategy, among
// events about to be applied, and gives the decisions to the strategy that is named
// there, if that is another than before. The policy is the one that is named there too.
func (d *decider) follow(e *engine.Engine, events []engine.Event) error {
	for i := range events {
		ev := &events[i]
		if ev.Kind != engine.Rebuilt && ev.Kind != engine.Switched || len(ev.Setting) == 0 || bytes.Equal(ev.Setting, d.current) {
			continue
		}
		first := d.current == nil
		if err := d.enter(ev.Setting); err != nil {
			return err
		}
		if first {
			continue // the engine was made with it
		}
		s, err := parseSetting(d.current)
		if err != nil {
			return err
		}
		sched, err := s.scheduler()
		if err != nil {
			return err
		}
		e.Switch(sched)
		e.Govern(s.Policy)
	}
	return nil
}

// enter makes a setting the current one.
func (d *decider) enter(now []byte) error {
	s, err := parseSetting(now)
	if err != nil {
		return err
	}
	c, err := catalogue.Parse("journal", s.Strategy)
	if err != nil {
		return err
	}
	switch {
	case s.Undo:
		s.Undo = false
		if now, err = s.encode(); err != nil {
			return err
		}
		d.before = d.before[:max(0, len(d.before)-1)]
	case d.current != nil && d.strategy.Text != s.Strategy:
		d.before = append(slices.Clip(d.before), d.strategy.Text)
		d.before = d.before[max(0, len(d.before)-mostBefore):]
	}
	d.current, d.strategy = now, c
	return nil
}

// mostBefore is how many strategies one can go back.
const mostBefore = 64

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
