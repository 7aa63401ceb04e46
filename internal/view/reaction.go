package view

import (
	"fmt"
	"time"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Reacted is how a job's run went on when its stages drifted or it lost a device, and what else there
// was to do, with the price of each.
type Reacted struct {
	Cause     string     `json:"cause"`            // drift or lost
	Chosen    string     `json:"chosen,omitempty"` // the way taken; empty where the job was left to its queue
	ReactedUs int64      `json:"reacted_us"`
	Reactions []Reaction `json:"reactions"` // the cheapest first, then those that cannot be
}

// Reaction is one way to go on.
type Reaction struct {
	Way      string  `json:"way"`
	PauseSec float64 `json:"pause_s"` // until it goes on
	RedoSec  float64 `json:"redo_s"`  // work that is done again
	StepSec  float64 `json:"step_s"`
	// PriceDeviceSec is what is expected to be lost of all its devices.
	PriceDeviceSec float64 `json:"price_device_s"`
	Why            string  `json:"why,omitempty"` // it cannot be
}

// reactedOf is the last reaction of a job; nil where there was none.
func reactedOf(v plan.View, id plan.JobID) *Reacted {
	r, ok := v.Reaction(id)
	if !ok {
		return nil
	}
	out := &Reacted{Cause: string(r.Cause), Chosen: r.Chosen, ReactedUs: int64(r.At)}
	for _, w := range r.Ways {
		out.Reactions = append(out.Reactions, Reaction{Way: w.Name, PauseSec: w.Pause.Seconds(), RedoSec: w.Redo.Seconds(), StepSec: w.Step.Seconds(), PriceDeviceSec: w.Price, Why: w.Why})
	}
	return out
}

// lines say what was done and what was not, and why.
func (r *Reacted) lines() (all []string) {
	if r == nil {
		return nil
	}
	what := map[string]string{string(plan.Drifted): "its stages drifted", string(plan.LostOne): "it lost a device"}[r.Cause]
	done := "it was left to its queue"
	if r.Chosen != "" {
		done = r.Chosen + " was chosen"
	}
	all = append(all, fmt.Sprintf("%s at %s: %s", what, timeText(time.UnixMicro(r.ReactedUs)), done))
	for _, w := range r.Reactions {
		if w.Why != "" {
			all = append(all, fmt.Sprintf("%s: no, because %s", w.Way, w.Why))
			continue
		}
		all = append(all, fmt.Sprintf("%s: %.0f device-seconds lost (a pause of %s, %s of work done again, then a step of %s)", w.Way, w.PriceDeviceSec,
			unit.Duration(w.PauseSec*1e6), unit.Duration(w.RedoSec*1e6), seconds(w.StepSec)))
	}
	return all
}
