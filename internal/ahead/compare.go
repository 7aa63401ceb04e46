package ahead

import (
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run/report"
)

// Difference is what sets one future apart from another of the same fork.
type Difference struct {
	Base, Alternative Summary
	// Moved are the jobs that are in both, by name, and do not start or end at the same
	// instants; Same counts the others. Gone are those of the base alone, Come those of
	// the alternative alone.
	Moved      []Move
	Same       int
	Gone, Come []string
}

// Summary is one future in figures. The means are over the jobs that finish in both.
type Summary struct {
	Both              int
	MeanWait, MeanJCT unit.Duration
	Finished          int64
	Unfinished        int64
	Displacements     int
	// Utilization is the part of the device time held by jobs, up to the future's own
	// end, which is To.
	Utilization float64
	To          unit.Time
	// Queue and Share are the number of waiting jobs and the held part of the devices
	// over time, as bends of a line.
	Queue, Share []report.Point
}

// Move is a job whose story differs; positive is later in the alternative. Where an
// instant is Never in one of the futures, that future's end stands in for it: it is
// later than that.
type Move struct {
	Name              string
	Base, Alternative Fate
	StartBy, EndBy    unit.Duration
}

// Compare says what becomes different. Jobs are matched by name.
func Compare(base, alternative *Future) Difference {
	d := Difference{Base: summary(base), Alternative: summary(alternative)}
	other := make(map[string]int, len(alternative.Fates))
	for i := range alternative.Fates {
		other[alternative.Fates[i].Name] = i
	}
	var wait, jct [2]mean
	for i := range base.Fates {
		b := &base.Fates[i]
		k, ok := other[b.Name]
		if !ok {
			d.Gone = append(d.Gone, b.Name)
			continue
		}
		delete(other, b.Name)
		a := &alternative.Fates[k]
		if b.Outcome == report.Finished && a.Outcome == report.Finished {
			for x, f := range [2]*Fate{b, a} {
				wait[x].add(f.Waited)
				jct[x].add(f.End.Sub(f.Submit))
			}
		}
		if b.Start == a.Start && b.End == a.End {
			d.Same++
			continue
		}
		d.Moved = append(d.Moved, Move{Name: b.Name, Base: *b, Alternative: *a,
			StartBy: within(a.Start, alternative).Sub(within(b.Start, base)), EndBy: within(a.End, alternative).Sub(within(b.End, base))})
	}
	for i := range alternative.Fates {
		if _, left := other[alternative.Fates[i].Name]; left {
			d.Come = append(d.Come, alternative.Fates[i].Name)
		}
	}
	for x, s := range [2]*Summary{&d.Base, &d.Alternative} {
		s.Both, s.MeanWait, s.MeanJCT = wait[x].jobs, wait[x].value(), jct[x].value()
	}
	return d
}

// within is an instant, or the end of the future that it is not in.
func within(at unit.Time, f *Future) unit.Time {
	if at == unit.Never {
		return f.To
	}
	return at
}

func summary(f *Future) Summary {
	s := Summary{Finished: f.Result.Finished, Unfinished: f.Result.Censored, Utilization: f.Result.Utilization, To: f.To,
		Queue: f.View.Queue, Share: f.View.Share}
	for i := range f.Fates {
		s.Displacements += len(f.Fates[i].Displaced)
	}
	return s
}
