package scenario

import (
	"fmt"
	"math"
	"math/bits"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/run/report"
	"github.com/musterdl/muster/run/simulated"
)

// Metric is one figure of a day.
type Metric struct {
	Key, Name string
	More      bool // more is better
	scale     float64
	digits    int
	of        func(*Day) float64
}

// Metrics are what a study reports.
var Metrics = []Metric{
	{"busy_share", "busy %", true, 100, 1, func(d *Day) float64 { return d.BusyShare }},
	{"busy_bound", "at most", true, 100, 1, func(d *Day) float64 { return d.BusyBound }},
	{"own_busy_share", "own busy %", true, 100, 1, func(d *Day) float64 { return d.OwnBusyShare }},
	{"own_busy_bound", "at most", true, 100, 1, func(d *Day) float64 { return d.OwnBusyBound }},
	{"granted_share", "granted %", true, 100, 1, func(d *Day) float64 { return d.GrantedShare }},
	{"energy_mj", "day GJ", false, 1e-3, 2, func(d *Day) float64 { return d.EnergyMJ }},
	{"energy_all_mj", "all GJ", false, 1e-3, 1, func(d *Day) float64 { return d.EnergyAllMJ }},
	{"jct_s", "JCT h", false, 1. / 3600, 2, func(d *Day) float64 { return d.JCTSec }},
	{"llm_jct_s", "LLM JCT h", false, 1. / 3600, 1, func(d *Day) float64 { return d.LLMJCTSec }},
	{"large_gang_wait_s", "wait 16+ h", false, 1. / 3600, 2, func(d *Day) float64 { return d.LargeWaitSec }},
	{"lost_share", "lost %", false, 100, 2, func(d *Day) float64 { return d.Lost }},
	{"owners_slowdown", "slowed %", false, 100, 2, func(d *Day) float64 { return d.Slowdown }},
	{"attainment", "served %", true, 100, 2, func(d *Day) float64 { return d.Attainment }},
	{"missed_deadlines", "missed %", false, 100, 1, func(d *Day) float64 { return d.Missed }},
	{"debug_wait_p95_s", "debug p95 s", false, 1, 0, func(d *Day) float64 { return d.DebugP95 }},
	{"cost_usd", "cost k$", false, 1e-3, 0, func(d *Day) float64 { return d.CostUSD }},
}

// unit is the last word of a metric's name.
func (m *Metric) unit() string { return m.Name[strings.LastIndex(m.Name, " ")+1:] }

// devicesPart of the metrics are about devices, the others about jobs.
const devicesPart = 7

// metric returns one by its key.
func metric(key string) *Metric {
	return &Metrics[slices.IndexFunc(Metrics, func(m Metric) bool { return m.Key == key })]
}

// own are the metrics that each step is there for: leaving it out should hurt them.
var own = map[string][]string{
	"profile": {"jct_s"}, "allocate": {"jct_s", "busy_share"}, "schedule": {"jct_s", "missed_deadlines"},
	"pipeline": {"llm_jct_s"}, "flow": {"llm_jct_s"}, "run": {"lost_share"},
	Sharing: {"busy_share", "jct_s"},
}

// Row is one composition, run on every seed.
type Row struct {
	Name string   `json:"name"`
	Goal string   `json:"goal"`
	Null []string `json:"null"`
	Days []Day    `json:"days"`
	// The means of the days' figures of the same names.
	BusyShare    float64 `json:"busy_share"`
	GrantedShare float64 `json:"granted_share"`
	BusyBound    float64 `json:"busy_bound"`
	BusyCheck    float64 `json:"busy_check"`
}

// values are a metric's, by seed.
func (r *Row) values(m *Metric) []float64 {
	list := make([]float64, len(r.Days))
	for i := range r.Days {
		list[i] = m.of(&r.Days[i])
	}
	return list
}

// Full is every step at work, Nulls none.
func Full(goal string) Row { return Row{Name: "full", Goal: goal} }

// Nulls is every step at its null.
func Nulls(goal string) Row {
	return Row{Name: "the nulls", Goal: goal, Null: slices.Clone(catalogue.Steps)}
}

// Without is all steps but one at work, Only one step.
func Without(goal, step string) Row {
	return Row{Name: "without " + step, Goal: goal, Null: []string{step}}
}

// Only is one step at work, the others at their null.
func Only(goal, step string) Row {
	null := slices.DeleteFunc(slices.Clone(catalogue.Steps), func(s string) bool { return s == step })
	return Row{Name: "only " + step, Goal: goal, Null: null}
}

// Factorial is a quarter of all 64 ways to put steps at their null, of resolution IV:
// flow goes with the product of the first three steps, run with that of the next three
// but one. Main effects are then apart from all effects of two steps, and these come in
// groups.
func Factorial(goal string) (rows []Row) {
	for k := range 16 {
		at := [6]bool{k&1 > 0, k&2 > 0, k&4 > 0, k&8 > 0}
		at[4] = bits.OnesCount(uint(k)&0b0111)%2 == 1
		at[5] = bits.OnesCount(uint(k)&0b1110)%2 == 1
		r := Row{Goal: goal}
		for i, step := range catalogue.Steps {
			if r.Name += "-"; at[i] {
				r.Name = strings.TrimSuffix(r.Name, "-") + step[:1]
				continue
			}
			r.Null = append(r.Null, step)
		}
		rows = append(rows, r)
	}
	return rows
}

// Study is several compositions on the same days.
type Study struct {
	Data  string `json:"-"`
	Seeds int    `json:"seeds"`
	Rows  []Row  `json:"rows"`
	// Prices are what things cost.
	Prices simulated.Prices `json:"-"`
	// Workers is how many days run at once; 0 is one per core.
	Workers  int                   `json:"-"`
	Progress func(done, all int)   `json:"-"`
	Effects  []Effect              `json:"effects,omitempty"`
	Verdicts []Verdict             `json:"verdicts,omitempty"`
	Means    map[string][]Interval `json:"means"` // by metric, as the rows
}

// Interval is report's.
type Interval = report.Interval

// Run runs all rows on all seeds.
func (s *Study) Run() error {
	workers := s.Workers
	if workers < 1 {
		workers = runtime.GOMAXPROCS(0)
	}
	for i := range s.Rows {
		s.Rows[i].Days = make([]Day, s.Seeds)
	}
	done := 0
	for seed := range s.Seeds {
		warm, err := NewWarm(Setup{Data: s.Data, Seed: uint64(seed + 1), Prices: s.Prices})
		if err != nil {
			return fmt.Errorf("seed %d: %w", seed+1, err)
		}
		errs := make([]error, len(s.Rows))
		var next atomic.Int32
		var lock sync.Mutex
		var group sync.WaitGroup
		for range min(workers, len(s.Rows)) {
			group.Go(func() {
				for i := int(next.Add(1)) - 1; i < len(s.Rows); i = int(next.Add(1)) - 1 {
					r := &s.Rows[i]
					r.Days[seed], errs[i] = warm.Run(r.Null, r.Goal)
					lock.Lock()
					if done++; s.Progress != nil {
						s.Progress(done, len(s.Rows)*s.Seeds)
					}
					lock.Unlock()
				}
			})
		}
		group.Wait()
		for i, err := range errs {
			if err != nil {
				return fmt.Errorf("%s for %s, seed %d: %w", s.Rows[i].Name, s.Rows[i].Goal, seed+1, err)
			}
		}
	}
	return s.judge()
}

// judge works out what follows from the days.
func (s *Study) judge() (err error) {
	s.Means = map[string][]Interval{}
	for i := range s.Rows {
		r := &s.Rows[i]
		over := func(of func(*Day) float64) float64 { return mean(r.values(&Metric{of: of})) }
		r.BusyShare, r.GrantedShare = over(func(d *Day) float64 { return d.BusyShare }), over(func(d *Day) float64 { return d.GrantedShare })
		r.BusyBound, r.BusyCheck = over(func(d *Day) float64 { return d.BusyBound }), over(func(d *Day) float64 { return d.BusyCheck })
	}
	for m := range Metrics {
		for i := range s.Rows {
			s.Means[Metrics[m].Key] = append(s.Means[Metrics[m].Key], report.MeanInterval(s.Rows[i].values(&Metrics[m])))
		}
	}
	full := slices.IndexFunc(s.Rows, func(r Row) bool { return r.Name == "full" })
	if full < 0 {
		s.Effects = effects(s.Rows)
		return nil
	}
	for i := range s.Rows {
		if step, ok := strings.CutPrefix(s.Rows[i].Name, "without "); ok {
			for _, key := range own[step] {
				v, err := verdict(step, metric(key), &s.Rows[full], &s.Rows[i])
				if err != nil {
					return err
				}
				s.Verdicts = append(s.Verdicts, v)
			}
		}
	}
	return nil
}

// Verdict says what leaving a step out did to a metric of its own.
type Verdict struct {
	Step   string `json:"step"`
	Metric string `json:"metric"`
	// Difference is without the step minus with it, paired by seed; Worse how many times
	// worse it is without, the geometric mean over the seeds.
	Difference Interval `json:"difference"`
	Worse      Interval `json:"worse_times"`
	Says       string   `json:"verdict"`
}

// What a verdict says, or begins with.
const (
	hurts   = "hurts"
	helps   = "leaving it out helps: a finding"
	nothing = "no effect larger than"
	unknown = "one seed says nothing"
)

func verdict(step string, m *Metric, full, without *Row) (Verdict, error) {
	a, b := without.values(m), full.values(m)
	v := Verdict{Step: step, Metric: m.Key, Says: unknown}
	var err error
	if v.Difference, err = report.PairedDifference(a, b); err != nil {
		return v, err
	}
	sign := 1.
	if m.More {
		sign = -1
	}
	switch d := v.Difference; {
	case !d.Known():
	case min(sign*d.Low, sign*d.High) > 0:
		v.Says = hurts
	case max(sign*d.Low, sign*d.High) < 0:
		v.Says = helps
	default:
		v.Says = fmt.Sprintf("%s %.*f %s", nothing, m.digits, max(-d.Low, d.High)*m.scale, m.unit())
	}
	logs := make([]float64, len(a))
	for i := range a {
		logs[i] = sign * math.Log(a[i]/b[i])
	}
	l := report.MeanInterval(logs)
	v.Worse = Interval{Point: math.Exp(l.Point), Low: math.Exp(l.Low), High: math.Exp(l.High), N: l.N}
	return v, nil
}

// Effect is what a step at work does to a metric, over all ways that the other steps are
// set, or by how much two steps together do more than each; Of lists what cannot be told
// apart.
type Effect struct {
	Metric string   `json:"metric"`
	Of     []string `json:"of"`
	Effect Interval `json:"effect"`
}

// effects are those of a factorial.
func effects(rows []Row) (list []Effect) {
	steps := catalogue.Steps
	sign := func(r *Row, of ...string) float64 {
		s := 1.
		for _, step := range of {
			if slices.Contains(r.Null, step) {
				s = -s
			}
		}
		return s
	}
	for m := range Metrics {
		seen := map[string]int{} // by the pattern of signs
		add := func(of ...string) {
			pattern := ""
			for i := range rows {
				pattern += fmt.Sprint(sign(&rows[i], of...))
			}
			if at, ok := seen[pattern]; ok {
				list[at].Of = append(list[at].Of, strings.Join(of, " x "))
				return
			}
			per := make([]float64, len(rows[0].Days))
			for seed := range per {
				for i := range rows {
					per[seed] += sign(&rows[i], of...) * Metrics[m].of(&rows[i].Days[seed]) / float64(len(rows)) * 2
				}
			}
			seen[pattern] = len(list)
			list = append(list, Effect{Metrics[m].Key, []string{strings.Join(of, " x ")}, report.MeanInterval(per)})
		}
		for _, step := range steps {
			add(step)
		}
		for i, a := range steps {
			for _, b := range steps[i+1:] {
				add(a, b)
			}
		}
	}
	return list
}
