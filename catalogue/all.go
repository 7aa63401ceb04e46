package catalogue

import (
	"github.com/musterdl/muster/allocate/firstfit"
	"github.com/musterdl/muster/allocate/fixed"
	"github.com/musterdl/muster/flow/maxmin"
	"github.com/musterdl/muster/pipeline/dpcut"
	"github.com/musterdl/muster/pipeline/equal"
	"github.com/musterdl/muster/pipeline/gpipe"
	"github.com/musterdl/muster/pipeline/onefoneb"
	"github.com/musterdl/muster/profile/declared"
	"github.com/musterdl/muster/schedule/fifo"
	"github.com/musterdl/muster/schedule/tiresias"
)

// All lists every strategy, by step and then by name.
var All = []Entry{
	plain(declared.Description, declared.Estimator{}),

	plain(firstfit.Description, firstfit.Placer{}),
	plain(fixed.Description, fixed.Sizer{}),

	tuned(fifo.Description, fifo.Default, func(c fifo.Config, _ Env) any { return fifo.New(c) }),
	plain(fifo.Strict, fifo.New(fifo.Config{})),
	tuned(tiresias.Description, tiresias.Default, func(c tiresias.Config, _ Env) any { return tiresias.New(c) }),

	plain(dpcut.Description, dpcut.Partitioner{}),
	plain(equal.Description, equal.Partitioner{}),
	plain(gpipe.Description, gpipe.Ordering{}),
	plain(onefoneb.Description, onefoneb.Ordering{}),

	plain(maxmin.Description, maxmin.Policy{}),
}
