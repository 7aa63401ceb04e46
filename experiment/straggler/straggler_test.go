package straggler

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterdl/muster/model/figures"
)

// TestPublished: every figure that the authors found is found to a millionth, and soon.
func TestPublished(t *testing.T) {
	began := time.Now()
	got, err := Measure(func(path string) (io.ReadCloser, error) { return os.Open(filepath.Join("../../../shared/data", path)) }, 1)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("no ../shared/data/straggler: the traces are not in the repository")
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range got {
		if strings.HasSuffix(name, "off") && !(x <= 1e-6) {
			t.Errorf("%s is %.3g: expected at most a millionth", name, x)
		}
	}
	if took := time.Since(began); took > 2*time.Second && os.Getenv("MUSTER_LONG") == "1" {
		t.Errorf("both took %v: expected less than 2 s", took)
	}
	t.Log(got)
}

// small is a job of two copies and two stages with two microbatches. Every pass takes 1 s but
// those of the first copy's first stage in the second step, which take 3; nothing else takes time.
func small(change func(line string) string) string {
	var b strings.Builder
	b.WriteString("dp_rank,stage,rank,step,optype,start_ts,duration,seq_id,mc,mb_id,gmc\n")
	add := func(step, copy, stage, seq int, kind string, start, took float64) {
		line := fmt.Sprintf("%d,%d,%d,%d,%s,%g,%g,%d,0,0,0\n", copy, stage, 2*copy+stage, step, kind, start, took, seq)
		b.WriteString(change(line))
	}
	for step := range 2 {
		for copy := range 2 {
			for stage := range 2 {
				at := 0.
				for i, kind := range []string{forward, forward, backward, backward} {
					if stage == 1 {
						kind = []string{forward, backward, forward, backward}[i]
					}
					took := 1.
					if step == 1 && copy == 0 && stage == 0 {
						took = 3
					}
					seq := i % 2
					if stage == 1 {
						seq = i / 2
					}
					add(step, copy, stage, seq, kind, at, took)
					at += took
				}
				for _, kind := range []string{pause, norms, embedding, scatter, clip, update} {
					add(step, copy, stage, 0, kind, 20, 0)
				}
				for seq := range 2 {
					add(step, copy, stage, seq, []string{sendF, recvF}[stage], float64(seq), 0)
					add(step, copy, stage, seq, []string{recvB, sendB}[stage], float64(4+seq), 0)
				}
			}
		}
	}
	return b.String()
}

// only opens a file that holds a text.
func only(text string) figures.Open {
	return func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }
}

// TestSmall counts a step by hand: F0 F1 on the first stage, F0 B0 F1 B1 on the second, B0 B1.
func TestSmall(t *testing.T) {
	trace, err := Read(only(small(func(line string) string { return line })), "small.csv")
	if err != nil {
		t.Fatal(err)
	}
	c, err := trace.Cost()
	if err != nil {
		t.Fatal(err)
	}
	usual := 1.25 // the mean of seven passes of 1 s and one of 3
	if want := []float64{6, 12}; math.Abs(c.Run[0]-want[0]) > 1e-9 || math.Abs(c.Run[1]-want[1]) > 1e-9 || math.Abs(c.Usual[0]-6*usual) > 1e-9 {
		t.Errorf("steps of %v s, usually %v: expected %v and %g", c.Run, c.Usual, want, 6*usual)
	}
	if by := c.By["stage"]; !(by["0"] > by["1"]) || !(c.By["dp_rank"]["0"] > c.By["dp_rank"]["1"]) || c.Worst < 0.9 {
		t.Errorf("the slow worker is not found: %+v", c)
	}
}

// TestMistakes: each is named with its file and line.
func TestMistakes(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"optype", "kind", "small.csv:1: expected a column optype"},
		{"forward-compute", "forward", `small.csv:2: optype is "forward": expected one of`},
		{"compute,0,1", "compute,0,-0.5", "expected nothing negative"},
		{"compute,0,1", "compute,0,x", `duration is "x": expected a number`},
		{"1,1,3,1,forward-compute,2", "1,1,3,1,forward-compute,0,1,7,0,0,0\n1,1,3,1,forward-compute,2", "forward-compute 7 of stage 1: the first copy has none"},
		{"1,1,3,1,optimizer,20,0,0,0,0,0\n", "", "step 1, dp_rank 1: there is no optimizer 0 of stage 1"},
		{"1,1,3,1,optimizer,20,0,0,0,0,0\n", "1,1,3,1,optimizer,20,0,0,0,0,0\n1,1,3,1,optimizer,20,0,0,0,0,0\n", "has it too"},
		{"0,0,0\n", "1,0,0\n", "mc is 1: expected one chunk"},
	} {
		text := small(func(line string) string { return line })
		_, err := Read(only(strings.Replace(text, c.old, c.new, 1)), "small.csv")
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "small.csv:") {
			t.Errorf("%q for %q: %v: expected %q", c.new, c.old, err, c.want)
		}
	}
	if _, err := Read(only(""), "empty.csv"); err == nil {
		t.Error("an empty file is read")
	}
}
