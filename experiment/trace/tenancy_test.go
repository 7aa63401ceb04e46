package trace

import (
	"encoding/csv"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/musterdl/muster/model/workload"
)

// dressed reads a trace to its end, dressed up.
func dressed(t *testing.T, ref, name string, opt Options, seed uint64) (*Tenanted, []entry) {
	t.Helper()
	r, err := Open(ref, opt)
	if err != nil {
		t.Fatal(err)
	}
	w, err := WithTenants(r, name, seed)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var all []entry
	for {
		job, truth, err := w.Next()
		if errors.Is(err, io.EOF) {
			return w, all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, entry{job, truth})
	}
}

// undressed is a job without what a tenancy may change.
func undressed(j workload.Job) workload.Job {
	j.Tenant, j.User, j.Priority = "", "", 0
	return j
}

func TestTenancyChangesNothingElse(t *testing.T) {
	ref := "helios:" + data(t, "helios")
	opt := Options{Load: 0.8, Devices: 592, Limit: 20_000}
	r, err := Open(ref, opt)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	_, all := dressed(t, ref, "venus", opt, 1)
	for i, got := range all {
		job, truth, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(undressed(got.job), job) || !reflect.DeepEqual(got.truth, truth) {
			t.Fatalf("job %d was %+v %+v, is %+v", i, job, truth, got)
		}
	}
	if _, _, err := r.Next(); !errors.Is(err, io.EOF) || len(all) != 20_000 {
		t.Errorf("%d jobs, then %v", len(all), err)
	}
}

func TestTenancyOfVenus(t *testing.T) {
	w, all := dressed(t, "helios:"+data(t, "helios"), "venus", Options{}, 7)
	tenants, high := map[string]int{}, 0
	users := map[string]map[string]int{}
	for _, e := range all {
		tenants[e.job.Tenant]++
		if users[e.job.Tenant] == nil {
			users[e.job.Tenant] = map[string]int{}
		}
		users[e.job.Tenant][e.job.User]++
		high += count(e.job.Priority == HighPriority)
		if e.job.Priority != 0 && e.job.Priority != HighPriority || !strings.HasPrefix(e.job.User, "synthetic-"+e.job.Tenant+"-") {
			t.Fatalf("job %+v", e.job)
		}
	}
	var nodes int64
	for _, c := range VirtualClusters("venus") {
		nodes += c.Size
	}
	n := float64(len(all))
	for _, c := range VirtualClusters("venus") {
		p := float64(c.Size) / float64(nodes)
		if off := math.Abs(float64(tenants[c.Name]) - n*p); off > 4*math.Sqrt(n*p*(1-p)) {
			t.Errorf("%s has %d of %.0f jobs, want a part of %.4f", c.Name, tenants[c.Name], n, p)
		}
	}
	if off := math.Abs(float64(high) - n/10); off > 4*math.Sqrt(n*.09) {
		t.Errorf("%d of %.0f jobs have high priority, want a tenth", high, n)
	}
	// vcJsw is the largest, vcvGl the second, vcgkz the last of 15.
	for name, want := range map[string]int{"vcJsw": 64, "vcvGl": 32, "vcgkz": 4} {
		if got := len(users[name]); got != want {
			t.Errorf("%s has %d users, want %d", name, got, want)
		}
	}
	first, third := users["vcJsw"]["synthetic-vcJsw-1"], users["vcJsw"]["synthetic-vcJsw-3"]
	if ratio := float64(first) / float64(third); ratio < 2.7 || ratio > 3.3 {
		t.Errorf("the first user has %d jobs and the third %d, want three times as many", first, third)
	}
	want := "synthetic, drawn by seed 7 in the shape of venus: the tenants of 99707 jobs, the users of 99707 jobs, the priorities of 99707 jobs"
	if w.About() != want {
		t.Errorf("about it: %s", w.About())
	}
}

func TestTenancySeeds(t *testing.T) {
	_, a := dressed(t, "gen:rw-a", "venus", Options{Seed: 1}, 1)
	_, b := dressed(t, "gen:rw-a", "venus", Options{Seed: 1}, 1)
	_, c := dressed(t, "gen:rw-a", "venus", Options{Seed: 1}, 2)
	if !reflect.DeepEqual(a, b) {
		t.Error("the same seed drew another trace")
	}
	if reflect.DeepEqual(a, c) {
		t.Error("another seed drew the same trace")
	}
}

// What a trace says stays, and does not move what is drawn for the other jobs.
func TestTenancyKeepsWhatIsSaid(t *testing.T) {
	w, all := dressed(t, "philly:"+data(t, "philly"), "philly", Options{Limit: 5000}, 1)
	known := map[string]bool{}
	for _, c := range VirtualClusters("philly") {
		known[c.Name] = true
	}
	for i, e := range readJobs(t, "philly:"+data(t, "philly"))[:5000] {
		if all[i].job.Tenant != e.job.Tenant || !known[e.job.Tenant] {
			t.Fatalf("job %d is of %q, was of %q", i, all[i].job.Tenant, e.job.Tenant)
		}
	}
	if about := w.About(); strings.Contains(about, "tenants") || !strings.Contains(about, "the users of 5000 jobs") {
		t.Errorf("about it: %s", about)
	}
	file := filepath.Join(t.TempDir(), "t.csv")
	plain := "name,submit_s,duration_s,tenant,user,priority\na,0,1,,,\nb,1,1,,,\nc,2,1,,,\n"
	said := strings.Replace(plain, "b,1,1,,,", "b,1,1,mine,me,-3", 1)
	var got [2][]entry
	for k, text := range []string{plain, said} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, got[k] = dressed(t, "muster:"+file, "venus", Options{}, 3)
	}
	if j := got[1][1].job; j.Tenant != "mine" || j.User != "me" || j.Priority != -3 {
		t.Errorf("what was said became %+v", j)
	}
	if !reflect.DeepEqual(got[0][0], got[1][0]) || !reflect.DeepEqual(got[0][2], got[1][2]) {
		t.Error("what one job says changed another's draws")
	}
}

// The constants are those of the published files.
func TestVirtualClusterSizes(t *testing.T) {
	f, err := os.Open(filepath.Join(data(t, "helios"), "venus_vc_config.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var venus []VirtualCluster
	for _, row := range rows[1:] {
		n, err := strconv.ParseInt(row[1], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		venus = append(venus, VirtualCluster{row[0], n})
	}
	if got := VirtualClusters("venus"); !reflect.DeepEqual(got, venus) {
		t.Errorf("venus is %v, in the file %v", got, venus)
	}
	hours := map[string]float64{}
	for _, e := range readJobs(t, "philly:"+data(t, "philly")) {
		hours[e.job.Tenant] += float64(e.job.Gang) * e.truth.Duration.Seconds() / 3600
	}
	for _, c := range VirtualClusters("philly") {
		if want := max(1, int64(math.Round(hours[c.Name]))); c.Size != want {
			t.Errorf("%s has %d GPU-hours, in the file %d", c.Name, c.Size, want)
		}
		delete(hours, c.Name)
	}
	if len(hours) > 0 {
		t.Errorf("no sizes of %v", hours)
	}
}

func TestTenancyNames(t *testing.T) {
	if _, err := WithTenants(nil, "mars", 1); err == nil || err.Error() != `tenants "mars": expected one of venus, philly` {
		t.Error(err)
	}
	if VirtualClusters("mars") != nil {
		t.Error("mars has virtual clusters")
	}
	sizes := VirtualClusters("venus")
	sizes[0].Size = 0
	if VirtualClusters("venus")[0].Size == 0 {
		t.Error("a caller can change the sizes")
	}
}
