package gandiva

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"
)

// table is measured throughput, alone and beside each other (Gavel's, MIT licence).
const table = "gavel/simulation_throughputs.json.gz"

// Measure runs sixty jobs on four nodes of four devices at twice the load they can
// carry, under strict FIFO, with time slices, and with packing as well. What two jobs
// do beside each other is measured (Gavel, V100, single workers) and taken to hold for
// wider gangs; figures ending in _single pack single workers only.
func Measure(open func(path string) (io.ReadCloser, error), seed uint64) (map[string]float64, error) {
	classes, pairs, err := readPairs(open)
	if err != nil {
		return nil, err
	}
	const nodes, perNode, jobs, load = 4, 4, 60, 2
	run := func(c Config, single bool) (*model, []*job) {
		all := draw(seed, jobs, nodes*perNode, len(classes), load)
		m := &model{pairs: pairs, p: newPlanner(c), byID: map[int32]*job{}}
		for range nodes {
			m.p.addNode(perNode, 1000)
		}
		for _, j := range all {
			// The table says which pairs fit in memory, not how much each takes; the
			// batch stands in for the utilisation that it does not have either.
			j.busy = classes[j.class].batch
			m.byID[j.id] = j
		}
		for _, a := range all {
			for _, b := range all {
				if pairs[a.class][b.class][0] == 0 || single && a.gang > 1 {
					m.p.tried[key(&a.task, &b.task)] = true
				}
			}
		}
		m.run(all)
		return m, all
	}
	out := map[string]float64{}
	sliced, packed := Default(), Default()
	sliced.Pack = false
	for _, v := range []struct {
		name   string
		config Config
		single bool
	}{{"fifo", Config{Quantum: sliced.Quantum, MaxResidents: 1}, false}, {"sliced", sliced, false}, {"packed", packed, false}, {"packed_single", packed, true}} {
		m, all := run(v.config, v.single)
		var late, jct []float64
		end := 0.0
		for _, j := range all {
			late, jct, end = append(late, j.lateAt-j.submit), append(jct, j.end-j.submit), max(end, j.end)
		}
		slices.Sort(late)
		out["first_ten_minutes_p95_s_"+v.name] = stat.Quantile(.95, stat.Empirical, late, nil)
		out["jct_s_"+v.name] = stat.Mean(jct, nil)
		out["makespan_s_"+v.name] = end
		out["utilisation_"+v.name] = m.work / (nodes * perNode * all[len(all)-1].submit)
		out["slices_packed_below_one_"+v.name] = float64(m.bad)
		out["trials_"+v.name], out["slices_packed_"+v.name] = float64(m.trialed), float64(m.packed)
	}
	return out, nil
}

// class is a kind of single-worker job in the table.
type class struct {
	name  string
	batch int32
	solo  float64
}

// readPairs reads the classes of single workers and, for each two, how fast each goes
// beside the other as a part of its rate by itself.
func readPairs(open func(path string) (io.ReadCloser, error)) ([]class, [][][2]float64, error) {
	f, err := open(table)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", table, err)
	}
	var all map[string]map[string]map[string]json.RawMessage
	if err := json.NewDecoder(z).Decode(&all); err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", table, err)
	}
	rates := all["v100"]
	var classes []class
	for name, row := range rates {
		c := class{name: name, batch: 1}
		if !strings.HasSuffix(name, ", 1)") || json.Unmarshal(row["null"], &c.solo) != nil || c.solo <= 0 {
			continue
		}
		if _, after, ok := strings.Cut(name, "batch size "); ok {
			n, _ := strconv.Atoi(after[:strings.IndexByte(after, ')')])
			c.batch = int32(n)
		}
		classes = append(classes, c)
	}
	if len(classes) == 0 {
		return nil, nil, fmt.Errorf("%s: no rates of single workers on v100", table)
	}
	slices.SortFunc(classes, func(a, b class) int { return strings.Compare(a.name, b.name) })
	pairs := make([][][2]float64, len(classes))
	for i, a := range classes {
		pairs[i] = make([][2]float64, len(classes))
		for k, b := range classes {
			var both [2]float64
			if json.Unmarshal(rates[a.name][b.name], &both) == nil {
				pairs[i][k] = [2]float64{both[0] / a.solo, both[1] / b.solo}
			}
		}
	}
	return classes, pairs, nil
}
