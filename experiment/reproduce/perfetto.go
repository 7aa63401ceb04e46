package reproduce

import (
	"io"

	"github.com/musterdl/muster/run/report"
)

// Perfetto writes the runs and the queue of an outcome as a Chrome trace.
func (o *Outcome) Perfetto(w io.Writer) error {
	p := report.NewPerfetto(w)
	p.Begin(o.Lanes())
	v := o.Collector.View()
	for _, s := range v.Spans {
		p.Span(s)
	}
	for _, q := range v.Queue {
		p.Counter(q.At, "waiting jobs", q.Mean)
	}
	for _, b := range v.Share {
		p.Counter(b.At, "granted share of devices", b.Mean)
	}
	return p.Close()
}
