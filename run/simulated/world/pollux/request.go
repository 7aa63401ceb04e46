package pollux

import (
	"archive/tar"
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
)

// Request is one job of a workload as its user submitted it.
type Request struct {
	Name          string
	SubmitSeconds int
	Application   string
	// Replicas and Batch are what the user asked for: a tuned, fixed configuration.
	Replicas int
	Batch    int
}

// ReadWorkload reads a workload table; name is for messages.
func ReadWorkload(r io.Reader, name string) ([]Request, error) {
	table := csv.NewReader(r)
	header, err := table.Read()
	if err != nil {
		return nil, fmt.Errorf("%s:1: expected a header: %w", name, err)
	}
	columns := []string{"name", "application", "time", "num_replicas", "batch_size"}
	at := make([]int, len(columns))
	for i, c := range columns {
		if at[i] = slices.Index(header, c); at[i] < 0 {
			return nil, fmt.Errorf("%s:1: expected a column %s", name, c)
		}
	}
	var workload []Request
	for line := 2; ; line++ {
		record, err := table.Read()
		if err == io.EOF {
			return workload, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		q := Request{Name: record[at[0]], Application: record[at[1]]}
		// Some of the published workloads have times like 22.0 and 487.66: who is submitted
		// within a second is there at its end.
		second, err := strconv.ParseFloat(record[at[2]], 64)
		if err != nil || !(second >= 0 && second < math.MaxInt32) {
			return nil, fmt.Errorf("%s:%d: time: expected seconds from 0, found %q", name, line, record[at[2]])
		}
		q.SubmitSeconds = int(math.Ceil(second))
		for i, to := range []*int{&q.Replicas, &q.Batch} {
			if *to, err = strconv.Atoi(record[at[3+i]]); err != nil || *to < 1 {
				return nil, fmt.Errorf("%s:%d: %s: expected a whole number from 1, found %q", name, line, columns[3+i], record[at[3+i]])
			}
		}
		workload = append(workload, q)
	}
}

func readMember(f io.Reader, path, member string) ([]Request, error) {
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	for t := tar.NewReader(z); ; {
		h, err := t.Next()
		if err == io.EOF {
			return nil, fmt.Errorf("%s: no workload %s", path, member)
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		if h.Name == member {
			return ReadWorkload(t, path+":"+member)
		}
	}
}
