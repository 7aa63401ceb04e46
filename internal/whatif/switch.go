package whatif

import "fmt"

// SwitchRequest asks for another strategy.
type SwitchRequest struct {
	Strategy string  `json:"strategy,omitempty"` // as in Request
	Undo     bool    `json:"undo,omitempty"`     // the one before instead
	DryRun   bool    `json:"dry_run,omitempty"`  // say what it would do, and do nothing
	HorizonS float64 `json:"horizon_s,omitempty"`
}

// Check says what is wrong with a request.
func (q *SwitchRequest) Check() error {
	switch {
	case q.Undo == (q.Strategy != ""):
		return wrong{"expected a strategy, or undo, and not both"}
	case q.HorizonS != 0 && !q.DryRun:
		return wrong{"a horizon is for a dry run"}
	}
	return nil
}

// Switched is what a switch did, or would do.
type Switched struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Applied bool   `json:"applied"`
	// Ahead is both futures, of a dry run.
	Ahead *Answer `json:"ahead,omitempty"`
	Words string  `json:"words"`
}

// Would is the answer to a dry run.
func Would(from, to string, a *Answer) Switched {
	now := fmt.Sprintf("%s would now start %s and stop %s, and leave %d waiting; nothing was changed. Ahead, %s",
		to, count(len(a.Now.Starts), "job"), count(len(a.Now.Stops), "job"), a.Now.Waiting, a.Words)
	return Switched{From: from, To: to, Ahead: a, Words: now}
}

// Did is the answer to a switch.
func Did(from, to string) Switched {
	return Switched{From: from, To: to, Applied: true, Words: fmt.Sprintf("%s decides from now on instead of %s; to go back: muster strategies switch --undo", to, from)}
}
