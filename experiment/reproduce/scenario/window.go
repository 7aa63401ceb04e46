package scenario

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/strategies/serve/igniter"
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

// replicaAt is one replica at an instant: how it answers batches of every size.
type replicaAt struct {
	job   plan.JobID
	share float64
	// serve is how long a batch of so many requests keeps it busy, answer until they are
	// answered, both in seconds, from index 1.
	serve, answer []float64
}

// scene is the replicas from an instant on, in seconds of the window.
type scene struct {
	from     float64
	replicas []replicaAt
}

// watch looks on while the day runs: at what is granted, for its price, and at the
// replicas of one service in one window.
type watch struct {
	day     *Warm
	fitted  *igniter.Config
	count   *count
	now     unit.Time
	perSec  float64 // dollars, at present
	dollars float64
	index   int
	scenes  []scene
}

func newWatch(w *Warm, fitted *igniter.Config) *watch {
	rate := w.mix.streams[0].rate
	return &watch{day: w, fitted: fitted, count: newCount(w), now: w.at, index: slices.Index(rate, slices.Max(rate))}
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
	begin := w.day.at.Add(unit.Duration(w.index) * window)
	if w.fitted == nil || at < begin.Add(-window) || at >= begin.Add(window) {
		return
	}
	s := scene{from: max(0, at.Sub(begin).Seconds())}
	if n := len(w.scenes); n > 0 && w.scenes[n-1].from >= s.from {
		w.scenes = w.scenes[:n-1] // nobody saw it
	}
	for id := range plan.RunID(v.RunSlots()) {
		r := v.Run(id)
		if r.Job == plan.None || r.Status != plan.Running {
			continue
		}
		if service, ok := w.day.mix.replicaOf[v.Name(r.Job)]; ok && service == 0 {
			s.replicas = append(s.replicas, w.replica(v, id))
		}
	}
	slices.SortFunc(s.replicas, func(a, b replicaAt) int { return cmp.Compare(a.job, b.job) })
	w.scenes = append(w.scenes, s)
}

// replica says how a running replica answers, beside the other services on its device:
// by the fitted model. Guests get what others leave, and are not seen.
func (w *watch) replica(v plan.View, id plan.RunID) replicaAt {
	r := replicaAt{job: v.Run(id).Job}
	tenants := []igniter.Tenant{{}}
	v.GrantsOf(id, func(own plan.Grant) {
		tenants[0] = w.tenant(v, own)
		v.GrantsOn(own.Device, func(g plan.Grant) {
			if t := w.tenant(v, g); g.Run != id && t.Model != nil && v.Run(g.Run).Status == plan.Running {
				tenants = append(tenants, t)
			}
		})
	})
	r.share = tenants[0].SharePercent
	most := tenants[0].Batch
	r.serve, r.answer = make([]float64, most+1), make([]float64, most+1)
	for n := 1; n <= most; n++ {
		tenants[0].Batch = n
		each, _, _ := w.fitted.Device.Predict(tenants, nil)
		r.serve[n], r.answer[n] = float64(n)/each[0].PerSec, each[0].LatencyMs/1000
	}
	return r
}

// tenant is a replica as iGniter sees it; without a model where a run is none. One that
// others placed has the batch that iGniter would give it.
func (w *watch) tenant(v plan.View, g plan.Grant) igniter.Tenant {
	r := v.Run(g.Run)
	service, ok := w.day.mix.replicaOf[v.Name(r.Job)]
	if !ok {
		return igniter.Tenant{}
	}
	of := served3[service%len(served3)]
	i := slices.IndexFunc(w.fitted.Models, func(m igniter.Model) bool { return m.Name == of.class })
	t := igniter.Tenant{Model: &w.fitted.Models[i], Batch: int(r.Terms.Share.Batch), SharePercent: float64(g.Reserve) / 10}
	if t.Batch == 0 {
		t.Batch, _ = w.fitted.Device.Bound(igniter.Workload{Model: t.Model, SLOMs: 1000 * of.slo.Seconds(), RatePerSec: of.perSec})
	}
	return t
}

// window simulates the requests; nil where nothing is known of the models. Gaps between
// requests are gamma distributed with the window's rate and variation. Each request goes
// to the next replica in turn; a batch begins when it is full, or when its first request
// has waited half the objective, which is the half that iGniter leaves for that.
func (w *watch) window(seed uint64, up []float64) *Window {
	if w.fitted == nil {
		return nil
	}
	m, of := w.day.mix, served3[0]
	s := m.streams[0]
	o := &Window{Service: of.class, Index: w.index, RatePerSec: s.rate[w.index], CV: s.cv[w.index], SLOMs: 1000 * of.slo.Seconds(),
		JobScale: min(1, up[w.index]*of.perSec/s.rate[w.index])}
	q := requests{scenes: w.scenes, wait: of.slo.Seconds() / 2, queues: map[plan.JobID]*line{}}
	shape := 1 / math.Pow(max(0.01, o.CV), 2)
	gap := distuv.Gamma{Alpha: shape, Beta: shape * o.RatePerSec, Src: rand.NewPCG(seed, 21)}
	for at := gap.Rand(); at < window.Seconds(); at += gap.Rand() {
		o.Requests++
		q.arrive(at)
	}
	q.until(math.Inf(1))
	q.replicas(o)
	if o.Requests == 0 {
		o.Attainment = 1
		return o
	}
	slices.Sort(q.took)
	in, _ := slices.BinarySearch(q.took, math.Nextafter(of.slo.Seconds(), 1))
	o.Attainment, o.Unanswered = float64(in)/float64(o.Requests), float64(o.Requests-len(q.took))/float64(o.Requests)
	if n := len(q.took); n > 0 {
		o.MeanMs, o.P99Ms = 1000*mean(q.took), 1000*q.took[min(n-1, n*99/100)]
	}
	return o
}

// requests are those of one service on its replicas.
type requests struct {
	scenes []scene
	next   int // scene
	queues map[plan.JobID]*line
	order  []*line // of the present scene
	turn   int
	wait   float64
	took   []float64
}

// line is what waits at one replica, and when that is free again.
type line struct {
	at   []float64
	free float64
	replicaAt
}

// arrive gives a request to the next replica in turn; without any it is lost.
func (q *requests) arrive(at float64) {
	for q.next < len(q.scenes) && q.scenes[q.next].from <= at {
		q.change(q.scenes[q.next])
		q.next++
	}
	if len(q.order) == 0 {
		return
	}
	l := q.order[q.turn%len(q.order)]
	q.turn++
	q.serve(l, at)
	l.at = append(l.at, at)
}

// change puts other replicas in the place of those there were. What waits at one that is
// gone is lost.
func (q *requests) change(s scene) {
	q.until(s.from)
	before := q.queues
	q.queues, q.order = map[plan.JobID]*line{}, q.order[:0]
	for _, r := range s.replicas {
		l := before[r.job]
		if l == nil {
			l = &line{free: s.from}
		}
		l.replicaAt, q.queues[r.job] = r, l
		q.order = append(q.order, l)
	}
}

// until serves every line up to an instant.
func (q *requests) until(at float64) {
	for _, l := range q.order {
		q.serve(l, at)
	}
}

// serve begins the batches of a line that begin before an instant.
func (q *requests) serve(l *line, at float64) {
	most := len(l.serve) - 1
	for len(l.at) > 0 {
		ready := l.at[0] + q.wait
		if len(l.at) >= most {
			ready = min(ready, l.at[most-1])
		}
		begin := max(ready, l.free)
		if begin > at {
			return
		}
		n := 0
		for n < min(most, len(l.at)) && l.at[n] <= begin {
			n++
		}
		for _, came := range l.at[:n] {
			q.took = append(q.took, begin+l.answer[n]-came)
		}
		l.free, l.at = begin+l.serve[n], l.at[n:]
	}
}

// replicas averages what served over the window.
func (q *requests) replicas(o *Window) {
	share := 0.0
	for i, s := range q.scenes {
		until := window.Seconds()
		if i+1 < len(q.scenes) {
			until = q.scenes[i+1].from
		}
		for _, r := range s.replicas {
			part := (until - s.from) / window.Seconds()
			o.Replicas, share = o.Replicas+part, share+part*r.share
			o.Batch = max(o.Batch, len(r.serve)-1)
		}
	}
	if o.Replicas > 0 {
		o.Share = share / o.Replicas
	}
}
