package supervise

import (
	"slices"
	"time"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run/trainer/progress"
)

// hostMeter tells how fast the protected job beside a guest goes, from the steps it
// reports, and how fast it went by itself, from its record.
type hostMeter struct {
	solo   float64 // steps per second; 0 is unknown
	asked  bool    // for solo
	tail   *progress.Tail
	parser progress.Parser
	step   int64 // latest reported
	marked int64 // step at the beginning of the present window
	since  time.Time
}

// window is how many steps a rate is taken over. Fewer would let where a window begins
// and ends look like a twentieth more or less, to which laws answer.
const window = 32

// measure returns the host's rate and its rate by itself, in thousandths of the
// latter; zeros where nobody knows. It has no news while a window is not over.
func (m *hostMeter) measure(dir string, now time.Time) (rate, solo unit.Milli, news bool) {
	if dir == "" {
		return 0, 0, true
	}
	if !m.asked {
		m.asked, m.solo = true, soloRate(dir)
		m.tail, m.since = progress.NewTail(ProgressPath(dir)), now
		m.read()
		m.marked = m.step
	}
	if alive, err := Alive(dir); m.solo == 0 || err != nil || !alive {
		return 0, 0, true
	}
	m.read()
	steps, span := m.step-m.marked, now.Sub(m.since).Seconds()
	// One more step may be as good as done: a host is slow for sure when even then it
	// has made less than half of what it would.
	if stuck := 2*float64(steps+1) < m.solo*span && m.solo*span > window; steps < window && !stuck {
		return 0, 0, false
	}
	m.marked, m.since = m.step, now
	return max(1, unit.Milli(1000*float64(steps)/span/m.solo)), unit.Whole, true
}

// read takes in what the host has reported since the last time.
func (m *hostMeter) read() {
	for {
		b, err := m.tail.Read()
		for _, e := range m.parser.Feed(b) {
			if e.Kind == progress.Step {
				m.step = e.Step
			}
		}
		if err != nil || len(b) == 0 {
			return
		}
	}
}

// soloRate is how many steps per second a worker made until now, by its record: of the
// rates from one entry to the next the median; 0 where it has told too little.
func soloRate(dir string) float64 {
	records, _, err := ReadRecords(dir, 0)
	if err != nil {
		return 0
	}
	var rates []float64
	var last Record
	for _, r := range records {
		if r.Kind != Progress || r.Report.Step == 0 {
			continue
		}
		steps, span := r.Report.Step-last.Report.Step, r.At.Sub(last.At).Seconds()
		if last.Report.Step > 0 && (steps < window || span <= 0) {
			continue // the next entry closes a longer window
		}
		if last.Report.Step > 0 {
			rates = append(rates, float64(steps)/span)
		}
		last = r
	}
	if len(rates) == 0 {
		return 0
	}
	slices.Sort(rates)
	return rates[len(rates)/2]
}
