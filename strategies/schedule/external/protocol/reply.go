package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/musterdl/muster/plan"
)

// Reply is what a script says: an order of jobs, or wishes for them. Asked and Failed are
// added by who asked, before it is journaled.
type Reply struct {
	Ranks    bool         `json:"ranks,omitempty"` // it is an order, be it empty
	Order    []plan.JobID `json:"order,omitempty"`
	Wishes   []Wish       `json:"wishes,omitempty"`
	AgainSec float64      `json:"again_s,omitempty"`

	Asked  plan.JobID `json:"asked,omitempty"`  // the question's Before
	Failed string     `json:"failed,omitempty"` // why there is nothing to use
}

// Wish is what one job is to have.
type Wish struct {
	Job     plan.JobID `json:"job"`
	Workers int32      `json:"workers"`
	Models  []string   `json:"models,omitempty"`
}

// line is a reply as a script writes it: a list that is there and empty says something
// else than one that is not there.
type line struct {
	Order    *[]plan.JobID `json:"order"`
	Wishes   *[]Wish       `json:"wishes"`
	AgainSec *float64      `json:"again_s"`
}

// Greeted reads the first line of a process, and says what is wrong with it.
func Greeted(b []byte) error {
	var hello struct {
		Hello    *string `json:"hello"`
		Protocol *int    `json:"protocol"`
	}
	switch err := strict(b, &hello); {
	case err != nil:
		return fmt.Errorf("the script's first line: %w", err)
	case hello.Hello == nil || *hello.Hello == "":
		return errors.New(`the script's first line: hello is missing: expected {"hello": NAME, "protocol": 1}`)
	case hello.Protocol == nil || *hello.Protocol != Version:
		return fmt.Errorf("the script's first line: protocol is not %d, the one that is spoken here", Version)
	}
	return nil
}

// strict decodes one line, and says which field is wrong.
func strict(b []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil && len(bytes.TrimSpace(b[d.InputOffset():])) > 0 {
		err = errors.New("there is more after the object")
	}
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind) && kind.Field != "":
		return fmt.Errorf("%s is a %s: expected %s", kind.Field, kind.Value, kind.Type)
	case err != nil:
		return fmt.Errorf("%q is not the JSON that was expected (%w); a script's other output belongs on its standard error", cut(b), err)
	}
	return nil
}

// cut is the beginning of a line.
func cut(b []byte) []byte {
	const most = 80
	if b = bytes.TrimSpace(b); len(b) > most {
		return append(slices.Clip(b[:most]), "..."...)
	}
	return b
}

// Read takes a script's reply to a question, or says which field of it is wrong.
func (q *Question) Read(b []byte) (Reply, error) {
	var l line
	if err := strict(b, &l); err != nil {
		return Reply{}, fmt.Errorf("the script's reply: %w", err)
	}
	if (l.Order == nil) == (l.Wishes == nil) {
		return Reply{}, errors.New("the script's reply: expected either order or wishes")
	}
	var r Reply
	if l.AgainSec != nil {
		if r.AgainSec = *l.AgainSec; !(r.AgainSec >= 1 && r.AgainSec <= 1e6) {
			return Reply{}, fmt.Errorf("the script's reply: again_s is %g: expected seconds, 1 at least and at most a million", r.AgainSec)
		}
	}
	seen := make([]bool, len(q.Jobs))
	if l.Order != nil {
		for i, id := range *l.Order {
			if _, err := q.find(id, seen); err != nil {
				return Reply{}, fmt.Errorf("the script's reply: order[%d] %w", i, err)
			}
		}
		r.Ranks, r.Order = true, *l.Order
		return r, nil
	}
	for i, w := range *l.Wishes {
		j, err := q.find(w.Job, seen)
		if err != nil {
			return Reply{}, fmt.Errorf("the script's reply: wishes[%d].job %w", i, err)
		}
		if w.Workers != 0 && !slices.Contains(j.Sizes, w.Workers) {
			return Reply{}, fmt.Errorf("the script's reply: wishes[%d].workers is %d: job %d may have 0 or one of %d", i, w.Workers, w.Job, j.Sizes)
		}
		for k, name := range w.Models {
			if !q.allows(j, name) {
				return Reply{}, fmt.Errorf("the script's reply: wishes[%d].models[%d] is %q: not a device model that job %d may use", i, k, name, w.Job)
			}
		}
	}
	r.Wishes = *l.Wishes
	return r, nil
}

// find is the job of an id that was not seen before.
func (q *Question) find(id plan.JobID, seen []bool) (*Job, error) {
	i, ok := slices.BinarySearchFunc(q.Jobs, id, func(j Job, id plan.JobID) int { return int(j.ID) - int(id) })
	switch {
	case !ok:
		return nil, fmt.Errorf("is %d: no job of the question has this id", id)
	case seen[i]:
		return nil, fmt.Errorf("is %d: this job was named before", id)
	}
	seen[i] = true
	return &q.Jobs[i], nil
}

func (q *Question) allows(j *Job, name string) bool {
	known := slices.ContainsFunc(q.Models, func(m Model) bool { return m.Name == name })
	return known && (len(j.Models) == 0 || slices.Contains(j.Models, name))
}
