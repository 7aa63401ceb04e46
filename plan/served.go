package plan

import "github.com/musterdl/muster/model/unit"

// Executed is the running time of job id whose work is kept, with that of its
// present run up to now.
func (v View) Executed(id JobID) unit.Duration {
	j := &v.s.Jobs[id]
	return j.Executed + v.s.useful(j.Run) + v.s.useful(j.Leaving)
}

// Service is the attained useful service of job id in thousandths of a device
// times microseconds, up to now.
func (v View) Service(id JobID) int64 {
	j := &v.s.Jobs[id]
	total := j.Service
	for _, run := range [...]RunID{j.Run, j.Leaving} {
		if d := v.s.useful(run); d > 0 {
			total += int64(d) * v.s.Shapes[j.Shape].Milli(v.s.Runs[run].Workers)
		}
	}
	return total
}

// useful is how long a run has been doing useful work; one that is stopping did
// until it was told to.
func (s *State) useful(run RunID) unit.Duration {
	if run == None || s.Runs[run].Began == unit.Never {
		return 0
	}
	switch r := &s.Runs[run]; r.Status {
	case Running:
		return s.Now.Sub(r.Began) - r.Paused
	case Suspended, Resuming, Stopping:
		return r.Since.Sub(r.Began) - r.Paused
	}
	return 0
}

// WaitedFor is how long job id has waited in all, up to now: until a run of it goes to the
// driver.
func (v View) WaitedFor(id JobID) unit.Duration {
	j := &v.s.Jobs[id]
	if j.Phase.Waits() {
		return j.Waited + v.s.Now.Sub(j.Since)
	}
	return j.Waited + v.s.promised(j.Run)
}

// promised is how long a run has waited for others to leave its devices, up to now.
func (s *State) promised(run RunID) unit.Duration {
	if run == None || s.Runs[run].Status != Promised {
		return 0
	}
	return s.Now.Sub(s.Runs[run].Since)
}

// Present is the run that has a job's devices: its present one, or one that is stopping.
func (v View) Present(id JobID) RunID {
	if leaving := v.s.Jobs[id].Leaving; leaving != None {
		return leaving
	}
	return v.s.Jobs[id].Run
}

// Standing is the one word that is said of where a job stands: where its run does as long
// as that has devices, else its phase.
func (v View) Standing(id JobID) string {
	if run := v.Present(id); run != None {
		return v.s.Runs[run].Status.String()
	}
	return v.s.Jobs[id].Phase.String()
}
