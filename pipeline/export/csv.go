// Package export writes schedules as other programs read them, and says so where one cannot
// express a schedule.
package export

import (
	"fmt"
	"strings"

	"github.com/musterdl/muster/pipeline"
)

// CSV writes a schedule as PyTorch's pipeline runtime loads it (torch.distributed.pipelining,
// _PipelineScheduleRuntime._load_csv, format compute_only): a row for each rank, a cell for
// each pass, two that run at once as one. Whatever has a stage on several ranks, weights of
// several versions, passes that are computed again or forward passes in halves cannot be written so.
func CSV(s *pipeline.Schedule) (string, error) {
	if err := expressible(s); err != nil {
		return "", err
	}
	var b strings.Builder
	for r := range s.Orders {
		b.WriteString(row(actions(s, r)) + "\n")
	}
	return b.String(), nil
}

// expressible says what a CSV cannot hold.
func expressible(s *pipeline.Schedule) error {
	if why := s.Check(); why != "" {
		return fmt.Errorf("%s", why)
	}
	if len(s.Routes) > 1 {
		return fmt.Errorf("PyTorch has each stage on one rank, and here microbatches go %d ways: dualpipe-v does what dualpipe does with each stage once, hanayo what chimera does", len(s.Routes))
	}
	if s.Wave > 0 {
		return fmt.Errorf("PyTorch changes all weights once an iteration, and here a stage does after every %d microbatches: 1f1b is the same order with a flush", s.Wave)
	}
	for r := range s.Orders {
		for _, a := range actions(s, r) {
			if len(a) == 2 && (a[0].Kind != pipeline.Forward || a[1].Kind != pipeline.Backward) {
				return fmt.Errorf("PyTorch runs a forward and a backward pass at once, not %s", a.cell())
			}
			if a[0].Kind == pipeline.FirstHalf {
				return unable([]string{"1f1b"}, "PyTorch has no cell for half a forward pass (%v): 1f1b is the same order with whole ones", a[0])
			}
			if a[0].Kind == pipeline.Recompute {
				return fmt.Errorf("PyTorch has no cell for a pass that is computed again (%v): wrap the stage's layers in torch.utils.checkpoint, and take the schedule without it", a[0])
			}
		}
	}
	return nil
}

// action is what a rank does at a time: a pass, or two at once.
type action []pipeline.Op

func actions(s *pipeline.Schedule, rank int) (all []action) {
	for i, op := range s.Orders[rank] {
		if i > 0 && s.Orders[rank][i-1].Paired {
			all[len(all)-1] = append(all[len(all)-1], op)
			continue
		}
		all = append(all, action{op})
	}
	return all
}

func (a action) cell() string {
	if len(a) == 1 {
		return bare(a[0])
	}
	return "(" + bare(a[0]) + ";" + bare(a[1]) + ")OVERLAP_F_B"
}

// bare is a pass by itself.
func bare(op pipeline.Op) string {
	op.Paired = false
	return op.String()
}

func row(all []action) string {
	var cells []string
	for _, a := range all {
		cells = append(cells, a.cell())
	}
	return strings.Join(cells, ",")
}
