package lifetime

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

var usual = Config{Refresh: unit.Hour, Prior: 30}

// nobody is a view without jobs.
var nobody = plan.NewState(cluster.Uniform("one", 1, 1, cluster.Model{Name: "gpu"}, 1)).View()

// drawn is a past in which so many jobs of a group ended and go on in drawn steps.
func drawn(dice *rand.Rand, g group, n int) *Past {
	p := New(Config{Refresh: unit.Hour, Prior: 1 + 30*dice.Float64()})
	for range n {
		step, goes := dice.IntN(Steps-20), dice.IntN(3) == 0
		p.times.count(g, func(c *counts) {
			if goes {
				c.open[step]++
			} else {
				c.end(step)
			}
		})
	}
	return p
}

// TestIndex: from any step the index is the least of all look-aheads, each played out in full: the
// mean time until the job ends or the look-ahead does, with what is lost at first, over the chance
// that it ends.
func TestIndex(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	g := group{gang: 4, command: anyone}
	for range 200 {
		table := drawn(dice, g, dice.IntN(60)).tableOf(nobody, shown{group: g})
		from, lost := dice.IntN(Steps/2), 500*dice.Float64()
		left := 0.
		for _, x := range table.Ends[from:] {
			left += x
		}
		best := [2]float64{math.Inf(1), math.Inf(1)}
		for until := from + 1; until <= Steps; until++ {
			ends, mean := 0., 0.
			for s := from; s < Steps; s++ {
				p := table.Ends[s] / left
				if s < until {
					ends += p
					mean += p * ((Begins[s]+Begins[s+1])/2 - Begins[from])
				} else {
					mean += p * (Begins[until] - Begins[from])
				}
			}
			if ends > 0 {
				best[0], best[1] = min(best[0], mean/ends), min(best[1], (mean+lost)/ends)
			}
		}
		for i, got := range [2]float64{table.Index(from), table.After(from, lost)} {
			if math.Abs(got-best[i]) > 1e-6*best[i] {
				t.Fatalf("from step %d: a completion costs %g s, want %g (0: nothing lost at first; 1: %g s; this is %d)", from, got, best[i], lost, i)
			}
		}
	}
}

// TestKnownNothing: before anything is known whoever has run longer ranks behind, as under LAS.
func TestKnownNothing(t *testing.T) {
	table, last := New(usual).tableOf(nobody, shown{group: group{command: anyone}}), 0.
	for s := range StepOf(14 * 24 * 3600) {
		cost := table.Index(s)
		if cost <= last && s > 0 {
			t.Errorf("after %.0f s a completion costs %.0f s, before it %.0f s", Begins[s], cost, last)
		}
		last = cost
	}
}

// TestTable: a table is a distribution; with many jobs of a group their own part of endings is
// what it says, and with few what the other kinds say, each for two jobs, also in steps that only the many have
// come to.
func TestTable(t *testing.T) {
	p, many, few := New(usual), group{gang: 1, command: anyone}, group{gang: 2, command: anyone}
	for range 10_000 {
		p.times.count(many, func(c *counts) { c.ended[40]++ })
		p.times.count(many, func(c *counts) { c.ended[60]++ })
	}
	p.times.count(few, func(c *counts) { c.ended[20]++ })
	for _, g := range []group{many, few} {
		p.times.countKind(g)
	}
	sum := 0.
	for _, x := range p.tableOf(nobody, shown{group: few}).Ends {
		sum += x
	}
	if math.Abs(sum-1) > 1e-9 {
		t.Errorf("the parts of a table come to %g", sum)
	}
	for g, want := range map[group][2]float64{many: {.49, .51}, few: {.35, .4}} {
		if got := p.tableOf(nobody, shown{group: g}).Ends[40]; got < want[0] || got > want[1] {
			t.Errorf("of %v a part of %g ends in step 40, want %v", g, got, want)
		}
	}
}

// TestOpen: jobs that go on make those expected to last longer that have come as far.
func TestOpen(t *testing.T) {
	g := group{gang: 1, command: anyone}
	cost := func(open int) float64 {
		p := New(usual)
		for range 100 {
			p.times.count(g, func(c *counts) { c.ended[40]++ })
		}
		for range open {
			p.times.count(g, func(c *counts) { c.open[50]++ })
		}
		return p.tableOf(nobody, shown{group: g}).Index(30)
	}
	if a, b := cost(0), cost(100); b <= a*1.2 {
		t.Errorf("a completion costs %.0f s where a hundred jobs go on, %.0f s where none does", b, a)
	}
}

// TestPast: whatever jobs came, ended and go on, and whether their past was taken in period by
// period or at once, a table is what the definition says: level by level the part of those who came
// to a step that ended there, weighed against what coarser levels said; and nothing of the present
// period is in it.
func TestPast(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		s := plan.NewState(cluster.Uniform("one", 1, 1, cluster.Model{Name: "gpu"}, 1))
		for g := range int32(3) {
			s.Shapes = append(s.Shapes, plan.Shape{Gang: g + 1, Devices: 1, Share: 1000})
		}
		s.Commands = []string{"python train.py", "python3 train.py", "python eval.py"}
		small, name := rapid.Int32Range(0, 1), rapid.SampledFrom([]string{"train-", "eval_v"})
		second, jobs := rapid.Int64Range(1, 9000), rapid.IntRange(0, 300).Draw(t, "jobs")
		at := unit.Time(0)
		for i := range jobs {
			at = at.Add(unit.Duration(second.Draw(t, "between")/60) * unit.Second)
			id := s.Admit(name.Draw(t, "name")+strconv.Itoa(i), plan.Asked{Tenant: small.Draw(t, "tenant"), Class: small.Draw(t, "class"), Shape: small.Draw(t, "shape"),
				Command: rapid.Int32Range(0, 3).Draw(t, "command"), Submit: at})
			j := &s.Jobs[id]
			j.Started = unit.Never
			if kind := rapid.IntRange(0, 3).Draw(t, "kind"); kind > 0 {
				j.Phase, j.Started = plan.Active, at.Add(unit.Second)
				if rapid.Bool().Draw(t, "reports") {
					j.Foretold, j.ForetoldAt = unit.Duration(second.Draw(t, "foretold"))*unit.Second, j.Started.Add(unit.Duration(second.Draw(t, "told"))*unit.Second)
				}
				r := plan.Run{Job: id, Status: plan.Running, Workers: j.Shape + 1, Began: j.Started}
				if kind == 1 {
					s.Runs = append(s.Runs, r)
				} else {
					ran := unit.Duration(second.Draw(t, "ran")) * unit.Second
					s.Now = j.Started.Add(ran)
					s.Ended.Add(s, &r, ran)
					s.Now = 0
					j.Phase, j.Ended, j.Service = plan.Finished, j.Started.Add(ran), int64(ran)*1000*int64(j.Shape+1)
					if j.ForetoldAt > j.Ended {
						j.Foretold, j.ForetoldAt = 0, 0
					}
				}
			}
		}
		now := at.Add(unit.Duration(second.Draw(t, "later")) * unit.Second)
		atOnce, often := New(usual), New(usual)
		replay(s, now, often)
		for i := range jobs {
			if id := plan.JobID(i); s.Jobs[id].Phase == plan.Finished && s.Jobs[id].Ended <= now {
				atOnce.Learn(s.View(), id)
			} else if s.Jobs[id].Phase == plan.Finished {
				s.Jobs[id].Phase = plan.Active
			}
		}
		s.Now = now
		atOnce.refresh(s.View())
		often.refresh(s.View())
		of := group{gang: 1, command: anyone}
		if jobs > 0 {
			of.command, of.name = atOnce.names.alike(s.View(), 0)
		}
		got, same := atOnce.tableOf(s.View(), shown{group: of}), often.tableOf(s.View(), shown{group: of})
		want := defined(s, of, atOnce.at)
		for step := range Steps {
			if got.Ends[step] != same.Ends[step] {
				t.Fatalf("step %d: %g at once, %g period by period", step, got.Ends[step], same.Ends[step])
			}
			if math.Abs(got.Ends[step]-want[step]) > 1e-9 {
				t.Fatalf("step %d: %g, want %g", step, got.Ends[step], want[step])
			}
		}
		for id := range plan.JobID(jobs) {
			got, _ := atOnce.Told(s.View(), id)
			if same, _ := often.Told(s.View(), id); got.Ends != same.Ends {
				t.Fatalf("job %d, which foretold %s, is known otherwise at once than period by period", id, s.Jobs[id].Foretold)
			}
		}
	})
}

// replay lets the jobs of a state come and end, one after the other until now, and has a past look at each of that.
func replay(s *plan.State, now unit.Time, p *Past) {
	is := plan.NewState(s.Cluster)
	is.Shapes, is.Commands = s.Shapes, s.Commands
	type event struct {
		at  unit.Time
		job plan.JobID
		end bool
	}
	var events []event
	for i := range s.Jobs {
		j := &s.Jobs[i]
		if events = append(events, event{j.Submit, plan.JobID(i), false}); j.Phase == plan.Finished && j.Ended <= now {
			events = append(events, event{j.Ended, plan.JobID(i), true})
		}
	}
	slices.SortStableFunc(events, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.job, b.job))
	})
	for _, e := range events {
		if is.Now = e.at; e.end {
			is.Jobs[e.job] = s.Jobs[e.job]
			p.Learn(is.View(), e.job)
		} else {
			id := is.Admit(s.Names[e.job], plan.Asked{Submit: e.at})
			for _, r := range s.Runs {
				if r.Job == id {
					is.Runs = append(is.Runs, r)
				}
			}
			for _, r := range s.Ended {
				if r.Job == id {
					is.Ended = append(is.Ended, r)
				}
			}
			if is.Jobs[id] = s.Jobs[e.job]; is.Jobs[id].Phase == plan.Finished {
				is.Jobs[id].Phase = plan.Active
			}
		}
		p.refresh(is.View())
	}
}

// defined is the part of a group's jobs that end in each step, by the definition.
func defined(s *plan.State, of group, instant unit.Time) (ends [Steps]float64) {
	type life struct {
		step  int
		ended bool
	}
	hazard := unknown
	weigh := func(lives []life, prior, most float64) {
		for step := range Steps {
			ended, come := 0., 0.
			for _, l := range lives {
				switch {
				case !l.ended && l.step >= step:
					come++
				case l.ended:
					for i, part := range spread {
						if at := max(0, l.step+i-2); at >= step {
							come += part
							if at == step {
								ended += part
							}
						}
					}
				}
			}
			if step == 0 {
				prior *= max(1, come/most)
			}
			hazard[step] = (ended + prior*hazard[step]) / (come + prior)
		}
	}
	like, groups := likeness(s, of.ofUser(), instant), New(usual)
	last, user := -1, of.ofUser()
	for level, g := range append(partsOf(of), user, user, user) {
		if level > 0 && level < levels && g == partsOf(of)[level-1] {
			continue // what it runs is unknown
		}
		part := level
		if level >= levels {
			part = levels - 3 // the latest are the user's, whatever they run and are called
		}
		var lives []life
		submitted, kinds := 0, map[group]bool{}
		for i := len(s.Jobs) - 1; i >= 0; i-- {
			j := &s.Jobs[i]
			if j.Submit >= instant || partsOf(groups.groupOf(s.View(), plan.JobID(i)))[part] != g {
				continue
			}
			if submitted++; level >= levels && submitted > recents[level-levels].jobs {
				break
			}
			if j.Phase == plan.Finished && j.Ended < instant {
				lives = append(lives, life{StepOf(float64(j.Service) / 1e9 / float64(j.Shape+1)), true})
				kinds[groups.groupOf(s.View(), plan.JobID(i))] = true
			} else if j.Started < instant-1 {
				lives = append(lives, life{StepOf((instant - 1).Sub(j.Started).Seconds()), false})
			}
		}
		switch {
		case level >= levels && like > 0:
			weigh(lives, recents[level-levels].prior*(1-like)/like, math.Inf(1))
		case level >= levels:
		case len(lives) != last:
			prior, most := 30., ofOneKind*float64(len(kinds)+1)
			if level == 0 {
				prior = 1
			}
			if level == levels-1 || len(kinds) == 1 && kinds[of] {
				most = math.Inf(1)
			}
			weigh(lives, prior, most)
			last = len(lives)
		}
	}
	left := 1.
	for step := range Steps {
		ends[step] = left * hazard[step]
		left -= ends[step]
	}
	return ends
}

// likeness is how much nearer neighbours in a group's row end than any two of its jobs, in squares of
// steps; before that is known it is as in all rows, and there nearly as near as can be.
func likeness(s *plan.State, of group, instant unit.Time) float64 {
	rows, groups := map[group][]float64{}, New(usual) // where jobs ended, -1 where they have not
	var all []float64
	for i := range s.Jobs {
		if j := &s.Jobs[i]; j.Submit < instant {
			at, user := -1., groups.groupOf(s.View(), plan.JobID(i)).ofUser()
			if j.Phase == plan.Finished && j.Ended < instant {
				at = float64(StepOf(float64(j.Service) / 1e9 / float64(j.Shape+1)))
				all = append(all, at)
			}
			rows[user] = append(rows[user], at)
		}
	}
	apart := func(row []float64) (half, pairs float64) {
		for i := 1; i < len(row); i++ {
			if row[i] >= 0 && row[i-1] >= 0 {
				half, pairs = half+(row[i]-row[i-1])*(row[i]-row[i-1])/2, pairs+1
			}
		}
		return half, pairs
	}
	around := func(of []float64) (squares float64) {
		mean := 0.
		for _, x := range of {
			mean += x / float64(len(of))
		}
		for _, x := range of {
			squares += (x - mean) * (x - mean)
		}
		return squares
	}
	const any = 92. * 92 / 12
	spread := any
	if len(all) > 0 {
		spread = (around(all) + 2*any) / float64(len(all)+1)
	}
	half, pairs := 0., 0.
	for _, row := range rows {
		h, n := apart(row)
		half, pairs = half+h, pairs+n
	}
	part := (half + spread/10) / (pairs + 1) / spread
	own := spread
	if ended := slices.DeleteFunc(slices.Clone(rows[of]), func(x float64) bool { return x < 0 }); len(ended) > 0 {
		own = (around(ended) + spread) / float64(len(ended))
	}
	half, pairs = apart(rows[of])
	return max(0, 1-(half+own*part)/(pairs+1)/own)
}

func partsOf(g group) []group { parts := g.parts(); return parts[:] }

// TestLatest: where a user's work changes, the next job is foretold by what came last within a few
// jobs, while hundreds of earlier ones say otherwise.
func TestLatest(t *testing.T) {
	s := plan.NewState(cluster.Uniform("one", 1, 1, cluster.Model{Name: "gpu"}, 1))
	s.Shapes = []plan.Shape{{Gang: 1, Devices: 1, Share: 1000}}
	o := New(usual)
	cost := func(jobs int, ran unit.Duration) float64 {
		for range jobs {
			id := s.Admit(strconv.Itoa(len(s.Jobs)), plan.Asked{Submit: s.Now})
			s.Jobs[id].Phase, s.Jobs[id].Started, s.Jobs[id].Ended, s.Jobs[id].Service = plan.Finished, s.Now, s.Now.Add(ran), int64(ran)*1000
			o.Learn(s.View(), id)
		}
		s.Now = s.Now.Add(5 * unit.Hour)
		o.refresh(s.View())
		return o.tableOf(s.View(), shown{group: group{gang: 1, command: anyone}}).Index(0)
	}
	if before, after := cost(300, 2*unit.Hour), cost(8, 5*unit.Minute); before < 3600 || after > 1800 {
		t.Errorf("a completion costs %.0f s after 300 jobs of two hours, and %.0f s after 8 of five minutes", before, after)
	}
}

// TestName: jobs that run the same, or are called alike but for their numbers, are foretold by each
// other, and by others of their user where few are; other scripts and names of other words are other work.
func TestName(t *testing.T) {
	for _, by := range []string{"name", "command"} {
		s := plan.NewState(cluster.Uniform("one", 1, 1, cluster.Model{Name: "gpu"}, 1))
		s.Shapes = []plan.Shape{{Gang: 1, Devices: 1, Share: 1000}}
		s.Commands = []string{"python train-resnet_7.py", "python eval.py", "python train-resnet_8.py"}
		p := New(usual)
		admit := func(name string, command int32) plan.JobID {
			if by == "name" {
				command = 0
			} else {
				name = "job" + strconv.Itoa(len(s.Jobs))
			}
			return s.Admit(name, plan.Asked{Command: command, Submit: s.Now})
		}
		for i := range 200 {
			for command, name := range []string{"train-resnet_", "eval-"} {
				ran := unit.Minute
				if command == 0 {
					ran = 10 * unit.Hour
				}
				id := admit(name+strconv.Itoa(i), int32(command+1))
				s.Jobs[id].Phase, s.Jobs[id].Started, s.Jobs[id].Ended, s.Jobs[id].Service = plan.Finished, s.Now, s.Now.Add(ran), int64(ran)*1000
				p.Learn(s.View(), id)
			}
		}
		s.Now = s.Now.Add(20 * unit.Hour)
		cost := map[string]float64{}
		for name, command := range map[string]int32{"train-resnet_9f": 3, "eval-b77": 2, "probe": 0} {
			cost[name] = p.Of(s.View(), admit(name, command)).After(0, 60)
		}
		if cost["probe"] < 1.5*cost["eval-b77"] || cost["train-resnet_9f"] < 5*cost["probe"] {
			t.Errorf("by %s a completion costs %v s", by, cost)
		}
	}
}
