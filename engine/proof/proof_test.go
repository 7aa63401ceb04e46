package proof

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/musterdl/muster/engine/compose"
	"github.com/musterdl/muster/engine/pipelines"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/strategies/allocate/firstfit"
	"github.com/musterdl/muster/strategies/allocate/fixed"
	"github.com/musterdl/muster/strategies/flow/maxmin"
	"github.com/musterdl/muster/strategies/pipeline/byprice"
	"github.com/musterdl/muster/strategies/pipeline/dpcut"
	"github.com/musterdl/muster/strategies/pipeline/equal"
	"github.com/musterdl/muster/strategies/pipeline/gpipe"
	"github.com/musterdl/muster/strategies/pipeline/onefoneb"
	"github.com/musterdl/muster/strategies/profile/declared"
	"github.com/musterdl/muster/strategies/schedule/tiresias"
)

// strategies makes each of the eight.
var strategies = map[string]func() schedule.Scheduler{
	"tiresias": newTiresias,
	"pollux":   func() schedule.Scheduler { return &pollux{} },
	"gavel":    func() schedule.Scheduler { return &gavel{} },
	"gandiva":  func() schedule.Scheduler { return &gandiva{} },
	"chronus":  func() schedule.Scheduler { return &chronus{} },
	"mig":      func() schedule.Scheduler { return mig{} },
	"cassini":  func() schedule.Scheduler { return cassini{} },
	"ask":      func() schedule.Scheduler { return &ask{} },
}

// names are the eight, in the order of the tests.
var names = []string{"tiresias", "pollux", "gavel", "gandiva", "chronus", "mig", "cassini", "ask"}

// newTiresias is the real one, composed: it pulls at heaps, preemption and what a
// composed scheduler keeps beside the State, and at how runs with plans go on.
func newTiresias() schedule.Scheduler {
	config := tiresias.Default()
	config.QueuesDeviceSec = []float64{100, 400}
	return compose.New(compose.Parts{Estimator: declared.Estimator{}, Order: tiresias.New(config), Sizer: fixed.Sizer{},
		Placer: firstfit.Placer{}, Flow: maxmin.Policy{}, Reaction: byprice.New(byprice.Default()),
		Planner: &pipelines.Planner{Cut: dpcut.Partitioner{}, Sequence: onefoneb.Ordering{}, NullCut: equal.Partitioner{}, NullSequence: gpipe.Ordering{}, Name: "dp-cut+1f1b"}})
}

// TestScenarios runs the files of testdata and compares what was decided.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if !strings.HasSuffix(path, ".txt") {
			return
		}
		var s scenario
		datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string {
			out, err := s.command(td)
			if errors.Is(err, exec.ErrNotFound) {
				t.Skip("there is no python3 here")
			}
			if err != nil {
				t.Fatalf("%s: %v", td.Pos, err)
			}
			return out
		})
	})
}

// TestEveryStrategyOnEveryScenario runs the clusters and jobs of all files under each
// of the eight, through each of the troubles, with restarts after every event (every third
// in the short form), and rebuilds the state from the journal.
func TestEveryStrategyOnEveryScenario(t *testing.T) {
	every := 3
	if long {
		every = 1
	}
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if !strings.HasSuffix(path, ".txt") {
			return
		}
		s, err := readScenario(path)
		if err != nil {
			t.Fatal(err)
		}
		s.answer = inGo
		for _, name := range names {
			for _, trouble := range troubles {
				t.Run(name+"/"+trouble.name, func(t *testing.T) {
					s := s
					s.strategy, s.until = name, unit.Time(24*unit.Hour)
					trouble.make(&s)
					if err := prove(&s, every); err != nil {
						t.Fatal(err)
					}
				})
			}
		}
	})
}

// troubles are the ways in which things go wrong.
var troubles = []struct {
	name string
	make func(s *scenario)
}{
	{"nothing", func(*scenario) {}},
	{"node lost", func(s *scenario) { s.lose = []loss{{node: 0, at: unit.Time(70 * unit.Second), lasts: 5 * unit.Minute}} }},
	{"node lost while a victim stops", func(s *scenario) {
		for node := range plan.NodeID(len(s.cluster.Nodes)) {
			s.lose = append(s.lose, loss{node: node, whileStopping: true, lasts: 2 * unit.Minute})
		}
	}},
	{"starts fail twice", func(s *scenario) {
		s.failStart = map[string]int{s.jobs[0].spec.Name: 2, s.jobs[len(s.jobs)-1].spec.Name: 2}
		s.uncordon = []unit.Duration{5 * unit.Minute, 15 * unit.Minute}
	}},
	{"stops are late, and some finish first", func(s *scenario) {
		s.lateStop, s.finishAnyway = map[string]unit.Duration{}, map[string]bool{}
		for i, j := range s.jobs {
			s.lateStop[j.spec.Name] = unit.Duration(i) * 40 * unit.Second
			s.finishAnyway[j.spec.Name] = i%2 == 1
		}
	}},
	{"switch to the next and back", func(s *scenario) {
		next := "gavel"
		for i, name := range names {
			if name == s.strategy {
				next = names[(i+1)%len(names)]
			}
		}
		s.switches = []change{{unit.Time(95 * unit.Second), next}, {unit.Time(400 * unit.Second), s.strategy}}
	}},
	{"switch to gandiva and back", func(s *scenario) {
		s.switches = []change{{unit.Time(30 * unit.Second), "gandiva"}, {unit.Time(250 * unit.Second), s.strategy}}
	}},
}

var long, full = os.Getenv("MUSTER_LONG") == "1", os.Getenv("MUSTER_FULL") == "1"

// prove runs a scenario under the checker, counts its jobs, and repeats it with
// restarts after every so many events and from its journal.
func prove(s *scenario, restarts ...int) error {
	h, err := live(*s)
	if err != nil {
		return err
	}
	if _, err := h.conserve(s); err != nil {
		return err
	}
	for _, every := range restarts {
		if err := h.restarted(s, every); err != nil {
			return fmt.Errorf("a restart after every %d events: %w", every, err)
		}
	}
	return h.folded(s)
}

// TestStrategiesAreShort counts the lines of code of each of the eight.
func TestStrategiesAreShort(t *testing.T) {
	for _, name := range append(names[1:], "ask.py") {
		path, most := name+"_test.go", 150
		if name == "ask.py" {
			path, most = "testdata/ask.py", 40
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := 0
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
				lines++
			}
		}
		if lines > most {
			t.Errorf("%s has %d lines of code, more than %d", path, lines, most)
		}
	}
}

// python answers a question with the program in testdata.
func python(question []byte) ([]byte, error) {
	path, err := exec.LookPath("python3")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, "testdata/ask.py")
	cmd.Stdin = bytes.NewReader(question)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", path, err)
	}
	return out, nil
}

// inGo answers quickly and badly: one start that may fit, one that makes no sense, and
// to every third question nothing that can be read.
func inGo(text []byte) []byte {
	var q question
	if err := decode(text, &q); err != nil || q.ID%3 == 0 {
		return []byte(`{"id": `)
	}
	job := q.Jobs[len(q.Jobs)-1]
	node := int32(0)
	for _, n := range q.Nodes {
		if n.Free >= job.Workers*job.Devices {
			node = int32(n.Node)
		}
	}
	return fmt.Appendf(nil, `{"id":%d,"ops":[{"op":"start","job":99,"on":[[0,1]]},{"op":"dance","job":%d},{"op":"start","job":%d,"on":[[%d,%d]]},{"op":"start","job":%d,"on":[[77,-1]]}]}`,
		q.ID, job.Job, job.Job, node, job.Workers, q.Jobs[0].Job)
}
