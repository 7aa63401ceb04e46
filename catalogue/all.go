package catalogue

import (
	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/pipeline/drift"
	polluxworld "github.com/musterdl/muster/run/simulated/world/pollux"
	"github.com/musterdl/muster/schedule/calendar"
	"github.com/musterdl/muster/schedule/moves"
	"github.com/musterdl/muster/schedule/victims"
	"github.com/musterdl/muster/strategies/allocate/advantage"
	"github.com/musterdl/muster/strategies/allocate/afs"
	"github.com/musterdl/muster/strategies/allocate/antman"
	"github.com/musterdl/muster/strategies/allocate/bestfit"
	"github.com/musterdl/muster/strategies/allocate/bidprice"
	"github.com/musterdl/muster/strategies/allocate/cassini"
	"github.com/musterdl/muster/strategies/allocate/clustering"
	"github.com/musterdl/muster/strategies/allocate/colocate"
	"github.com/musterdl/muster/strategies/allocate/consolidate"
	"github.com/musterdl/muster/strategies/allocate/dotproduct"
	"github.com/musterdl/muster/strategies/allocate/easyscale"
	"github.com/musterdl/muster/strategies/allocate/efficient"
	"github.com/musterdl/muster/strategies/allocate/elastic"
	equalshare "github.com/musterdl/muster/strategies/allocate/equal"
	"github.com/musterdl/muster/strategies/allocate/fgd"
	"github.com/musterdl/muster/strategies/allocate/firstfit"
	"github.com/musterdl/muster/strategies/allocate/fixed"
	"github.com/musterdl/muster/strategies/allocate/gandiva"
	"github.com/musterdl/muster/strategies/allocate/gpupacking"
	"github.com/musterdl/muster/strategies/allocate/hydro"
	"github.com/musterdl/muster/strategies/allocate/liquid"
	"github.com/musterdl/muster/strategies/allocate/mig"
	"github.com/musterdl/muster/strategies/allocate/mps"
	"github.com/musterdl/muster/strategies/allocate/optimus"
	"github.com/musterdl/muster/strategies/allocate/philly"
	"github.com/musterdl/muster/strategies/allocate/pipeswitch"
	"github.com/musterdl/muster/strategies/allocate/pollux"
	"github.com/musterdl/muster/strategies/allocate/random"
	"github.com/musterdl/muster/strategies/allocate/salus"
	"github.com/musterdl/muster/strategies/allocate/soonest"
	"github.com/musterdl/muster/strategies/allocate/spread"
	"github.com/musterdl/muster/strategies/allocate/titan"
	"github.com/musterdl/muster/strategies/flow/maxmin"
	"github.com/musterdl/muster/strategies/flow/parrot"
	"github.com/musterdl/muster/strategies/flow/strict"
	"github.com/musterdl/muster/strategies/pipeline/adapipe"
	"github.com/musterdl/muster/strategies/pipeline/alpa"
	"github.com/musterdl/muster/strategies/pipeline/autopipe"
	"github.com/musterdl/muster/strategies/pipeline/byprice"
	"github.com/musterdl/muster/strategies/pipeline/chimera"
	"github.com/musterdl/muster/strategies/pipeline/dear"
	"github.com/musterdl/muster/strategies/pipeline/dpcut"
	"github.com/musterdl/muster/strategies/pipeline/dtfm"
	"github.com/musterdl/muster/strategies/pipeline/dualpipe"
	"github.com/musterdl/muster/strategies/pipeline/eager"
	"github.com/musterdl/muster/strategies/pipeline/equal"
	"github.com/musterdl/muster/strategies/pipeline/gpipe"
	"github.com/musterdl/muster/strategies/pipeline/hanayo"
	"github.com/musterdl/muster/strategies/pipeline/hetpipe"
	"github.com/musterdl/muster/strategies/pipeline/interleaved"
	"github.com/musterdl/muster/strategies/pipeline/mgwfbp"
	"github.com/musterdl/muster/strategies/pipeline/onefoneb"
	"github.com/musterdl/muster/strategies/pipeline/oobleck"
	"github.com/musterdl/muster/strategies/pipeline/outoforder"
	"github.com/musterdl/muster/strategies/pipeline/pipedream"
	"github.com/musterdl/muster/strategies/pipeline/piper"
	"github.com/musterdl/muster/strategies/pipeline/ptdp"
	"github.com/musterdl/muster/strategies/pipeline/schemoe"
	"github.com/musterdl/muster/strategies/pipeline/swarm"
	"github.com/musterdl/muster/strategies/pipeline/varuna"
	"github.com/musterdl/muster/strategies/pipeline/wfbp"
	"github.com/musterdl/muster/strategies/pipeline/zbv"
	"github.com/musterdl/muster/strategies/pipeline/zerobubble"
	"github.com/musterdl/muster/strategies/profile/declared"
	"github.com/musterdl/muster/strategies/profile/history"
	"github.com/musterdl/muster/strategies/profile/noisy"
	"github.com/musterdl/muster/strategies/profile/oracle"
	"github.com/musterdl/muster/strategies/schedule/chance"
	"github.com/musterdl/muster/strategies/schedule/chronus"
	"github.com/musterdl/muster/strategies/schedule/edf"
	"github.com/musterdl/muster/strategies/schedule/express"
	"github.com/musterdl/muster/strategies/schedule/external"
	"github.com/musterdl/muster/strategies/schedule/feasible"
	"github.com/musterdl/muster/strategies/schedule/fifo"
	"github.com/musterdl/muster/strategies/schedule/gavel"
	"github.com/musterdl/muster/strategies/schedule/jahani"
	"github.com/musterdl/muster/strategies/schedule/las"
	"github.com/musterdl/muster/strategies/schedule/mlfs"
	musterorder "github.com/musterdl/muster/strategies/schedule/muster"
	"github.com/musterdl/muster/strategies/schedule/sjf"
	"github.com/musterdl/muster/strategies/schedule/srsf"
	"github.com/musterdl/muster/strategies/schedule/srtf"
	"github.com/musterdl/muster/strategies/schedule/tiresias"
	"github.com/musterdl/muster/strategies/serve/igniter"
)

// All lists every strategy of a part that compositions have, by part and then by name. Here the lines stand in
// the order of the alphabet: muster strategies new adds one in its place.
var All = byPartAndName([]Entry{
	plain(adapipe.Description, adapipe.Planner{}).claims(adapipe.Claim, adapipe.Measure),
	tuned(advantage.Description, advantage.Default, func(c advantage.Config, _ Env) any { return advantage.New(c) }),
	tuned(afs.Description, afs.Default, func(c afs.Config, _ Env) any { return afs.New(c) }).claims(afs.Claim, afs.Measure),
	plain(alpa.Description, alpa.Planner{}).claims(alpa.Claim, alpa.Measure),
	tuned(antman.Description, antman.Default, func(c antman.Config, _ Env) any { return antman.New(c) }).claims(antman.Claim, nil),
	plain(autopipe.Description, autopipe.Planner{}).claims(autopipe.Claim, autopipe.Measure),
	plain(autopipe.SlicerDescription, autopipe.Slicer{}),
	tuned(bestfit.Description, bestfit.Default, func(c bestfit.Config, _ Env) any { return bestfit.New(c) }),
	tuned(bidprice.Description, bidprice.Default, func(c bidprice.Config, _ Env) any { return bidprice.New(c) }).claims(bidprice.Claim, nil),
	tuned(byprice.Description, byprice.Default, func(c byprice.Config, _ Env) any { return byprice.New(c) }).claims(drift.Claim, drift.Measure(onefoneb.Ordering{}, onefoneb.Shaken)),
	plain(byprice.NoneDescription, byprice.None{}),
	tuned(calendar.ConservativeDescription, calendar.Conservative, func(c calendar.Policy, _ Env) any { return c }),
	tuned(calendar.EasyDescription, calendar.Easy, func(c calendar.Policy, _ Env) any { return c }),
	plain(calendar.None, calendar.Policy{}),
	fresh(cassini.Description, func() any { return cassini.New() }).claims(cassini.Claim, cassini.Measure),
	tuned(chance.Description, chance.Default, func(c chance.Config, _ Env) any { return chance.New(c) }).claims(chance.Claim, nil),
	tuned(chimera.Description, chimera.Default, func(c chimera.Config, _ Env) any { return chimera.New(c) }).claims(chimera.Claim, chimera.Measure),
	plain(chimera.MixDescription, chimera.Mix{}).claims(chimera.MixClaim, chimera.MeasureMix),
	tuned(chronus.Description, chronus.Default, func(c chronus.Config, _ Env) any { return chronus.New(c) }).claims(chronus.Claim, nil),
	fresh(clustering.Description, func() any { return clustering.New() }),
	tuned(colocate.Description, colocate.Default, func(c colocate.Config, e Env) any { return colocate.New(c.Knowing(e.Pairs)) }).claims(colocate.Claim, nil),
	fresh(consolidate.Description, func() any { return consolidate.New() }),
	plain(declared.Description, declared.Estimator{}),
	fresh(dotproduct.Description, func() any { return dotproduct.New() }),
	plain(dpcut.Description, dpcut.Partitioner{}),
	tuned(dtfm.Description, dtfm.Default, func(c dtfm.Config, e Env) any { c.Seed += e.Seed; return dtfm.New(c) }).claims(dtfm.Claim, dtfm.Measure),
	plain(dualpipe.Description, dualpipe.Both{}).claims(dualpipe.Claim, dualpipe.Measure),
	plain(dualpipe.VDescription, dualpipe.V{}),
	tuned(eager.Description, eager.Default, func(c eager.Config, _ Env) any { return eager.New(c) }).claims(eager.Claim, eager.Measure(onefoneb.Ordering{})),
	tuned(easyscale.Description, easyscale.Default, func(c easyscale.Config, _ Env) any { return easyscale.New(c) }).claims(easyscale.Claim, easyscale.Measure),
	tuned(edf.Description, edf.Default, func(c edf.Config, _ Env) any { return edf.New(c) }),
	tuned(efficient.Description, efficient.Default, func(c efficient.Config, _ Env) any { return efficient.New(c) }),
	tuned(elastic.Description, elastic.Default, func(c elastic.Config, _ Env) any { return elastic.New(c) }).
		with(Choices{allocate.PlacePart: consolidate.Description.Name}).claims(elastic.Claim, nil),
	plain(equal.Description, equal.Partitioner{}),
	plain(equalshare.Description, equalshare.Sizer{}),
	tuned(express.Description, express.Default, func(c express.Config, _ Env) any { return express.New(c, fifo.New(fifo.Default())) }),
	tuned(external.Description, external.Default, newExternal),
	plain(feasible.AllDescription, feasible.All{}),
	plain(feasible.Description, feasible.Gate{}),
	tuned(fgd.Description, fgd.Default, func(c fgd.Config, _ Env) any { return fgd.New(c) }).claims(fgd.Claim, nil),
	tuned(fifo.Description, fifo.Default, func(c fifo.Config, _ Env) any { return fifo.New(c) }),
	plain(fifo.Strict, fifo.New(fifo.Config{})),
	plain(firstfit.Description, firstfit.Placer{}),
	plain(fixed.Description, fixed.Sizer{}),
	tuned(gandiva.Description, gandiva.Default, func(c gandiva.Config, _ Env) any { return gandiva.New(c) }).claims(gandiva.Claim, nil),
	tuned(gavel.Description, gavel.Default, func(c gavel.Config, e Env) any { c.Seed += e.Seed; return gavel.New(c) }).claims(gavel.Claim, gavel.Measure),
	plain(gpipe.Description, gpipe.Ordering{}).claims(gpipe.Claim, gpipe.Measure),
	fresh(gpupacking.Description, func() any { return gpupacking.New() }),
	tuned(hanayo.Description, hanayo.Default, func(c hanayo.Config, _ Env) any { return hanayo.New(c) }).claims(hanayo.Claim, hanayo.Measure),
	plain(hetpipe.Description, hetpipe.Planner{}).claims(hetpipe.Claim, hetpipe.Measure),
	tuned(history.Description, history.Default, func(c history.Config, _ Env) any { return history.New(c) }),
	tuned(hydro.Description, hydro.Default, func(c hydro.Config, _ Env) any { return hydro.New(c) }).claims(hydro.Claim, nil),
	tuned(igniter.Description, igniter.Default, func(c igniter.Config, e Env) any { return igniter.New(c.Knowing(e.Services)) }).claims(igniter.Claim, nil),
	tuned(interleaved.Description, interleaved.Default, func(c interleaved.Config, _ Env) any { return interleaved.New(c) }).claims(interleaved.Claim, interleaved.Measure),
	tuned(jahani.Description, jahani.Default, func(c jahani.Config, _ Env) any { return jahani.New(c) }).claims(jahani.Claim, jahani.Measure),
	tuned(las.Description, las.Default, func(c las.Config, _ Env) any { return las.New(c) }),
	tuned(liquid.BatchDescription, liquid.DefaultBatch, func(c liquid.BatchConfig, e Env) any { c.Seed += e.Seed; return liquid.NewBatch(c) }),
	tuned(liquid.Description, liquid.Default, func(c liquid.Config, _ Env) any { return liquid.New(c) }).claims(liquid.Claim, liquid.Measure),
	plain(maxmin.Description, maxmin.Policy{}),
	tuned(mig.Description, mig.Default, func(c mig.Config, _ Env) any { return mig.New(c) }).claims(mig.Claim, nil),
	tuned(mlfs.Description, mlfs.Default, func(c mlfs.Config, _ Env) any { return mlfs.New(c) }).claims(mlfs.Claim, nil),
	tuned(mlfs.LearnedDescription, mlfs.Default, func(c mlfs.Config, _ Env) any { return mlfs.NewLearned(c) }),
	fresh(mlfs.PlacerDescription, func() any { return mlfs.NewPlacer() }),
	tuned(moves.Description, moves.Small, func(c moves.Policy, _ Env) any { return c }),
	plain(moves.None, moves.Policy{}),
	tuned(mps.Description, mps.Default, func(c mps.Config, _ Env) any { return mps.New(c) }).claims(mps.Claim, nil),
	tuned(musterorder.Description, musterorder.Default, func(c musterorder.Config, _ Env) any { return musterorder.New(c) }).claims(musterorder.Claim, nil),
	tuned(noisy.Description, noisy.Default, func(c noisy.Config, e Env) any { c.Seed += e.Seed; return noisy.New(c) }),
	tuned(onefoneb.Description, onefoneb.Default, func(c onefoneb.Config, _ Env) any { return onefoneb.New(c) }).claims(onefoneb.Claim, onefoneb.Measure),
	tuned(oobleck.Description, oobleck.Default, func(c oobleck.Config, _ Env) any { return oobleck.New(c) }).claims(oobleck.Claim, oobleck.Measure(onefoneb.Ordering{})),
	tuned(optimus.Description, optimus.Default, func(c optimus.Config, _ Env) any { return optimus.New(c) }).claims(optimus.Claim, polluxworld.MeasureOptimus),
	plain(oracle.Description, oracle.Estimator{}),
	plain(outoforder.Description, outoforder.Ordering{}).claims(outoforder.Claim, outoforder.Measure),
	tuned(parrot.Description, parrot.Default, func(c parrot.Config, _ Env) any { return parrot.New(c) }).claims(parrot.Claim, parrot.Measure),
	tuned(philly.Description, philly.Default, func(c philly.Config, _ Env) any { return philly.New(c) }).claims(philly.Claim, nil),
	tuned(pipedream.Description, pipedream.Default, func(c pipedream.Config, _ Env) any { return pipedream.New(c) }).claims(pipedream.Claim, pipedream.Measure),
	tuned(pipedream.HetDescription, pipedream.HetDefault, func(c pipedream.HetConfig, _ Env) any { return pipedream.NewHet(c) }).claims(pipedream.HetClaim, pipedream.MeasureHet),
	plain(piper.Description, piper.Planner{}).claims(piper.Claim, piper.Measure),
	tuned(pipeswitch.Description, pipeswitch.Default, func(c pipeswitch.Config, _ Env) any { return pipeswitch.New(c) }).claims(pipeswitch.Claim, pipeswitch.Measure),
	tuned(pollux.Description, pollux.Default, func(c pollux.Config, e Env) any { c.Seed += e.Seed; return pollux.New(c) }).claims(pollux.Claim, polluxworld.Measure),
	tuned(ptdp.ByHandDescription, ptdp.ByHandDefault, func(c ptdp.ByHandConfig, _ Env) any { return ptdp.NewByHand(c) }),
	plain(ptdp.Description, ptdp.Planner{}).claims(ptdp.Claim, ptdp.Measure(onefoneb.Ordering{})),
	tuned(random.Description, random.Default, func(c random.Config, e Env) any { c.Seed += e.Seed; return random.New(c) }),
	tuned(salus.Description, salus.Default, func(c salus.Config, _ Env) any { return salus.New(c) }).claims(salus.Claim, nil),
	plain(sjf.Description, sjf.Order{}),
	tuned(soonest.Description, soonest.Default, func(c soonest.Config, _ Env) any { return soonest.New(c) }),
	fresh(soonest.PlaceDescription, func() any { return soonest.NewPlacer() }),
	tuned(spread.Description, spread.Default, func(c spread.Config, _ Env) any { return spread.New(c) }),
	plain(srsf.Description, srsf.Order{}),
	plain(srtf.Description, srtf.Order{}),
	tuned(strict.Description, strict.Default, func(c strict.Config, _ Env) any { return strict.New(c) }),
	tuned(swarm.Description, swarm.Default, func(c swarm.Config, e Env) any { c.Seed += e.Seed; return swarm.New(c) }).claims(swarm.Claim, swarm.Measure),
	tuned(tiresias.Description, tiresias.Default, func(c tiresias.Config, _ Env) any { return tiresias.New(c) }).
		with(Choices{allocate.PlacePart: tiresias.PlacerDescription.Name}).claims(tiresias.Claim, nil),
	tuned(tiresias.PlacerDescription, tiresias.Default, func(c tiresias.Config, _ Env) any { return tiresias.NewPlacer(c) }),
	tuned(titan.Description, titan.Default, func(c titan.Config, _ Env) any { return titan.New(c) }).claims(titan.Claim, nil),
	plain(varuna.Description, varuna.Ordering{}).claims(varuna.Claim, varuna.Measure),
	plain(varuna.MorphDescription, varuna.Morph{}),
	fresh(victims.CheapestDescription, func() any { return &victims.Cheapest{} }),
	fresh(victims.LowestRankDescription, func() any { return &victims.LowestRank{} }),
	fresh(victims.NewestDescription, func() any { return &victims.Newest{} }),
	plain(zbv.Description, zbv.V{}).claims(zbv.Claim, zbv.Measure),
	plain(zbv.HalfDescription, zbv.Half),
	plain(zbv.MinDescription, zbv.Min),
	tuned(zerobubble.AutoDescription, zerobubble.Default, func(c zerobubble.Config, _ Env) any { return zerobubble.New(c) }),
	plain(zerobubble.H1Description, zerobubble.H1{}).claims(zerobubble.Claim, zerobubble.Measure),
	plain(zerobubble.H2Description, zerobubble.H2{}),
})

// ForPlans lists the strategies of parts that only planners ask: no run goes by them, and no
// composition has them.
var ForPlans = byPartAndName([]Entry{
	plain(dear.Description, dear.Sized{}).claims(dear.Claim, dear.Measure),
	plain(dear.LayersDescription, dear.Numbered{}),
	plain(dear.SearchedDescription, dear.Searched{}),
	plain(mgwfbp.Description, mgwfbp.Rule{}).claims(mgwfbp.Claim, mgwfbp.Measure),
	plain(mgwfbp.OptimalDescription, mgwfbp.Optimal{}),
	plain(outoforder.ReverseDescription, outoforder.Reverse{}).claims(outoforder.ReverseClaim, outoforder.MeasureReverse),
	plain(schemoe.Description, schemoe.Scheduler{}).claims(schemoe.Claim, schemoe.Measure),
	plain(schemoe.OneDescription, schemoe.One{}),
	plain(wfbp.Description, wfbp.Single{}),
	plain(wfbp.WholeDescription, wfbp.Whole{}),
})
