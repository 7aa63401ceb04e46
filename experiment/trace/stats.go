package trace

import (
	"cmp"
	"errors"
	"io"
	"math"
	"slices"

	"github.com/musterdl/muster/model/unit"
)

// Stats describes a trace.
type Stats struct {
	Jobs       int
	CPUOnly    int // jobs without devices
	Fractional int // jobs that ask for less than one device per worker
	Tenants    int
	Estimates  int // jobs whose owner declared a run time
	Deadlines  int
	Unknown    int // jobs whose duration the trace does not give

	// Span is the time from the first submission to the last.
	Span unit.Duration
	// DeviceHours is the work of all jobs with a duration.
	DeviceHours float64
	// Mean, P50, P95, P99 and Max are of the known durations; a percentile is the
	// smallest duration that so many jobs do not exceed.
	Mean, P50, P95, P99, Max unit.Duration
	// Gangs counts the jobs by the devices they ask for, ascending.
	Gangs []GangCount
}

// GangCount is one bar of the gang histogram.
type GangCount struct {
	Devices unit.Milli
	Jobs    int
}

// Load is the offered load on so many devices over the span: 1 is what they could
// just do between the first and the last submission. It is 0 where all is
// submitted at once.
func (s *Stats) Load(devices int) float64 {
	if devices <= 0 || s.Span <= 0 {
		return 0
	}
	return s.DeviceHours * 3600 / (s.Span.Seconds() * float64(devices))
}

// Summarise reads a trace to its end.
func Summarise(r Reader) (Stats, error) {
	var s Stats
	var durations []unit.Duration
	tenants, gangs := map[string]bool{}, map[unit.Milli]int{}
	for {
		job, truth, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Stats{}, err
		}
		need := job.Workers()
		s.Jobs++
		s.Span = unit.Duration(job.Submit)
		s.CPUOnly += count(need == 0)
		s.Fractional += count(job.Share < unit.Whole)
		s.Estimates += count(job.Estimate > 0)
		s.Deadlines += count(job.Deadline > 0)
		s.Unknown += count(truth.Duration == NoDuration)
		if job.Tenant != "" {
			tenants[job.Tenant] = true
		}
		gangs[need]++
		if truth.Duration != NoDuration {
			durations = append(durations, truth.Duration)
			s.DeviceHours += float64(need) / float64(unit.Whole) * truth.Duration.Seconds() / 3600
		}
	}
	s.Tenants = len(tenants)
	s.summariseDurations(durations)
	for need, jobs := range gangs {
		s.Gangs = append(s.Gangs, GangCount{Devices: need, Jobs: jobs})
	}
	slices.SortFunc(s.Gangs, func(a, b GangCount) int { return cmp.Compare(a.Devices, b.Devices) })
	return s, nil
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func (s *Stats) summariseDurations(d []unit.Duration) {
	if len(d) == 0 {
		return
	}
	slices.Sort(d)
	at := func(p float64) unit.Duration { return d[int(math.Ceil(p*float64(len(d))))-1] }
	var sum float64
	for _, x := range d {
		sum += x.Seconds()
	}
	s.Mean = unit.Seconds(sum / float64(len(d)))
	s.P50, s.P95, s.P99, s.Max = at(.50), at(.95), at(.99), d[len(d)-1]
}
