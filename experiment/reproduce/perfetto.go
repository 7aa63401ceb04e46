package reproduce

import (
	"github.com/musterdl/muster/run/report"
)

// trace begins a Chrome trace of the runs of a simulation that is yet to come; nil
// where none is wanted.
func (w *Watching) trace(lanes []report.Lane) *report.Perfetto {
	if w.Perfetto == nil {
		return nil
	}
	p := report.NewPerfetto(w.Perfetto)
	p.Begin(lanes)
	return p
}

// ended adds what was counted of the cluster to a trace, and closes it.
func (o *Outcome) ended(p *report.Perfetto) error {
	v := o.Collector.View()
	for _, q := range v.Queue {
		p.Counter(q.At, "waiting jobs", q.Mean)
	}
	for _, b := range v.Share {
		p.Counter(b.At, "granted share of devices", b.Mean)
	}
	return p.Close()
}
