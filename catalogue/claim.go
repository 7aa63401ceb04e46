package catalogue

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/musterdl/muster/model/strategy"
)

// Measure runs an experiment that is no simulation of jobs and returns named figures.
// Files are opened by their path in the folder of published data.
type Measure func(open func(path string) (io.ReadCloser, error), seed uint64) (map[string]float64, error)

// claims gives an entry its claim (experiment/reproduce/CLAIMS.md) and, for one of kind measure,
// the function that measures, in either of its two forms.
func (e Entry) claims(claim []byte, measure any) Entry {
	e.Claim = claim
	switch m := measure.(type) {
	case nil:
	case func(seed uint64) map[string]float64:
		e.Measure = func(_ func(string) (io.ReadCloser, error), seed uint64) (map[string]float64, error) {
			return m(seed), nil
		}
	case func(open func(path string) (io.ReadCloser, error), seed uint64) (map[string]float64, error):
		e.Measure = m
	default:
		panic(fmt.Sprintf("catalogue: the Measure of %s is a %T", e.Name, measure))
	}
	return e
}

// Ground is an entry of something that strategies go by and none of them decides, with the experiment that holds
// it against what was measured.
func Ground(d strategy.Description, claim []byte, measure any) Entry {
	return Entry{Description: d}.claims(claim, measure)
}

// Finding is one metric of a claim, as it was found. With --json a list of them is
// printed, and docs/claims.json keeps those of the last full run.
type Finding struct {
	Name      string `json:"name"`     // of the claim
	Strategy  string `json:"strategy"` // the entry that makes it
	System    string `json:"system"`
	Step      string `json:"step"`
	Metric    string `json:"metric"`
	Published string `json:"published"`
	// Measured is the mean over the seeds, or a ratio of two means over the same seeds;
	// nothing where it was skipped.
	Measured *float64 `json:"measured,omitempty"`
	// Interval is the low and the high end of the 95 % interval of Measured, where
	// there are seeds enough for one.
	Interval []float64 `json:"interval,omitempty"`
	// Low and High are the accepted band; a metric without is only reported.
	Low  *float64 `json:"low,omitempty"`
	High *float64 `json:"high,omitempty"`
	// BandFrom says where the band comes from; empty where there is none.
	BandFrom string `json:"band_from,omitempty"`
	// By says what decided the figure: the whole engine with the registered strategy, or a
	// kernel of the strategy called alone.
	By      string `json:"by,omitempty"`
	Holds   bool   `json:"holds"`
	Verdict string `json:"verdict"` // holds, open, missed, reported or skipped
	Note    string `json:"note,omitempty"`
	Seeds   int    `json:"seeds"`
	// WallSec is what the whole experiment of the claim took.
	WallSec float64 `json:"wall_s"`
}

// The verdicts on a metric.
const (
	Holds    = "holds"
	Open     = "open" // of a quick run: its interval has values inside the band and outside
	Missed   = "missed"
	Reported = "reported" // there is no band
	Skipped  = "skipped"
)

// What decides a figure.
const (
	ByEngine = "engine" // the registered strategy; it decides, the driver acts
	ByKernel = "kernel" // a function of the strategy's package, called by Measure
)

// Band writes an accepted band: "0.5 to 0.75", "at most 0.75".
func (f *Finding) Band() string {
	switch {
	case f.Low != nil && f.High != nil:
		return number(*f.Low) + " to " + number(*f.High)
	case f.Low != nil:
		return "at least " + number(*f.Low)
	case f.High != nil:
		return "at most " + number(*f.High)
	}
	return "none"
}

// Ours writes what was measured, with its interval where it is known.
func (f *Finding) Ours() string {
	switch {
	case f.Measured == nil:
		return "-"
	case len(f.Interval) == 2:
		return fmt.Sprintf("%s [%s, %s]", number(*f.Measured), number(f.Interval[0]), number(f.Interval[1]))
	}
	return number(*f.Measured)
}

// number writes four digits, and all of a larger whole number.
func number(x float64) string {
	if size := math.Abs(x); size >= 1e4 && size < 1e9 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.4g", x)
}

// Notes returns the notes on figures that do not hold. Each stands once, behind the metrics that it is about.
func Notes(found []Finding) []string {
	var notes []string
	about := map[string][]string{}
	for i := range found {
		f := &found[i]
		if f.Note == "" || f.Verdict != Missed && f.Verdict != Open && f.Verdict != Skipped {
			continue
		}
		if about[f.Note] == nil {
			notes = append(notes, f.Note)
		}
		about[f.Note] = append(about[f.Note], f.Metric)
	}
	for i, note := range notes {
		notes[i] = strings.Join(about[note], "; ") + ": " + note
	}
	return notes
}

// ReadFindings reads what muster reproduce --write wrote.
func ReadFindings(r io.Reader) ([]Finding, error) {
	var list []Finding
	if err := json.NewDecoder(r).Decode(&list); err != nil {
		return nil, fmt.Errorf("reading findings: %w", err)
	}
	return list, nil
}
