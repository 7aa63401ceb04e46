package driver

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterdl/muster/run/kube/api"
)

// metrics are what a Driver counts.
type metrics struct {
	bound prometheus.Histogram
	calls *prometheus.CounterVec
	tasks *prometheus.GaugeVec
}

func newMetrics() *metrics {
	return &metrics{
		bound: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "muster_kube_pod_bound_seconds",
			Help:    "Time from a pod's creation to its binding, waiting in the queue included.",
			Buckets: []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200, 86400}}),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "muster_kube_calls_total",
			Help: "Calls to the API server, by what waits for them and how they went."}, []string{"lane", "result"}),
		tasks: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "muster_kube_tasks",
			Help: "Calls to the API server that wait or are under way."}, []string{"lane"}),
	}
}

// Collectors are the driver's metrics, to be registered.
func (d *Driver) Collectors() []prometheus.Collector {
	return []prometheus.Collector{d.metrics.bound, d.metrics.calls, d.metrics.tasks}
}

var laneNames = [Lanes]string{"binding", "keeping", "telling"}

// called counts a call.
func (m *metrics) called(lane Lane, err error) {
	result := "done"
	switch {
	case err == nil:
	case api.IsTransient(err):
		result = "transient"
	case api.IsConflict(err):
		result = "conflict"
	case api.IsRefused(err):
		result = "refused"
	case api.IsGone(err):
		result = "gone"
	default:
		result = "wrong"
	}
	m.calls.WithLabelValues(laneNames[lane], result).Inc()
}
