package trace

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// The catalogue's definitions, word for word in numbers.
func TestReferenceWorkloads(t *testing.T) {
	tests := []struct {
		name             string
		jobs, devices    int
		gangs            map[int32]float64
		median, sigma    float64
		low, high        unit.Duration
		restart          unit.Duration
		meanSensitivity  float64
		sensitiveWorkers bool
	}{
		{"RW-A", 480, 60, map[int32]float64{1: .42, 2: .12, 4: .18, 8: .18, 16: .07, 32: .03},
			1800, 1.8, unit.Minute, 72 * unit.Hour, 0, 0, false},
		{"RW-A'", 160, 32, map[int32]float64{1: .42, 2: .12, 4: .18, 8: .18, 16: .10},
			1800, 1.8, unit.Minute, 72 * unit.Hour, unit.Minute, 0, false},
		{"rw-a-prime", 160, 32, map[int32]float64{1: .42, 2: .12, 4: .18, 8: .18, 16: .10},
			1800, 1.8, unit.Minute, 72 * unit.Hour, unit.Minute, 0, false},
		{"rw-l", 160, 64, map[int32]float64{1: .3, 2: .15, 4: .2, 8: .2, 16: .15},
			3600, 1.3, 300 * unit.Second, 24 * unit.Hour, 0, 2.6 / 4, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if n := len(readJobs(t, "gen:"+test.name)); n != test.jobs {
				t.Errorf("%d jobs, want %d", n, test.jobs)
			}
			const many = 40_000
			gangs := map[int32]float64{}
			var logs, squares, sensitivity float64
			inside, wide := 0, 0
			for _, e := range readJobs(t, fmt.Sprintf("gen:%s?jobs=%d&seed=5", test.name, many)) {
				gangs[e.job.Gang] += 1. / many
				d := e.truth.Duration
				if d < test.low || d > test.high {
					t.Fatalf("a duration of %s", d)
				}
				if d > test.low && d < test.high {
					inside++
				}
				x := math.Log(d.Seconds())
				logs, squares = logs+x, squares+x*x
				if e.job.Gang > 1 {
					wide++
					sensitivity += e.truth.Sensitivity
				} else if e.truth.Sensitivity != 0 {
					t.Fatal("a job of one worker is sensitive")
				}
				if c := e.job.Checkpoint; c.OnRequest || c.Load != test.restart || c.Every != 0 {
					t.Fatalf("checkpoint %+v", c)
				}
			}
			for gang, want := range test.gangs {
				near(t, fmt.Sprint("the part of gangs of ", gang), gangs[gang], want, 0.06)
			}
			mean := logs / many
			near(t, "median", math.Exp(mean), test.median, 0.05)
			near(t, "sigma", math.Sqrt(squares/many-mean*mean), test.sigma, 0.05)
			if test.sensitiveWorkers {
				near(t, "sensitivity", sensitivity/float64(wide), test.meanSensitivity, 0.03)
			}
		})
	}
}

// The rate follows the mean demand of the sample itself: work over load times
// devices is the expected span, which Poisson gaps meet within a few percent.
func TestGeneratedLoad(t *testing.T) {
	for _, s := range shapes {
		for _, load := range []float64{0.5, 0.95} {
			got := summary(t, fmt.Sprintf("gen:%s?jobs=20000&load=%g&seed=2", s.name, load), Options{})
			near(t, s.name+" load", got.Load(s.devices), load, 0.03)
		}
	}
	r := summary(t, "gen:rw-a?jobs=20000", Options{Load: 0.7, Devices: 128})
	near(t, "load by options", r.Load(128), 0.7, 0.03)
}

func TestGeneratedDays(t *testing.T) {
	byLoad := summary(t, "gen:rw-l?days=400&load=0.8", Options{})
	near(t, "span at a load", byLoad.Span.Seconds()/86400, 400, 0.06)
	near(t, "load over days", byLoad.Load(64), 0.8, 0.06)
	byJobs := summary(t, "gen:helios?days=90&jobs=20000", Options{})
	near(t, "span of given jobs", byJobs.Span.Seconds()/86400, 90, 0.03)
	sparse := summary(t, "gen:helios?days=36000&jobs=20000", Options{}) // gaps of more than a day
	near(t, "span of rare jobs", sparse.Span.Seconds()/86400, 36000, 0.03)
}

// Shapes against the figures that the data sets publish.
func TestShapesFit(t *testing.T) {
	tests := []struct {
		name                           string
		median, mean, p95, hoursPerJob float64
		single                         float64 // part of the jobs with one device
	}{
		{"philly", 1_213, 13_108, 37_937, 894_968. / 74_167, 69_294. / 74_167},
		{"helios", 205, 9_311, 58_791, 1_990_761. / 99_707, 50_278. / 99_707},
		{"pai", 637, 5_255, 24_351, 498_721. / 43_308, 33_251. / 43_308},
	}
	for _, test := range tests {
		s := summary(t, "gen:"+test.name+"?jobs=200000&seed=9", Options{})
		near(t, test.name+" median", s.P50.Seconds(), test.median, 0.08)
		near(t, test.name+" mean", s.Mean.Seconds(), test.mean, 0.08)
		near(t, test.name+" p95", s.P95.Seconds(), test.p95, 0.08)
		near(t, test.name+" device-hours per job", s.DeviceHours/float64(s.Jobs), test.hoursPerJob, 0.10)
		near(t, test.name+" single", float64(s.Gangs[0].Jobs)/float64(s.Jobs), test.single, 0.01)
		if (s.Tenants > 0) != (test.name == "philly") {
			t.Errorf("%s has %d tenants", test.name, s.Tenants)
		}
	}
}

func TestArrivalsFollowTheDay(t *testing.T) {
	const jobs = 100_000
	var hours [24]float64
	for _, e := range readJobs(t, fmt.Sprintf("gen:helios?jobs=%d&days=100", jobs)) {
		hours[int(e.job.Submit.Seconds()/3600)%24] += 24. / jobs
	}
	for h, want := range heliosHours {
		if math.Abs(hours[h]-want) > 0.08 {
			t.Errorf("hour %d has %.2f of the mean rate, want %.2f", h, hours[h], want)
		}
	}
}

func TestMeansAreExact(t *testing.T) {
	laws := []law{rwRun, rwLongRun, phillyRun4, heliosRun8, paiRun1}
	for i, l := range laws {
		r := rand.New(rand.NewPCG(1, uint64(i)))
		const n = 400_000
		var sum float64
		for range n {
			sum += l.draw(r)
		}
		near(t, fmt.Sprint("law ", i), sum/n, l.mean(), 0.02)
	}
}

// The same seed gives the same jobs; extra keys leave what they do not speak of.
func TestGeneratorsRepeat(t *testing.T) {
	for _, s := range shapes {
		ref := "gen:" + s.name + "?jobs=300&seed=4"
		first := readJobs(t, ref)
		if !reflect.DeepEqual(first, readJobs(t, ref)) {
			t.Errorf("%s differs from itself", s.name)
		}
		if reflect.DeepEqual(first, readJobs(t, strings.Replace(ref, "=4", "=5", 1))) {
			t.Errorf("%s does not follow its seed", s.name)
		}
		declared := readJobs(t, ref+"&estimate=exact&restart=90s")
		for i, e := range declared {
			if e.job.Estimate != e.truth.Duration || e.job.Checkpoint.Load != 90*unit.Second {
				t.Fatalf("%+v", e)
			}
			e.job.Estimate, e.job.Checkpoint = 0, first[i].job.Checkpoint
			if !reflect.DeepEqual(e, first[i]) {
				t.Fatalf("%s: an estimate changed job %d", s.name, i)
			}
		}
	}
}

// A job whose phase is known says of a second of computation how much longer one node
// more than it needs would make it, and all else stays.
func TestPhasesAreDeclared(t *testing.T) {
	plain, known := readJobs(t, "gen:rw-l"), readJobs(t, "gen:rw-l?phase=known")
	for i, e := range known {
		if want := (workload.Phase{Compute: unit.Second, Communicate: unit.Seconds(e.truth.Sensitivity)}); e.job.Phase != want {
			t.Fatalf("%+v, want %+v", e.job.Phase, want)
		}
		e.job.Phase = workload.Phase{}
		if !reflect.DeepEqual(e, plain[i]) {
			t.Fatalf("a phase changed job %d", i)
		}
	}
	if _, err := Open("gen:rw-l?phase=maybe", Options{}); err == nil || !strings.Contains(err.Error(), "expected known") {
		t.Error(err)
	}
}

func TestGangsFitTheDevices(t *testing.T) {
	for _, e := range readJobs(t, "gen:helios?jobs=5000&devices=16") {
		if e.job.Gang > 16 {
			t.Fatalf("a gang of %d", e.job.Gang)
		}
	}
}

func TestKinds(t *testing.T) {
	for _, k := range Kinds() {
		if k.About == "" {
			t.Errorf("%s says nothing of itself", k.Ref)
		}
		if strings.HasPrefix(k.Ref, "gen:") {
			if _, err := Open(k.Ref, Options{Limit: 1}); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestSummarise(t *testing.T) {
	all := "name,submit_s,duration_s,gang,devices_per_worker,share_milli,tenant,estimate_s,deadline_s\n" +
		"a,0,3600,2,1,,x,1,\nb,10,7200,1,1,500,y,,5\nc,20,,4,2,,x,,\nd,3600,1800,3,0,,,,\n"
	r, err := openFile(&musterFormat, bytesSource([]byte(all)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := Summarise(r)
	want := Stats{Jobs: 4, CPUOnly: 1, Fractional: 1, Tenants: 2, Estimates: 1, Deadlines: 1, Unknown: 1,
		Span: unit.Hour, DeviceHours: 3, Mean: 70 * unit.Minute, P50: unit.Hour, P95: 2 * unit.Hour, P99: 2 * unit.Hour,
		Max: 2 * unit.Hour, Gangs: []GangCount{{0, 1}, {500, 1}, {2000, 1}, {8000, 1}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
	}
	if got.Load(4) != 0.75 {
		t.Errorf("load %g, want 0.75", got.Load(4))
	}
}
