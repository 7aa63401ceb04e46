// Command fit makes run/simulated/world/speed/table.json from the public measurements and prints
// how far the table is from them. Run it from the root of the repository:
//
//	go run ./run/simulated/world/speed/fit
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"

	"github.com/musterdl/muster/run/simulated/world/speed"
)

func main() {
	data := flag.String("data", "../shared/data", "folder of the public measurements")
	out := flag.String("out", "run/simulated/world/speed/table.json", "file to write")
	flag.Parse()
	table, err := build(*data, os.Stdout)
	if err == nil {
		err = os.WriteFile(*out, table, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fit:", err)
		os.Exit(1)
	}
}

// build returns the table's bytes and writes the errors of the fits to report.
func build(data string, report io.Writer) ([]byte, error) {
	t := speed.Table{Sources: []speed.Source{
		{Part: "measured, pairs", Origin: "github.com/stanford-futuredata/gavel, scheduler/simulation_throughputs.json", Licence: "MIT", Reference: "v100"},
		{Part: "modelled", Origin: "github.com/petuum/adaptdl, branch osdi21-artifact, simulator/traces", Licence: "Apache-2.0", Reference: "t4"},
	}}
	if err := addGavel(&t, data, report); err != nil {
		return nil, fmt.Errorf("reading the measurements of Gavel: %w", err)
	}
	if err := addPollux(&t, data, report); err != nil {
		return nil, fmt.Errorf("fitting the measurements of Pollux: %w", err)
	}
	return encode(&t)
}

// encode writes one row per line, so that a change of the table can be read.
func encode(t *speed.Table) ([]byte, error) {
	var b bytes.Buffer
	parts := []struct {
		name string
		rows []any
	}{{"sources", rows(t.Sources)}, {"measured", rows(t.Measured)}, {"pairs", rows(t.Pairs)}, {"modelled", rows(t.Modelled)}}
	for i, part := range parts {
		fmt.Fprintf(&b, "%s\n%q: [\n", []string{"{", "],"}[min(i, 1)], part.name)
		for k, row := range part.rows {
			text, err := json.Marshal(row)
			if err != nil {
				return nil, fmt.Errorf("encoding %s: %w", part.name, err)
			}
			b.Write(text)
			b.WriteString([]string{",\n", "\n"}[max(0, k+2-len(part.rows))])
		}
	}
	b.WriteString("]\n}\n")
	return b.Bytes(), nil
}

func rows[T any](all []T) []any {
	out := make([]any, len(all))
	for i := range all {
		out[i] = all[i]
	}
	return out
}

// round keeps three significant digits: more would claim what was not measured.
func round(v float64) float64 {
	short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64)
	if err != nil {
		panic(err) // a formatted number parses
	}
	return short
}

// relativeError collects |got/want - 1|.
type relativeError struct {
	sum, most float64
	count     int
}

func (e *relativeError) add(got, want float64) {
	off := math.Abs(got/want - 1)
	e.sum, e.most, e.count = e.sum+off, max(e.most, off), e.count+1
}

// String is the mean and the greatest error in percent.
func (e *relativeError) String() string {
	return fmt.Sprintf("mean %.2f %%, most %.1f %% of %d figures", 100*e.sum/float64(e.count), 100*e.most, e.count)
}
