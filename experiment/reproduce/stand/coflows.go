package stand

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

func init() {
	register("coflows", "60 jobs that do nothing but send coflows of the Facebook benchmark, one after another, over 50 ports of 1 Gbit/s", coflows)
}

// coflows has jobs that are all there from the beginning. Each repeats one coflow of the
// benchmark 10 to 100 times: it has a worker on as many ports as the coflow has mappers
// and reducers, up to all of them, and every worker sends its part.
func coflows(open Data, o *Options, seed uint64) (*Stand, error) {
	const jobs, ports = 60, 50
	file, err := open("coflow/FB2010-1Hr-150-0.txt")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	sizes, err := readCoflows(file)
	if err != nil {
		return nil, err
	}
	s := &Stand{Cluster: cluster.Uniform("ports", ports, jobs, cluster.Model{Name: "gpu", Speed: 1}, ports)}
	for i := range s.Cluster.Nodes {
		s.Cluster.Nodes[i].Uplink = 1000
	}
	list, rng := &List{}, rand.New(rand.NewPCG(seed, 0))
	for i := range jobs {
		c := sizes[rng.IntN(len(sizes))]
		workers := min(ports, int32(c.ends))
		alone := unit.Seconds(c.mb * 8 / 1000 / float64(workers)) // all its ports are full meanwhile
		list.Add(workload.Job{Name: fmt.Sprint("job", i), Resources: workload.Resources{Gang: workers, Devices: 1, Share: unit.Whole, PerNode: 1},
			Traits: workload.Traits{Traffic: 1000,
				Phase: workload.Phase{Communicate: alone}}}, workload.Truth{Duration: alone * unit.Duration(10+rng.IntN(91))})
	}
	s.Jobs = list
	return s, nil
}

// coflow is how many mappers and reducers one has, and what it sends.
type coflow struct {
	ends int
	mb   float64
}

// readCoflows reads a line per coflow with its mappers' racks and its reducers' racks and
// megabytes.
func readCoflows(r io.Reader) (list []coflow, err error) {
	in := bufio.NewReader(r)
	var racks, count, id, arriveMS, mappers, reducers, rack int
	if _, err := fmt.Fscan(in, &racks, &count); err != nil {
		return nil, fmt.Errorf("the first line of the coflows: %w", err)
	}
	for i := range count {
		if _, err = fmt.Fscan(in, &id, &arriveMS, &mappers); err != nil {
			return nil, fmt.Errorf("coflow %d: %w", i+1, err)
		}
		for range mappers {
			if _, err = fmt.Fscan(in, &rack); err != nil {
				return nil, fmt.Errorf("coflow %d: %w", i+1, err)
			}
		}
		if _, err = fmt.Fscan(in, &reducers); err != nil {
			return nil, fmt.Errorf("coflow %d: %w", i+1, err)
		}
		c := coflow{ends: mappers + reducers}
		for range reducers {
			var mb float64
			if _, err := fmt.Fscanf(in, "%d:%g", &rack, &mb); err != nil {
				return nil, fmt.Errorf("coflow %d: %w", i+1, err)
			}
			c.mb += mb
		}
		list = append(list, c)
	}
	return list, nil
}
