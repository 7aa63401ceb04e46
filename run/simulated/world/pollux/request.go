package pollux

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/musterdl/muster/model/figures"
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
	var workload []Request
	columns := []string{"name", "application", "time", "num_replicas", "batch_size"}
	err := figures.Table(name, r, columns, func(fields []string) error {
		q := Request{Name: fields[0], Application: fields[1]}
		// Some of the published workloads have times like 22.0 and 487.66: who is submitted
		// within a second is there at its end.
		second, err := strconv.ParseFloat(fields[2], 64)
		if err != nil || !(second >= 0 && second < math.MaxInt32) {
			return fmt.Errorf("time: expected seconds from 0, found %q", fields[2])
		}
		q.SubmitSeconds = int(math.Ceil(second))
		for i, to := range []*int{&q.Replicas, &q.Batch} {
			if *to, err = strconv.Atoi(fields[3+i]); err != nil || *to < 1 {
				return fmt.Errorf("%s: expected a whole number from 1, found %q", columns[3+i], fields[3+i])
			}
		}
		workload = append(workload, q)
		return nil
	})
	return workload, err
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
