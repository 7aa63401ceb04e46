// Package profiles reads what others measured of the layers of models, in their own formats: the
// graphs of PipeDream and DAPPLE, and the tables of Sailor. Piper's graphs its planner reads.
package profiles

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// numbered is an object whose first member has a number as its name.
var numbered = regexp.MustCompile(`^\{\s*"[1-9]`)

// Read reads a profile as a chain of layers, each as long as the batch took that was measured;
// known is whether it is in one of the formats. Mistakes are named with their file and line.
func Read(file string, data []byte) (layers []workload.Layer, known bool, err error) {
	switch text := bytes.TrimLeft(data, " \t\r\n"); {
	case bytes.HasPrefix(text, []byte("node")) && bytes.Contains(text, []byte(" -- ")):
		layers, err = pipedream(string(data))
	case numbered.Match(text):
		layers, err = sailor(data)
	default:
		return nil, false, nil
	}
	if err != nil {
		return nil, true, fmt.Errorf("%s:%w", file, err)
	}
	return layers, true, nil
}

// node is one of a graph.
type node struct {
	layer workload.Layer
	sends int64 // KiB that go to those behind it
	from  []int // whom it waits for
	to    []int // who waits for it
}

// pipedream reads lines of nodes, and below them lines of edges.
func pipedream(text string) ([]workload.Layer, error) {
	// A file has all its nodes first, in an order of their profiler's: not always that in which
	// they run.
	var nodes []node
	number := map[string]int{}
	line := 0
	for row := range strings.Lines(text) {
		line++
		parts := strings.Split(strings.TrimSpace(row), " -- ")
		switch {
		case len(parts) >= 3:
			if _, twice := number[parts[0]]; twice {
				return nil, fmt.Errorf("%d: %s is there already", line, parts[0])
			}
			n, err := parseNode(parts[1], parts[2])
			if err != nil {
				return nil, fmt.Errorf("%d: %s: %w", line, parts[0], err)
			}
			number[parts[0]] = len(nodes)
			nodes = append(nodes, n)
		case len(parts) == 2:
			a, there := number[parts[0]]
			b, too := number[parts[1]]
			if !there || !too {
				return nil, fmt.Errorf("%d: from %s to %s: expected nodes of the lines above", line, parts[0], parts[1])
			}
			nodes[a].to, nodes[b].from = append(nodes[a].to, b), append(nodes[b].from, a)
		case parts[0] != "":
			return nil, fmt.Errorf("%d: %q: expected NODE -- LAYER -- FIGURES or NODE -- NODE", line, strings.TrimSpace(row))
		}
	}
	order, stuck := inOrder(nodes)
	if stuck >= 0 {
		return nil, fmt.Errorf("1: the nodes wait for each other in a circle, %s among them", nodes[stuck].layer.Name)
	}
	return chain(nodes, order), nil
}

// parseNode reads the figures of a node: milliseconds and bytes. What makes a tuple has a list
// of sizes.
func parseNode(name, text string) (n node, err error) {
	n.layer.Name = name
	for part := range strings.SplitSeq(text, ", ") { // the stage of a plan of theirs, where it stands, is behind another " -- "
		key, value, _ := strings.Cut(part, "=")
		sum := 0.0 // of a tuple's parts: the file does not tell which of them goes on
		for x := range strings.SplitSeq(strings.Trim(strings.TrimSpace(value), "[]"), ";") {
			f, err := strconv.ParseFloat(strings.TrimSpace(x), 64)
			if err != nil || !(f >= 0 && f < 1e15) {
				return n, fmt.Errorf("%s is %q: expected a number from 0", key, strings.TrimSpace(value))
			}
			sum += f
		}
		switch key {
		case "forward_compute_time":
			n.layer.Forward = unit.Duration(math.Round(1e3 * sum))
		case "backward_compute_time":
			n.layer.Backward = unit.Duration(math.Round(1e3 * sum))
		case "activation_size": // what it makes; PipeDream keeps it for the way back too
			n.layer.ActivationKiB = int64(math.Ceil(sum / 1024))
			n.sends = n.layer.ActivationKiB
		case "parameter_size":
			n.layer.ParamKiB = int64(math.Ceil(sum / 1024))
		default:
			return n, fmt.Errorf("%q: expected forward_compute_time, backward_compute_time, activation_size and parameter_size", key)
		}
	}
	return n, nil
}

// inOrder puts each node behind those that it waits for, of several the one that the file has
// first. Where there is a circle it says who is in it; else that is -1.
func inOrder(nodes []node) (order []int, stuck int) {
	// Graphs have hundreds of nodes at most: to look for the first each time is soon done.
	waits, done := make([]int, len(nodes)), make([]bool, len(nodes))
	for i := range nodes {
		waits[i] = len(nodes[i].from)
	}
	for len(order) < len(nodes) {
		next := -1
		for i := range nodes {
			if !done[i] && waits[i] == 0 {
				next = i
				break
			}
		}
		if next < 0 {
			return nil, slices.Index(done, false)
		}
		done[next] = true
		order = append(order, next)
		for _, b := range nodes[next].to {
			waits[b]--
		}
	}
	return order, -1
}

// chain is the nodes in a row. What goes over a border is what every node before it makes that
// one behind it waits for. What comes first and has no parameters is the input: its time is that
// of loading data, and it is no layer.
func chain(nodes []node, order []int) (layers []workload.Layer) {
	at := make([]int, len(nodes)) // places in the row
	for place, i := range order {
		at[i] = place
	}
	for place, i := range order {
		n := &nodes[i]
		if len(n.from) == 0 && n.layer.ParamKiB == 0 && len(n.to) > 0 {
			continue
		}
		// What passes by on its way to a later layer is sent along.
		n.layer.OutputKiB = 0
		for _, before := range order[:place+1] {
			if slices.ContainsFunc(nodes[before].to, func(to int) bool { return at[to] > place }) {
				n.layer.OutputKiB += nodes[before].sends
			}
		}
		layers = append(layers, n.layer)
	}
	return layers
}

// sailor reads a table of seconds by microbatch, tensor degree and layer: a pass forward, one
// backward and the update. Of the smallest microbatch and degree; sizes are not in it.
func sailor(data []byte) (layers []workload.Layer, err error) {
	var all map[int]map[int]map[int][]float64
	if err := json.Unmarshal(data, &all); err != nil {
		line := 1
		if at, is := err.(*json.SyntaxError); is {
			line += bytes.Count(data[:at.Offset], []byte("\n"))
		} else if at, is := err.(*json.UnmarshalTypeError); is {
			line += bytes.Count(data[:at.Offset], []byte("\n"))
		}
		return nil, fmt.Errorf("%d: %w: expected seconds by microbatch, tensor degree and layer", line, err)
	}
	// Sailor tells apart how long a layer takes by both; one chain has one of each.
	micro := slices.Min(slices.Collect(maps.Keys(all)))
	if len(all[micro]) == 0 {
		return nil, fmt.Errorf("1: microbatch %d has no tensor degree", micro)
	}
	tensor := slices.Min(slices.Collect(maps.Keys(all[micro])))
	for i := range len(all[micro][tensor]) {
		times, there := all[micro][tensor][i]
		if !there || len(times) < 2 || slices.Min(times) < 0 || slices.Max(times) > 3600 {
			return nil, fmt.Errorf("1: microbatch %d, tensor degree %d, layer %d is %v: expected seconds forward, backward and of the update", micro, tensor, i, times)
		}
		layers = append(layers, workload.Layer{Name: fmt.Sprintf("layer %d", i), Forward: unit.Seconds(times[0]), Backward: unit.Seconds(times[1])})
	}
	return layers, nil
}
