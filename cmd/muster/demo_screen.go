package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/musterdl/muster/internal/view"
)

// screen shows the demonstration: redrawn in place on a terminal, else a line for
// every job whose phase changed, and what the script does.
type screen struct {
	height int // lines drawn last
	said   []string
	phases map[string]string
}

// say adds a line about what the script does.
func (d *demo) say(line string) {
	line = fmt.Sprintf("[%5.1fs] %s", time.Since(d.began).Seconds(), line)
	if d.tty {
		d.screen.said = append(d.screen.said, line)
		return
	}
	fmt.Fprintln(d.out, line)
}

// draw shows the jobs and devices as they stand.
func (s *screen) draw(d *demo, jobs []view.Job, nodes []view.Node) {
	if !d.tty {
		s.changes(d, jobs)
		return
	}
	var b strings.Builder
	if s.height > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\x1b[J", s.height)
	}
	frame := s.frame(d, jobs, nodes)
	b.WriteString(frame)
	s.height = strings.Count(frame, "\n")
	io.WriteString(d.out, b.String())
}

// frame is one picture: devices, jobs, and the script's last lines.
func (s *screen) frame(d *demo, jobs []view.Job, nodes []view.Node) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%5.1fs  ", time.Since(d.began).Seconds())
	for _, n := range nodes {
		for _, dev := range n.Devices {
			fmt.Fprintf(&b, "[%d %s] ", dev.ID, holders(dev))
		}
	}
	b.WriteString("\n\n")
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "JOB\tPHASE\tPROGRESS\tLOSS\tWHY")
	for i := range jobs {
		j := &jobs[i]
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", j.Name, j.State(), bar(j.Progress), losses(j), clip(j.Reason, max(20, width()-70)))
	}
	t.Flush()
	b.WriteString("\n")
	for _, line := range s.said[max(0, len(s.said)-5):] {
		fmt.Fprintln(&b, clip(line, width()-1))
	}
	return b.String()
}

// changes prints a line for every job whose phase or run changed.
func (s *screen) changes(d *demo, jobs []view.Job) {
	if s.phases == nil {
		s.phases = map[string]string{}
	}
	for i := range jobs {
		j := &jobs[i]
		phase := j.Phase
		if j.Run != "" {
			phase = fmt.Sprintf("%s (attempt %d)", j.Run, j.Attempt)
		}
		if s.phases[j.Name] == phase {
			continue
		}
		s.phases[j.Name] = phase
		d.say(fmt.Sprintf("%-9s %-21s %s %s  %s", j.Name, phase, bar(j.Progress), losses(j), j.Reason))
	}
}

func holders(dev view.Device) string {
	if len(dev.Holders) == 0 {
		return "-"
	}
	var names []string
	for _, h := range dev.Holders {
		name := h.Job
		if h.Share < 1 {
			name = fmt.Sprintf("%s %g", h.Job, h.Share)
		}
		names = append(names, name)
	}
	return strings.Join(names, "+")
}

func bar(progress float64) string {
	const cells = 12
	full := int(progress*cells + 0.5)
	return strings.Repeat("█", full) + strings.Repeat("░", cells-full) + fmt.Sprintf(" %3.0f%%", progress*100)
}

func losses(j *view.Job) string {
	if j.FirstLoss == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f→%.2f", j.FirstLoss, j.LastLoss)
}

func clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// demoTable is the account at the end.
func demoTable(w io.Writer, jobs []view.Job) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "JOB\tWORKERS\tWAITED\tRAN\tPREEMPTIONS\tRESTARTS\tFIRST LOSS\tLAST LOSS\tJCT\t")
	for i := range jobs {
		j := &jobs[i]
		jct := j.Ended.Sub(j.Submitted).Seconds()
		fmt.Fprintf(t, "%s\t%d\t%.1fs\t%.1fs\t%d\t%d\t%.3f\t%.3f\t%.1fs\t\n", j.Name, j.Gang, j.WaitedSec, jct-j.WaitedSec,
			j.Preemptions, j.Restarts, j.FirstLoss, j.LastLoss, jct)
	}
	return t.Flush()
}
