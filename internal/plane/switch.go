package plane

import (
	"context"
	"errors"
	"fmt"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
)

// Switch lets another strategy decide.
type Switch struct {
	To catalogue.Composition
	// Undo goes back to the one that decided before, To is then not looked at; asked
	// again it goes back further.
	Undo bool
	By   string // who asked
}

// Switched is what a switch did.
type Switched struct{ From, To catalogue.Composition }

// Switch gives the decisions to another strategy; it returns once that is durable, or
// refused. No job is lost: runs that only the one before would have resumed are
// stopped, and their jobs queue.
func (p *Plane) Switch(ctx context.Context, s Switch) (Switched, error) {
	var out Switched
	_, err := p.send(ctx, p.switching(s, &out))
	if err != nil {
		return Switched{}, err // a context that ended says nothing of what will be
	}
	p.config.Log.Info("another strategy decides", "from", out.From.Name, "to", out.To.Name, "by", s.By)
	return out, nil
}

// switching is the request for a switch; out is filled before it is answered.
func (p *Plane) switching(s Switch, out *Switched) message {
	return message{events: []engine.Event{{Kind: engine.Switched, By: s.By}}, reply: make(chan Reply, 1), enter: func() ([]byte, error) {
		to, err := p.decide.next(s)
		if err == nil {
			err = p.config.obeys(to)
		}
		if err != nil {
			return nil, err
		}
		*out = Switched{p.decide.strategy, to}
		now, err := parseSetting(p.decide.current)
		if err != nil {
			return nil, err
		}
		now.Strategy, now.Undo = to.Text, s.Undo
		if _, err := now.scheduler(); err != nil {
			return nil, fmt.Errorf("the strategy %s cannot be built: %v", to.Name, err) // a refusal, which wraps nothing
		}
		return now.encode()
	}}
}

// Before is the strategy that Undo goes back to; call it inside Query.
func (p *Plane) Before() (catalogue.Composition, error) { return p.decide.next(Switch{Undo: true}) }

// next is the composition that a switch leads to.
func (d *decider) next(s Switch) (catalogue.Composition, error) {
	switch {
	case !s.Undo && s.To.Text == d.strategy.Text:
		return s.To, fmt.Errorf("%s decides already", d.strategy.Name)
	case !s.Undo:
		return s.To, nil
	case len(d.before) == 0:
		return catalogue.Composition{}, errors.New("no other strategy decided before: there is nothing to go back to")
	}
	c, err := catalogue.Parse("journal", d.before[len(d.before)-1])
	if err != nil {
		return c, fmt.Errorf("the strategy that decided before cannot be read any more: %v", err) // likewise
	}
	return c, nil
}
