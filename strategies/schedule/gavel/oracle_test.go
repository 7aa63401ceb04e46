package gavel

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize/convex/lp"
)

// atOnce is a bundled trace as if all its jobs had come at once, on 8:16:24 devices.
func atOnce(t *testing.T, trace, policy string, most int) Problem {
	p := Problem{Policy: policy, Room: []float64{8, 16, 24}}
	jobs := published(t, trace).Jobs
	for {
		j, truth, err := jobs.Next()
		if err != nil || len(p.Rate) == most {
			break
		}
		rate := make([]float64, 3)
		for _, offer := range j.Menu {
			rate[slices.Index([]string{"v100", "p100", "k80"}, offer.Model)] = offer.Rate
		}
		p.Rate, p.Gang, p.Steps = append(p.Rate, rate), append(p.Gang, float64(j.Gang)), append(p.Steps, truth.Duration.Seconds())
	}
	return p
}

// values are the rows the oracles see, written out here once more: the rate of a job
// over that of an equal share, or over its steps in hours.
func values(p Problem) [][]float64 {
	a := make([][]float64, len(p.Rate))
	for j, rates := range p.Rate {
		unit := p.Steps[j] / 3600
		if p.Policy == MaxMin {
			unit = 0
			for k, r := range rates {
				unit += r * p.Room[k] / math.Max(48, float64(len(p.Rate)))
			}
			unit /= p.Gang[j]
		}
		for _, r := range rates {
			a[j] = append(a[j], r/unit)
		}
	}
	return a
}

// objective is what the policy calls the least value.
func objective(p Problem, least float64) float64 {
	if p.Policy == Makespan {
		return 3600 / least
	}
	return least
}

// glpsol solves the max-min program with GLPK.
func glpsol(t *testing.T, p Problem) float64 {
	a := values(p)
	var b strings.Builder
	b.WriteString("Maximize\n obj: t\nSubject To\n")
	room := make([]string, len(p.Room))
	for j := range a {
		value, time := "", ""
		for k := range a[j] {
			if p.Rate[j][k] > 0 {
				value += fmt.Sprintf(" + %.17g x_%d_%d", a[j][k], j, k)
				time += fmt.Sprintf(" + x_%d_%d", j, k)
				room[k] += fmt.Sprintf(" + %g x_%d_%d\n", p.Gang[j], j, k)
			}
		}
		fmt.Fprintf(&b, " v%d: %s - t >= 0\n s%d: %s <= 1\n", j, value, j, time)
	}
	for k, terms := range room {
		fmt.Fprintf(&b, " r%d: %s <= %g\n", k, terms, p.Room[k])
	}
	b.WriteString("End\n")
	dir := t.TempDir()
	in, out := filepath.Join(dir, "p.lp"), filepath.Join(dir, "out")
	if err := os.WriteFile(in, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command("glpsol", "--lp", in, "--write", out).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 2 && f[0] == "s" {
			least, err := strconv.ParseFloat(f[len(f)-1], 64)
			if err != nil {
				t.Fatal(err)
			}
			return objective(p, least)
		}
	}
	t.Fatalf("glpsol wrote no objective:\n%s", text)
	return 0
}

// simplex solves it with gonum, in standard form: x, t and a slack per row.
func simplex(t *testing.T, p Problem) float64 {
	a := values(p)
	n, m := len(a), len(p.Room)
	rows := 2*n + m
	eq, b, c := mat.NewDense(rows, n*m+1+rows, nil), make([]float64, rows), make([]float64, n*m+1+rows)
	c[n*m] = -1
	for j := range a {
		for k := range m {
			if p.Rate[j][k] > 0 {
				eq.Set(j, j*m+k, -a[j][k])
				eq.Set(n+j, j*m+k, 1)
				eq.Set(2*n+k, j*m+k, p.Gang[j])
			} else {
				eq.Set(n+j, j*m+k, 2) // useless
			}
		}
		eq.Set(j, n*m, 1)
		b[n+j] = 1
	}
	for i := range rows {
		eq.Set(i, n*m+1+i, 1)
		if i >= 2*n {
			b[i] = p.Room[i-2*n]
		}
	}
	z, _, err := lp.Simplex(c, eq, b, 1e-12, nil)
	if err != nil {
		t.Fatalf("gonum: %v", err)
	}
	return objective(p, -z)
}

// TestOracles: objectives on the bundled traces, against GLPK on all jobs and gonum on
// the first few.
func TestOracles(t *testing.T) {
	for _, c := range []struct{ trace, policy string }{{"max_min_fairness.trace", MaxMin}, {"minimize_makespan.trace", Makespan}} {
		check := func(oracle string, p Problem, want float64) {
			if got := divided(t, p).Objective; math.Abs(got-want) > 1e-6*want {
				t.Errorf("%s, %d jobs: got %.9g, %s has %.9g", c.policy, len(p.Rate), got, oracle, want)
			} else {
				t.Logf("%s, %d jobs: %.9g, %s has %.9g", c.policy, len(p.Rate), got, oracle, want)
			}
		}
		few := atOnce(t, c.trace, c.policy, 12)
		check("gonum", few, simplex(t, few))
		if _, err := exec.LookPath("glpsol"); err != nil {
			t.Log("glpsol is not installed")
			continue
		}
		all := atOnce(t, c.trace, c.policy, 1000)
		check("glpsol", all, glpsol(t, all))
	}
}
