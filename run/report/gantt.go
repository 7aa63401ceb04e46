package report

import (
	"fmt"
	"hash/fnv"
	"html"
	"strings"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run/report/terminal"
)

const (
	ganttWidth  = 1140
	ganttLabels = 90 // the room for lane names
	ganttFoot   = 24
	ganttLanes  = 512 // more would be thinner than a line
)

// ganttSVG draws spans on lanes over time, a colour per job. It also says how
// many lanes it left out.
func ganttSVG(spans []Span, names []Lane) (svg string, lanesLeftOut int) {
	from, to, lanes := extent(spans)
	if lanes == 0 || to <= from {
		return "", 0
	}
	shown := min(lanes, ganttLanes)
	row := min(max(720/shown, 3), 22)
	height := shown * row
	x := func(at unit.Time) float64 {
		return ganttLabels + float64(at-from)/float64(to-from)*(ganttWidth-ganttLabels-10)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="gantt" role="img" aria-label="Devices over time" viewBox="0 0 %d %d">`, ganttWidth, height+ganttFoot)
	ticks := timeTicks(to.Sub(from).Seconds())
	for _, t := range ticks {
		at := x(from.Add(unit.Seconds(t.Value)))
		fmt.Fprintf(&b, `<path class="rule" d="M%.1f 0V%d"/>`, at, height)
		if t.Label != "" {
			fmt.Fprintf(&b, `<text class="mid" x="%.1f" y="%d">%s</text>`, at, height+16, t.Label)
		}
	}
	every := max(1, (12+row-1)/row) // labels must not overlap
	for lane := 0; lane < shown; lane += every {
		fmt.Fprintf(&b, `<text class="lane" x="%d" y="%.1f">%s</text>`, ganttLabels-8, float64(lane*row)+float64(row)/2+3.5,
			html.EscapeString(laneName(names, lane)))
	}
	for i := range spans {
		s := &spans[i]
		last := min(int(s.Lane+max(1, s.Lanes)), shown)
		if s.Lane < 0 || int(s.Lane) >= last {
			continue
		}
		fmt.Fprintf(&b, `<rect class="%s j%d" x="%.2f" y="%d" width="%.2f" height="%d"><title>%s</title></rect>`,
			s.Kind, jobColor(s.Job), x(s.From), int(s.Lane)*row, max(x(s.To)-x(s.From), 0.4),
			(last-int(s.Lane))*row-min(1, row/4), html.EscapeString(spanTitle(s, from)))
	}
	b.WriteString("</svg>")
	return b.String(), lanes - shown
}

// extent returns when the spans begin and end, and how many lanes they use.
func extent(spans []Span) (from, to unit.Time, lanes int) {
	from = unit.Never
	for i := range spans {
		from, to = min(from, spans[i].From), max(to, spans[i].To)
		lanes = max(lanes, int(spans[i].Lane+max(1, spans[i].Lanes)))
	}
	return from, to, lanes
}

func laneName(names []Lane, lane int) string {
	if lane >= len(names) {
		return fmt.Sprintf("device %d", lane)
	}
	if names[lane].Name == "" {
		return terminal.Cut(names[lane].Node, 15)
	}
	return terminal.Cut(names[lane].Node+"/"+names[lane].Name, 15)
}

// jobColor gives a job the same colour in every picture.
func jobColor(job string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(job))
	return h.Sum32() % palette
}

func spanTitle(s *Span, start unit.Time) string {
	title := fmt.Sprintf("%s\n%s from %s to %s (%s)", s.Job, s.Kind,
		timeText(s.From.Sub(start).Seconds()), timeText(s.To.Sub(start).Seconds()), timeText(s.To.Sub(s.From).Seconds()))
	if s.Reason != "" {
		title += "\n" + s.Reason
	}
	return title
}
