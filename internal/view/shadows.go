package view

import (
	"fmt"
	"io"
	"strings"
)

// Shadows are the strategies that are asked what they would have decided.
type Shadows struct {
	Active  string   `json:"active"` // the strategy that decides
	Shadows []Shadow `json:"shadows"`
	// Calibration says how well a replay tells what was, where regret was asked for.
	Calibration *ReplayCalibration `json:"calibration,omitempty"`
}

// Shadow is one of them.
type Shadow struct {
	Name    string `json:"name"`
	Parts   string `json:"parts"` // as it was given
	SinceUs int64  `json:"since_us"`
	// Asked are the batches in which it was asked, Decisions those among them in which it
	// or the active strategy starts or stops anything, Differing those in which what is
	// started, where, and stopped differs; Divergence is the part of those.
	Asked      int64    `json:"asked"`
	Decisions  int64    `json:"decisions"`
	Differing  int64    `json:"differing"`
	Divergence *float64 `json:"divergence"`
	// Skipped are batches that it was not asked about since it fell behind.
	Skipped int64 `json:"skipped"`
	// Broken says why it is not asked any more.
	Broken      string       `json:"broken,omitempty"`
	Differences []Difference `json:"differences"` // of late, the latest first
	Regret      *Regret      `json:"regret,omitempty"`
}

// Difference is one decision that the shadow would have taken otherwise.
type Difference struct {
	AtUs   int64    `json:"at_us"`
	Batch  int64    `json:"batch"`
	Active []string `json:"active"` // what only the active strategy does
	Shadow []string `json:"shadow"` // what only the shadow would do
}

// Regret is what was missed by not having another strategy decide all along: the same
// arrivals replayed under both, over the jobs that finish under both.
type Regret struct {
	Jobs         int     `json:"jobs"`
	ActiveJCTSec float64 `json:"active_jct_s"`
	ShadowJCTSec float64 `json:"shadow_jct_s"`
	RegretSec    float64 `json:"regret_s"` // positive is in favour of the shadow
	Regret       float64 `json:"regret"`   // that as a part of the active strategy's
	// Censored jobs do not end within the history under the shadow.
	Censored int `json:"censored"`
	// Told says that the calibration error is less than the difference.
	Told bool `json:"told"`
}

// ReplayCalibration compares a replay under the active strategy with what was recorded,
// over the jobs that finish in both.
type ReplayCalibration struct {
	Strategy       string  `json:"strategy"`
	Jobs           int     `json:"jobs"`
	RecordedJCTSec float64 `json:"recorded_jct_s"`
	ReplayedJCTSec float64 `json:"replayed_jct_s"`
	Error          float64 `json:"error"` // of the replayed mean, as a part of the recorded
	// Censored jobs had not ended when the history was read, or were cancelled; Notes
	// say how long they are taken to run.
	Censored int      `json:"censored"`
	Notes    []string `json:"notes,omitempty"`
}

// mostDifferences is how many a text shows of each shadow.
const mostDifferences = 5

// WriteShadows writes a table, and below it what differed last.
func WriteShadows(w io.Writer, s *Shadows, o TextOptions) error {
	if len(s.Shadows) == 0 {
		_, err := fmt.Fprintf(w, "%s decides; nothing runs in its shadow: muster shadow add STRATEGY\n", s.Active)
		return err
	}
	t := table{head: []string{"SHADOW", "DECISIONS", "DIFFERING", "DIVERGENCE", "SKIPPED", "REGRET"}}
	for i := range s.Shadows {
		x := &s.Shadows[i]
		t.add(x.Name, fmt.Sprint(x.Decisions), fmt.Sprint(x.Differing), part(x.Divergence), fmt.Sprint(x.Skipped), x.Regret.words())
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s decides\n\n", s.Active)
	if err := t.write(&b, o); err != nil {
		return err
	}
	for i := range s.Shadows {
		s.Shadows[i].differences(&b)
	}
	if c := s.Calibration; c != nil {
		for i := range s.Shadows {
			s.Shadows[i].regret(&b)
		}
		fmt.Fprintf(&b, "\nregret is of the mean JCT, replayed under both; replayed under %s it is %s where %s was recorded (%+.1f %%, %s, %d censored)\n",
			c.Strategy, SpanSec(c.ReplayedJCTSec), SpanSec(c.RecordedJCTSec), c.Error*100, count(c.Jobs, "job", "jobs"), c.Censored)
		for _, n := range c.Notes {
			fmt.Fprintln(&b, n)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Regret) words() string {
	if r == nil {
		return "-"
	}
	return fmt.Sprintf("%s (%+.1f %%)", SpanSec(r.RegretSec), r.Regret*100)
}

func (x *Shadow) regret(b *strings.Builder) {
	r := x.Regret
	if r == nil {
		return
	}
	fmt.Fprintf(b, "\n%s: mean JCT %s rather than %s, over %s that finish under both; %d do not end", x.Name, SpanSec(r.ShadowJCTSec), SpanSec(r.ActiveJCTSec),
		count(r.Jobs, "job", "jobs"), r.Censored)
	if !r.Told {
		b.WriteString("; that is no more than the replay is off")
	}
	b.WriteByte('\n')
}

func (x *Shadow) differences(b *strings.Builder) {
	if x.Broken != "" {
		fmt.Fprintf(b, "\n%s is not asked any more: %s\n", x.Name, x.Broken)
	}
	for i, d := range x.Differences {
		if i == 0 {
			fmt.Fprintf(b, "\n%s, of late:\n", x.Name)
		}
		if i == mostDifferences {
			fmt.Fprintf(b, "  and %s; --json lists them\n", count(len(x.Differences)-i, "more", "more"))
			break
		}
		fmt.Fprintf(b, "  %s  %s; rather than %s\n", clock(d.AtUs, d.AtUs, true), list(d.Shadow), list(d.Active))
	}
}

func list(of []string) string {
	if len(of) == 0 {
		return "nothing"
	}
	return strings.Join(of, ", ")
}

// ShadowRequest asks for one of two things: a strategy, as the catalogue reads it, to
// follow in the shadow, or a shadow, by its name, to go.
type ShadowRequest struct {
	Add    string `json:"add,omitempty"`
	Remove string `json:"remove,omitempty"`
}
