package view

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run/report/terminal"
)

// allQueues is what people are shown as the name of the root.
const allQueues = "(all)"

func shownQueue(name string) string {
	if name == "" {
		return allQueues
	}
	return name
}

func orNone(devices float64) string {
	if devices < 0 {
		return "-"
	}
	return number(devices)
}

func hours(x float64) string { return strconv.FormatFloat(x, 'f', 3, 64) }

// WriteShares writes a table of queues, and how each comes to what it deserves.
func WriteShares(w io.Writer, s *Shares, o TextOptions) error {
	t := table{head: []string{"QUEUE", "GUARANTEE", "LIMIT", "WANTS", "DESERVES", "USES", "BORROWED", "AT RISK", "LENT", "PAST", "TURN", "RUNNING", "WAITING"}}
	row := func(name string, a *Amounts, rest ...string) {
		t.add(append([]string{name, number(a.Guarantee), orNone(a.Limit), number(a.Wanted), number(a.Deserved), number(a.Used),
			number(a.Borrowed), number(a.AtRisk), number(a.Lent)}, rest...)...)
	}
	for i := range s.Queues {
		q := &s.Queues[i]
		row(shownQueue(q.Name), &q.Amounts, hours(q.PastHours), strconv.Itoa(int(q.Turn)), strconv.Itoa(q.Running), strconv.Itoa(q.Waiting))
		for k := range q.ByModel {
			row("  "+q.ByModel[k].Model, &q.ByModel[k].Amounts, "", "", "", "")
		}
	}
	if err := t.write(w, o); err != nil {
		return err
	}
	var b bytes.Buffer
	past := "past use does not count here"
	if s.HalfLifeSec > 0 {
		past = "past use is in device-hours, of which half is forgotten every " + SpanSec(s.HalfLifeSec)
	}
	fmt.Fprintf(&b, "\nAmounts are devices, those of the queues below included; %s.\n", past)
	for i := range s.Queues {
		fmt.Fprintf(&b, "%s: %s\n", o.Paint(terminal.Bold, shownQueue(s.Queues[i].Name)), s.Queues[i].Arithmetic)
	}
	for i := range s.Queues {
		if q := &s.Queues[i]; q.InPieces > 0 {
			fmt.Fprintf(&b, "%s: its guarantee cannot be met in one piece: a job of it wants %s devices; as many are free, but scattered\n", shownQueue(q.Name), number(q.InPieces))
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// WriteAccounts writes the books, and whether they balance.
func WriteAccounts(w io.Writer, a *Accounts, o TextOptions) error {
	t := table{head: []string{"TENANT", "USER", "MODEL", "QUEUE", "DEVICE-HOURS", "HOLDS", "PAST"}}
	for i := range a.Accounts {
		x := &a.Accounts[i]
		tenant := x.Tenant
		if tenant == "" {
			tenant = "-"
		}
		t.add(tenant, x.User, x.Model, shownQueue(x.Queue), hours(x.DeviceHours), number(x.Held), hours(x.PastHours))
	}
	t.add("total", "", "", "", hours(a.Total.DeviceHours), "", "")
	if err := t.write(w, o); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, a.Balance)
	return err
}

// WriteQueues writes a tree of queues.
func WriteQueues(w io.Writer, tree *queue.Tree, o TextOptions) error {
	if len(tree.Queues) == 0 {
		_, err := fmt.Fprintln(w, "there is one queue, which all jobs are in; muster queues set FILE makes more")
		return err
	}
	t := table{head: []string{"QUEUE", "WEIGHT", "PRIORITY", "GUARANTEE", "LIMIT", "KEEPS", "BORROWS", "PER USER", "LONGEST RUN", "PREEMPTS"}}
	for i := range tree.Queues {
		q := &tree.Queues[i]
		longest, preempts := "-", "no"
		if q.MaxRun > 0 {
			longest = Span(q.MaxRun)
		}
		if q.Preempt {
			preempts = "by priority"
		}
		t.add(shownQueue(q.Name), number(whole(q.Weight)), strconv.Itoa(int(q.Priority)), amountsText(q.Guarantee), amountsText(q.Limit), amountsText(q.Keep),
			amountsText(q.Borrow), amountsText(q.UserLimit), longest, preempts)
	}
	if err := t.write(w, o); err != nil {
		return err
	}
	forgets := "past use does not count"
	if tree.HalfLife > 0 {
		forgets = fmt.Sprintf("half of past use is forgotten every %s", Span(tree.HalfLife))
	}
	budget := "as often as it takes"
	if tree.Disruptions > 0 {
		budget = fmt.Sprintf("at most %d times a day", tree.Disruptions)
	}
	_, err := fmt.Fprintf(w, "\n%s; a run is left alone for %s, and displaced for priority %s\n", forgets, Span(tree.Protect), budget)
	return err
}

func amountsText(list []queue.Amount) string {
	if len(list) == 0 {
		return "-"
	}
	parts := make([]string, len(list))
	for i, a := range list {
		parts[i] = unit.Milli(a.Milli).String()
		if a.Model != "" {
			parts[i] += " " + a.Model
		}
	}
	return strings.Join(parts, ", ")
}

// WriteCalendar writes what occupies nodes and what is planned.
func WriteCalendar(w io.Writer, c *Calendar, o TextOptions) error {
	if len(c.Entries) == 0 {
		_, err := fmt.Fprintln(w, "nothing runs, nothing is reserved, and no maintenance is planned")
		return err
	}
	t := table{head: []string{"WHAT", "JOB", "QUEUE", "DEVICES", "NODES", "FROM", "TO", "BECAUSE"}}
	const some = 4
	for i := range c.Entries {
		e := &c.Entries[i]
		nodes := strings.Join(e.Nodes[:min(some, len(e.Nodes))], " ")
		if more := len(e.Nodes) - some; more > 0 {
			nodes += fmt.Sprintf(" and %d more", more)
		}
		t.add(e.Kind, dash(e.Job), dash(e.Queue), number(e.Devices), nodes, momentText(e.FromUs, c.NowUs), momentText(e.ToUs, c.NowUs), e.Words)
	}
	return t.write(w, TextOptions{Color: o.Color}) // the words are worth a second line
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// momentText is a time of day with how far it is away.
func momentText(us, now int64) string {
	if us < 0 {
		return "unknown"
	}
	away, layout := float64(us-now)/1e6, "15:04"
	if max(away, -away) >= 12*3600 {
		layout = "01-02 15:04"
	}
	text := time.UnixMicro(us).Local().Format(layout)
	switch {
	case away >= 1:
		return text + " (in " + SpanSec(away) + ")"
	case away <= -1:
		return text + " (" + SpanSec(-away) + " ago)"
	}
	return "now"
}

// maintenance says when a node is closed.
func maintenance(n *Node) string {
	var parts []string
	for _, w := range n.Windows {
		to := time.UnixMicro(w.ToUs).Local().Format("01-02 15:04")
		if w.Open {
			parts = append(parts, "until "+to)
		} else {
			parts = append(parts, time.UnixMicro(w.FromUs).Local().Format("01-02 15:04")+" to "+to)
		}
	}
	return dash(strings.Join(parts, ", "))
}
