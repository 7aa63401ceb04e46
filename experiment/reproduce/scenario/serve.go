package scenario

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/run/report"
)

// served is what a service of the day is: a model that iGniter measured on a V100, its
// latency objective, what one replica is meant to answer, and the part of the device
// that takes with batching, as iGniter's own example sizes it.
type served struct {
	class  string
	slo    unit.Duration
	perSec float64
	busy   float64
}

var served3 = [...]served{
	{"alexnet", 15 * unit.Millisecond, 500, 0.10},
	{"resnet50", 40 * unit.Millisecond, 400, 0.30},
	{"vgg19", 60 * unit.Millisecond, 200, 0.375},
}

// serve adds the replicas of the services: as many at any time as the stream's rate
// asks for, each a job that is ended when it is not needed any more.
func (m *mix) serve(data string, seed uint64) {
	var real bool
	m.streams, real = streams(data, seed)
	m.real = m.real && real
	if m.asked = "ServeGen language/m-small"; !real {
		m.asked = "generated, a daily wave"
	}
	r := rand.New(rand.NewPCG(seed, 2))
	for i := range m.streams {
		s, kindOf := &m.streams[i], served3[i%len(served3)]
		const day = int(unit.Day / window)
		days := max(1, len(s.rate)/day)
		from := int(seed) % days * day
		s.rate, s.cv = s.rate[from:min(from+day, len(s.rate))], s.cv[from:min(from+day, len(s.cv))]
		factor := replicasTop * kindOf.perSec / max(1e-9, slices.Max(s.rate))
		for w := range s.rate {
			s.rate[w] *= factor
		}
		m.perSec = append(m.perSec, kindOf.perSec)
		m.replicas(i, kindOf, r)
	}
}

// replicas makes the jobs of one service: of the replicas that a window needs, the
// first begins first and ends last.
func (m *mix) replicas(service int, of served, r *rand.Rand) {
	rate := m.streams[service].rate
	need := make([]int, len(rate)+1)
	for w, x := range rate {
		need[w] = max(1, int(math.Ceil(x/of.perSec)))
	}
	for level := 1; level <= slices.Max(need); level++ {
		for w := 0; w < len(rate); w++ {
			if need[w] < level || w > 0 && need[w-1] >= level {
				continue
			}
			end := w
			for end < len(rate) && need[end] >= level {
				end++
			}
			it := item{kind: replica}
			it.job = workload.Job{Name: fmt.Sprintf("service%d-%d-%d", service, level, w), Tenant: "serve",
				Resources: workload.Resources{Gang: 1, Devices: 1, Share: unit.Whole, Memory: 2 << 10, Models: models[:1]},
				Submit:    unit.Time(w) * unit.Time(window), Priority: 10, Traits: workload.Traits{Class: of.class,
					Service: workload.Service{RatePerSec: of.perSec, SLO: of.slo}}, Checkpoint: workload.Checkpoint{OnRequest: true, Load: 5 * unit.Second}}
			it.truth = workload.Truth{Duration: unit.Duration(end-w) * window, Busy: of.busy * (0.95 + 0.1*r.Float64())}
			it.job.Estimate = it.truth.Duration
			m.replicaOf[it.job.Name] = service
			m.day = append(m.day, it)
		}
	}
}

// attainment is the part of all requests of the day that found a replica to answer
// them: of each window, what the replicas then running can answer of what is asked.
func (m *mix) attainment(up [][]float64) float64 {
	asked, answered := 0.0, 0.0
	for i := range m.streams {
		for w, rate := range m.streams[i].rate {
			asked += rate
			answered += min(rate, up[i][w]*m.perSec[i])
		}
	}
	return answered / max(1e-9, asked)
}

// up counts the replicas that ran, by service and window.
func (m *mix) up(jobs []report.JobRecord, from unit.Time) [][]float64 {
	up := make([][]float64, len(m.streams))
	for i := range up {
		up[i] = make([]float64, len(m.streams[i].rate))
	}
	for i := range jobs {
		j := &jobs[i]
		service, ok := m.replicaOf[j.Name]
		if !ok || j.FirstStart == unit.Never {
			continue
		}
		// What it ran is what it had of the time it was wanted, at the rate it had.
		begin, end := j.FirstStart-from, j.End-from
		part := 0.0
		if end > begin {
			part = min(1, float64(j.Run)/float64(end.Sub(begin)))
		}
		for w := range up[service] {
			a, b := max(begin, unit.Time(w)*unit.Time(window)), min(end, unit.Time(w+1)*unit.Time(window))
			if b > a {
				up[service][w] += part * float64(b.Sub(a)) / float64(window)
			}
		}
	}
	return up
}
