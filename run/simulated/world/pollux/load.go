package pollux

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// Open opens a file of measurements by its path with slashes.
type Open func(path string) (io.ReadCloser, error)

// applications are the six kinds of jobs, with the epochs that complete each, the
// smallest and the largest batch with a recorded run, each twice the one before, and,
// where the measurements go beyond what fits in training, the largest local batch.
var applications = []struct {
	name        string
	epochs      int
	first, last int
	maxLocal    int
}{
	{name: "bert", epochs: 2, first: 12, last: 384},
	{name: "cifar10", epochs: 100, first: 128, last: 4096},
	{name: "deepspeech2", epochs: 80, first: 20, last: 640},
	{name: "imagenet", epochs: 90, first: 200, last: 12800},
	{name: "ncf", epochs: 10, first: 256, last: 32768},
	{name: "yolov3", epochs: 50, first: 8, last: 512, maxLocal: 8},
}

// Load reads the profiles of the six applications from a directory with one folder each.
func Load(dir string) (map[string]*Application, error) {
	return LoadFrom(func(path string) (io.ReadCloser, error) { return os.Open(filepath.Join(dir, filepath.FromSlash(path))) })
}

// LoadFrom reads the profiles from folders that open finds.
func LoadFrom(open Open) (map[string]*Application, error) {
	all := make(map[string]*Application)
	for _, known := range applications {
		a := &Application{Name: known.name, Epochs: known.epochs, MaxLocal: known.maxLocal, InitBatch: known.first, MaxBatch: known.last}
		a.scatter.known = make(map[point]Step)
		if err := a.load(open); err != nil {
			return nil, fmt.Errorf("loading application %s: %w", known.name, err)
		}
		all[known.name] = a
	}
	return all, nil
}

func (a *Application) load(open Open) error {
	if err := a.loadPlacements(open, a.Name+"/placements.csv"); err != nil {
		return err
	}
	if err := a.loadScalability(open, a.Name+"/scalability.csv"); err != nil {
		return err
	}
	a.scatter.sort()
	for batch := a.InitBatch; batch <= a.MaxBatch; batch *= 2 {
		r, err := loadRun(open, fmt.Sprintf("%s/validation-%d.csv", a.Name, batch), batch, a.Epochs)
		if err != nil {
			return err
		}
		a.runs = append(a.runs, r)
	}
	return nil
}

// loadPlacements reads the measured placements: each becomes a curve of its own,
// and the mean over placements of equal nodes, replicas and local batch a point.
func (a *Application) loadPlacements(open Open, path string) error {
	a.placed = make(map[string]timing)
	sums, counts := make(map[point]Step), make(map[point]int)
	most := 0
	err := eachRow(open, path, []string{"placement", "local_bsz", "step_time", "sync_time"}, func(line int, v []float64) error {
		name, local, step := strconv.Itoa(int(v[0])), int(v[1]), Step{v[2], v[3]}
		placement := make([]int, len(name))
		for i := range name {
			placement[i] = int(name[i] - '0')
		}
		nodes, replicas := size(placement)
		p := point{int64(nodes), int64(replicas), int64(local)}
		if err := inRange(path, line, p); err != nil {
			return err
		}
		sums[p] = Step{sums[p].Seconds + step.Seconds, sums[p].SyncSeconds + step.SyncSeconds}
		counts[p]++
		if a.MinLocal == 0 || local < a.MinLocal {
			a.MinLocal = local
		}
		most = max(most, local)
		return a.addTiming(path, line, name, local, step)
	})
	if err != nil {
		return err
	}
	if a.MaxLocal == 0 {
		a.MaxLocal = most
	}
	for p, sum := range sums {
		n := float64(counts[p])
		a.scatter.add(p, Step{sum.Seconds / n, sum.SyncSeconds / n})
	}
	return nil
}

func (a *Application) addTiming(path string, line int, name string, local int, step Step) error {
	t := a.placed[name]
	if n := len(t.local); n > 0 && t.local[n-1] >= local {
		return fmt.Errorf("%s:%d: local_bsz: expected ascending order within placement %s", path, line, name)
	}
	t.local, t.times = append(t.local, local), append(t.times, step)
	a.placed[name] = t
	return nil
}

func (a *Application) loadScalability(open Open, path string) error {
	columns := []string{"num_nodes", "num_replicas", "local_bsz", "step_time", "sync_time"}
	return eachRow(open, path, columns, func(line int, v []float64) error {
		p := point{int64(v[0]), int64(v[1]), int64(v[2])}
		a.scatter.add(p, Step{v[3], v[4]})
		return inRange(path, line, p)
	})
}

func inRange(path string, line int, p point) error {
	for i := range p {
		if p[i] < 1 || p[i] > scatterLimit[i] {
			return fmt.Errorf("%s:%d: nodes, replicas and local_bsz must be within 1..%v, found %v", path, line, scatterLimit, p)
		}
	}
	return nil
}

func loadRun(open Open, path string, batch, epochs int) (run, error) {
	r := run{batch: batch}
	err := eachRow(open, path, []string{"progress", "iteration", "grad_sqr", "grad_var"}, func(_ int, v []float64) error {
		r.progress = append(r.progress, v[0])
		r.iterations = append(r.iterations, v[1])
		r.gradients = append(r.gradients, Gradient{v[2], v[3]})
		return nil
	})
	if err == nil && len(r.progress) < epochs {
		err = fmt.Errorf("%s: expected %d epochs, found %d", path, epochs, len(r.progress))
	}
	return r, err
}

// eachRow calls row with the named columns of every line of a CSV file.
func eachRow(open Open, path string, columns []string, row func(line int, values []float64) error) error {
	f, err := open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r := csv.NewReader(f)
	header, err := r.Read()
	if err != nil {
		return fmt.Errorf("%s:1: expected a header: %w", path, err)
	}
	at := make([]int, len(columns))
	for i, c := range columns {
		if at[i] = slices.Index(header, c); at[i] < 0 {
			return fmt.Errorf("%s:1: expected a column %s", path, c)
		}
	}
	values := make([]float64, len(columns))
	for line := 2; ; line++ {
		record, err := r.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
		for i, c := range columns {
			v, err := strconv.ParseFloat(record[at[i]], 64)
			if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("%s:%d: %s: expected a number, found %q", path, line, c, record[at[i]])
			}
			values[i] = v
		}
		if err := row(line, values); err != nil {
			return err
		}
	}
}
