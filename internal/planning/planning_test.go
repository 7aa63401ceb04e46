package planning_test

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/internal/planning"
	"github.com/musterdl/muster/internal/spec"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/reaction"
	"github.com/musterdl/muster/pipeline/shape"
	"github.com/musterdl/muster/strategies/pipeline/schemoe"
)

// sequences are all that the catalogue knows.
func sequences(t *testing.T) (all []parallel.Sequence) {
	t.Helper()
	for _, name := range catalogue.Names(pipeline.SequencePart) {
		all = append(all, parallel.Sequence{Name: name, Order: strategy.In[pipeline.Ordering](fill(t, "sequence: "+name+"\n"), pipeline.SequencePart)})
	}
	return all
}

func fill(t *testing.T, text string) strategy.Filled {
	t.Helper()
	c, err := catalogue.Parse("the test", text)
	if err != nil {
		t.Fatal(err)
	}
	filled, err := c.Fill(catalogue.Env{})
	if err != nil {
		t.Fatal(err)
	}
	return filled
}

// task is a published model on a preset of devices.
func task(t *testing.T, model, cluster string, batch int) *planning.Task {
	t.Helper()
	s, why := shape.Find(model)
	if why != "" {
		t.Fatal(why)
	}
	p, wrong := shape.New(s, shape.Half)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	c, err := spec.Resolve(cluster, spec.ResolveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m := p.Model(model, batch, parallel.ShardedAdam)
	on, _, not := planning.DevicesOf(c, &spec.Sites{}, m)
	if not != nil {
		t.Fatal(not)
	}
	return &planning.Task{Model: m, On: on, Limits: parallel.Limits{Sequences: sequences(t)}, Outlook: planning.Usual}
}

func ptdp(t *testing.T) []planning.Named {
	return []planning.Named{{Name: "ptd-p", Planner: strategy.In[parallel.Planner](fill(t, "planner: ptd-p\n"), parallel.PlannerPart)}}
}

// TestTrillion: a model of 10^12 parameters on 3,072 devices is planned in less than two seconds
// of one core, and never worse than its authors planned it: tp8 pp64 dp6, two stages on each
// rank in turn, all layers computed again.
func TestTrillion(t *testing.T) {
	one := task(t, "1t", "a100:384x8", 3072)
	x := parallel.NewSimulator(one.Model, one.On)
	published := parallel.Shape{Samples: 1, Microbatches: 512, Tensor: 8, Ranks: 64, Copies: 6, Ways: x.AllIn(2, 8)}
	for _, q := range one.Limits.Sequences {
		if q.Name == "interleaved" {
			published.Sequence = q
		}
	}
	var why parallel.Why
	if published.Cuts, why = x.Cuts(&published, nil); why != "" {
		t.Fatal(why)
	}
	plan := published.Plan()
	theirs, why := x.Simulate(&plan)
	if why != "" {
		t.Fatal(why)
	}
	// Neighbours on the machine make the same work take longer: the least of three counts.
	var c *planning.Comparison
	took := time.Hour
	for range 3 {
		before := used(t)
		c = planning.Compare(one, ptdp(t))
		if took = min(took, used(t)-before); os.Getenv("MUSTER_LONG") == "" || took < 2*time.Second {
			break
		}
	}
	if c.Best() == nil || c.Rows[0].StepSec > theirs.Step.Seconds() {
		t.Errorf("%+v, and the published plan takes %v", c.Rows[0], theirs.Step)
	}
	t.Logf("%s: %.2f s, the published plan %v; %v of processor time", c.Rows[0].Plan, c.Rows[0].StepSec, theirs.Step, took)
	if os.Getenv("MUSTER_LONG") != "" && took > 2*time.Second {
		t.Errorf("%v of processor time: expected 2 s at most", took)
	}
}

// used is the processor time of this process.
func used(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestRows: the best comes first, each other row says why it lost, and what does not fit says so
// and has its memory.
func TestRows(t *testing.T) {
	c := planning.Compare(task(t, "gpt-3", "a100:16x8", 256), ptdp(t))
	if c.Best() == nil || c.Rows[0].Lost != "" || c.Rows[0].By[0] != "ptd-p" {
		t.Fatalf("%+v", c.Rows[0])
	}
	unfit := 0
	for i, row := range c.Rows[1:] {
		if row.Lost == "" || row.StepSec > 0 && row.StepSec < c.Rows[i].StepSec {
			t.Errorf("%+v after %+v: expected a slower one that says why it lost", row, c.Rows[i])
		}
		if strings.HasPrefix(row.Lost, "memory of rank") {
			if unfit++; row.PeakMiB <= row.DeviceMiB || row.StepSec != 0 {
				t.Errorf("%+v: expected more than the device has, and no step", row)
			}
		}
	}
	if unfit == 0 || c.HalfBandwidthSec <= c.Rows[0].StepSec || len(c.Memory) != len(c.Best().Plan.Pipelines[0].Ranks) || c.Lost == nil {
		t.Fatalf("%d do not fit, %g s at half the bandwidth, memory of %d ranks, lost %v", unfit, c.HalfBandwidthSec, len(c.Memory), c.Lost)
	}
	for i, way := range c.Lost.Reactions {
		if (way.StepSec == 0) != (way.Why != "") || way.Why == "" && (way.StepSec < c.Rows[0].StepSec || i > 0 && way.PriceDeviceSec < c.Lost.Reactions[i-1].PriceDeviceSec) {
			t.Errorf("%+v: expected a slower step that costs more than the way before, or why there is none", way)
		}
	}
}

// TestLost names the part of the step that is longer by most.
func TestLost(t *testing.T) {
	best := planning.Row{StepSec: 10, BubblePct: 5, ExposedSec: 1, UpdateSec: .1, PeakMiB: 100}
	for _, c := range []struct {
		change func(*planning.Row)
		want   string
	}{
		{func(r *planning.Row) { r.StepSec, r.BubblePct = 11, 14 }, "bubble +9.0"},
		{func(r *planning.Row) { r.StepSec = 12 }, "passes +1.9 s"},
		{func(r *planning.Row) { r.StepSec, r.ExposedSec = 12, 3 }, "exposed exchange +2 s"},
		{func(r *planning.Row) { r.StepSec, r.UpdateSec = 10.3, .4 }, "optimiser +0.3 s"},
		{func(r *planning.Row) { r.PeakMiB = 150 }, "as fast, +50.0 % memory"},
		{func(*planning.Row) {}, "as good"},
	} {
		other := best
		if c.change(&other); planning.Lost(&best, &other) != c.want {
			t.Errorf("%q, want %q", planning.Lost(&best, &other), c.want)
		}
	}
}

// TestMixtures: the best plan of a mixture spreads its experts where that is faster, and uses as much of the
// devices as has been reported of such models. Megatron-LM's authors train Mixtral 8x7B on H100 with tp1 ep8 pp4,
// at 40 to 49 % (recalled); here four ranks under these sequences leave less than the reserve. DeepSeek's own plan fits its devices; here it takes longer than others, as its tokens
// are hidden behind another microbatch, which nothing here does.
func TestMixtures(t *testing.T) {
	look := func(model, cluster string, batch int) *planning.Task {
		one := task(t, model, cluster, batch)
		one.Limits.Sequences = slices.DeleteFunc(one.Limits.Sequences, func(q parallel.Sequence) bool {
			return !slices.Contains([]string{"1f1b", "interleaved", "zb-h1", "zbv"}, q.Name) // those of menus
		})
		return one
	}
	one := look("mixtral", "h100:16x8", 1024)
	best := planning.Compare(one, ptdp(t)).Rows[0]
	if !strings.HasPrefix(best.Plan, "tp1 ep8 ") || best.MFUPct < 40 || best.MFUPct > 49 {
		t.Errorf("%s with an MFU of %.1f %%, expected tp1 ep8 and 40 to 49", best.Plan, best.MFUPct)
	}
	one.Limits.Experts = 1 // without it is slower
	if alone := planning.Compare(one, ptdp(t)).Rows[0]; alone.StepSec <= best.StepSec {
		t.Errorf("%s takes %g s, %s %g s", alone.Plan, alone.StepSec, best.Plan, best.StepSec)
	}
	if os.Getenv("MUSTER_LONG") == "" {
		return
	}
	one = look("deepseek-v3", "h800:256x8", 15360)
	if best = planning.Compare(one, ptdp(t)).Rows[0]; best.MFUPct < 30 || best.MFUPct > 45 {
		t.Errorf("%s with an MFU of %.1f %%, expected 30 to 45", best.Plan, best.MFUPct)
	}
	one.Limits.Tensor, one.Limits.Ranks, one.Limits.Copies, one.Limits.Experts, one.Tokens = 1, 16, 128, 64, schemoe.Scheduler{}
	if own := planning.Compare(one, ptdp(t)).Rows[0]; own.StepSec <= best.StepSec || own.PeakMiB > own.DeviceMiB {
		t.Errorf("%s takes %g s and %.0f MiB, expected more than %g s and less than a device has", own.Plan, own.StepSec, own.PeakMiB, best.StepSec)
	}
}

// TestCheck: whatever no plan can do about is said at once, with the nearest that works.
func TestCheck(t *testing.T) {
	one := task(t, "gpt-3", "t4:4x4", 6)
	one.Limits.Tensor, one.Limits.Ranks, one.Limits.Copies = 3, 200, 4
	var all []string
	for _, o := range planning.Check(one) {
		all = append(all, o.Error())
	}
	for i, want := range []string{"--pp: found 200, expected at most the 98 layers", "--cluster: found 16 devices, which tp, pp and dp of 2400 in all do not divide",
		"--batch: found 6 samples for 4 copies of the model (dp), expected a multiple of the copies; the nearest is 8"} {
		if i >= len(all) || !strings.Contains(all[i], want) {
			t.Errorf("%q: expected %q", all, want)
		}
	}
	for _, c := range []struct {
		model           string
		experts, copies int
		all             []string
	}{
		{"mixtral", 3, 16, []string{"--ep: found 3, which does not divide the 8 experts of a layer, expected a divisor; the nearest is 2", "--ep: found 3 for 16 copies of the model (dp), expected a divisor of the copies; the nearest is 2"}},
		{"mixtral", 8, 0, nil},
		{"gpt-3", 8, 0, []string{"--ep: found 8, expected 1, as the layers have no experts"}},
	} {
		one := task(t, c.model, "h100:16x8", 1024)
		one.Limits.Experts, one.Limits.Copies = c.experts, c.copies
		var got []string
		for _, o := range planning.Check(one) {
			got = append(got, o.Error())
		}
		if !slices.Equal(got, c.all) {
			t.Errorf("%s over %d of %d copies: %q, expected %q", c.model, c.experts, c.copies, got, c.all)
		}
	}
	if wrong := planning.Check(task(t, "mt-nlg", "t4:1x1", 1)); len(wrong) != 1 || !strings.Contains(wrong[0].Error(), "needs as much for its weights and one sample") {
		t.Errorf("%v: expected a layer that no T4 holds", wrong)
	}
}

// TestLostNode prices what is left without a node. Where the optimiser's state is spread over the copies
// only the checkpoint helps, and a spare is as fast as what was lost; where each copy has it all,
// nothing is done again but the step at work.
func TestLostNode(t *testing.T) {
	one := task(t, "llama-3-8b", "a100:6x8", 96)
	one.Limits.Tensor = 8
	one.Limits.Sequences = slices.DeleteFunc(one.Limits.Sequences, func(q parallel.Sequence) bool { return q.Name != "1f1b" })
	find := func(way string) planning.Reaction {
		t.Helper()
		c := planning.Compare(one, ptdp(t))
		for _, r := range c.Lost.Reactions {
			if r.Way == way {
				return r
			}
		}
		t.Fatalf("%+v: no %s", c.Lost, way)
		return planning.Reaction{}
	}
	if drop, restart := find(reaction.Drop), find(reaction.Restart); !strings.Contains(drop.Why, "spread over the copies") || restart.Why != "" || restart.RedoSec != 1800 {
		t.Errorf("sharded: %+v, %+v", drop, restart)
	}
	one.Outlook.Spares = 1
	swap := find(reaction.Swap)
	one.Outlook.Spares = 0
	if c := planning.Compare(one, ptdp(t)); swap.Why != "" || swap.StepSec != c.Rows[0].StepSec || find(reaction.Swap).Why == "" {
		t.Errorf("a spare: %+v, with a step of %g s before", swap, c.Rows[0].StepSec)
	}
	one.Model.State = parallel.MixedAdam
	if drop, restart := find(reaction.Drop), find(reaction.Restart); drop.Why != "" || drop.RedoSec >= drop.StepSec || restart.RedoSec != 1800 || drop.PauseSec > restart.PauseSec {
		t.Errorf("whole: %+v, %+v", drop, restart)
	}
}

// TestSites: over a slow link between sites goes what costs least there, the plan says what that is, and
// one pipeline has its places. A link that is as fast as any other makes no difference.
func TestSites(t *testing.T) {
	one := task(t, "llama-3-8b", "a100:4x4", 64)
	one.Limits.Tensor, one.Limits.Ranks, one.Limits.Copies = 1, 4, 4
	one.Limits.Sequences = slices.DeleteFunc(one.Limits.Sequences, func(q parallel.Sequence) bool { return q.Name != "1f1b" })
	flat := planning.Compare(one, ptdp(t))
	if flat.Sites != nil || flat.HalfSitesSec != 0 || flat.Rows[0].Crosses != "" {
		t.Errorf("%+v: expected no word of sites", flat.Rows[0])
	}
	for i := range one.On.Nodes {
		one.On.Nodes[i].Site = int32(i / 2)
	}
	one.Sites, one.PerHour = &spec.Sites{Names: []string{"east", "west"}, PerGB: [][]unit.Milli{{0, 0}, {0, 0}}}, make([]int32, 4)
	over := func(link parallel.Link) *planning.Comparison {
		one.On.Sites = [][]parallel.Link{{{}, link}, {link, {}}}
		return planning.Compare(one, ptdp(t))
	}
	near := over(parallel.Link{})
	slow := over(parallel.Link{Bandwidth: 2000})
	late := over(parallel.Link{Latency: unit.Second})
	if near.Rows[0].StepSec != flat.Rows[0].StepSec || near.HalfSitesSec != flat.Rows[0].StepSec {
		t.Errorf("%+v, without sites %+v", near.Rows[0], flat.Rows[0])
	}
	// Activations are passed on during passes, gradients behind them; a late link holds up each microbatch.
	if slow.Rows[0].Crosses != "stages" || slow.HalfSitesSec <= slow.Rows[0].StepSec || late.Rows[0].Crosses != "copies" || !strings.HasSuffix(late.Rows[0].Plan, "apart2") {
		t.Errorf("slow: %+v, half %g; late: %+v", slow.Rows[0], slow.HalfSitesSec, late.Rows[0])
	}
	for _, c := range []*planning.Comparison{near, slow, late} {
		if c.Sites == nil || c.Sites.Chosen == nil || c.Sites.CostIn != "device-hours" || c.Sites.Chosen.Cost <= 0 {
			t.Fatalf("%+v: expected places", c.Sites)
		}
		rivals := map[string]bool{}
		for _, row := range c.Rows {
			rivals[row.Crosses] = true
		}
		if !rivals["stages"] || !rivals["copies"] {
			t.Errorf("%v: expected plans that send stages, and that send copies", rivals)
		}
	}
	if text := late.Sites.Chosen.Stages; strings.Contains(text, "+") {
		t.Errorf("%s over a link of a second: expected one site", text)
	}
}

// TestBudget: where the time is over after so many looks at the clock, the best that was found until then is told, and
// that it may not be the best; with more time it becomes no worse.
func TestBudget(t *testing.T) {
	whole := planning.Compare(task(t, "gpt-22b", "a100:4x8", 64), ptdp(t))
	last, told := unit.Forever.Seconds(), 0
	for _, looks := range []int{0, 10, 100, 400, 1 << 30} {
		x, n := task(t, "gpt-22b", "a100:4x8", 64), 0
		var asked []string
		x.Over = func() bool { n++; return n > looks }
		x.Progress = func(name string, done, all int) { asked = append(asked, name) }
		c := planning.Compare(x, ptdp(t))
		if c.Unfinished != (looks < 1<<30) || len(asked) != len(ptdp(t))+1 {
			t.Errorf("%d looks: unfinished %t, told of %q", looks, c.Unfinished, asked)
		}
		if best := c.Best(); best == nil {
			continue
		}
		if told++; c.Rows[0].StepSec > last || c.Rows[0].StepSec < whole.Rows[0].StepSec {
			t.Errorf("%d looks: a step of %g s, with fewer %g, with all %g", looks, c.Rows[0].StepSec, last, whole.Rows[0].StepSec)
		}
		last = c.Rows[0].StepSec
	}
	if told < 3 || last != whole.Rows[0].StepSec {
		t.Errorf("%d of five found a plan; the last takes %g s, without a limit it is %g", told, last, whole.Rows[0].StepSec)
	}
}
