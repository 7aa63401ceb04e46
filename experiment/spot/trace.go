// Package spot plays a run on machines that come and go: what gets done of a large model under
// planners that go on without lost nodes, that restart on other sizes, or that have one size. It is
// a simulation of one run by its plans, and knows no jobs.
//
// The traces say when machines came and went, not why: whoever held them asked for as many as could
// be had. A run that holds fewer would perhaps have kept some longer, which nobody measured; so all
// policies see the same machines, and one that uses fewer has the others idle.
package spot

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/musterdl/muster/model/figures"
	"github.com/musterdl/muster/model/unit"
)

// Change is nodes that come and nodes that go at one time.
type Change struct {
	At          unit.Time
	Comes, Goes []int32
}

// Trace is which nodes there are, by number, and until when.
type Trace struct {
	Nodes   int // most at once
	Changes []Change
	End     unit.Time
}

// Counted makes a trace of how many nodes there are at each tick. Who goes came last: which of
// them it was in truth nobody wrote down.
func Counted(counts []int, tick unit.Duration) (t Trace) {
	var here []int32
	for i, n := range append([]int{0}, counts...) {
		c := Change{At: unit.Time(tick) * unit.Time(max(0, i-1))}
		for len(here) > n {
			last := len(here) - 1
			c.Goes, here = append(c.Goes, here[last]), here[:last]
		}
		for len(here) < n {
			c.Comes, here = append(c.Comes, int32(len(here))), append(here, int32(len(here)))
		}
		t.Nodes = max(t.Nodes, n)
		if len(c.Comes)+len(c.Goes) > 0 {
			t.Changes = append(t.Changes, c)
		}
	}
	t.End = unit.Time(tick) * unit.Time(len(counts))
	return t
}

// Bamboo reads a trace of that project: rows of milliseconds, add or remove, and a node.
func Bamboo(open figures.Open, path string) (t Trace, err error) {
	f, err := open(path)
	if err != nil {
		return t, err
	}
	defer f.Close()
	in, places := csv.NewReader(f), map[string]int32{}
	var taken []bool
	for line := 1; ; line++ {
		row, err := in.Read()
		if err == io.EOF {
			t.Nodes = len(taken)
			return t, nil
		}
		if err != nil {
			return t, fmt.Errorf("reading %s: %w", path, err)
		}
		ms, err := strconv.ParseInt(row[0], 10, 64)
		if err != nil || len(row) != 3 || row[1] != "add" && row[1] != "remove" {
			return t, fmt.Errorf("%s:%d: %q: expected milliseconds, add or remove, and a node", path, line, row)
		}
		t.End = unit.Time(ms * 1000)
		if last := len(t.Changes) - 1; last < 0 || t.Changes[last].At != t.End {
			t.Changes = append(t.Changes, Change{At: t.End})
		}
		c := &t.Changes[len(t.Changes)-1]
		if row[1] == "remove" {
			c.Goes, taken[places[row[2]]] = append(c.Goes, places[row[2]]), false
			continue
		}
		// Names of machines come once; places are used again, as a plan numbers what there is.
		// A node that comes takes the first place that is free before this time, so that nobody
		// goes and comes in one change.
		at := slices.Index(taken, false)
		for at >= 0 && slices.Contains(c.Goes, int32(at)) {
			if next := slices.Index(taken[at+1:], false); next >= 0 {
				at += 1 + next
			} else {
				at = -1
			}
		}
		if at < 0 {
			at, taken = len(taken), append(taken, false)
		}
		taken[at], places[row[2]] = true, int32(at)
		c.Comes = append(c.Comes, int32(at))
	}
}

// SkyPilot reads a trace of that project: how many nodes there are at each tick. Between two ticks
// nobody looked: a node that went and came again in between is not seen.
func SkyPilot(open figures.Open, path string) (t Trace, err error) {
	var file struct {
		Metadata struct {
			Gap float64 `json:"gap_seconds"`
		}
		Data []int
	}
	if err := figures.FromJSON(open, path, &file); err != nil {
		return t, err
	}
	if !(file.Metadata.Gap > 0) || len(file.Data) == 0 {
		return t, fmt.Errorf("%s: %d ticks of %g seconds: expected some", path, len(file.Data), file.Metadata.Gap)
	}
	return Counted(file.Data, unit.Seconds(file.Metadata.Gap)), nil
}

// Between is the mean time between two changes in which nodes go, from when the first came. Nodes
// that go together are one failure: all of them cost one restart.
func (t *Trace) Between() unit.Duration {
	n := 0
	for _, c := range t.Changes {
		if len(c.Goes) > 0 {
			n++
		}
	}
	return t.End.Sub(t.Changes[0].At) / unit.Duration(max(1, n))
}
