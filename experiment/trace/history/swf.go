package history

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/musterdl/muster/model/unit"
)

// The columns of the Standard Workload Format, version 2.2, that are used; -1 is unknown in each.
const (
	swfNumber = iota
	swfSubmit
	swfWait
	swfRun
	swfProcessors
	_ // processor time
	_ // memory used
	swfAskedProcessors
	swfAskedTime
	swfAskedMemory // KiB of each processor
	swfStatus
	swfUser
	swfGroup
	swfApplication
	swfQueue
	swfPartition
	swfBefore
	swfThink
	swfColumns
)

func looksSWF(head []byte) bool {
	for line := range strings.SplitSeq(string(head), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == ';' {
			continue
		}
		cells := strings.Fields(line)
		_, err := strconv.ParseFloat(cells[0], 64)
		return err == nil && len(cells) == swfColumns
	}
	return false
}

func readSWF(h *History, in *bufio.Reader, _ func(string) (io.ReadCloser, error)) error {
	h.took("a processor for a device, and a job of n for n workers of one; the processors it got, else those it asked for")
	h.took("the requested time for the time limit, groups for tenants, applications for kinds of work")
	return lines(in, func(line int, text string) error {
		if text[0] == ';' {
			return nil
		}
		cells := strings.Fields(text)
		if len(cells) != swfColumns {
			h.wrong(line, "", fmt.Errorf("%d columns: expected the %d of the Standard Workload Format", len(cells), swfColumns))
			return nil
		}
		h.swfRow(line, cells)
		return nil
	})
}

var swfNames = [swfColumns]string{"job number", "submit time", "wait time", "run time", "allocated processors", "processor time", "used memory",
	"requested processors", "requested time", "requested memory", "status", "user", "group", "application", "queue", "partition", "preceding job", "think time"}

// swfFigure reads a cell.
func swfFigure(cell string) (float64, error) {
	x, ok := within(cell, -1, 1e12)
	if !ok {
		return -1, fmt.Errorf("%q: expected a number, or -1 where it is not known", cell)
	}
	return x, nil
}

func (h *History) swfRow(line int, cells []string) {
	w := row{line: line}
	var x [swfColumns]float64
	for i, cell := range cells {
		x[i] = read(&w, swfNames[i], cell, swfFigure)
	}
	processors := x[swfProcessors]
	if processors <= 0 {
		processors = x[swfAskedProcessors]
	}
	why := swfLeft(&x, processors)
	w.leave(why != "", why)
	w.want(processors <= 1_000_000, swfNames[swfProcessors], "more than 1000000: expected fewer")
	w.want(x[swfSubmit] >= 0, swfNames[swfSubmit], "-1: expected the time of submission")
	r := run{name: "job-" + cells[swfNumber], submit: unit.Time(unit.Seconds(x[swfSubmit])), start: unit.Never,
		ran: unit.Seconds(x[swfRun]), workers: int32(processors), devices: 1, share: unit.Whole,
		limit: unit.Seconds(max(0, x[swfAskedTime])), memory: unit.MiB(math.Ceil(max(0, x[swfAskedMemory]) / 1024))}
	if x[swfWait] >= 0 {
		r.start = r.submit.Add(unit.Seconds(x[swfWait]))
	}
	r.user, r.tenant = swfName("user", cells[swfUser]), swfName("group", cells[swfGroup])
	r.class = swfName("app", cells[swfApplication])
	if x[swfBefore] > 0 && !w.over() {
		h.swfAfter(&r, "job-"+cells[swfBefore])
	}
	h.keep(&w, r, false)
}

// swfLeft says why a row is no run of a job; "" of one that is.
func swfLeft(x *[swfColumns]float64, processors float64) string {
	status, ran := x[swfStatus], x[swfRun]
	switch {
	case status >= 2 && status <= 4:
		return "a part of a job that is there as a whole"
	case status == 5 && (ran < 0 || ran == 0 && x[swfProcessors] <= 0):
		return "cancelled before it started"
	case ran < 0:
		return "no run time"
	case processors <= 0:
		return "no number of processors"
	}
	return ""
}

// swfAfter has a job come after the one before it, where that ran.
func (h *History) swfAfter(r *run, before string) {
	at := h.names[before]
	if at == 0 {
		h.took("no order where the job before one is not in the log, or did not run")
		return
	}
	h.took("the preceding job for one that must have finished; think times are left out")
	r.after = at
}

func swfName(of, number string) string {
	if number == "-1" {
		return ""
	}
	return of + number
}
