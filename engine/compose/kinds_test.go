package compose_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/internal/explain"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// Kinds of small histories in which the heart once went wrong, each drawn twenty times. Texts beside the
// strategies show one of each.
var twenty = draws.Cases{Few: 5, All: 20}

// saves is a gang that saves when asked.
func saves(tenant string, priority, gang int32) workload.Job {
	return workload.Job{Tenant: tenant, Priority: priority, Resources: workload.Resources{Gang: gang, Devices: 1, Share: 1000}, Checkpoint: workload.Checkpoint{OnRequest: true}}
}

// TestPriorityAndRounds: of two gangs that do not fit beside each other the one of a higher priority runs to its end, and
// the other is stopped at most twice, whoever decides for both.
func TestPriorityAndRounds(t *testing.T) {
	for _, name := range []string{"afs", "gavel", "chronus", "elastic", "pollux", "optimus", "titan", "muster"} {
		t.Run(name, func(t *testing.T) {
			twenty.Check(t, func(t *rapid.T) {
				tree := queue.Flat("a", "b")
				tree.Queues[0].Preempt = true
				devices := rapid.IntRange(2, 16).Draw(t, "devices")
				high := rapid.IntRange(devices/2+1, devices).Draw(t, "high")
				low := rapid.IntRange(devices-high+1, devices).Draw(t, "low")
				s, h := oneNode(t, name, devices, tree)
				come := []func(){
					func() { s.submit(saves("b", 1, int32(high)), 10_000*unit.Second) },
					func() { s.submit(saves("a", 0, int32(low)), 10_000*unit.Second) },
				}
				if rapid.Bool().Draw(t, "the low one first") {
					slices.Reverse(come)
				}
				come[0]()
				s.until(unit.Time(rapid.IntRange(1, 5000).Draw(t, "apart")) * unit.Time(unit.Second))
				come[1]()
				s.until(unit.Time(unit.Day))
				if n := len(h.preempted()); n > 2 {
					t.Fatalf("%d preemptions of two jobs\n%s", n, h)
				}
				for id := range plan.JobID(2) {
					if p := s.e.View().Job(id).Phase; p != plan.Finished {
						t.Fatalf("job %d is %s\n%s", id+1, p, h)
					}
				}
			})
		})
	}
}

// TestTheFewestGoForPriority: where runs that are alike but for their size fill a machine, those go for an urgent job who
// hold the least that is enough, under every order that does not take turns.
func TestTheFewestGoForPriority(t *testing.T) {
	for _, name := range []string{"fifo", "sjf", "srtf", "muster", "muster+cheapest", "fifo+easy"} {
		t.Run(name, func(t *testing.T) {
			twenty.Check(t, func(t *rapid.T) {
				tree := queue.Flat("a")
				tree.Queues[1].Preempt = true
				sizes := rapid.SliceOfN(rapid.IntRange(1, 7), 2, 6).Draw(t, "sizes")
				devices := 0
				for _, n := range sizes {
					devices += n
				}
				s, h := oneNode(t, name, devices, tree)
				for _, n := range sizes {
					j := saves("a", 0, int32(n))
					j.Estimate, j.Checkpoint.Save = 50_000*unit.Second, 10*unit.Second
					s.submit(j, 50_000*unit.Second)
				}
				s.until(unit.Time(unit.Hour))
				urgent := rapid.IntRange(1, devices).Draw(t, "urgent")
				j := saves("a", 10, int32(urgent))
				j.Estimate = 1000 * unit.Second
				id := s.submit(j, 1000*unit.Second)
				s.until(unit.Time(unit.Hour + 10*unit.Second))
				gone := int64(0)
				for _, l := range h.preempted() {
					if forJob(l.stop) == id {
						gone += l.milli / 1000
					}
				}
				if least := leastSum(sizes, urgent); gone != int64(least) || s.e.View().Job(id).Phase != plan.Active {
					t.Fatalf("of runs of %v devices those of %d are stopped for an urgent job of %d, which is %s: %d would do\n%s", sizes, gone, urgent, s.e.View().Job(id).Phase, least, h)
				}
			})
		})
	}
}

// TestGangAmongFew: a gang of the whole machine among a few small jobs is not started again and again, nobody is stopped
// for nothing, and all are not much later than they were if nobody were stopped.
func TestGangAmongFew(t *testing.T) {
	worst, starts := 0., 0
	for _, name := range []string{"muster", "muster+easy", "muster+conservative", "muster+cheapest"} {
		t.Run(name, func(t *testing.T) {
			twenty.Check(t, func(t *rapid.T) {
				devices := 4 * rapid.IntRange(1, 4).Draw(t, "devices")
				type comes struct {
					after, takes unit.Duration
					gang         int
				}
				small := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) comes {
					return comes{unit.Duration(rapid.IntRange(0, 1200).Draw(t, "after")) * unit.Second, unit.Duration(rapid.IntRange(300, 4000).Draw(t, "takes")) * unit.Second,
						rapid.IntRange(1, devices/2).Draw(t, "gang")}
				}), 2, 10).Draw(t, "small")
				at := rapid.IntRange(0, len(small)-1).Draw(t, "the gang")
				played := func(ref string) (mean float64, gang plan.JobID, h *chronicle) {
					s, h := oneNode(t, ref, devices, queue.Tree{Queues: []queue.Queue{queue.Root()}})
					var came []unit.Time
					for i, c := range small {
						if i == at {
							came, gang = append(came, s.now), s.submit(saves("", 0, int32(devices)), unit.Hour)
						}
						s.until(s.now.Add(c.after))
						came = append(came, s.now)
						s.submit(saves("", 0, int32(c.gang)), c.takes)
					}
					s.until(s.now.Add(2 * unit.Day))
					for id := range came {
						mean += s.e.View().Job(plan.JobID(id)).Ended.Sub(came[id]).Seconds() / float64(len(came))
					}
					return mean, gang, h
				}
				mean, gang, h := played(name)
				fifo, _, _ := played("fifo")
				worst, starts = max(worst, mean/fifo), max(starts, h.starts(gang))
				for _, p := range properties[:4] {
					if _, broken := p.holds(h, "muster"); broken != "" {
						t.Fatalf("%s: %s\n%s", p.name, broken, h)
					}
				}
				if h.starts(gang) > 8 || mean > 2.1*fifo {
					t.Fatalf("the gang is started %d times, and the mean JCT is %.2f of fifo's\n%s", h.starts(gang), mean/fifo, h)
				}
			})
		})
	}
	t.Logf("at worst the mean JCT is %.2f of fifo's, and the gang is started %d times", worst, starts)
}

// leastSum is the least sum of some of these that is enough.
func leastSum(sizes []int, enough int) int {
	best := 1 << 30
	for mask := range 1 << len(sizes) {
		sum := 0
		for i, n := range sizes {
			if mask&(1<<i) != 0 {
				sum += n
			}
		}
		if sum >= enough {
			best = min(best, sum)
		}
	}
	return best
}

// TestWhatIsShortGivesWay: whatever keeps out who is within a guarantee, cores, host memory or devices, is given back by
// those who borrow it, and no more than that.
func TestWhatIsShortGivesWay(t *testing.T) {
	for _, name := range []string{"fifo", "muster", "tiresias", "afs"} {
		t.Run(name, func(t *testing.T) {
			twenty.Check(t, func(t *rapid.T) {
				c, tree := cluster.Uniform("site", 1, 8, cluster.Model{Name: "gpu", Speed: 1}, 1), queue.Flat("a", "b")
				c.Nodes[0].CPU, c.Nodes[0].Memory, tree.Protect = 32_000, 64<<10, 0
				tree.Queues[2].Guarantee = []queue.Amount{{Milli: 8000}}
				s := newSite(t, c, tree, build(t, name))
				hogs := rapid.IntRange(1, 3).Draw(t, "hogs")
				for range hogs {
					j := saves("a", 0, 1)
					j.Devices, j.CPU, j.HostMemory = rapid.Int32Range(0, 2).Draw(t, "devices"), unit.Milli(rapid.IntRange(1, 10).Draw(t, "cores")*1000), unit.MiB(rapid.IntRange(1, 21).Draw(t, "host")<<10)
					s.submit(j, 10*unit.Hour)
				}
				s.until(unit.Time(10 * unit.Second))
				j := saves("b", 0, 1)
				j.Devices, j.CPU, j.HostMemory = rapid.Int32Range(1, 8).Draw(t, "owner's devices"), unit.Milli(rapid.IntRange(1, 32).Draw(t, "owner's cores")*1000), unit.MiB(rapid.IntRange(1, 64).Draw(t, "owner's host")<<10)
				owner := s.submit(j, unit.Hour)
				s.until(unit.Time(10 * unit.Minute))
				if v := s.e.View(); v.Job(owner).Phase != plan.Active {
					t.Fatalf("the owner of %d devices, %d cores and %d MiB is %s: %s", j.Devices, j.CPU/1000, j.HostMemory, v.Job(owner).Phase, v.Job(owner).Reason.Words(v))
				}
			})
		})
	}
}

// TestTheImpossibleIsAsAbsent: who can never start here changes nothing for the others, under any order. A decider with
// rounds is asked when he comes, as whenever something happens.
func TestTheImpossibleIsAsAbsent(t *testing.T) {
	for _, name := range []string{"fifo", "fifo-strict", "fifo+easy", "fifo+conservative", "sjf", "srtf", "srsf", "las", "tiresias", "edf", "chronus"} {
		t.Run(name, func(t *testing.T) {
			twenty.Check(t, func(t *rapid.T) {
				devices := rapid.IntRange(1, 8).Draw(t, "devices")
				with, _ := oneNode(t, name, devices, queue.Tree{Queues: []queue.Queue{queue.Root()}})
				without, _ := oneNode(t, name, devices, queue.Tree{Queues: []queue.Queue{queue.Root()}})
				var there, here []plan.JobID
				for i := range rapid.IntRange(3, 12).Draw(t, "jobs") {
					passes := unit.Duration(rapid.IntRange(0, 900).Draw(t, "passes")) * unit.Second
					with.until(with.now.Add(passes))
					without.until(without.now.Add(passes))
					takes := unit.Duration(rapid.IntRange(10, 3000).Draw(t, "takes")) * unit.Second
					j := saves("", 0, int32(rapid.IntRange(1, devices).Draw(t, "gang")))
					j.Name, j.Estimate = fmt.Sprint("j", i), takes
					if rapid.IntRange(0, 3).Draw(t, "impossible") == 0 {
						never := j
						never.Name, never.Gang = fmt.Sprint("never", i), int32(devices+1)
						with.submit(never, takes)
					}
					there, here = append(there, with.submit(j, takes)), append(here, without.submit(j, takes))
				}
				end := with.now.Add(2 * unit.Day)
				with.until(end)
				without.until(end)
				for i := range there {
					a, b := with.e.View().Job(there[i]), without.e.View().Job(here[i])
					if a.Phase != plan.Finished || a.Ended != b.Ended {
						t.Fatalf("job %d is %s, ended at %d s beside jobs that can never start, and at %d s without", i, a.Phase, a.Ended/1e6, b.Ended/1e6)
					}
				}
			})
		})
	}
}

// TestWhoCanNeverStartIsTold: who waits for a job is told that it can never start here where it does not start alone on an
// idle cluster, and in no other case; and both are so where a count by hand finds no room for it.
func TestWhoCanNeverStartIsTold(t *testing.T) {
	for _, name := range []string{"fifo", "fifo-strict", "muster", "afs", "chronus"} {
		t.Run(name, func(t *testing.T) {
			draws.Check(t, func(t *rapid.T) {
				c := cluster.Uniform("site", rapid.IntRange(1, 3).Draw(t, "nodes"), rapid.IntRange(1, 4).Draw(t, "devices"), cluster.Model{Name: "gpu", Speed: 1}, 1)
				for i := range c.Nodes {
					c.Nodes[i].CPU = unit.Milli(rapid.IntRange(1, 16).Draw(t, "cores")) * unit.Whole
				}
				tree := queue.Flat("a")
				if limit := rapid.Int64Range(0, 12).Draw(t, "limit"); limit > 0 {
					tree.Queues[1].Limit = []queue.Amount{{Milli: limit * 1000}}
				}
				s := newSite(t, c, tree, build(t, name))
				j := saves("a", 0, rapid.Int32Range(1, 6).Draw(t, "gang"))
				j.Devices, j.CPU = rapid.Int32Range(1, 4).Draw(t, "wide"), unit.Milli(rapid.IntRange(0, 12).Draw(t, "wants cores"))*unit.Whole
				j.Estimate = unit.Hour
				id := s.submit(j, unit.Hour)
				told := explain.Of(s.e.View(), nil).Never(id)
				s.until(unit.Time(unit.Minute))
				room := int32(0)
				for _, n := range c.Nodes {
					workers := n.Count / j.Devices
					if j.CPU > 0 {
						workers = min(workers, int32(n.CPU/j.CPU))
					}
					room += workers
				}
				fits := room >= j.Gang && (len(tree.Queues[1].Limit) == 0 || int64(j.Gang*j.Devices)*1000 <= tree.Queues[1].Limit[0].Milli)
				if starts := s.e.View().Job(id).Phase == plan.Active; starts != fits || (told == "") != fits {
					t.Fatalf("a job of %d x %d devices and %d cores each: there is room: %t, it starts alone: %t, and who waits for it is told %q", j.Gang, j.Devices, j.CPU/unit.Whole, fits, starts, told)
				}
			})
		})
	}
}

// TestANodeIsExpectedBack: under easy and conservative who fills in does not put off a gang that lost a node that is
// back soon.
func TestANodeIsExpectedBack(t *testing.T) {
	for _, name := range []string{"fifo+easy", "fifo+conservative", "sjf+easy"} {
		t.Run(name, func(t *testing.T) {
			twenty.Check(t, func(t *rapid.T) {
				nodes := rapid.IntRange(2, 4).Draw(t, "nodes")
				s := newSite(t, cluster.Uniform("site", nodes, 4, cluster.Model{Name: "gpu", Speed: 1}, 2), queue.Tree{Queues: []queue.Queue{queue.Root()}}, build(t, name))
				gang := saves("", 0, int32(4*nodes))
				gang.Estimate, gang.Checkpoint = 50_000*unit.Second, workload.Checkpoint{Every: 10 * unit.Minute}
				first := s.submit(gang, gang.Estimate)
				s.until(unit.Time(10 * unit.Second))
				late := saves("", 0, int32(rapid.IntRange(1, 4).Draw(t, "late")))
				late.Estimate = 60_000 * unit.Second
				s.submit(late, late.Estimate)
				s.until(unit.Time(rapid.IntRange(1, 9).Draw(t, "hours")) * unit.Time(unit.Hour))
				node := plan.NodeID(rapid.IntRange(0, nodes-1).Draw(t, "lost"))
				s.down[node] = true
				s.step(engine.Event{Kind: engine.NodeDown, Node: node})
				s.until(s.now.Add(unit.Duration(rapid.IntRange(1, 30).Draw(t, "minutes")) * unit.Minute))
				s.down[node] = false
				s.step(engine.Event{Kind: engine.NodeUp, Node: node})
				s.until(s.now.Add(unit.Minute))
				if v := s.e.View(); v.Job(first).Phase != plan.Active {
					t.Fatalf("the gang is %s a minute after its node is back: %s", v.Job(first).Phase, v.Job(first).Reason.Words(v))
				}
			})
		})
	}
}
