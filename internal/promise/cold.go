package promise

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/musterdl/muster/internal/ahead"
	"github.com/musterdl/muster/internal/forecast"
	"github.com/musterdl/muster/internal/forecast/eta"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// leastFinished is how many jobs must have finished before run times are drawn from them:
// with fewer nothing of theirs is believed.
const leastFinished = 10

// spread is how far run times are from what owners declare, as the standard deviation of
// the logarithm: eight in ten are between 0.4 and 2.5 times as long.
const spread = 0.7

// isCold reports whether a cluster has hardly any past.
func isCold(v plan.View) bool {
	finished := 0
	for id := range plan.JobID(v.Jobs()) {
		if v.Job(id).Phase == plan.Finished {
			finished++
		}
	}
	return finished < leastFinished
}

// cold makes promises where there is no past to draw from: jobs run about as long as was
// declared, or as is believed of one of which nothing is known, and nobody else comes.
func cold(ctx context.Context, c eta.Config, book *forecast.Book, jobs []plan.JobID) ([]forecast.Promise, error) {
	v := c.Ahead.State.View()
	now := v.Now()
	looked := now.Add(c.Horizon)
	believed := ahead.Believed(v, now)
	var memory ahead.Memory
	spreads, err := forecast.Sample(func(seed uint64) ([]forecast.Fate, error) {
		run := c.Ahead
		run.Now, run.Horizon, run.Asked = now, c.Horizon, jobs
		run.Beliefs = func(v plan.View, id plan.JobID) unit.Duration {
			chance := rand.New(rand.NewPCG(seed, uint64(id)))
			ran := ran(v, id)
			left := float64(believed(v, id) - ran)
			return ran + max(1, unit.Duration(left*math.Exp(spread*chance.NormFloat64())))
		}
		future, err := memory.Run(ctx, run)
		if err != nil {
			return nil, err
		}
		return fates(&future, jobs, looked)
	}, c.Futures, c.Seed)
	if err != nil {
		return nil, err
	}
	promises := make([]forecast.Promise, len(jobs))
	for i, id := range jobs {
		j := v.Job(id)
		promises[i] = book.Promise(forecast.Asked{Job: int32(id), Name: v.Name(id), Queue: eta.QueueOf(v, id), Milli: v.Shape(id).Milli(v.Shape(id).Gang),
			Submitted: j.Submit, Running: j.Started != unit.Never}, now, spreads[i], looked)
	}
	return promises, nil
}

// ran is how much of its work a job has done, on the workers it asked for.
func ran(v plan.View, id plan.JobID) unit.Duration {
	if gang := v.Shape(id).Milli(v.Shape(id).Gang); gang > 0 {
		return unit.Duration(v.Service(id) / gang)
	}
	return v.Executed(id)
}

// fates picks the jobs that were asked about. One that runs has started.
func fates(f *ahead.Future, jobs []plan.JobID, looked unit.Time) ([]forecast.Fate, error) {
	at := map[plan.JobID]*ahead.Fate{}
	for i := range f.Fates {
		at[f.Fates[i].Job] = &f.Fates[i]
	}
	all := make([]forecast.Fate, 0, len(jobs))
	for _, id := range jobs {
		fate := at[id]
		if fate == nil {
			return nil, fmt.Errorf("job %d is not in the future", id)
		}
		start := min(fate.Start, looked)
		if fate.Active && fate.Start == unit.Never {
			start = f.From
		}
		all = append(all, forecast.Fate{Start: start, End: min(fate.End, looked)})
	}
	return all, nil
}
