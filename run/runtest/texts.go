package runtest

import (
	"fmt"
	"slices"

	"github.com/musterdl/muster/engine/pipelines"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/strategies/pipeline/dualpipe"
	"github.com/musterdl/muster/strategies/pipeline/equal"
	"github.com/musterdl/muster/strategies/pipeline/gpipe"
	"github.com/musterdl/muster/strategies/pipeline/zerobubble"
)

// text is what must be seen of an act, with jobs of its own.
type text struct {
	jobs []Job
	play func(x *look)
}

// texts are all of them.
var texts = map[strategy.Act]text{
	strategy.Start:    {[]Job{gang(2)}, starts},
	strategy.Stop:     {[]Job{saving(1), gang(1)}, stops},
	strategy.Resize:   {[]Job{saving(1, 1, 2)}, resizes},
	strategy.Time:     {[]Job{gang(1), gang(1)}, takesTurns},
	strategy.Swap:     {[]Job{large(), large()}, swaps},
	strategy.Stream:   {[]Job{heavy()}, streams},
	strategy.Share:    {[]Job{gang(1), gang(1)}, shares},
	strategy.Reshare:  {[]Job{gang(1)}, reshares},
	strategy.Filler:   {[]Job{busy(.6), filling()}, fills},
	strategy.Equal:    {[]Job{based(gang(1)), based(gang(1))}, dividesEqually},
	strategy.Merge:    {[]Job{based(gang(1)), based(gang(1))}, merges},
	strategy.Batch:    {[]Job{saving(1)}, tellsBatch},
	strategy.Pipeline: {[]Job{staged(1), staged(8)}, tellsPlan(gpipe.Ordering{}, 8./9/(1./2))},
	strategy.Replan:   {[]Job{staged(8)}, replans},
	strategy.Keep:     {[]Job{copied()}, keeps},
	strategy.Halves:   {[]Job{staged(4), staged(4)}, tellsPlan(zerobubble.H1{}, 12./13/(4./5))},
	strategy.Chunks:   {[]Job{staged(4), staged(4)}, tellsPlan(dualpipe.V{}, 12./13/(4./5))},
	strategy.Copies:   {[]Job{staged(4), staged(4)}, tellsPlan(dualpipe.Both{}, 1/(4./5))},
	strategy.Class:    {[]Job{sending(), sending()}, classes},
	strategy.Weight:   {[]Job{sending(), sending()}, weighs},
	strategy.Shift:    {[]Job{pulsing(), pulsing()}, shifts},
	strategy.Reshape:  {[]Job{gang(1), gang(1)}, reshapes},
	strategy.Rent:     {[]Job{gang(1)}, rents},
}

// gang is a job of so many workers on a device each, which compute all the time.
func gang(workers int32) Job {
	return Job{workload.Job{Resources: workload.Resources{Gang: workers, Devices: 1, Share: unit.Whole}}, workload.Truth{Duration: 1000 * unit.Hour, Busy: 1}}
}

// large is a job that takes more than half of the memory of a device of 40 GiB.
func large() Job {
	j := gang(1)
	j.Memory = 24 << 10
	return j
}

// saving is a job that saves when it is asked to, with so many workers or one of sizes.
func saving(workers int32, sizes ...int32) Job {
	j := gang(workers)
	j.Sizes, j.Checkpoint.OnRequest = sizes, true
	return j
}

// busy is a job that computes in a part of its time.
func busy(part float64) Job {
	j := gang(1)
	j.Busy = part
	j.Phase = workload.Phase{Compute: unit.Duration(20000 * part), Communicate: unit.Duration(20000 * (1 - part))}
	return j
}

// filling is a job that takes what others leave.
func filling() Job {
	j := gang(1)
	j.Opportunistic = true
	return j
}

// based is a job that could be trained in one process with others.
func based(j Job) Job {
	j.Base, j.Merge = "bert", .25
	return j
}

// sending is a gang of two that sends most of what the link of its nodes carries.
func sending() Job {
	j := gang(2)
	j.Traffic = 800
	return j
}

// pulsing is one that sends half of the time, as much as the link carries.
func pulsing() Job {
	j := gang(2)
	j.Traffic, j.Phase = 1000, workload.Phase{Compute: 50 * unit.Millisecond, Communicate: 50 * unit.Millisecond}
	return j
}

// staged is a pipeline of two stages.
func staged(microbatches int32) Job {
	layer := workload.Layer{Forward: 5 * unit.Millisecond, Backward: 10 * unit.Millisecond, ParamKiB: 100, OutputKiB: 10, ActivationKiB: 10}
	j := saving(2)
	j.Pipeline = workload.Pipeline{Stages: 2, Microbatches: microbatches, Layers: slices.Repeat([]workload.Layer{layer}, 4)}
	return j
}

// copied is a job of two copies of two stages, or one, that reads its checkpoint for half a minute.
func copied() Job {
	j := staged(8)
	j.Gang, j.Sizes, j.Checkpoint.Load = 4, []int32{2, 4}, patience/2
	return j
}

// heavy is a job of four layers that compute for a second each and take a second each over a
// link of 12 GB/s.
func heavy() Job {
	j := saving(1)
	j.Pipeline.Layers = slices.Repeat([]workload.Layer{{Forward: unit.Second, ParamKiB: 12e9 >> 10}}, 4)
	return j
}

// starts: all workers of a gang are alive on the devices that it was given, and work.
func starts(x *look) {
	x.start(0, nil, 0, 1)
	x.works(0, 0, 1)
}

// stops: nothing of the run is left, its device works for another job, and the work that
// it had done is where the job goes on.
func stops(x *look) {
	x.start(0, nil, 0)
	x.until("job 0 gets on", func() bool { return x.Done(0) > 20 })
	saved := x.Done(0)
	x.stop(0)
	if left := x.Workers(0); len(left) > 0 {
		x.Errorf("the run has left, and workers of it are alive on the devices %v", left)
	}
	x.start(1, nil, 0)
	x.works(1, 0)
	x.stop(1)
	x.start(0, nil, 0)
	x.goesOn(0, saved)
	x.works(0, 0)
}

// resizes: the job goes on with more workers and elsewhere, from what it had done.
func resizes(x *look) {
	x.start(0, nil, 0)
	x.until("job 0 gets on", func() bool { return x.Done(0) > 20 })
	saved := x.Done(0)
	x.stop(0)
	x.start(0, nil, 1, 2)
	x.goesOn(0, saved)
	x.works(0, 1, 2)
}

// takesTurns: of two runs on one device only the one whose turn it is works, and nobody
// has to start anew.
func takesTurns(x *look) {
	turn := func(_ *plan.Draft, t *plan.Terms) { t.Share.Turn = 1 }
	rests, works := func(p float64) bool { return p < .02 }, func(p float64) bool { return p > .2 }
	x.start(0, turn, 0)
	x.rest(0, true)
	x.start(1, turn, 0)
	both := []plan.JobID{0, 1}
	paces := func() []float64 { return x.paces(both) }
	x.measured("the second's turn", paces, func(p []float64) bool { return rests(p[0]) && works(p[1]) })
	x.rest(1, true)
	x.rest(0, false)
	x.measured("the first's turn", paces, func(p []float64) bool { return works(p[0]) && rests(p[1]) })
	for _, id := range both {
		if n := x.View().Job(id).Attempt; n != 1 || !slices.Equal(x.Workers(id), []plan.DeviceID{0}) {
			x.Errorf("job %d is in attempt %d, its workers are on %v", id, n, x.Workers(id))
		}
	}
}

// swaps: who rests has moved out, so that another one finds its room.
func swaps(x *look) {
	moving := func(_ *plan.Draft, t *plan.Terms) { t.Share.Turn, t.Share.Swap = 1, 16<<10 }
	x.start(0, moving, 0)
	x.rest(0, true)
	x.start(1, moving, 0)
	x.works(1, 0)
	x.rest(1, true)
	x.rest(0, false)
	x.until("job 0 has moved in again", func() bool { return len(x.Workers(0)) > 0 })
	x.works(0, 0)
}

// streams: what comes in four groups is as late as the first of them, what comes as a whole
// as late as all.
func streams(x *look) {
	x.measured("seconds until it computes, in groups and as a whole", func() (late []float64) {
		for _, ends := range [][]int32{{1, 2, 3, 4}, {4}} {
			asked := x.View().Now()
			x.start(0, func(d *plan.Draft, t *plan.Terms) { t.Plan.ID = d.PlanID(plan.Pipeline{Groups: ends}) }, 0)
			late = append(late, x.View().Run(x.View().Job(0).Run).Began.Sub(asked).Seconds())
			x.stop(0)
		}
		return late
	}, func(late []float64) bool { return x.near(late[0], 1) && x.near(late[1], 4) })
}

// part are terms that hold a run to so many thousandths of its device, with a ceiling.
func part(share, ceiling int32) func(*plan.Draft, *plan.Terms) {
	return func(_ *plan.Draft, t *plan.Terms) { t.Share.Milli, t.Share.Ceiling = share, ceiling }
}

// shares: two runs beside each other have their parts of the device; one alone has its
// ceiling and no more.
func shares(x *look) {
	x.start(0, part(300, 300), 0)
	x.start(1, part(600, 600), 0)
	x.have("shares", .3, .6)
	x.stop(0)
	x.stop(1)
	x.start(0, part(300, 500), 0)
	x.have("a ceiling above the share", .5)
	x.stop(0)
	x.start(0, part(600, 1000), 0)
	x.have("a share without a ceiling", 1)
}

// reshares: a run has more and less of its device while it goes on.
func reshares(x *look) {
	x.start(0, part(300, 300), 0)
	for _, share := range []int32{700, 200} {
		x.regrant(0, func(t *plan.Terms) { t.Share.Milli, t.Share.Ceiling = share, share })
		x.have("another share", float64(share)/1000)
	}
	if n := x.View().Job(0).Attempt; n != 1 {
		x.Errorf("it was started %d times", n)
	}
}

// beside are terms of a guest of job 0.
func beside(bond plan.Bond) func(*plan.Draft, *plan.Terms) {
	return func(_ *plan.Draft, t *plan.Terms) { t.Share.Guest, t.Share.Bond, t.Share.Ceiling = 0, bond, 1000 }
}

// fills: the host computes as it did alone, and the guest has something, of a device at
// most where runs are held to parts of one.
func fills(x *look) {
	x.start(0, nil, 0)
	var alone float64
	x.measured("a host alone that needs .6", func() []float64 { return x.paces([]plan.JobID{0}) }, func(p []float64) bool {
		alone = p[0]
		return x.near(alone, .6)
	})
	x.start(1, beside(plan.InGaps), 0)
	x.measured("the host and its guest", func() []float64 { return x.paces([]plan.JobID{0, 1}) }, func(p []float64) bool {
		return p[0] > .95*alone-x.Off()/2 && p[1] > .02 && (p[1] < 1+x.Off() || x.able.Means[strategy.Share] == "")
	})
}

// dividesEqually: each has half; what one does not want is the other's.
func dividesEqually(x *look) {
	x.start(0, nil, 0)
	x.start(1, beside(plan.AsEqual), 0)
	x.have("both", .5, .5)
	x.rest(0, true)
	x.have("beside one that rests", 0, 1)
}

// merges: both are as fast as the step that trains both, which is longer by a quarter.
func merges(x *look) {
	x.start(0, nil, 0)
	x.start(1, beside(plan.InOne), 0)
	x.have("in one process", .8, .8)
}

// tellsBatch: a step takes as many samples as was said when it started, and as was said
// later.
func tellsBatch(x *look) {
	x.start(0, func(_ *plan.Draft, t *plan.Terms) { t.Share.Batch = 4 }, 0)
	x.until("a step takes 4", func() bool { return x.Batch(0) == 4 })
	x.regrant(0, func(t *plan.Terms) { t.Share.Batch = 12 })
	x.until("a step takes 12", func() bool { return x.Batch(0) == 12 })
}

// tellsPlan: of two at the same time the first goes as GPipe does, and the second, in another
// order or with more microbatches, lets its stages wait less for each other. It makes so many
// times the steps, by the books.
func tellsPlan(ord pipeline.Ordering, times float64) func(*look) {
	return func(x *look) {
		for id, ord := range []pipeline.Ordering{gpipe.Ordering{}, ord} {
			id := plan.JobID(id)
			maker := &pipelines.Planner{Cut: equal.Partitioner{}, Sequence: ord, NullCut: equal.Partitioner{}, NullSequence: gpipe.Ordering{}, Name: fmt.Sprintf("%T", ord)}
			x.start(id, func(d *plan.Draft, t *plan.Terms) {
				made, _, ok := maker.Plan(d.View, id, nil)
				if !ok {
					x.Fatalf("job %d has no plan", id)
				}
				t.Plan.ID = d.PlanID(made)
			}, plan.DeviceID(2*id), plan.DeviceID(2*id+1))
			x.works(id, plan.DeviceID(2*id), plan.DeviceID(2*id+1))
		}
		// Real processes wait for more than each other, and that they go by their plan is seen in
		// the trainer: it is enough that they make steps.
		rough, windows := x.Off() > .05 && ord != pipeline.Ordering(gpipe.Ordering{}), unit.Duration(3)
		if rough {
			windows = 1
		}
		x.measured("steps under GPipe and under the other", func() []float64 {
			did := []float64{-x.Done(0), -x.Done(1)}
			x.Pass(windows * window)
			return []float64{did[0] + x.Done(0), did[1] + x.Done(1)}
		}, func(did []float64) bool {
			ratio := did[1] / did[0] / times
			return rough && did[1] > 0 || ratio > 1-3*x.Off() && ratio < 1+9*x.Off() // who waits for each other suffers more from others
		})
	}
}

// replans: a run whose first stage has three of four like layers is told to have two in each.
// It goes on where it was, on its devices and in its attempt, and its steps are faster.
func replans(x *look) {
	to := func(first int32) func(d *plan.Draft, t *plan.Terms) {
		return func(d *plan.Draft, t *plan.Terms) {
			maker := &pipelines.Planner{Cut: at{first}, Sequence: gpipe.Ordering{}, NullCut: at{first}, NullSequence: gpipe.Ordering{}, Name: "gpipe"}
			made, _, ok := maker.Plan(d.View, 0, nil)
			if !ok {
				x.Fatalf("there is no plan with %d layers in the first stage", first)
			}
			t.Plan.ID = d.PlanID(made)
		}
	}
	x.start(0, to(3), 0, 1)
	x.works(0, 0, 1)
	pace := func() []float64 {
		from, done, least := x.View().Now(), x.Done(0), 0.
		if x.Off() > .05 {
			least = 6 // real steps are counted whole, and may be slow
		}
		for x.Pass(window); x.Done(0) < done+least && x.View().Now() < from.Add(patience); {
			x.Pass(window)
		}
		return []float64{(x.Done(0) - done) / x.View().Now().Sub(from).Seconds()}
	}
	var before float64
	x.measured("three layers and one", pace, func(p []float64) bool { before = p[0]; return before > 0 })
	done := x.Done(0)
	x.Decide(func(d *plan.Draft) {
		run := d.Job(0).Run
		terms := d.Run(run).Terms
		if to(2)(d, &terms); !d.Regrant(run, terms, because) {
			x.Fatal("the run cannot go on by another plan")
		}
	})
	x.measured("two layers and two, expected 1.39 times as many steps", pace, func(p []float64) bool {
		return p[0]/before > 1.1 && (x.Off() > .05 || x.near(p[0]/before, (8*45+15)/(8*30+30.)))
	})
	x.works(0, 0, 1)
	if n := x.View().Job(0).Attempt; n != 1 || x.Done(0) < done {
		x.Errorf("it is in attempt %d, %.3f is done after %.3f", n, x.Done(0), done)
	}
}

// keeps: a job of two copies loses the node of one, and goes on in the processes of the other: at once, where a start
// would read its checkpoint, and with all that it did but the step at work.
func keeps(x *look) {
	planned := func(d *plan.Draft, t *plan.Terms) {
		maker := &pipelines.Planner{Cut: equal.Partitioner{}, Sequence: gpipe.Ordering{}, NullCut: equal.Partitioner{}, NullSequence: gpipe.Ordering{}, Name: "gpipe"}
		made, _, ok := maker.Plan(d.View, 0, nil)
		if !ok {
			x.Fatal("the job has no plan")
		}
		t.Plan.ID = d.PlanID(made)
	}
	other := x.View().Node(1).First
	x.start(0, planned, 0, other, 1, other+1)
	x.works(0, 0, 1, other, other+1)
	x.Stage.(Losing).Lose()
	at, done := x.View().Now(), x.Done(0)
	if done < 1000 {
		x.Errorf("%.3f was done when the node was lost: expected all but a step of an hour", done)
	}
	x.start(0, func(d *plan.Draft, t *plan.Terms) {
		planned(d, t)
		t.Plan.Keeps = 2
	}, 0, 1)
	if took := x.View().Now().Sub(at); took > patience/4 {
		x.Errorf("it goes on after %v, expected at once", took)
	}
	x.works(0, 0, 1)
	if x.Done(0) < done {
		x.Errorf("%.3f is done after %.3f", x.Done(0), done)
	}
}

// at cuts before a layer.
type at struct{ layer int32 }

// Cut is the same whatever the layers cost.
func (c at) Cut([]workload.Layer, int, pipeline.Params) ([]int32, pipeline.Why) {
	return []int32{c.layer}, ""
}

// onOneLink starts both jobs over the nodes 0 and 1.
func onOneLink(x *look) {
	other := x.View().Node(1).First
	x.start(0, nil, 0, other)
	x.start(1, nil, 1, other+1)
}

// classes: the first class has what it wants of the link, the second what is left.
func classes(x *look) {
	onOneLink(x)
	x.have("without classes", .625, .625)
	x.regrant(1, func(t *plan.Terms) { t.Traffic.Class = 1 })
	x.have("in two classes", 1, .25)
}

// weighs: three quarters of the link are for one of them.
func weighs(x *look) {
	onOneLink(x)
	x.have("without weights", .625, .625)
	x.regrant(0, func(t *plan.Terms) { t.Traffic.Weight = 3000 })
	x.have("three to one", .9375, .3125)
}

// shifts: two that send at the same time are slow; half an iteration apart they are not.
func shifts(x *look) {
	onOneLink(x)
	for id := range plan.JobID(2) {
		x.regrant(id, func(t *plan.Terms) { t.Traffic.Shift = 100 * unit.Millisecond })
	}
	x.measured("at the same time", func() []float64 { return x.paces([]plan.JobID{0, 1}) }, func(p []float64) bool { return p[0]+p[1] < 1.9 })
	x.regrant(1, func(t *plan.Terms) { t.Traffic.Shift = 50 * unit.Millisecond })
	x.have("half an iteration apart", 1, 1)
}

// reshapes: two runs are as fast as the parts that the device was cut into.
func reshapes(x *look) {
	const device = 0
	geometry, parts := int16(plan.None), []float64(nil)
	v := x.View()
	model := v.Cluster().Models[v.Node(v.Device(device).Node).Model]
	for g := range model.Geometries {
		if p := model.Geometries[g].Parts; len(p) == 2 && geometry < 0 {
			geometry, parts = int16(g), []float64{float64(p[0].Milli) / 1000, float64(p[1].Milli) / 1000}
		}
	}
	x.Decide(func(d *plan.Draft) {
		if !d.Reshape(device, geometry, because) {
			x.Fatalf("the device cannot be cut as %d", geometry)
		}
	})
	x.await("the device is cut", func(v plan.View) bool {
		return v.Device(device).Status == plan.Steady && v.Device(device).Geometry == geometry
	})
	x.start(0, part(100, 0), device)
	x.start(1, part(100, 0), device)
	slices.Sort(parts) // the smallest that will do is taken first
	x.have("a part each", parts[0], parts[1])
}

// rents: a node that is rented arrives after a while, works, and is gone when it was
// given back.
func rents(x *look) {
	node := plan.NodeID(plan.None)
	for n := range plan.NodeID(x.View().Nodes()) {
		if x.View().Node(n).Status == plan.Away {
			node = n
		}
	}
	status := func(want plan.NodeStatus) func(v plan.View) bool {
		return func(v plan.View) bool { return v.Node(node).Status == want }
	}
	x.Decide(func(d *plan.Draft) {
		if !d.Rent(node, because) {
			x.Fatalf("node %d cannot be rented", node)
		}
	})
	if !status(plan.Coming)(x.View()) {
		x.Errorf("before it can have come the node is %s", x.View().Node(node).Status)
	}
	x.await("the node has come", status(plan.Up))
	first := x.View().Node(node).First
	x.start(0, nil, first)
	x.works(0, first)
	x.stop(0)
	x.Decide(func(d *plan.Draft) {
		if !d.Return(node, because) {
			x.Fatalf("node %d cannot be given back", node)
		}
	})
	x.await("the node is away", status(plan.Away))
}
