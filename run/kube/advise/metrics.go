package advise

import "github.com/prometheus/client_golang/prometheus"

// collector makes metrics of an Advice at each scrape.
type collector struct{ get func() Advice }

// NewCollector returns metrics muster_advice_*, asked for at each scrape.
func NewCollector(get func() Advice) prometheus.Collector { return collector{get} }

var (
	worldly = []string{"world"}
	figure  = func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("muster_advice_"+name, help, labels, nil)
	}
	described = struct {
		jobs, compared, wait, jct, makespan, utilization, idle, partial, partialHeld, behind, preemptions, lost, heldOn, decided *prometheus.Desc
	}{
		jobs:        figure("jobs", "Jobs by what they do in either world.", "world", "state"),
		compared:    figure("compared_jobs", "Jobs that ended in both worlds, which the times are over."),
		wait:        figure("wait_seconds", "Waits of compared jobs: their mean, and quantiles.", "world", "quantile"),
		jct:         figure("completion_seconds", "Mean time from submission to end of compared jobs.", worldly...),
		makespan:    figure("makespan_seconds", "From the first submission to the last end of compared jobs.", worldly...),
		utilization: figure("utilization", "Granted over available device time.", worldly...),
		idle:        figure("idle_while_waiting_device_seconds", "Device time that nobody had while a job waited.", worldly...),
		partial:     figure("partial_gangs_total", "How often a gang really had some pods bound and others not for more than 10 s."),
		partialHeld: figure("partial_device_seconds", "Device time that partial gangs really held."),
		behind:      figure("behind_seconds", "How far the world in which Muster decides lies behind."),
		preemptions: figure("preemptions_total", "Preemptions that Muster would have made."),
		lost:        figure("lost_device_seconds", "Device time that Muster's preemptions would have cost."),
		heldOn:      figure("held_on_device_seconds", "Device time held only because the end of a job was not known in time."),
		decided:     figure("decisions_total", "Decisions that Muster would have made."),
	}
)

// Describe announces the metrics.
func (c collector) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, to) }

// Collect makes the metrics.
func (c collector) Collect(to chan<- prometheus.Metric) {
	r := c.get()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	count := func(d *prometheus.Desc, n int64) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n))
	}
	for _, w := range []struct {
		name             string
		f                *Figures
		waiting, running int
	}{{"real", &r.Real, r.Jobs.RealWaiting, r.Jobs.RealRunning}, {"ours", &r.Ours, r.Jobs.OursWaiting, r.Jobs.OursRunning}} {
		gauge(described.jobs, float64(w.waiting), w.name, "waiting")
		gauge(described.jobs, float64(w.running), w.name, "running")
		gauge(described.wait, w.f.AvgWaitSec, w.name, "mean")
		gauge(described.wait, w.f.P50WaitSec, w.name, "0.5")
		gauge(described.wait, w.f.P99WaitSec, w.name, "0.99")
		gauge(described.jct, w.f.AvgJCTSec, w.name)
		gauge(described.makespan, w.f.MakespanSec, w.name)
		gauge(described.utilization, w.f.Utilization, w.name)
		gauge(described.idle, 3600*w.f.IdleDeviceHours, w.name)
	}
	gauge(described.compared, float64(r.Jobs.Compared))
	gauge(described.behind, r.BehindSec)
	gauge(described.partialHeld, 3600*r.PartialDeviceHours)
	gauge(described.lost, 3600*r.LostDeviceHours)
	gauge(described.heldOn, 3600*r.HeldOnDeviceHours)
	count(described.partial, r.PartialGangs)
	count(described.preemptions, r.Preemptions)
	count(described.decided, r.Decided)
}
