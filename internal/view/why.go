package view

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/musterdl/muster/internal/explain"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/report/terminal"
)

// Why says what keeps a job from running, or where it stands otherwise: one sentence
// first, then what is behind it.
type Why struct {
	Job   string `json:"job"`
	Phase string `json:"phase"`
	State string `json:"state"` // the word that is said of it
	Words string `json:"words"`
	Code  string `json:"code"`            // the kind of reason
	Never bool   `json:"never,omitempty"` // it can never start as things are
	// Obstacles count nodes by the first thing on each that is in the way.
	Obstacles []explain.Obstacle `json:"obstacles,omitempty"`
	Needs     []string           `json:"needs,omitempty"` // what would have to change
	Holders   []Keeper           `json:"holders,omitempty"`
	Tried     Tried              `json:"tried,omitzero"`
	Detail    []string           `json:"detail,omitempty"`
	Failure   *Failure           `json:"failure,omitempty"` // as of the job

	Wants float64 `json:"wants"` // devices, at its smallest size
	Free  float64 `json:"free"`  // of the models it may use, parts included
	Exist float64 `json:"exist"`
	// Earlier counts the waiting jobs that were submitted before this one, and Alike
	// those of the same shape among them.
	Earlier int `json:"earlier"`
	Alike   int `json:"alike"`
}

// Keeper is a job that has, or has a claim on, what another waits for.
type Keeper struct {
	Job     string  `json:"job"`
	Queue   string  `json:"queue,omitempty"`
	Devices float64 `json:"devices"`
	UntilUs int64   `json:"until_us"` // as expected; -1 if nobody knows
}

// Tried is what was noted of a job last, and since when it is in its phase.
type Tried struct {
	AtUs  int64  `json:"at_us"`
	Words string `json:"words"`
}

// mostKeepers is how many of those it waits for are listed.
const mostKeepers = 20

// WhyOf explains a job, of those that a site knows.
func WhyOf(v plan.View, info plane.JobInfo, id plan.JobID, site *explain.Site) Why {
	j, shape, a := v.Job(id), v.Shape(id), site.Why(id)
	smallest := shape.Gang
	if shape.Elastic() {
		smallest = min(smallest, shape.Sizes[0])
	}
	w := Why{Job: v.Name(id), Phase: j.Phase.String(), State: v.Standing(id), Words: withFailure(v, info, id, a.Words), Failure: failureOf(v, info), Code: a.Code.String(), Never: a.Never, Obstacles: a.Obstacles, Needs: a.Needs,
		Tried: Tried{AtUs: int64(a.Tried.At), Words: a.Tried.Words},
		Free:  whole(v.Room().FreeMilli(shape.Models)), Exist: float64(v.Room().All(shape.Models))}
	if shape.Devices > 0 {
		w.Wants = whole(shape.Milli(smallest))
	}
	for _, h := range a.Holders[:min(mostKeepers, len(a.Holders))] {
		k := Keeper{Job: h.Job, Queue: h.Queue, Devices: h.Devices, UntilUs: int64(h.Until)}
		if h.Until == unit.Never {
			k.UntilUs = -1
		}
		w.Holders = append(w.Holders, k)
	}
	var saving []string
	if words := savingOf(&j); words != "" && !j.Phase.Over() {
		saving = []string{words}
	}
	if !j.Phase.Waits() {
		w.Detail = append(reactedOf(v, id).lines(), saving...)
		return w
	}
	for other := range site.Live() {
		if o := v.Job(other); o.Phase == plan.Waiting && other < id {
			w.Earlier++
			if o.Shape == j.Shape {
				w.Alike++
			}
		}
	}
	w.Detail = slices.Concat(detail(v, info, id, &w), reactedOf(v, id).lines(), saving)
	return w
}

// detail lists the counts behind a reason to wait.
func detail(v plan.View, info plane.JobInfo, id plan.JobID, w *Why) []string {
	j, shape := v.Job(id), v.Shape(id)
	var lines []string
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	switch {
	case shape.Devices == 0:
		say("needs %d workers with %s cores and %s each, and no device", shape.Gang, unit.Milli(shape.CPU), unit.MiB(shape.Host))
	case shape.Share < 1000:
		say("needs %s: %d workers with %s of a device each", devices(w.Wants), shape.Gang, unit.Milli(shape.Share))
	default:
		say("needs %s together: %d workers with %d each", devices(w.Wants), shape.Gang, shape.Devices)
	}
	say("%s of %s it may use %s free", number(w.Free), devices(w.Exist), plan.Are(milli(w.Free)))
	if j.Phase == plan.Waiting {
		say("%s submitted earlier, %d of the same shape", count(w.Earlier, "waiting job was", "waiting jobs were"), w.Alike)
	}
	say("has waited %s in all", Span(v.WaitedFor(id)))
	for _, e := range slices.Backward(info.Dossier) {
		if e.Verb != plane.Fail {
			say("last decision, %s ago: %s, %s", Span(v.Now().Sub(e.At)), e.Verb, e.Words)
			break
		}
	}
	return lines
}

// WriteWhy writes the one reason first, then what is behind it.
func WriteWhy(w io.Writer, y *Why, o TextOptions) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s is %s: %s\n", o.Paint(terminal.Bold, y.Job), o.Paint(styleOf(y.State), y.State), y.Words)
	head := func(text string) { fmt.Fprintf(&b, "%s\n", o.Paint(terminal.Dim, text)) }
	if len(y.Needs) > 0 {
		head("what would have to change")
		for _, n := range y.Needs {
			fmt.Fprintf(&b, "  - %s\n", n)
		}
	}
	if len(y.Obstacles) > 0 {
		head("the nodes")
		for _, n := range y.Obstacles {
			fmt.Fprintf(&b, "%5d  %s\n", n.Nodes, n.Obstacle)
		}
	}
	if len(y.Holders) > 0 {
		head("who holds it")
		t := table{head: []string{"  JOB", "QUEUE", "DEVICES", "EXPECTED UNTIL"}}
		for _, h := range y.Holders {
			until := "nobody knows"
			if h.UntilUs >= 0 {
				until = timeText(time.UnixMicro(h.UntilUs))
			}
			t.add("  "+h.Job, h.Queue, number(h.Devices), until)
		}
		if err := t.write(&b, o); err != nil {
			return err
		}
	}
	if len(y.Detail) > 0 {
		head("the counts behind it")
		for _, line := range y.Detail {
			fmt.Fprintf(&b, "  - %s\n", line)
		}
		fmt.Fprintf(&b, "  - last event, at %s: %s\n", timeText(time.UnixMicro(y.Tried.AtUs)), y.Tried.Words)
	}
	y.Failure.WriteLastLines(&b, o)
	_, err := w.Write(b.Bytes())
	return err
}
