package catalogue

import (
	"github.com/musterdl/muster/allocate/bestfit"
	"github.com/musterdl/muster/allocate/consolidate"
	equalshare "github.com/musterdl/muster/allocate/equal"
	"github.com/musterdl/muster/allocate/fgd"
	"github.com/musterdl/muster/allocate/firstfit"
	"github.com/musterdl/muster/allocate/fixed"
	"github.com/musterdl/muster/allocate/random"
	"github.com/musterdl/muster/allocate/spread"
	"github.com/musterdl/muster/flow/maxmin"
	"github.com/musterdl/muster/flow/strict"
	"github.com/musterdl/muster/pipeline/dpcut"
	"github.com/musterdl/muster/pipeline/equal"
	"github.com/musterdl/muster/pipeline/gpipe"
	"github.com/musterdl/muster/pipeline/onefoneb"
	"github.com/musterdl/muster/profile/declared"
	"github.com/musterdl/muster/profile/history"
	"github.com/musterdl/muster/profile/noisy"
	"github.com/musterdl/muster/profile/oracle"
	"github.com/musterdl/muster/schedule/calendar"
	"github.com/musterdl/muster/schedule/feasible"
	"github.com/musterdl/muster/schedule/fifo"
	"github.com/musterdl/muster/schedule/las"
	"github.com/musterdl/muster/schedule/sjf"
	"github.com/musterdl/muster/schedule/srsf"
	"github.com/musterdl/muster/schedule/srtf"
	"github.com/musterdl/muster/schedule/tiresias"
	"github.com/musterdl/muster/schedule/victims"
)

// clairvoyant goes with orders that are nothing without run times: a simulation
// tells the true ones; live the declared ones stand in (Composition.Live).
var clairvoyant = Composition{Estimate: oracle.Description.Name}

// All lists every strategy, by step and then by name.
var All = []Entry{
	plain(declared.Description, declared.Estimator{}),
	tuned(history.Description, history.Default, func(c history.Config, _ Env) any { return history.New(c) }),
	tuned(noisy.Description, noisy.Default, func(c noisy.Config, e Env) any { c.Seed += e.Seed; return noisy.New(c) }),
	plain(oracle.Description, oracle.Estimator{}),

	tuned(bestfit.Description, bestfit.Default, func(c bestfit.Config, _ Env) any { return bestfit.New(c) }),
	fresh(consolidate.Description, func() any { return consolidate.New() }),
	tuned(fgd.Description, fgd.Default, func(c fgd.Config, _ Env) any { return fgd.New(c) }),
	plain(firstfit.Description, firstfit.Placer{}),
	tuned(random.Description, random.Default, func(c random.Config, e Env) any { c.Seed += e.Seed; return random.New(c) }),
	tuned(spread.Description, spread.Default, func(c spread.Config, _ Env) any { return spread.New(c) }),
	tuned(tiresias.PlacerDescription, tiresias.Default, func(c tiresias.Config, _ Env) any { return tiresias.NewPlacer(c) }),
	plain(equalshare.Description, equalshare.Sizer{}),
	plain(fixed.Description, fixed.Sizer{}),

	tuned(fifo.Description, fifo.Default, func(c fifo.Config, _ Env) any { return fifo.New(c) }),
	plain(fifo.Strict, fifo.New(fifo.Config{})),
	tuned(las.Description, las.Default, func(c las.Config, _ Env) any { return las.New(c) }),
	plain(sjf.Description, sjf.Order{}).with(clairvoyant),
	plain(srsf.Description, srsf.Order{}).with(clairvoyant),
	plain(srtf.Description, srtf.Order{}).with(clairvoyant),
	tuned(tiresias.Description, tiresias.Default, func(c tiresias.Config, _ Env) any { return tiresias.New(c) }).
		with(Composition{Place: tiresias.PlacerDescription.Name}),

	tuned(calendar.ConservativeDescription, calendar.Conservative, func(c calendar.Policy, _ Env) any { return c }),
	tuned(calendar.EasyDescription, calendar.Easy, func(c calendar.Policy, _ Env) any { return c }),
	plain(calendar.None, calendar.Policy{}),
	plain(feasible.AllDescription, feasible.All{}),
	plain(feasible.Description, feasible.Gate{}),
	fresh(victims.CheapestDescription, func() any { return &victims.Cheapest{} }),
	fresh(victims.LowestRankDescription, func() any { return &victims.LowestRank{} }),
	fresh(victims.NewestDescription, func() any { return &victims.Newest{} }),

	plain(dpcut.Description, dpcut.Partitioner{}),
	plain(equal.Description, equal.Partitioner{}),
	plain(gpipe.Description, gpipe.Ordering{}),
	plain(onefoneb.Description, onefoneb.Ordering{}),

	plain(maxmin.Description, maxmin.Policy{}),
	tuned(strict.Description, strict.Default, func(c strict.Config, _ Env) any { return strict.New(c) }),
}
