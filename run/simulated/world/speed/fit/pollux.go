package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/optimize"

	"github.com/musterdl/muster/run/simulated/world/speed"
)

// applications are the jobs of Pollux with the batch of one worker, which is the
// initial batch size that their owners train with.
var applications = []struct {
	name  string
	local int
}{{"bert", 12}, {"cifar10", 128}, {"deepspeech2", 20}, {"imagenet", 200}, {"ncf", 256}, {"yolov3", 8}}

// timing is one measured configuration.
type timing struct {
	nodes, workers int
	local          float64
	step, compute  float64 // seconds; compute is the step without the exchange of gradients
}

func addPollux(t *speed.Table, data string, report io.Writer) error {
	for _, app := range applications {
		timings, err := readPollux(filepath.Join(data, "pollux-sia", "profiles", app.name))
		if err != nil {
			return err
		}
		m, err := fit(timings)
		if err != nil {
			return fmt.Errorf("%s: %w", app.name, err)
		}
		m.Class, m.Model, m.Local = fmt.Sprintf("%s/%d", app.name, app.local), "t4", float64(app.local)
		t.Modelled = append(t.Modelled, m)
		var step, compute relativeError
		for _, x := range timings {
			step.add(m.Step(x.local, x.workers, x.nodes), x.step)
			compute.add(m.Step(x.local, 1, 1), x.compute)
		}
		fmt.Fprintf(report, "pollux %-15s step time: %v; compute time: %v\n", m.Class, &step, &compute)
	}
	return nil
}

// fit minimises the two root mean squared logarithmic errors of the Pollux paper, of
// the whole step and of its compute part. All parameters are positive and span
// magnitudes, so the search is in logarithms. It follows the gradient, which stops
// at kinks and saddles, and a simplex in turns.
func fit(timings []timing) (speed.Modelled, error) {
	lossAt := func(x []float64) float64 { return loss(parameters(x), timings) }
	slope := func(gradient, x []float64) { fd.Gradient(gradient, lossAt, x, nil) }
	x := start(timings)
	for range 3 {
		for _, step := range []struct {
			method optimize.Method
			limits optimize.Settings
		}{
			{&optimize.BFGS{}, optimize.Settings{MajorIterations: 100}},
			{&optimize.NelderMead{}, optimize.Settings{FuncEvaluations: 400}},
		} {
			r, err := optimize.Minimize(optimize.Problem{Func: lossAt, Grad: slope}, x, &step.limits, step.method)
			if r == nil {
				return speed.Modelled{}, fmt.Errorf("minimising: %w", err)
			}
			x = r.X // the best point so far, also where a line search gave up
		}
	}
	m := parameters(x)
	for _, pair := range []*[2]float64{&m.Compute, &m.Node, &m.Remote} {
		pair[0], pair[1] = round(pair[0]), round(pair[1])
	}
	for _, network := range []*[2]float64{&m.Node, &m.Remote} {
		const noSeconds = 1e-4 // where the fit tends to nothing, how little is arbitrary
		for i := range network {
			if network[i] < noSeconds {
				network[i] = 0
			}
		}
	}
	m.Gamma = round(m.Gamma)
	return m, nil
}

// start is a guess from the mean times: half of the compute time depends on the
// batch, the network takes as long as computing, and they overlap a little.
func start(timings []timing) []float64 {
	var compute, local float64
	for _, t := range timings {
		compute, local = compute+t.compute, local+t.local
	}
	compute, local = math.Log(compute/float64(len(timings))/2), math.Log(local/float64(len(timings)))
	const fewPercent = 3.5 // a worker more costs e^-3.5 of the constant
	return []float64{compute, compute - local, compute, compute - fewPercent, compute, compute - fewPercent, -2}
}

// parameters maps any seven numbers to legal ones; the exponent is within 1 to 10.
func parameters(x []float64) speed.Modelled {
	positive := func(i int) [2]float64 { return [2]float64{math.Exp(x[i]), math.Exp(x[i+1])} }
	return speed.Modelled{Compute: positive(0), Node: positive(2), Remote: positive(4), Gamma: 1 + 9/(1+math.Exp(-x[6]))}
}

func loss(m speed.Modelled, timings []timing) float64 {
	var step, compute float64
	for _, t := range timings {
		s := math.Log(m.Step(t.local, t.workers, t.nodes) / t.step)
		c := math.Log(m.Step(t.local, 1, 1) / t.compute)
		step, compute = step+s*s, compute+c*c
	}
	n := float64(len(timings))
	return math.Sqrt(step/n) + math.Sqrt(compute/n)
}

// readPollux reads both tables of an application: placements on up to four nodes,
// whose digits are the workers on each, and larger runs.
func readPollux(dir string) ([]timing, error) {
	small, err := readTimings(filepath.Join(dir, "placements.csv"), []string{"placement", "local_bsz", "step_time", "sync_time"})
	if err != nil {
		return nil, err
	}
	large, err := readTimings(filepath.Join(dir, "scalability.csv"), []string{"num_nodes", "num_replicas", "local_bsz", "step_time", "sync_time"})
	return append(small, large...), err
}

// readTimings reads the named columns: last the batch, the step and the exchange.
func readTimings(path string, columns []string) ([]timing, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	if err != nil || len(records) < 2 {
		return nil, fmt.Errorf("%s: expected a header and rows: %w", path, err)
	}
	var timings []timing
	for line, record := range records[1:] {
		var values []float64
		for _, c := range columns {
			at := slices.Index(records[0], c)
			if at < 0 {
				return nil, fmt.Errorf("%s: expected a column %s", path, c)
			}
			v, err := strconv.ParseFloat(record[at], 64)
			if err != nil || v < 0 {
				return nil, fmt.Errorf("%s:%d: %s: expected a number from 0, found %q", path, line+2, c, record[at])
			}
			values = append(values, v)
		}
		shape, rest := values[:len(values)-3], values[len(values)-3:]
		t := timing{local: rest[0], step: rest[1], compute: rest[1] - rest[2]}
		if t.nodes, t.workers = int(shape[0]), int(shape[len(shape)-1]); len(shape) == 1 {
			t.nodes, t.workers = countPlacement(int(shape[0]))
		}
		if t.nodes < 1 || t.workers < t.nodes || t.compute <= 0 {
			return nil, fmt.Errorf("%s:%d: expected workers on nodes and a step longer than its exchange", path, line+2)
		}
		timings = append(timings, t)
	}
	return timings, nil
}

// countPlacement reads one digit per node.
func countPlacement(digits int) (nodes, workers int) {
	for ; digits > 0; digits /= 10 {
		nodes, workers = nodes+1, workers+digits%10
	}
	return nodes, workers
}
