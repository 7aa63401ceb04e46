package titan

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/engine/compose"
	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/strategies/allocate/firstfit"
	"github.com/musterdl/muster/strategies/flow/maxmin"
	"github.com/musterdl/muster/strategies/profile/oracle"
)

// TestTable holds the table against the authors' profiles: every step time on one node,
// and on two of four, within 5 %, and memory within 3 %.
func TestTable(t *testing.T) {
	read := func(name string, columns int, row func(place string, x []float64)) {
		f, err := os.Open(filepath.Join("..", "..", "..", "..", "shared", "data", "titan", "A100", name))
		if os.IsNotExist(err) {
			t.Skip("no published data: ", err)
		} else if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		all, err := csv.NewReader(f).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range all[1:] {
			var x []float64
			for _, s := range r[len(r)-columns:] {
				v, err := strconv.ParseFloat(s, 64)
				if err != nil {
					t.Fatal(err)
				}
				x = append(x, v)
			}
			row(r[0], x)
		}
	}
	points := 0
	for _, m := range Default().Models {
		gangs := map[string]int32{"1": 1, "2": 2, "4": 4, "44": 8}
		read(m.Name+"_placements.csv", 3, func(place string, x []float64) {
			if gang := gangs[place]; gang > 0 {
				points++
				if got := (m.constant(gang) + x[0]*m.SampleUS) / 1e6; math.Abs(got/x[1]-1) > .05 {
					t.Errorf("%s, %d devices, batch %g: %.4f s, measured %.4f s", m.Name, gang, x[0], got, x[1])
				}
			}
		})
		read(m.Name+"_memory.csv", 2, func(_ string, x []float64) {
			if got := (m.MemoryMiB + x[0]*m.SampleMiB) / 1024; math.Abs(got/x[1]-1) > .03 {
				t.Errorf("%s, batch %g: %.2f GiB, measured %.2f GiB", m.Name, x[0], got, x[1])
			}
		})
	}
	if points != 168 {
		t.Errorf("%d points of step time", points)
	}
}

func tunes(m *Model, gang int32, steps ...float64) (all []*tune) {
	for i, s := range steps {
		all = append(all, &tune{id: int32(i), model: m, gang: gang, batch: 16 * float64(gang), steps: s})
	}
	return all
}

// TestMergedStep: the constant is paid once, so two together take less than one after
// the other and more than one.
func TestMergedStep(t *testing.T) {
	c := Default()
	vit := &c.Models[0]
	both := tunes(vit, 1, 100, 300)
	one, two := c.step(both[:1], 1), c.step(both, 1)
	if want := 17267 + 16*1890*1.01; math.Abs(one-want) > 1 {
		t.Errorf("one step takes %.0f µs, want %.0f", one, want)
	}
	if two <= one || two >= 2*one {
		t.Errorf("a step of one takes %.0f µs, of two %.0f", one, two)
	}
	w := c.course(both, 1, nil)
	if want := []float64{100 * two, 100*two + 200*one}; math.Abs(w.ends[0]-want[0]) > 1 || math.Abs(w.ends[1]-want[1]) > 1 {
		t.Errorf("they end at %v, want %v", w.ends, want)
	}
}

// TestTotal holds the look-ahead against what one sees by hand: two devices, shortest
// first, a gang that waits for both.
func TestTotal(t *testing.T) {
	runs := []course{{id: 0, gang: 2, ends: []float64{10}}, {id: 1, gang: 1, ends: []float64{4}}, {id: 2, gang: 1, ends: []float64{6}}}
	// 1 and 2 first, to 4 and 6; then the gang from 6 to 16.
	if got := total(runs, 2); got != 4+6+16 {
		t.Errorf("the sum of ends is %g, want 26", got)
	}
}

// TestMergeHelps: by its own look-ahead a merge never makes the sum of ends larger, and
// nobody is lost or merged with another model or size.
func TestMergeHelps(t *testing.T) {
	c := Default()
	draws.Check(t, func(t *rapid.T) {
		var waiting []*tune
		for i := range rapid.IntRange(1, 14).Draw(t, "jobs") {
			m := &c.Models[rapid.IntRange(0, 2).Draw(t, "model")]
			gang := []int32{1, 2, 4}[rapid.IntRange(0, 2).Draw(t, "gang")]
			waiting = append(waiting, &tune{id: int32(i), model: m, gang: gang, batch: 8 * float64(gang), steps: float64(rapid.IntRange(1, 9999).Draw(t, "steps"))})
		}
		var runs []*group
		for _, j := range waiting {
			runs = append(runs, &group{jobs: []*tune{j}, gang: j.gang})
		}
		without := total(c.sort(runs, &lineup{}), 4)
		merged, _ := c.merge(runs, c.sort(runs, &lineup{}), 4, 80<<10, len(runs))
		seen := 0
		for _, g := range merged {
			for _, j := range g.jobs {
				if seen++; j.model != g.jobs[0].model || j.gang != g.gang {
					t.Fatalf("job %d is in a run of another kind", j.id)
				}
			}
		}
		if with := total(c.sort(merged, &lineup{}), 4); with > without*(1+1e-9) || seen != len(waiting) {
			t.Fatalf("%d of %d jobs, the sum of ends is %g, was %g", seen, len(waiting), with, without)
		}
	})
}

// source submits fine-tunes, all at once.
type source struct {
	jobs, next int
	base       func(i int) string
}

func (s *source) Next() (workload.Job, workload.Truth, error) {
	if s.next == s.jobs {
		return workload.Job{}, workload.Truth{}, io.EOF
	}
	i := s.next
	s.next++
	j := workload.Job{Name: fmt.Sprint("job", i), Resources: workload.Resources{Gang: 1, Devices: 1, Share: 1000, Memory: 4 << 10},
		Traits: workload.Traits{Base: s.base(i)}, Checkpoint: workload.Checkpoint{OnRequest: true}}
	return j, workload.Truth{Duration: unit.Duration(20+i%3) * unit.Minute, Merge: .2}, nil
}

// TestInTheEngine: jobs of one model merge and end earlier than one after the other;
// where all models differ merging changes nothing, to the byte.
func TestInTheEngine(t *testing.T) {
	run := func(merge bool, base func(i int) string) (jct float64, commits []byte) {
		var b bytes.Buffer
		c := Default()
		c.Merge, c.Batch = merge, 4
		s, err := simulated.New(simulated.Config{Cluster: cluster.Uniform("c", 1, 2, cluster.Model{Name: "gpu", Memory: 32 << 10, Speed: 1}, 4),
			Jobs: &source{jobs: 12, base: base}, TellTruth: true, Check: true, Decisions: &b,
			Scheduler: compose.New(compose.Parts{Joint: New(c), Estimator: oracle.Estimator{}, Placer: firstfit.Placer{}, Flow: maxmin.Policy{}})})
		for more := true; more && err == nil; {
			more, err = s.Advance()
		}
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Result()
		if err != nil || r.Finished != 12 {
			t.Fatalf("%d of 12 jobs finished (%v)", r.Finished, err)
		}
		return r.AvgJCTSec, b.Bytes()
	}
	same, differ := func(int) string { return "vit" }, func(i int) string { return fmt.Sprint("model", i) }
	merged, commits := run(true, same)
	alone, _ := run(false, same)
	if merged > .8*alone || !bytes.Contains(commits, []byte(`"merged"`)) {
		t.Errorf("mean JCT %.0f s merged, %.0f s one after the other", merged, alone)
	}
	_, on := run(true, differ)
	_, off := run(false, differ)
	if !bytes.Equal(on, off) {
		t.Error("with nothing to merge the decisions differ")
	}
}
