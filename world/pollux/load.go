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
	"strings"
)

// applications are the six kinds of jobs, with the epochs that complete each and,
// where the measurements go beyond what fits in training, the largest local batch.
var applications = []struct {
	name     string
	epochs   int
	maxLocal int
}{
	{name: "bert", epochs: 2},
	{name: "cifar10", epochs: 100},
	{name: "deepspeech2", epochs: 80},
	{name: "imagenet", epochs: 90},
	{name: "ncf", epochs: 10},
	{name: "yolov3", epochs: 50, maxLocal: 8},
}

// Load reads the profiles of the six applications from a directory with one folder each.
func Load(dir string) (map[string]*Application, error) {
	all := make(map[string]*Application)
	for _, known := range applications {
		a := &Application{Name: known.name, Epochs: known.epochs, MaxLocal: known.maxLocal}
		a.scatter.known = make(map[point]Step)
		if err := a.load(filepath.Join(dir, known.name)); err != nil {
			return nil, fmt.Errorf("loading application %s: %w", known.name, err)
		}
		all[known.name] = a
	}
	return all, nil
}

func (a *Application) load(dir string) error {
	if err := a.loadPlacements(filepath.Join(dir, "placements.csv")); err != nil {
		return err
	}
	if err := a.loadScalability(filepath.Join(dir, "scalability.csv")); err != nil {
		return err
	}
	a.scatter.sort()
	paths, err := filepath.Glob(filepath.Join(dir, "validation-*.csv"))
	if err != nil || len(paths) == 0 {
		return fmt.Errorf("%s: expected files validation-BATCH.csv, found none", dir)
	}
	for _, path := range paths {
		r, err := loadRun(path, a.Epochs)
		if err != nil {
			return err
		}
		a.runs = append(a.runs, r)
	}
	slices.SortFunc(a.runs, func(x, y run) int { return x.batch - y.batch })
	a.InitBatch, a.MaxBatch = a.runs[0].batch, a.runs[len(a.runs)-1].batch
	return nil
}

// loadPlacements reads the measured placements: each becomes a curve of its own,
// and the mean over placements of equal nodes, replicas and local batch a point.
func (a *Application) loadPlacements(path string) error {
	a.placed = make(map[string]timing)
	sums, counts := make(map[point]Step), make(map[point]int)
	most := 0
	err := eachRow(path, []string{"placement", "local_bsz", "step_time", "sync_time"}, func(line int, v []float64) error {
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

func (a *Application) loadScalability(path string) error {
	columns := []string{"num_nodes", "num_replicas", "local_bsz", "step_time", "sync_time"}
	return eachRow(path, columns, func(line int, v []float64) error {
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

func loadRun(path string, epochs int) (run, error) {
	digits := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), "validation-"), ".csv")
	batch, err := strconv.Atoi(digits)
	if err != nil {
		return run{}, fmt.Errorf("%s: expected a batch size in the file name, found %q", path, digits)
	}
	r := run{batch: batch}
	err = eachRow(path, []string{"progress", "iteration", "grad_sqr", "grad_var"}, func(_ int, v []float64) error {
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
func eachRow(path string, columns []string, row func(line int, values []float64) error) error {
	f, err := os.Open(path)
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
