package main

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/musterdl/muster/run/simulated/world/speed"
)

// throughputs are device model -> job -> other job -> steps per second: a number
// for the job alone (under "null"), two for the job and the other sharing a device.
type throughputs map[string]map[string]map[string]json.RawMessage

// apart is the suffix of a device model for workers on separate nodes.
const apart = "_unconsolidated"

var models = []string{"k80", "p100", "v100"}

// jobName is Gavel's name of a job: "('ResNet-18 (batch size 16)', 2)".
var jobName = regexp.MustCompile(`^\('([^ ']+)(?: \(batch size (\d+)\))?', (\d+)\)$`)

// class is a job class with Gavel's name for it.
type class struct {
	name, model, batch string
}

func (c class) job(workers int) string {
	if c.batch == "" {
		return fmt.Sprintf("('%s', %d)", c.model, workers)
	}
	return fmt.Sprintf("('%s (batch size %s)', %d)", c.model, c.batch, workers)
}

func addGavel(t *speed.Table, data string, report io.Writer) error {
	all, err := readGavel(filepath.Join(data, "gavel", "simulation_throughputs.json.gz"))
	if err != nil {
		return err
	}
	classes, err := all.classes()
	if err != nil {
		return err
	}
	var rateError, pairError relativeError
	for _, c := range classes {
		reference := all.alone("v100", c.job(1))
		if reference == 0 {
			return fmt.Errorf("class %s: no rate on v100", c.name)
		}
		relative := func(model string, workers int) float64 {
			rate := all.alone(model, c.job(workers)) / reference
			if rate > 0 {
				rateError.add(round(rate), rate)
			}
			return round(rate)
		}
		for _, model := range models {
			m := speed.Measured{Class: c.name, Model: model, One: relative(model, 1)}
			for i, workers := range []int{2, 4, 8} {
				m.Together[i], m.Apart[i] = relative(model, workers), relative(model+apart, workers)
			}
			t.Measured = append(t.Measured, m)
		}
	}
	for _, model := range models {
		p, err := all.pairs(model, classes, &pairError)
		if err != nil {
			return err
		}
		t.Pairs = append(t.Pairs, p)
	}
	fmt.Fprintf(report, "gavel rates, rounded to 3 digits: %v\n", &rateError)
	fmt.Fprintf(report, "gavel pairs, rounded to percent:  %v\n", &pairError)
	return nil
}

func readGavel(path string) (throughputs, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	var all throughputs
	if err := json.NewDecoder(z).Decode(&all); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return all, nil
}

// classes are the jobs with one worker, sorted by name and then batch.
func (all throughputs) classes() ([]class, error) {
	var classes []class
	for job := range all["v100"] {
		parts := jobName.FindStringSubmatch(job)
		if parts == nil {
			return nil, fmt.Errorf("job %q: expected a name like ('ResNet-18 (batch size 16)', 2)", job)
		}
		if parts[3] != "1" {
			continue
		}
		name := strings.ToLower(strings.ReplaceAll(parts[1], "-", ""))
		if parts[2] != "" {
			name += "/" + parts[2]
		}
		classes = append(classes, class{name: name, model: parts[1], batch: parts[2]})
	}
	slices.SortFunc(classes, func(a, b class) int {
		x, _ := strconv.Atoi(a.batch) // digits or nothing, by the expression above
		y, _ := strconv.Atoi(b.batch)
		if d := strings.Compare(a.model, b.model); d != 0 {
			return d
		}
		return x - y
	})
	return classes, nil
}

// alone is the rate of a job by itself, 0 where it was not measured.
func (all throughputs) alone(model, job string) float64 {
	var rate float64
	if json.Unmarshal(all[model][job]["null"], &rate) != nil {
		return 0
	}
	return rate
}

func (all throughputs) pairs(model string, classes []class, e *relativeError) (speed.Pairs, error) {
	p := speed.Pairs{Model: model}
	for _, c := range classes {
		p.Classes = append(p.Classes, c.name)
		row := make([]int, len(classes))
		for k, other := range classes {
			var rates [2]float64
			if err := json.Unmarshal(all[model][c.job(1)][other.job(1)], &rates); err != nil {
				return p, fmt.Errorf("%s beside %s on %s: expected two rates: %w", c.name, other.name, model, err)
			}
			if rates[0] == 0 {
				continue
			}
			part := rates[0] / all.alone(model, c.job(1))
			row[k] = max(1, int(math.Round(100*part)))
			e.add(float64(row[k])/100, part)
		}
		p.Percent = append(p.Percent, row)
	}
	return p, nil
}
