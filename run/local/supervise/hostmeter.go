package supervise

import (
	"math"
	"time"

	"github.com/musterdl/muster/mechanism/control"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run/trainer/progress"
)

// hostMeter tells how fast the protected job beside a guest goes, from the steps it
// reports, and how fast it went by itself, from its record.
type hostMeter struct {
	solo   control.Pace // zero is unknown
	asked  bool         // for solo
	tail   *progress.Tail
	parser progress.Parser
	steps  control.Blocks
	blocks []control.Block // of the present window
	step   int64           // latest reported
	marked int64           // step at the beginning of the present window
	since  time.Time
}

// window is how many steps a rate is taken over, and windowBlocks into how many these are cut, so that
// what they differ by tells how sure the rate is.
const window, windowBlocks = 32, 8

// measure returns the most that the host's rate may be, in thousandths of the least that its rate
// by itself was, so that a law answers to what is sure and not to noise; zeros where nobody
// knows. It has no news while a window is not over.
func (m *hostMeter) measure(dir string, now time.Time) (rate, solo unit.Milli, news bool) {
	if dir == "" {
		return 0, 0, true
	}
	if !m.asked {
		m.asked, m.solo = true, soloPace(dir)
		m.tail, m.since = progress.NewTail(ProgressPath(dir)), now
		m.steps = control.Blocks{Steps: window / windowBlocks}
		m.readSteps()
		m.marked, m.blocks = m.step, nil
	}
	if alive, err := Alive(dir); m.solo.Least == 0 || err != nil || !alive {
		return 0, 0, true
	}
	m.readSteps()
	steps, span := m.step-m.marked, now.Sub(m.since).Seconds()
	// One more step may be as good as done: a host is slow for sure when even then it
	// has made less than half of what it would.
	stuck := 2*float64(steps+1) < m.solo.Is*span && m.solo.Is*span > window
	most := float64(steps) / span
	switch {
	case stuck:
	case len(m.blocks) < windowBlocks:
		return 0, 0, false
	default:
		most = control.PaceOf(m.blocks).Most
	}
	m.marked, m.since, m.blocks = m.step, now, nil
	return max(1, unit.Milli(math.Round(1000*most/m.solo.Least))), unit.Whole, true
}

// readSteps takes in what the host has reported since the last time.
func (m *hostMeter) readSteps() {
	for m.tail != nil {
		b, err := m.tail.Read()
		events := m.parser.Feed(b)
		for _, e := range events {
			if e.Kind == progress.Step {
				m.step = e.Step
			}
		}
		if block, ok := lastStep(events, m.tail, &m.steps); ok {
			m.blocks = append(m.blocks, block)
		}
		if err != nil || len(b) == 0 {
			return
		}
	}
}

// soloPace is how fast a worker went until now, by the blocks in its record.
func soloPace(dir string) control.Pace {
	records, _, err := ReadRecords(dir, 0)
	if err != nil {
		return control.Pace{}
	}
	var blocks []control.Block
	for i := range records {
		blocks = append(blocks, records[i].Blocks...)
	}
	return control.PaceOf(blocks)
}
