package pollux

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
)

const data = "../../../../../shared/data/pollux-sia"

// loaded returns the applications, or skips the test where the data is absent.
func loaded(t *testing.T) map[string]*Application {
	t.Helper()
	if _, err := os.Stat(data); err != nil {
		t.Skip("the Pollux profiles are not present in ../shared/data/pollux-sia")
	}
	apps, err := Load(data + "/profiles")
	if err != nil {
		t.Fatal(err)
	}
	return apps
}

// published are the average completion times in seconds of the artefact's results
// for workloads 1 to 8 at each load (osdi21-artifact, simulator/results-jobload).
var published = []struct {
	policy, load string
	mean         [8]float64
}{
	{"tiresias", "workloads", [8]float64{2473.65, 5144.9625, 3876.25625, 3280.2625, 3501.0125, 3469.69375, 5479.9125, 5079.70625}},
	{"optimus", "workloads", [8]float64{4087.0625, 6913.875, 3944.00625, 5967.75, 5656.25, 5301.875, 7290.85625, 6293.79375}},
	{"tiresias", "workloads-0.5", [8]float64{1450.9375, 2333.275, 1869.9, 1946.7625, 1425.3875, 1826.575, 3979.15, 1899.95}},
	{"optimus", "workloads-0.5", [8]float64{1309.6875, 3124.5625, 1986.8375, 2173.8625, 1324.525, 1957.9625, 5314.0, 1971.475}},
	{"tiresias", "workloads-1.5", [8]float64{5520.291667, 6333.770833, 6561.979167, 5577.320833, 6832.420833, 5830.483333, 5366.783333, 7435.75}},
	{"optimus", "workloads-1.5", [8]float64{7673.841667, 6678.1875, 5683.625, 7683.791667, 7899.725, 7500.254167, 6426.183333, 8331.3}},
	{"tiresias", "workloads-2.0", [8]float64{10138.175, 8655.990625, 10727.81875, 9664.728125, 12098.103125, 10254.66875, 8370.846875, 10405.80625}},
	{"optimus", "workloads-2.0", [8]float64{10806.596875, 8515.3875, 8363.35625, 10312.9125, 11830.04375, 9767.25625, 6997.96875, 11174.79375}},
}

func newPolicy(name string) Policy {
	if name == "tiresias" {
		return NewTiresias()
	}
	return Optimus{}
}

// TestPublished replays the published runs. With the artefact's own choice among
// equal triangulations every average must come out to the last digit; with ours
// Tiresias does to a few seconds of one job, and Optimus, whose choices compound,
// must stay close.
func TestPublished(t *testing.T) {
	ours, theirs := loaded(t), loaded(t)
	prefill(t, theirs)
	for _, row := range published {
		t.Run(row.policy+"/"+row.load, func(t *testing.T) {
			if row.load != "workloads" && os.Getenv("MUSTER_LONG") == "" {
				t.Skip("set MUSTER_LONG=1 for the loads other than 1.0")
			}
			var sumOurs, sumPublished float64
			for i, want := range row.mean {
				member := fmt.Sprintf("%s/workload-%d.csv", row.load, i+1)
				workload, err := readArchive(member)
				if err != nil {
					t.Fatal(err)
				}
				exact, got := mean(t, workload, theirs, row.policy), mean(t, workload, ours, row.policy)
				t.Logf("%s %s: published %.3f s, with its ties %.3f s, with ours %.3f s (%+.3f %%)",
					row.policy, member, want, exact, got, 100*(got/want-1))
				if math.Abs(exact-want) > 1e-6 {
					t.Errorf("%s with the published ties: average %.6f s, published %.6f s", member, exact, want)
				}
				sumOurs, sumPublished = sumOurs+got, sumPublished+want
				limit := map[string]float64{"tiresias": 1e-5, "optimus": 0.015}[row.policy]
				if i == 5 && row.load == "workloads" {
					limit = 0.001
				}
				if math.Abs(got/want-1) > limit {
					t.Errorf("%s: average %.3f s, published %.3f s, more than %g apart", member, got, want, limit)
				}
			}
			if off := sumOurs/sumPublished - 1; math.Abs(off) > 0.004 {
				t.Errorf("mean of the eight workloads is %+.3f %% off the published %.2f s", 100*off, sumPublished/8)
			}
		})
	}
}

func mean(t *testing.T, workload []Request, apps map[string]*Application, policy string) float64 {
	t.Helper()
	r, err := Run(workload, apps, Default(), newPolicy(policy))
	if err != nil {
		t.Fatal(err)
	}
	if r.Unfinished > 0 {
		t.Fatalf("%d jobs did not finish", r.Unfinished)
	}
	return r.MeanSeconds
}

// prefill answers the points of testdata/ties.txt with the simplices named there.
// Each must be a legitimate choice: made of measured points around the point, with
// no more spread than ours.
func prefill(t *testing.T, apps map[string]*Application) {
	t.Helper()
	f, err := os.Open("testdata/ties.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if fields[0] == "#" {
			continue
		}
		s, q := &apps[fields[0]].scatter, parsePoint(t, fields[1])
		ours, ok := s.surround(q)
		theirs, found := s.within(t, q, fields[2:])
		if !ok || !found {
			t.Fatalf("%s: not a simplex around the point", lines.Text())
		}
		if a, b := s.spreadOf(q, ours), s.spreadOf(q, theirs); math.Abs(a-b) > 1e-9*a {
			t.Fatalf("%s: spread %v, ours %v: not a tie", lines.Text(), b, a)
		}
		s.known[q] = s.mean(theirs)
	}
}

// within weighs the named points, made up to four by any that keep them independent.
func (s *scatter) within(t *testing.T, q point, names []string) (corners, bool) {
	var at []int
	for _, name := range names {
		p := parsePoint(t, name)
		for i := range s.samples {
			if s.samples[i].at == p {
				at = append(at, i)
			}
		}
	}
	if len(at) != len(names) {
		return corners{}, false
	}
	return s.complete(s.columns(q), at)
}

func (s *scatter) complete(columns []column, at []int) (corners, bool) {
	if len(at) == 4 {
		return weigh(columns, [4]int(at))
	}
	for i := range columns {
		if c, ok := s.complete(columns, append(at[:len(at):len(at)], i)); ok {
			return c, true
		}
	}
	return corners{}, false
}

func (s *scatter) spreadOf(q point, c corners) float64 {
	d := distances(s.columns(q))
	sum := 0.0
	for i, at := range c.at {
		sum += float64(c.num[i]) / float64(c.den) * float64(d[at])
	}
	return sum
}

func parsePoint(t *testing.T, s string) point {
	t.Helper()
	var p point
	if _, err := fmt.Sscanf(s, "%d,%d,%d", &p[0], &p[1], &p[2]); err != nil {
		t.Fatalf("%q is not a point: %v", s, err)
	}
	return p
}

// readArchive reads one of the published workloads.
func readArchive(member string) ([]Request, error) {
	f, err := os.Open(data + "/pollux_workloads.tar.gz")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readMember(f, f.Name(), member)
}

// BenchmarkRun plays workload 6 of the published experiments.
func BenchmarkRun(b *testing.B) {
	apps, err := Load(data + "/profiles")
	if err != nil {
		b.Skip("the Pollux profiles are not present in ../shared/data/pollux-sia")
	}
	workload, err := readArchive("workloads/workload-6.csv")
	if err != nil {
		b.Fatal(err)
	}
	for _, policy := range []string{"tiresias", "optimus"} {
		b.Run(policy, func(b *testing.B) {
			for b.Loop() {
				if _, err := Run(workload, apps, Default(), newPolicy(policy)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
