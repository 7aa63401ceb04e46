package view

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/musterdl/muster/run/report/terminal"
)

// TextOptions are terminal's.
type TextOptions = terminal.Options

// styleOf colours the words that say how things stand.
func styleOf(word string) terminal.Style {
	switch word {
	case "active", "running", "finished", "up":
		return terminal.Green
	case "failed", "refused", "down", "lost", "quarantined":
		return terminal.Red
	case "held", "backoff", "cordoned", "suspended", "stopping":
		return terminal.Yellow
	}
	return ""
}

// table is rows of cells under a head; the last column takes what is left of a line.
type table struct {
	head []string
	rows [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// drop leaves out a column.
func (t *table) drop(column int) {
	t.head = slices.Delete(t.head, column, column+1)
	for i := range t.rows {
		t.rows[i] = slices.Delete(t.rows[i], column, column+1)
	}
}

func (t *table) write(w io.Writer, o TextOptions) error {
	widths := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], terminal.Columns(cell))
		}
	}
	var b bytes.Buffer
	last := len(t.head) - 1
	line := func(row []string, style func(cell string) terminal.Style) {
		used := 0
		for i, cell := range row {
			if i == last {
				if o.Width > 0 {
					cell = terminal.Cut(cell, max(8, o.Width-used))
				}
				b.WriteString(o.Paint(style(cell), cell))
				break
			}
			b.WriteString(o.Paint(style(cell), cell))
			if i < last-1 || row[last] != "" {
				b.WriteString(strings.Repeat(" ", widths[i]-terminal.Columns(cell)+2))
			}
			used += widths[i] + 2
		}
		b.WriteByte('\n')
	}
	line(t.head, func(string) terminal.Style { return terminal.Bold })
	for _, row := range t.rows {
		line(row, styleOf)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// WriteJobs writes a table of jobs.
func WriteJobs(w io.Writer, jobs []Job, o TextOptions) error {
	if len(jobs) == 0 {
		_, err := fmt.Fprintln(w, "no jobs")
		return err
	}
	t := table{head: []string{"JOB", "QUEUE", "PHASE", "DEVICES", "WAITED", "RAN", "DONE", "LOSS", "DEADLINE", "WHERE OR WHY"}}
	queues := slices.ContainsFunc(jobs, func(j Job) bool { return j.Queue != "" })
	due := slices.ContainsFunc(jobs, func(j Job) bool { return j.Due != nil })
	for i := range jobs {
		j := &jobs[i]
		at := j.Reason
		if len(j.Where) > 0 {
			at = placeText(j.Where)
		}
		t.add(j.Name, shownQueue(j.Queue), j.State(), number(j.Devices), SpanSec(j.WaitedSec), SpanSec(j.RanSec), percent(j.Progress), lossText(j.LastLoss), j.Due.brief(), at)
	}
	if !due {
		t.drop(8)
	}
	if !queues {
		t.drop(1)
	}
	return t.write(w, o)
}

// WriteJob writes all there is to say about a job.
func WriteJob(w io.Writer, j *Job, o TextOptions) error {
	var b bytes.Buffer
	row := func(name, value string) {
		if value != "" && value != "-" {
			fmt.Fprintf(&b, "%s %s\n", o.Paint(terminal.Dim, fmt.Sprintf("%-11s", name)), value)
		}
	}
	fmt.Fprintf(&b, "%s (job %d)\n", o.Paint(terminal.Bold, j.Name), j.ID)
	row("phase", o.Paint(styleOf(j.State()), j.State())+"  "+j.Reason)
	row("where", placeText(j.Where))
	who := j.User
	if j.Tenant != "" {
		who += " of " + j.Tenant
	}
	row("owner", who)
	row("queue", j.Queue)
	row("plan", j.Pipeline.text())
	for i, line := range j.Reaction.lines() {
		row([...]string{"reaction", ""}[min(i, 1)], line)
	}
	row("asks for", fmt.Sprintf("%s, %s", devices(j.Devices), count(int(j.Gang), "worker", "workers")))
	row("after", strings.Join(j.After, ", "))
	row("command", strings.Join(j.Command, " "))
	row("directory", j.Dir)
	row("submitted", timeText(j.Submitted))
	row("started", timeText(j.Started))
	row("ended", timeText(j.Ended))
	row("waited", SpanSec(j.WaitedSec))
	ran := SpanSec(j.RanSec)
	if j.EstimateSec > 0 {
		ran += " of an expected " + SpanSec(j.EstimateSec)
	}
	if j.LeftSec > 0 {
		ran += ", about " + nearest(j.LeftSec) + " left"
	}
	row("ran", ran)
	if d := j.Due; d != nil {
		row("deadline", timeText(d.Deadline)+", "+d.Words)
	}
	row("done", percent(j.Progress))
	if j.FirstLoss != 0 || j.LastLoss != 0 {
		row("loss", lossText(j.FirstLoss)+" at first, "+lossText(j.LastLoss)+" at last")
	}
	row("attempt", fmt.Sprintf("%d (%s, %s)", j.Attempt, count(int(j.Preemptions), "preemption", "preemptions"), count(int(j.Restarts), "restart", "restarts")))
	row("saving", j.Saving)
	if f := j.Failure; f != nil {
		row("failed", fmt.Sprintf("attempt %d (%s): %s", f.Attempt, f.Class, f.Words))
		f.WriteLastLines(&b, o)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// WriteSteps writes a dossier.
func WriteSteps(w io.Writer, s *Steps, o TextOptions) error {
	var b bytes.Buffer
	if len(s.Decisions) == 0 {
		fmt.Fprintf(&b, "%s: nothing was decided yet\n", s.Job)
	}
	for i := range s.Decisions {
		d := &s.Decisions[i]
		fmt.Fprintf(&b, "%s  %s, attempt %d: %s\n", timeText(d.At), o.Paint(terminal.Bold, d.Verb), d.Attempt, d.Reason)
		if len(d.Steps) == 0 {
			continue
		}
		t := table{head: []string{"  STEP", "CHOSE", "REJECTED", "BECAUSE"}}
		for _, step := range d.Steps {
			t.add(fmt.Sprintf("  %d %s", step.Number, step.Name), step.Chose, step.Rejected, step.Because)
		}
		if err := t.write(&b, o); err != nil {
			return err
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// WriteNodes writes a table of nodes.
func WriteNodes(w io.Writer, nodes []Node, o TextOptions) error {
	t := table{head: []string{"NODE", "STATUS", "MODEL", "FREE", "DEVICES", "CORES FREE", "MAINTENANCE", "HELD BY"}}
	windows := false
	for i := range nodes {
		n := &nodes[i]
		windows = windows || len(n.Windows) > 0
		t.add(n.Name, n.Status, n.Model, number(n.Free), fmt.Sprint(len(n.Devices)), number(n.FreeCPU), maintenance(n), holders(n))
	}
	if !windows {
		t.drop(6)
	}
	return t.write(w, o)
}

// holders lists who is on a node, with the devices of each.
func holders(n *Node) string {
	by := map[string][]int32{}
	for _, d := range n.Devices {
		for _, h := range d.Holders {
			by[h.Job] = append(by[h.Job], d.ID)
		}
		if d.Status != "steady" {
			by["("+d.Status+")"] = append(by["("+d.Status+")"], d.ID)
		}
	}
	var parts []string
	for _, job := range slices.Sorted(maps.Keys(by)) {
		parts = append(parts, job+":"+ranges(by[job]))
	}
	return strings.Join(parts, " ")
}

// WriteCluster writes the summary.
func WriteCluster(w io.Writer, c *Cluster, o TextOptions) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s, decided by %s\n", o.Paint(terminal.Bold, c.Name), c.Strategy)
	d := &c.Devices
	fmt.Fprintf(&b, "devices  %s: %s granted, %s free", number(d.Total), number(d.Granted), number(d.Free))
	if d.Closed > 0 {
		fmt.Fprintf(&b, ", %s on closed nodes", number(d.Closed))
	}
	if d.Lost > 0 {
		fmt.Fprintf(&b, ", %s", o.Paint(terminal.Red, number(d.Lost)+" lost"))
	}
	fmt.Fprintf(&b, "\nnodes    %s\njobs     %s\n", Counts(c.Nodes), Counts(c.States))
	if q := &c.Queue; q.Waiting > 0 {
		fmt.Fprintf(&b, "queue    %s for %s; %s has waited %s\n", count(q.Waiting, "job waits", "jobs wait"), devices(q.Devices), q.Oldest, SpanSec(q.OldestSec))
	}
	if c.NotHeld != "" {
		fmt.Fprintf(&b, "limits   %s\n", c.NotHeld)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// Counts lists how many there are of each: "1 held, 2 waiting".
func Counts(by map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(by)) {
		if by[name] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", by[name], name))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}
