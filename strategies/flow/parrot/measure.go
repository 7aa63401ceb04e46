package parrot

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/musterdl/muster/flow/fluid"
	"github.com/musterdl/muster/mechanism/maxmin"
)

// The experiment: so many jobs on a switch of so many ports of 1 Gbit/s, all there from
// the beginning. Of a coflow of the benchmark so many mappers and reducers are kept,
// which is a training job's size; each job repeats one of them.
const (
	ports    = 50
	jobs     = 60
	mostEnds = 4
	mbPerSec = 125
)

// Measure runs the claims on shapes of the coflow benchmark.
func Measure(open func(path string) (io.ReadCloser, error), seed uint64) (map[string]float64, error) {
	file, err := open("coflow/FB2010-1Hr-150-0.txt")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	all, err := shapes(file)
	if err != nil {
		return nil, err
	}
	return compare(chains(all, jobs, seed)), nil
}

// compare runs the jobs under Parrot and the others. Total times are in seconds.
func compare(jobs []fluid.Chain) map[string]float64 {
	s := fluid.Switch{Ports: ports, MBPerSec: mbPerSec}
	total := func(sharer fluid.Sharer) (sum float64) {
		for j, end := range s.Run(jobs, sharer) {
			sum += end - jobs[j].ArriveSec
		}
		return sum
	}
	p := newFabric(Default())
	w := watched{Sharer: p, least: math.Inf(1)}
	return map[string]float64{
		"parrot_total_s": total(&w), "least_part_of_fair": w.least, "lp_over": p.over, "lps": float64(p.solved),
		"fair_total_s": total(&fair{}), "aalo_total_s": total(&aalo{}),
		"guided_total_s": total(&guided{key: func(x fluid.Live) float64 { return left(jobs[x.Job], x) }}),
		"lpcas_total_s":  total(&guided{key: perCoflowMB}),
	}
}

// watched looks at what another sharer does: least is the smallest part of its fair
// rate that any job had at any moment.
type watched struct {
	fluid.Sharer
	filler maxmin.Filler
	fair   []float64
	least  float64
}

// Share is the other's.
func (w *watched) Share(m *fluid.Moment, rates []float64) float64 {
	for j := range m.Flows {
		m.Flows[j].Weight = 0
	}
	w.fair = w.filler.Fill(m.Capacities, m.Flows, w.fair)
	forSec := w.Sharer.Share(m, rates)
	for _, x := range m.Live {
		own, fair := 0.0, 0.0
		for j := x.First; j < x.End; j++ {
			own, fair = own+rates[j], fair+w.fair[j]
		}
		w.least = min(w.least, own/fair)
	}
	return forSec
}

// left is what a job still has to send, which no sharer knows.
func left(job fluid.Chain, x fluid.Live) float64 {
	mb := -x.BeforeMB - x.SentMB
	for _, c := range job.Coflows {
		for _, t := range c {
			mb += t.MB
		}
	}
	return mb
}

// shapes reads the coflow benchmark: a line per coflow with its mappers' racks and its
// reducers' racks and megabytes. A reducer's megabytes come from the mappers in equal
// parts. What meets on one pair of ports is one flow.
func shapes(r io.Reader) (all [][]fluid.Transfer, err error) {
	in := bufio.NewReader(r)
	var racks, coflows int
	if _, err := fmt.Fscan(in, &racks, &coflows); err != nil {
		return nil, fmt.Errorf("read the first line: %w", err)
	}
	for i := range coflows {
		shape, err := readShape(in)
		if err != nil {
			return nil, fmt.Errorf("read coflow %d of %d: %w", i+1, coflows, err)
		}
		all = append(all, shape)
	}
	return all, nil
}

func readShape(in io.Reader) (shape []fluid.Transfer, err error) {
	var id, arriveMS, mappers, reducers int
	if _, err := fmt.Fscan(in, &id, &arriveMS, &mappers); err != nil {
		return nil, err
	}
	from := make([]int32, mappers)
	for i := range from {
		if _, err := fmt.Fscan(in, &from[i]); err != nil {
			return nil, err
		}
	}
	if _, err := fmt.Fscan(in, &reducers); err != nil {
		return nil, err
	}
	for i := range reducers {
		var field string
		var to int32
		var mb float64
		if _, err := fmt.Fscan(in, &field); err != nil {
			return nil, err
		}
		if _, err := fmt.Sscanf(field, "%d:%g", &to, &mb); err != nil {
			return nil, err
		}
		for _, f := range from[:min(mostEnds, mappers)] {
			if i < mostEnds {
				shape = add(shape, fluid.Transfer{From: f % ports, To: to % ports, MB: mb / float64(mappers)})
			}
		}
	}
	return shape, nil
}

func add(shape []fluid.Transfer, t fluid.Transfer) []fluid.Transfer {
	for i := range shape {
		if shape[i].From == t.From && shape[i].To == t.To {
			shape[i].MB += t.MB
			return shape
		}
	}
	return append(shape, t)
}

// chains draws jobs: each repeats one of the shapes 10 to 100 times.
func chains(shapes [][]fluid.Transfer, n int, seed uint64) (all []fluid.Chain) {
	dice := rand.New(rand.NewPCG(seed, 0))
	for range n {
		shape := shapes[dice.IntN(len(shapes))]
		all = append(all, fluid.Chain{Coflows: slices.Repeat([][]fluid.Transfer{shape}, 10+dice.IntN(91))})
	}
	return all
}
