package parallel

import (
	"encoding/json"
	"fmt"

	"github.com/musterdl/muster/pipeline"
)

// Held says what each device of a run holds of its model, and who holds the same: all that is needed to tell
// what is still there when some are lost.
type Held struct {
	// Copies are the devices of each rank of each like pipeline, by their places among those of the run.
	// Nothing where pipelines are not alike, or a device holds what no other does.
	Copies [][][]int32
	// Division is how the layers are spread over the ranks of a copy: the same rank holds the same in all runs
	// of a job with one division, however many copies they have.
	Division string
}

// HeldBy reads what a plan, as it is written in the journal, puts on so many devices: the plan of one pipeline
// with neighbouring workers, each of so many devices, as the copies of a rank, where it is of measured layers; else the shape
// that a planner made. Slices are not put together again unless somebody says that they are.
func HeldBy(text []byte, measured bool, devices, each int, slices bool) (h Held) {
	if measured {
		var p pipeline.Plan
		if json.Unmarshal(text, &p) != nil || len(p.Orders) == 0 || p.Tensor > 1 {
			return h
		}
		ranks := len(p.Orders)
		n := devices / each / ranks
		if n*ranks*each != devices {
			return h
		}
		for one := range n {
			stages := make([][]int32, ranks)
			for rank := range stages {
				for d := range each {
					stages[rank] = append(stages[rank], int32((rank*n+one)*each+d))
				}
			}
			h.Copies = append(h.Copies, stages)
		}
		h.Division = fmt.Sprint(p.Cuts, p.Schedule().Routes)
		return h
	}
	var s Shape
	if json.Unmarshal(text, &s) != nil || s.Experts > 1 || s.Copies <= 0 || s.Ranks <= 0 || s.Tensor <= 0 || s.Ranks*s.Copies*s.Tensor != devices || s.Tensor > 1 && !slices {
		return h
	}
	for _, one := range s.Plan().Pipelines {
		stages := make([][]int32, len(one.Ranks))
		for rank := range one.Ranks {
			stages[rank] = one.Ranks[rank].Devices
		}
		h.Copies = append(h.Copies, stages)
	}
	h.Division = fmt.Sprint(s.Sequence.Name, s.Tensor, s.Ranks, s.Cuts, s.Ways)
	return h
}

// Whole reports whether each rank of a run has a copy that lost nothing.
func (h *Held) Whole(gone []bool) bool {
	return len(h.Copies) > 0 && h.left(gone) != nil
}

// left are, of each rank, the devices of the copies that lost none of that rank's, those first that are whole;
// nil where a rank has none.
func (h *Held) left(gone []bool) (ranks [][][]int32) {
	lost := func(devices []int32) bool {
		for _, d := range devices {
			if gone[d] {
				return true
			}
		}
		return false
	}
	ranks = make([][][]int32, len(h.Copies[0]))
	for _, whole := range []bool{true, false} {
		for _, stages := range h.Copies {
			is := true
			for _, devices := range stages {
				is = is && !lost(devices)
			}
			for rank, devices := range stages {
				if is == whole && !lost(devices) {
					ranks[rank] = append(ranks[rank], devices)
				}
			}
		}
	}
	for _, all := range ranks {
		if len(all) == 0 {
			return nil
		}
	}
	return ranks
}

// Smaller puts another run of the same division, with fewer copies, on devices that have lost nothing: each stands in a
// place where the same is held, so that nothing is sent. It is the place among those of the old run for each of the
// new one; nil where there is no such.
func (h *Held) Smaller(to *Held, gone []bool) []int32 {
	if len(h.Copies) == 0 || len(to.Copies) == 0 || h.Division != to.Division || len(h.Copies[0]) != len(to.Copies[0]) {
		return nil
	}
	ranks := h.left(gone)
	if ranks == nil {
		return nil
	}
	n := 0
	for _, stages := range to.Copies {
		for _, devices := range stages {
			n += len(devices)
		}
	}
	places := make([]int32, n)
	for i, stages := range to.Copies {
		for rank, devices := range stages {
			if i >= len(ranks[rank]) || len(ranks[rank][i]) != len(devices) {
				return nil
			}
			for k, d := range devices {
				places[d] = ranks[rank][i][k]
			}
		}
	}
	return places
}

// Pieces name what the device in each place of the run holds; nothing where nobody knows.
func (h *Held) Pieces() (pieces []string) {
	for _, stages := range h.Copies {
		for rank, devices := range stages {
			for k, d := range devices {
				for len(pieces) <= int(d) {
					pieces = append(pieces, "")
				}
				pieces[d] = fmt.Sprint(h.Division, rank, k)
			}
		}
	}
	return pieces
}
