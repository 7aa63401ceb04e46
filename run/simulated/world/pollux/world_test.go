package pollux

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// toy is an application with steps of 1 s on one replica and 2 s on more, on any
// nodes, whose epochs take progress steps of the initial batch 8, and whose gain is
// the batch scale (no noise at all) or 1 (only signal).
func toy(progress float64, gradient Gradient) *Application {
	a := &Application{Name: "toy", InitBatch: 8, MaxBatch: 32, MinLocal: 1, MaxLocal: 16, Epochs: 2, placed: make(map[string]timing)}
	for name, seconds := range map[string]float64{"1": 1, "2": 2, "4": 2, "11": 2, "13": 2} {
		a.placed[name] = timing{local: []int{1, 16}, times: []Step{{seconds, 0.5}, {seconds, 0.5}}}
	}
	for _, batch := range []int{8, 32} {
		a.runs = append(a.runs, run{batch: batch, progress: []float64{progress, 2 * progress},
			iterations: []float64{progress, 2 * progress}, gradients: []Gradient{gradient, gradient}})
	}
	return a
}

var (
	signal = Gradient{Sqr: 1}
	noise  = Gradient{Var: 1}
)

func TestJobClosedForms(t *testing.T) {
	for _, c := range []struct {
		name      string
		gradient  Gradient
		batch     int
		placement []int
		progress  float64 // per epoch
		finish    int
	}{
		{"restart, then 100 steps of 1 s", signal, 8, []int{1}, 50, 30 + 100},
		{"one replica above the initial batch takes a second pass of 0.5 s", noise, 16, []int{1}, 60, 30 + 90},
		{"a signal gains nothing from batch", signal, 16, []int{2}, 50, 30 + 200},
		{"noise gains the scale", noise, 32, []int{4}, 50, 30 + 50},
		{"32 on two is one pass", noise, 32, []int{1, 1}, 50, 30 + 50},
		{"epochs of 2.5 s end after 2", signal, 8, []int{1}, 2.5, 30 + 4},
		{"epochs of 3.5 s end after 4", signal, 8, []int{1}, 3.5, 30 + 8},
	} {
		j := NewJob(Request{Name: "j", Batch: c.batch}, toy(c.progress, c.gradient), 30)
		j.Place(c.placement)
		for range 20 {
			if err := j.Advance(60, 0); err != nil {
				t.Fatal(err)
			}
		}
		_, replicas := size(c.placement)
		if !j.Finished || j.FinishSeconds != c.finish || j.DeviceSeconds != replicas*c.finish {
			t.Errorf("%s: finished %v at %d s with %d device-seconds, expected %d s", c.name, j.Finished, j.FinishSeconds, j.DeviceSeconds, c.finish)
		}
	}
}

func TestSplit(t *testing.T) {
	a := toy(1, signal)
	for _, c := range []struct {
		batch, replicas int
		want            Split
	}{
		{8, 1, Split{8, 0}}, {9, 1, Split{5, 1}}, {32, 1, Split{16, 1}}, {32, 2, Split{16, 0}}, {32, 3, Split{10, 0}}, {17, 4, Split{5, 0}},
	} {
		if got := a.Split(c.batch, c.replicas); got != c.want {
			t.Errorf("Split(%d, %d) = %v, expected %v", c.batch, c.replicas, got, c.want)
		}
	}
}

func TestEfficiency(t *testing.T) {
	for _, c := range []struct {
		gradient Gradient
		want     float64
	}{{signal, 0.25}, {noise, 1}, {Gradient{1, 1}, 2 / 1.25 / 4}} {
		g, err := toy(1, c.gradient).Gradient(32, 0)
		if got := g.Gain(4) / 4; err != nil || got != c.want {
			t.Errorf("efficiency of %v at scale 4: %v, %v, expected %v", c.gradient, got, err, c.want)
		}
	}
	if _, err := toy(1, signal).Gradient(33, 0); err == nil {
		t.Error("a batch above every recorded run has a gradient")
	}
}

// scripted grants job 0 whatever the script says for the tick, others nothing.
type scripted struct {
	script []Grant
	tick   int
}

func (s *scripted) Allocate(_ int, jobs []View, _ Config) ([]Grant, error) {
	grants := make([]Grant, len(jobs))
	grants[0] = s.script[min(s.tick, len(s.script)-1)]
	s.tick++
	return grants, nil
}

func TestRun(t *testing.T) {
	on := func(nodes ...int) Grant { return Grant{Nodes: nodes} }
	for _, c := range []struct {
		name     string
		script   []Grant
		seconds  int // from submission at second 7 to the end; 0 if it never ends
		restarts int
	}{
		{"starts at the first tick", []Grant{on(0)}, 53 + 30 + 100, 0},
		{"moving to another node restarts", []Grant{on(0), on(1)}, 53 + 60 + 30 + 70, 1},
		{"a new order of nodes restarts", []Grant{on(0, 1), on(1, 0)}, 53 + 60 + 30 + 170, 1},
		{"stopping keeps progress", []Grant{on(0), {}, on(0)}, 53 + 120 + 30 + 70, 1},
		{"a larger batch of a pure signal is no help but its second pass costs", []Grant{{Nodes: []int{0}, Batch: 16}}, 53 + 30 + 150, 0},
		{"no grant, no end", []Grant{{}}, 0, 0},
	} {
		cluster := Config{Nodes: 2, DevicesPerNode: 4, TickSeconds: 60, RestartSeconds: 30, HorizonSeconds: 3600}
		workload := []Request{{Name: "j", SubmitSeconds: 7, Application: "toy", Replicas: 1, Batch: 8}}
		r, err := Run(workload, map[string]*Application{"toy": toy(50, signal)}, cluster, &scripted{script: c.script})
		if err != nil {
			t.Fatal(err)
		}
		if o := r.Jobs[0]; o.Finished != (c.seconds > 0) || o.Seconds != c.seconds || o.Restarts != c.restarts {
			t.Errorf("%s: %+v, expected %d s and %d restarts", c.name, o, c.seconds, c.restarts)
		}
	}
}

// fixed grants every job the nodes under its name.
type fixed map[string][]int

func (f fixed) Allocate(_ int, jobs []View, _ Config) ([]Grant, error) {
	grants := make([]Grant, len(jobs))
	for i, j := range jobs {
		grants[i].Nodes = f[j.Name]
	}
	return grants, nil
}

func TestSlowdownOfSharedNodes(t *testing.T) {
	cluster := Config{Nodes: 4, DevicesPerNode: 4, TickSeconds: 60, RestartSeconds: 30, Slowdown: 0.5, HorizonSeconds: 3600}
	workload := []Request{
		{Name: "a", Application: "toy", Replicas: 2, Batch: 8},
		{Name: "b", Application: "toy", Replicas: 2, Batch: 8},
		{Name: "c", Application: "toy", Replicas: 2, Batch: 8},
	}
	apps := map[string]*Application{"toy": toy(50, signal)}
	r, err := Run(workload, apps, cluster, fixed{"a": {0, 1}, "b": {1, 2}, "c": {2, 2}})
	if err != nil {
		t.Fatal(err)
	}
	// a and b meet on node 1; c shares node 2 but sends nothing between nodes.
	for i, want := range []int{60 + 30 + 400, 60 + 30 + 400, 60 + 30 + 200} {
		if r.Jobs[i].Seconds != want {
			t.Errorf("job %s took %d s, expected %d", r.Jobs[i].Name, r.Jobs[i].Seconds, want)
		}
	}
}

func TestRunRefuses(t *testing.T) {
	cluster := Config{Nodes: 1, DevicesPerNode: 2, TickSeconds: 60, RestartSeconds: 30, HorizonSeconds: 600}
	apps := map[string]*Application{"toy": toy(1, signal)}
	one := []Request{{Name: "j", Application: "toy", Replicas: 1, Batch: 8}}
	for _, c := range []struct {
		workload []Request
		cluster  Config
		policy   Policy
		want     string
	}{
		{one, cluster, fixed{"j": {0, 0, 0}}, "more than 2 replicas on node 0"},
		{one, cluster, fixed{"j": {1}}, "on node 1 of 1"},
		{[]Request{{Name: "j", Application: "gpt"}}, cluster, fixed{}, `unknown application "gpt"`},
		{one, Config{Nodes: 1, DevicesPerNode: 1}, fixed{}, "tick must be at least 1 s"},
		{[]Request{{Name: "j", Application: "toy", Batch: 99}}, cluster, fixed{"j": {0}}, ""},
		{[]Request{{Name: "j", Application: "toy", Batch: 4}}, cluster, fixed{"j": {0}}, "batch 4 outside the recorded 8..32"},
	} {
		_, err := Run(c.workload, apps, c.cluster, c.policy)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("error %v, expected one with %q", err, c.want)
		}
	}
}

func TestTiresiasDemotes(t *testing.T) {
	cluster := Config{Nodes: 1, DevicesPerNode: 4, TickSeconds: 60}
	job := func(name string, nodes ...int) View {
		return View{Request: Request{Name: name, Replicas: 4}, Nodes: nodes}
	}
	p := NewTiresias()
	grant := func(now int, jobs ...View) []Grant {
		t.Helper()
		g, err := p.Allocate(now, jobs, cluster)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	grant(60, job("a"))
	// Four hours on four devices are the 16 device hours of the first queue.
	if g := grant(60+4*3600-60, job("a", 0, 0, 0, 0), job("b")); len(g[0].Nodes) != 4 || len(g[1].Nodes) != 0 {
		t.Errorf("before the bound: %v, expected a to keep its devices", g)
	}
	if g := grant(60+4*3600, job("a", 0, 0, 0, 0), job("b")); len(g[0].Nodes) != 0 || len(g[1].Nodes) != 4 {
		t.Errorf("at the bound: %v, expected b to displace a", g)
	}
}

func TestLoadNamesTheFault(t *testing.T) {
	for _, c := range []struct{ placements, want string }{
		{"placement,local_bsz,step_time\n", "placements.csv:1: expected a column sync_time"},
		{"placement,local_bsz,step_time,sync_time\n1,x,1,1\n", `placements.csv:2: local_bsz: expected a number, found "x"`},
		{"placement,local_bsz,step_time,sync_time\n1,4,1,1\n1,4,1,1\n", "placements.csv:3: local_bsz: expected ascending order"},
		{"placement,local_bsz,step_time,sync_time\n1,99999,1,1\n", "placements.csv:2: nodes, replicas and local_bsz must be within"},
	} {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "bert"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "bert", "placements.csv"), []byte(c.placements), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, expected one with %q", err, c.want)
		}
	}
}

func TestReadWorkload(t *testing.T) {
	for _, c := range []struct {
		line   string
		second int
		says   string
	}{
		{"a,0,toy,1,8", 0, ""},
		{"a,22.0,toy,1,8", 22, ""},
		{"a,487.661836,toy,1,8", 488, ""},
		{"a,-1.5,toy,1,8", 0, `w.csv:2: time: expected seconds from 0, found "-1.5"`},
		{"a,NaN,toy,1,8", 0, `w.csv:2: time: expected seconds from 0, found "NaN"`},
		{"a,0,toy,0,8", 0, `w.csv:2: num_replicas: expected a whole number from 1, found "0"`},
		{"a,0,toy,1,2.5", 0, `w.csv:2: batch_size: expected a whole number from 1, found "2.5"`},
	} {
		got, err := ReadWorkload(strings.NewReader("name,time,application,num_replicas,batch_size\n"+c.line+"\n"), "w.csv")
		if c.says != "" {
			if err == nil || err.Error() != c.says {
				t.Errorf("%s: error %v, expected %q", c.line, err, c.says)
			}
			continue
		}
		if err != nil || got[0] != (Request{Name: "a", SubmitSeconds: c.second, Application: "toy", Replicas: 1, Batch: 8}) {
			t.Errorf("%s is read as %+v, %v", c.line, got, err)
		}
	}
}

// Every workload that was published is read.
func TestPublishedWorkloads(t *testing.T) {
	files, err := filepath.Glob("../../../../../shared/data/pollux-sia/workloads/*/*.csv")
	if err != nil || len(files) == 0 {
		t.Skip("no ../shared/data/pollux-sia: the Pollux workloads are not in the repository")
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if all, err := ReadWorkload(f, name); err != nil || len(all) == 0 {
			t.Errorf("%s: %d jobs, %v", name, len(all), err)
		}
		f.Close()
	}
}
