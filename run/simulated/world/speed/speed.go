// Package speed says how fast jobs truly run, for the simulated world: by device
// model, number of workers and nodes, and beside another job on the same device.
// Strategies must not import it.
//
// The table is shipped with the program and made from two public measurements:
//
//   - Gavel (Narayanan et al., OSDI 2020; MIT licence): 26 job classes on k80, p100
//     and v100, rounded rates of 1, 2, 4 and 8 workers on one node and on separate
//     nodes, and of pairs of classes that share one device. Their oddities are kept:
//     jobs that one v100 cannot feed speed up by more than their workers, and the
//     recommendation models are fastest on p100.
//   - Pollux (Qiao et al., OSDI 2021; Apache-2.0 licence): six classes on t4, as
//     fitted parameters of the performance model of that paper.
//
// A rate is a job's whole progress in samples relative to one worker of the same
// class on the reference device: v100 for the classes of Gavel, t4 for those of
// Pollux. The program in folder fit makes the table and prints its errors.
package speed

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sync"
)

// Table is the shipped file.
type Table struct {
	// Sources say what the table is made of and under which licence.
	Sources  []Source   `json:"sources"`
	Measured []Measured `json:"measured"`
	Pairs    []Pairs    `json:"pairs"`
	Modelled []Modelled `json:"modelled"`
}

// Source is the origin of a part of the table.
type Source struct {
	Part      string `json:"part"`
	Origin    string `json:"origin"`
	Licence   string `json:"licence"`
	Reference string `json:"reference"`
}

// Measured are the rates of a class on one device model, relative to the reference:
// of one worker, and of 2, 4 and 8 workers on one node and on separate nodes; 0
// where there is no measurement.
type Measured struct {
	Class    string     `json:"class"`
	Model    string     `json:"model"`
	One      float64    `json:"one"`
	Together [3]float64 `json:"together"`
	Apart    [3]float64 `json:"apart"`
}

// Pairs are the rates of classes that share a device, in percent of alone:
// Percent[i][k] is that of class i beside class k, and 0 where the two do not fit
// in its memory together.
type Pairs struct {
	Model   string   `json:"model"`
	Classes []string `json:"classes"`
	Percent [][]int  `json:"percent"`
}

// Modelled are the parameters of the Pollux performance model of a class, in
// seconds. A step of K workers, each with Local samples, takes
//
//	(compute^Gamma + network^Gamma)^(1/Gamma)
//
// where compute = Compute[0] + Compute[1]*Local, and network is nothing for one
// worker, Node[0] + Node[1]*(K-2) on one node, Remote[0] + Remote[1]*(K-2) on several.
type Modelled struct {
	Class   string     `json:"class"`
	Model   string     `json:"model"`
	Local   float64    `json:"local"`
	Compute [2]float64 `json:"compute"`
	Node    [2]float64 `json:"node"`
	Remote  [2]float64 `json:"remote"`
	Gamma   float64    `json:"gamma"`
}

//go:embed table.json
var shipped []byte

// index finds the rows of the table by class and model.
type index struct {
	measured map[[2]string]*Measured
	modelled map[[2]string]*Modelled
	pairs    map[string]*Pairs // by model
}

var table = sync.OnceValue(func() *index {
	var t Table
	if err := json.Unmarshal(shipped, &t); err != nil {
		panic(fmt.Sprintf("speed: broken embedded table: %v", err))
	}
	x := &index{measured: make(map[[2]string]*Measured), modelled: make(map[[2]string]*Modelled), pairs: make(map[string]*Pairs)}
	for i := range t.Measured {
		x.measured[[2]string{t.Measured[i].Class, t.Measured[i].Model}] = &t.Measured[i]
	}
	for i := range t.Modelled {
		x.modelled[[2]string{t.Modelled[i].Class, t.Modelled[i].Model}] = &t.Modelled[i]
	}
	for i := range t.Pairs {
		x.pairs[t.Pairs[i].Model] = &t.Pairs[i]
	}
	return x
})

// Classes returns the names of all classes, sorted.
func Classes() []string {
	var names []string
	for key := range table().measured {
		names = append(names, key[0])
	}
	for key := range table().modelled {
		names = append(names, key[0])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Rate returns the rate of a job of this class with workers on nodes of this device
// model, relative to one worker on the reference device. Measured rates on more
// than one node are those of one worker per node; between measured numbers of
// workers the rate is a power of their number. ok is false where nothing is known,
// which includes more workers than were measured.
func Rate(class, model string, workers, nodes int) (rate float64, ok bool) {
	if workers < 1 || nodes < 1 || nodes > workers {
		return 0, false
	}
	key := [2]string{class, model}
	if m := table().measured[key]; m != nil {
		rate = m.rate(workers, nodes)
	} else if m := table().modelled[key]; m != nil {
		rate = m.rate(workers, nodes)
	}
	return rate, rate > 0
}

// Pair returns the rates of two one-worker jobs that share a device, each relative
// to one worker of its class on the reference device; both are 0 if their memory
// does not fit. ok is false where nothing is known.
func Pair(classA, classB, model string) (rateA, rateB float64, ok bool) {
	p := table().pairs[model]
	if p == nil {
		return 0, 0, false
	}
	a, b := slices.Index(p.Classes, classA), slices.Index(p.Classes, classB)
	if a < 0 || b < 0 {
		return 0, 0, false
	}
	rateA = table().measured[[2]string{classA, model}].One * float64(p.Percent[a][b]) / 100
	rateB = table().measured[[2]string{classB, model}].One * float64(p.Percent[b][a]) / 100
	return rateA, rateB, true
}

// rate is 0 where there is no measurement.
func (m *Measured) rate(workers, nodes int) float64 {
	rates := m.Together
	if nodes > 1 {
		rates = m.Apart
	}
	low, count := m.One, 1
	for _, high := range rates {
		if workers < 2*count {
			part := math.Log2(float64(workers) / float64(count))
			return math.Pow(low, 1-part) * math.Pow(high, part)
		}
		low, count = high, 2*count
	}
	if workers > count {
		return 0
	}
	return low
}

// Most workers and nodes that the models were fitted on.
const (
	mostWorkers = 64
	mostNodes   = 16
)

func (m *Modelled) rate(workers, nodes int) float64 {
	if workers > mostWorkers || nodes > mostNodes {
		return 0
	}
	return float64(workers) * m.Step(m.Local, 1, 1) / m.Step(m.Local, workers, nodes)
}

// Step returns the seconds of one step.
func (m *Modelled) Step(local float64, workers, nodes int) float64 {
	compute := m.Compute[0] + m.Compute[1]*local
	if workers == 1 {
		return compute
	}
	link := m.Node
	if nodes > 1 {
		link = m.Remote
	}
	network := link[0] + link[1]*float64(workers-2)
	return math.Pow(math.Pow(compute, m.Gamma)+math.Pow(network, m.Gamma), 1/m.Gamma)
}
