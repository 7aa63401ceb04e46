package trace

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// The bounds of a generator's keys.
const (
	maxJobs = 100_000_000
	maxDays = 36500
)

// settings are a generator's keys, after the options and the shape's own defaults.
type settings struct {
	jobs, devices int
	load, days    float64
	seed          uint64
	restart       unit.Duration
	estimate      string // "", "exact" or "noisy"
	phase         bool   // whether jobs say how much they communicate
}

// Streams of chance. Each has its own, so that asking for estimates, say, leaves
// the jobs and their arrivals as they were.
const (
	sizeStream = iota + 1
	arrivalStream
	tenantStream
	estimateStream
)

// noise is the sigma of a noisy estimate: two thirds lie within a factor 1.65.
const noise = 0.5

// generator draws jobs as they are asked for, in memory that does not grow. The
// arrival rate is load x devices / (mean device-seconds of the jobs), the mean
// being that of this very sample: the sizes are drawn once ahead to sum them, and
// then again from the same seed.
type generator struct {
	shape *shape
	set   settings
	left  int
	made  int
	rate  float64 // arrivals per second
	hours []float64
	nowS  float64

	sizes, arrivals, tenants, estimates *rand.Rand
}

// openGenerator reads NAME?key=value&key=value. Gangs wider than the devices are
// cut to them.
func openGenerator(rest string, opt Options) (*generator, error) {
	name, query, _ := strings.Cut(rest, "?")
	name = strings.ToLower(name)
	if name == "rw-a'" { // as it is called in print, but awkward in a shell
		name = "rw-a-prime"
	}
	i := slices.IndexFunc(shapes, func(s *shape) bool { return s.name == name })
	if i < 0 {
		var names []string
		for _, s := range shapes {
			names = append(names, s.name)
		}
		return nil, fmt.Errorf("unknown generator %q: expected one of %s", name, strings.Join(names, ", "))
	}
	s := shapes[i]
	set := settings{devices: opt.Devices, load: opt.Load, seed: opt.Seed, restart: s.restart}
	if query != "" {
		for pair := range strings.SplitSeq(query, "&") {
			if err := set.key(pair); err != nil {
				return nil, err
			}
		}
	}
	if err := set.complete(s); err != nil {
		return nil, err
	}
	g := newGenerator(s, set, opt.Limit)
	if years := float64(set.jobs) / g.rate / (365 * 86400); years > 100 {
		return nil, fmt.Errorf("%d jobs would take %.0f years to arrive: expected at most 100", set.jobs, years)
	}
	return g, nil
}

// key reads one key=value.
func (s *settings) key(pair string) error {
	key, value, _ := strings.Cut(pair, "=")
	var err error
	var n int64
	switch key {
	case "jobs":
		n, err = whole(value, 1, maxJobs)
		s.jobs = int(n)
	case "devices":
		n, err = whole(value, 1, maxDevices)
		s.devices = int(n)
	case "load":
		s.load, err = numeric(value, 0.001, maxLoad)
	case "days":
		s.days, err = numeric(value, 0.001, maxDays)
	case "seed":
		if s.seed, err = strconv.ParseUint(value, 10, 64); err != nil {
			err = fmt.Errorf("%s: expected a whole number", shown(value))
		}
	case "restart":
		s.restart, err = unit.ParseDuration(value)
	case "estimate":
		if s.estimate = value; value != "exact" && value != "noisy" {
			err = fmt.Errorf("%s: expected exact or noisy", shown(value))
		}
	case "phase":
		if s.phase = value == "known"; !s.phase {
			err = fmt.Errorf("%s: expected known", shown(value))
		}
	default:
		return fmt.Errorf("unknown key %q: expected jobs, devices, load, days, seed, restart, estimate or phase", key)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// complete fills in what was not said.
func (s *settings) complete(of *shape) error {
	if s.devices == 0 {
		s.devices = of.devices
	}
	if s.days > 0 && s.jobs > 0 && s.load > 0 {
		return fmt.Errorf("jobs, load and days are given: expected two of them, which make the third")
	}
	if s.load == 0 && (s.days == 0 || s.jobs == 0) {
		s.load = of.load
	}
	if s.days > 0 && s.jobs == 0 {
		n := s.load * float64(s.devices) * s.days * 86400 / of.meanArea(s.devices)
		if n > maxJobs {
			return fmt.Errorf("%g days at load %g are %.0f jobs: expected at most %d", s.days, s.load, n, maxJobs)
		}
		s.jobs = max(1, int(math.Round(n)))
	}
	if s.jobs == 0 {
		s.jobs = of.jobs
	}
	return nil
}

// meanArea is the mean of gang times duration, in device-seconds.
func (s *shape) meanArea(devices int) float64 {
	var area, total float64
	for _, w := range s.widths {
		area += w.weight * float64(min(int(w.gang), devices)) * w.run.mean()
		total += w.weight
	}
	return area / total
}

func newGenerator(s *shape, set settings, limit int) *generator {
	g := &generator{shape: s, set: set, left: set.jobs}
	if limit > 0 {
		g.left = min(limit, g.left)
	}
	stream := func(id uint64) *rand.Rand { return rand.New(rand.NewPCG(set.seed, id)) }
	if set.load > 0 {
		ahead := stream(sizeStream)
		var area float64
		for range set.jobs {
			gang, d, _ := s.draw(ahead, set.devices)
			area += float64(gang) * d.Seconds()
		}
		g.rate = set.load * float64(set.devices) * float64(set.jobs) / area
	} else {
		g.rate = float64(set.jobs) / (set.days * 86400)
	}
	if s.hours != nil {
		var sum float64
		for _, w := range s.hours {
			sum += w / float64(len(s.hours))
		}
		for _, w := range s.hours {
			g.hours = append(g.hours, w/sum)
		}
	}
	g.sizes, g.arrivals = stream(sizeStream), stream(arrivalStream)
	g.tenants, g.estimates = stream(tenantStream), stream(estimateStream)
	return g
}

// draw makes the size of one job.
func (s *shape) draw(r *rand.Rand, devices int) (gang int32, d unit.Duration, sensitivity float64) {
	w := &s.widths[pick(r, len(s.widths), func(i int) float64 { return s.widths[i].weight })]
	gang = min(w.gang, int32(devices))
	d = unit.Seconds(w.run.draw(r))
	if len(s.sensitivities) > 0 {
		k := r.IntN(len(s.sensitivities))
		if gang > 1 {
			sensitivity = s.sensitivities[k]
		}
	}
	return gang, d, sensitivity
}

// pick draws an index by weight.
func pick(r *rand.Rand, n int, weight func(int) float64) int {
	var total float64
	for i := range n {
		total += weight(i)
	}
	x := r.Float64() * total
	for i := range n - 1 {
		if x -= weight(i); x < 0 {
			return i
		}
	}
	return n - 1
}

// advance moves the clock to the next arrival.
func (g *generator) advance() {
	gap := g.arrivals.ExpFloat64() / g.rate
	if g.hours == nil {
		g.nowS += gap
		return
	}
	// The gap is used up at the pace of each hour; a whole day uses up a whole day.
	const hour, day = 3600.0, 86400.0
	whole := math.Floor(gap / day)
	g.nowS += whole * day
	gap -= whole * day
	for {
		index := math.Floor(g.nowS / hour)
		pace := g.hours[int(math.Mod(index, float64(len(g.hours))))]
		room := ((index+1)*hour - g.nowS) * pace
		if gap <= room {
			g.nowS += gap / pace
			return
		}
		gap, g.nowS = gap-room, (index+1)*hour
	}
}

// Next draws the next job.
func (g *generator) Next() (workload.Job, workload.Truth, error) {
	var job workload.Job
	var truth workload.Truth
	if g.left == 0 {
		return job, truth, io.EOF
	}
	g.left--
	if g.made > 0 {
		g.advance()
	}
	g.made++
	job.Name = g.shape.name + "-" + strconv.Itoa(g.made)
	job.Submit = unit.Time(unit.Seconds(g.nowS))
	job.Devices, job.Share = 1, unit.Whole
	job.Gang, truth.Duration, truth.Sensitivity = g.shape.draw(g.sizes, g.set.devices)
	job.Checkpoint = workload.Checkpoint{Load: g.set.restart}
	if t := g.shape.tenants; t != nil {
		job.Tenant = t[pick(g.tenants, len(t), func(i int) float64 { return t[i].weight })].name
	}
	switch g.set.estimate {
	case "exact":
		job.Estimate = truth.Duration
	case "noisy":
		job.Estimate = max(unit.Second, unit.Seconds(truth.Duration.Seconds()*math.Exp(noise*g.estimates.NormFloat64())))
	}
	if g.set.phase && len(g.shape.sensitivities) > 0 {
		job.Phase = workload.Phase{Compute: unit.Second, Communicate: unit.Seconds(truth.Sensitivity)}
	}
	return job, truth, nil
}

// Left is how many jobs are still to come.
func (g *generator) Left() int { return g.left }

// Close ends the jobs.
func (g *generator) Close() error {
	g.left = 0
	return nil
}
