package server

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/plan"
)

// How the plane is judged by its metrics.
const (
	scrapeTime   = time.Second     // to wait for the plane
	watchdogTime = 5 * time.Second // without an answer, the plane hangs
)

// metrics are what /metrics shows. What the plane knows is asked for at each scrape.
type metrics struct {
	reader   *reader
	registry *prometheus.Registry
	requests *prometheus.HistogramVec
	desc     descriptions
}

// descriptions are of the metrics that are made at a scrape.
type descriptions struct {
	commit, batches, events, commits, jobs, devices, nodes, queue, age, watchdog, started *prometheus.Desc
}

func newMetrics(rd *reader, others []prometheus.Collector) *metrics {
	describe := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("muster_"+name, help, labels, nil)
	}
	m := &metrics{reader: rd, registry: prometheus.NewRegistry(),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "muster_http_request_seconds",
			Help:    "Time to answer a request.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10}}, []string{"method", "route", "status"}),
		desc: descriptions{
			commit:   describe("commit_latency_seconds", "Time to make a batch durable; the quantiles are of the latest 1,024."),
			batches:  describe("batches_total", "Batches made durable since the start."),
			events:   describe("events_total", "Events taken in since the start, those of the journal that was read back too."),
			commits:  describe("commits_total", "Commits made since the start, likewise."),
			jobs:     describe("jobs", "Jobs by phase.", "phase"),
			devices:  describe("devices", "Devices by what they are doing.", "state"),
			nodes:    describe("nodes", "Nodes by status.", "status"),
			queue:    describe("queue_devices", "Devices that the waiting jobs ask for."),
			age:      describe("answer_age_seconds", "Age of the state that these answers are from."),
			watchdog: describe("watchdog_ok", "1 while the control plane answers, 0 when it has not for 5 seconds."),
			started:  describe("start_time_seconds", "When the control plane started, since the Unix epoch."),
		}}
	m.registry.MustRegister(m, m.requests, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.registry.MustRegister(others...)
	return m
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// request counts a request by the route that answered it, never by its path: names
// of jobs must not become labels.
func (m *metrics) request(r *http.Request, status int, took time.Duration) {
	route := r.Pattern
	if route == "" {
		route = "none"
	}
	m.requests.WithLabelValues(r.Method, route, strconv.Itoa(status)).Observe(took.Seconds())
}

// Describe announces the metrics that Collect makes.
func (m *metrics) Describe(c chan<- *prometheus.Desc) {
	d := &m.desc
	for _, desc := range []*prometheus.Desc{d.commit, d.batches, d.events, d.commits, d.jobs, d.devices, d.nodes, d.queue, d.age, d.watchdog, d.started} {
		c <- desc
	}
}

// Collect asks the plane. One that does not answer has nothing to say but that.
func (m *metrics) Collect(c chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	var cluster view.Cluster
	var stats plane.Stats
	err := m.reader.ask(ctx, func(v plan.View) {
		cluster, stats = m.reader.cluster(v), m.reader.plane.Stats()
		stats.CommitSec = slices.Clone(stats.CommitSec) // the plane goes on writing there
	})
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		c <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	silent := time.Since(time.UnixMicro(m.reader.answered.Load()))
	alive := 0.0
	if err == nil || silent < watchdogTime {
		alive = 1
	}
	gauge(m.desc.watchdog, alive)
	if err != nil {
		gauge(m.desc.age, silent.Seconds())
		return
	}
	gauge(m.desc.age, max(0, time.Since(cluster.At).Seconds()))
	gauge(m.desc.started, stats.Started.Seconds())
	for d, n := range map[*prometheus.Desc]int64{m.desc.batches: stats.Batches, m.desc.events: stats.Events, m.desc.commits: stats.Commits} {
		c <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n))
	}
	slices.Sort(stats.CommitSec)
	quantiles := map[float64]float64{}
	for _, q := range []float64{0.5, 0.9, 0.99, 1} {
		if n := len(stats.CommitSec); n > 0 {
			quantiles[q] = stats.CommitSec[min(n-1, int(q*float64(n)))]
		}
	}
	c <- prometheus.MustNewConstSummary(m.desc.commit, uint64(stats.Batches), stats.CommitSumSec, quantiles)
	for p := range plan.Refused + 1 {
		gauge(m.desc.jobs, float64(cluster.Jobs[p.String()]), p.String())
	}
	for status := range plan.Coming + 1 {
		gauge(m.desc.nodes, float64(cluster.Nodes[status.String()]), status.String())
	}
	d := &cluster.Devices
	for state, n := range map[string]float64{"granted": d.Granted, "free": d.Free, "closed": d.Closed, "lost": d.Lost} {
		gauge(m.desc.devices, n, state)
	}
	gauge(m.desc.queue, cluster.Queue.Devices)
}
