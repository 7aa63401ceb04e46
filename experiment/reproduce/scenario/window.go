package scenario

import (
	"cmp"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated/world"
)

// Window is ten minutes of one service at the scale of single requests: the busiest of
// the day's first service, with the replicas that then ran.
type Window struct {
	Service    string  `json:"service"`
	Index      int     `json:"window"`
	RatePerSec float64 `json:"rate_per_s"`
	CV         float64 `json:"cv"`
	SLOMs      float64 `json:"slo_ms"`
	Requests   int     `json:"requests"`
	// Replicas is their mean number, Share the mean percent of a device they had, Batch
	// the most requests that one answers at once.
	Replicas float64 `json:"replicas"`
	Share    float64 `json:"share_percent"`
	Batch    int     `json:"batch"`
	// Attainment is the part of the requests answered within the objective, Unanswered
	// the part that found no replica, or lost it. JobScale is what the job scale says of
	// the same window.
	Attainment float64 `json:"attainment"`
	Unanswered float64 `json:"unanswered"`
	JobScale   float64 `json:"attainment_job_scale"`
	// MeanMs and P99Ms are of the requests that were answered.
	MeanMs float64 `json:"mean_ms"`
	P99Ms  float64 `json:"p99_ms"`
}

// answered is how a replica of the watched service answers from an instant on, in seconds
// of the window.
type answered struct {
	fromSec float64
	job     plan.JobID
	how     world.Answers
}

// watch looks on while the day runs: at what is granted, for its price, and at the
// replicas of one service in one window.
type watch struct {
	day     *Warm
	count   *count
	now     unit.Time
	perSec  float64 // dollars, at present
	dollars float64
	index   int
	seen    []answered
}

func newWatch(w *Warm) *watch {
	rate := w.mix.streams[0].rate
	return &watch{day: w, count: newCount(w), now: w.at, index: slices.Index(rate, slices.Max(rate))}
}

// answers is told whenever a replica answers otherwise than before.
func (w *watch) answers(v plan.View, at unit.Time, job plan.JobID, a world.Answers) {
	service, ok := w.day.mix.replicaOf[v.Name(job)]
	if sec := at.Sub(w.day.at.Add(unit.Duration(w.index) * window)).Seconds(); ok && service == 0 && sec < window.Seconds() {
		w.seen = append(w.seen, answered{max(0, sec), job, a})
	}
}

// step is called after every step of the engine.
func (w *watch) step(at unit.Time, events []engine.Event, out *engine.Out, v plan.View) {
	w.dollars += w.perSec * at.Sub(w.now).Seconds()
	w.now = at
	if len(events) == 0 && out.Commit == nil {
		return // nobody holds more or less than before
	}
	w.perSec = 0
	for id := range plan.DeviceID(v.Devices()) {
		if d := v.Device(id); !d.Status.Out() && d.Free < 1000 {
			w.perSec += dollars[models[v.Node(d.Node).Model]] * float64(1000-d.Free) / 1000 / 3600
		}
	}
}

// window simulates the requests; nil where nothing is known of the models. Gaps between
// requests are gamma distributed with the window's rate and variation. Each request goes
// to the next replica in turn; a batch begins when it is full, or when its first request
// has waited half the objective, which is the half that iGniter leaves for that.
func (w *watch) window(seed uint64, up []float64) *Window {
	if w.seen == nil {
		return nil
	}
	m, of := w.day.mix, served3[0]
	s := m.streams[0]
	o := &Window{Service: of.class, Index: w.index, RatePerSec: s.rate[w.index], CV: s.cv[w.index], SLOMs: 1000 * of.slo.Seconds(),
		JobScale: min(1, up[w.index]*of.perSec/s.rate[w.index])}
	q := requests{seen: w.seen, waitSec: of.slo.Seconds() / 2, lines: map[plan.JobID]*world.Line{}, of: o}
	shape := 1 / math.Pow(max(0.01, o.CV), 2)
	gap := distuv.Gamma{Alpha: shape, Beta: shape * o.RatePerSec, Src: rand.NewPCG(seed, 21)}
	for at := gap.Rand(); at < window.Seconds(); at += gap.Rand() {
		o.Requests++
		q.arrive(at)
	}
	took := q.end()
	if o.Requests == 0 {
		o.Attainment = 1
		return o
	}
	slices.Sort(took)
	in, _ := slices.BinarySearch(took, math.Nextafter(of.slo.Seconds(), 1))
	o.Attainment, o.Unanswered = float64(in)/float64(o.Requests), float64(o.Requests-len(took))/float64(o.Requests)
	if n := len(took); n > 0 {
		o.MeanMs, o.P99Ms = 1000*mean(took), 1000*took[min(n-1, n*99/100)]
	}
	return o
}

// requests are those of one service on its replicas.
type requests struct {
	seen    []answered
	lines   map[plan.JobID]*world.Line
	up      []answered // the replicas that answer now, by job
	turn    int
	waitSec float64
	atSec   float64
	of      *Window
	share   float64 // sum over the time
}

// arrive gives a request to the next replica in turn; without any it is lost.
func (q *requests) arrive(at float64) {
	for len(q.seen) > 0 && q.seen[0].fromSec <= at {
		q.change(q.seen[0])
		q.seen = q.seen[1:]
	}
	if len(q.up) > 0 {
		q.lines[q.up[q.turn%len(q.up)].job].Arrive(at)
		q.turn++
	}
}

// change has a replica answer otherwise. What waits at one that answers nobody any more
// waits until it does again.
func (q *requests) change(a answered) {
	q.pass(a.fromSec)
	l := q.lines[a.job]
	if l == nil {
		l = &world.Line{WaitSec: q.waitSec}
		q.lines[a.job] = l
	}
	l.Change(a.fromSec, a.how)
	i, there := slices.BinarySearchFunc(q.up, a.job, func(u answered, job plan.JobID) int { return cmp.Compare(u.job, job) })
	if there {
		q.up = slices.Delete(q.up, i, i+1)
	}
	if a.how.Largest() > 0 {
		q.up = slices.Insert(q.up, i, a)
		q.of.Batch = max(q.of.Batch, a.how.Largest())
	}
}

// pass counts the replicas that answered up to an instant, and what they had.
func (q *requests) pass(at float64) {
	for _, u := range q.up {
		part := (at - q.atSec) / window.Seconds()
		q.of.Replicas, q.share = q.of.Replicas+part, q.share+part*u.how.SharePercent
	}
	q.atSec = at
}

// end answers what can be answered, and returns how long each request took.
func (q *requests) end() (took []float64) {
	q.pass(window.Seconds())
	if q.of.Replicas > 0 {
		q.of.Share = q.share / q.of.Replicas
	}
	for _, job := range slices.Sorted(maps.Keys(q.lines)) {
		q.lines[job].Until(math.Inf(1))
		took = append(took, q.lines[job].TookSec...)
	}
	return took
}
