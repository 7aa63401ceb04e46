package pipeline

// Memory is what a rank holds at an instant, by what it is for.
type Memory struct {
	ParamKiB      int64 // parameters, their gradients and the optimiser's state
	StashKiB      int64 // weights of versions before the newest
	ActivationKiB int64 // of microbatches whose backward pass is still to come
	WaitingKiB    int64 // of those that wait for the second half of it
}

// Total is all of it.
func (m Memory) Total() int64 { return m.ParamKiB + m.StashKiB + m.ActivationKiB + m.WaitingKiB }

// Peaks are what the ranks hold at most. It follows their orders, and no clock.
func (s *Schedule) Peaks(c *Costs) []Memory {
	all := make([]Memory, len(s.Orders))
	for r := range all {
		all[r] = s.peak(r, c)
	}
	return all
}

// peak follows a rank's order: what it holds depends on nothing else. A pass takes its memory
// when it begins, and gives it back when it has ended.
func (s *Schedule) peak(rank int, c *Costs) Memory {
	var now, most Memory
	for _, stage := range s.holds(rank) {
		now.ParamKiB += c.ParamCopies*c.Stages[stage].ParamKiB + c.Stages[stage].StateKiB
	}
	var again map[[2]int32]bool // activations that are computed again, and were not kept
	for _, op := range s.Orders[rank] {
		if op.Kind == Recompute {
			if again == nil {
				again = map[[2]int32]bool{}
			}
			again[[2]int32{op.Stage, op.Micro}] = true
		}
	}
	versions := newVersions(s)
	order := s.Orders[rank]
	for i := 0; i < len(order); i++ {
		ops := order[i : i+1]
		if order[i].Paired {
			ops = order[i : i+2]
			i++
		}
		for _, op := range ops {
			kept := c.Stages[op.Stage].ActivationKiB
			switch {
			case op.Kind == Recompute:
				now.ActivationKiB += kept - s.input(c, op.Stage)
			case again != nil && again[[2]int32{op.Stage, op.Micro}]:
				now.ActivationKiB += share(op.Kind, s.input(c, op.Stage))
			default:
				now.ActivationKiB += share(op.Kind, kept)
			}
			versions.begin(op)
		}
		if now.StashKiB = versions.olderKiB(c); now.Total() > most.Total() {
			most = now
		}
		for _, op := range ops {
			kept := c.Stages[op.Stage].ActivationKiB
			switch op.Kind {
			case Backward:
				now.ActivationKiB -= kept
			case Input:
				now.ActivationKiB, now.WaitingKiB = now.ActivationKiB-kept, now.WaitingKiB+kept
			case Weight:
				now.WaitingKiB -= kept
			}
			versions.end(op)
		}
	}
	return most
}

// input is what a stage needs to compute forward again: what the stage before sent.
func (s *Schedule) input(c *Costs, stage int32) int64 {
	if stage == 0 {
		return 0
	}
	return min(c.Stages[stage-1].OutputKiB, c.Stages[stage].ActivationKiB)
}

// versions counts a rank's weights where they change while microbatches are under way.
type versions struct {
	wave   int32
	stages []version
}

// version is how far one stage is.
type version struct {
	newest, finished int32
	of               []int32 // per microbatch: the version that it uses
	users            []int32 // per version: microbatches under way that use it
}

func newVersions(s *Schedule) *versions {
	if s.Wave == 0 {
		return nil
	}
	v := &versions{wave: s.Wave, stages: make([]version, s.Stages())}
	for i := range v.stages {
		v.stages[i] = version{of: make([]int32, s.Microbatches), users: make([]int32, s.Microbatches/s.Wave+1)}
	}
	return v
}

func (v *versions) begin(op Op) {
	if v == nil || !op.Kind.begins() {
		return
	}
	w := &v.stages[op.Stage]
	w.of[op.Micro] = w.newest
	w.users[w.newest]++
}

func (v *versions) end(op Op) {
	if v == nil || op.Kind != Backward && op.Kind != Weight {
		return
	}
	w := &v.stages[op.Stage]
	w.users[w.of[op.Micro]]--
	if w.finished++; w.finished%v.wave == 0 {
		w.newest++
	}
}

// older is how many versions before the newest are in use.
func (w *version) older() (n int) {
	for _, users := range w.users[:w.newest] {
		if users > 0 {
			n++
		}
	}
	return n
}

// olderKiB is what the versions before the newest take.
func (v *versions) olderKiB(c *Costs) (kib int64) {
	if v == nil {
		return 0
	}
	for i := range v.stages {
		kib += int64(v.stages[i].older()) * c.Stages[i].ParamKiB
	}
	return kib
}
