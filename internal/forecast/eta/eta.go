// Package eta says when the jobs of a live state start and end: it draws futures from
// the state's own past (package forecast) and runs the engine forward through each
// (package ahead).
package eta

import (
	"context"
	"fmt"

	"github.com/musterdl/muster/internal/ahead"
	"github.com/musterdl/muster/internal/forecast"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/schedule/remaining"
)

// Config is what futures are drawn and run with.
type Config struct {
	// Ahead is what all futures share: the state, the instant, the strategy, the
	// policy. Its Beliefs, Arrivals, Asked and Horizon are set for each.
	Ahead ahead.Config
	// Arrivals and Durations tune what is drawn.
	Arrivals  forecast.ArrivalConfig
	Durations forecast.DurationConfig
	// Futures is how many are run, Horizon how far each is looked at. Without any, past
	// waits are all that promises rest on.
	Futures int
	Horizon unit.Duration
	Seed    uint64
}

// Default returns the configuration used where none is given, without a state.
func Default() Config {
	return Config{Arrivals: forecast.DefaultArrivals(), Durations: forecast.DefaultDurations(), Futures: 30, Horizon: 5 * unit.Day}
}

// Promises makes a promise about each of the jobs that is not over; book is what past
// ones taught. The same state, seed and book give the same promises.
func Promises(ctx context.Context, c Config, book *forecast.Book, jobs []plan.JobID) ([]forecast.Promise, error) {
	v := c.Ahead.State.View()
	now := max(c.Ahead.Now, v.Now())
	var asked []plan.JobID
	for _, id := range jobs {
		if id < 0 || int(id) >= v.Jobs() {
			return nil, fmt.Errorf("job %d: expected 0 to %d", id, v.Jobs()-1)
		}
		if !v.Job(id).Phase.Over() {
			asked = append(asked, id)
		}
	}
	if len(asked) == 0 {
		return nil, nil
	}
	spreads, err := c.sample(ctx, asked)
	if err != nil {
		return nil, err
	}
	promises := make([]forecast.Promise, len(asked))
	for i, id := range asked {
		j := v.Job(id)
		promises[i] = book.Promise(forecast.Asked{Job: int32(id), Name: v.Name(id), Queue: QueueOf(v, id), Milli: v.Shape(id).Milli(v.Shape(id).Gang),
			Submitted: j.Submit, Running: j.Started != unit.Never}, now, spreads[i], now.Add(c.Horizon))
	}
	return promises, nil
}

// sample runs the engine forward through the futures.
func (c Config) sample(ctx context.Context, asked []plan.JobID) ([]forecast.Spread, error) {
	v := c.Ahead.State.View()
	now := max(c.Ahead.Now, v.Now())
	looked := now.Add(c.Horizon)
	if c.Futures == 0 {
		return make([]forecast.Spread, len(asked)), nil
	}
	moment := Past(v, c).Moment(now, lives(v))
	var memory ahead.Memory
	return forecast.Sample(func(seed uint64) ([]forecast.Fate, error) {
		future := moment.Future(looked, seed)
		run := c.Ahead
		run.Now, run.Horizon, run.Asked = now, c.Horizon, asked
		run.Arrivals = func() simulated.Source { return future }
		run.Beliefs = func(v plan.View, id plan.JobID) unit.Duration {
			total := future.Lasts(int(id))
			if left, known := remaining.Reported(v, id, total); known {
				return done(v, id) + max(1, left)
			}
			return total
		}
		out, err := memory.Run(ctx, run)
		if err != nil {
			return nil, err
		}
		return fates(out, asked, looked), nil
	}, c.Futures, c.Seed)
}

// fates picks the jobs that were asked about. One that runs has started.
func fates(out ahead.Future, asked []plan.JobID, looked unit.Time) []forecast.Fate {
	at := make(map[plan.JobID]*ahead.Fate, len(out.Fates))
	for i := range out.Fates {
		at[out.Fates[i].Job] = &out.Fates[i]
	}
	all := make([]forecast.Fate, len(asked))
	for i, id := range asked {
		f := at[id]
		all[i] = forecast.Fate{Start: min(f.Start, looked), End: min(f.End, looked)}
		if f.Active && f.Start == unit.Never {
			all[i].Start = out.From
		}
	}
	return all
}

// QueueOf is the name of the queue that a job is in: that of the tree, or its
// tenant where there is no tree.
func QueueOf(v plan.View, id plan.JobID) string {
	tenant := v.Job(id).Tenant
	if tree := v.Queues(); len(tree.Queues) > 0 {
		return tree.Queues[v.QueueOf(tenant)].Name
	}
	return v.Tenant(tenant)
}

// Past is what a state tells of the past.
func Past(v plan.View, c Config) *forecast.History {
	h := forecast.NewHistory(c.Arrivals, c.Durations)
	for id := range plan.JobID(v.Jobs()) {
		job := spec(v, id)
		h.Submitted(&job)
		switch j := v.Job(id); {
		case j.Phase == plan.Finished, j.Phase == plan.Failed && j.Reason.Code != plan.OverLimit:
			h.Finished(int(id), done(v, id))
		case j.Phase.Over():
			h.Withdrawn(int(id), done(v, id))
		}
	}
	return h
}

// Waits tells a book how long the jobs of a state waited that have started.
func Waits(v plan.View, book *forecast.Book) {
	for id := range plan.JobID(v.Jobs()) {
		if j := v.Job(id); j.Started != unit.Never {
			book.Waited(QueueOf(v, id), v.Shape(id).Milli(v.Shape(id).Gang), j.Started.Sub(j.Submit))
		}
	}
}

func lives(v plan.View) []forecast.Live {
	var all []forecast.Live
	for id := range plan.JobID(v.Jobs()) {
		if !v.Job(id).Phase.Over() {
			all = append(all, forecast.Live{ID: int(id), Ran: done(v, id)})
		}
	}
	return all
}

// done is how much of its work a job has done, in running time on the workers it
// asked for.
func done(v plan.View, id plan.JobID) unit.Duration {
	if gang := v.Shape(id).Milli(v.Shape(id).Gang); gang > 0 {
		return unit.Duration(v.Service(id) / gang)
	}
	return v.Executed(id)
}

// spec is what a job asked for, as far as when it starts depends on it: its pipeline
// and its commands are left out.
func spec(v plan.View, id plan.JobID) workload.Job {
	j, s := v.Job(id), v.Shape(id)
	job := workload.Job{Name: v.Name(id), Tenant: v.Tenant(j.Tenant), User: v.User(j.User), Submit: j.Submit, Priority: j.Priority,
		Resources: workload.Resources{Gang: s.Gang, Devices: s.Devices, Share: unit.Milli(s.Share), Memory: unit.MiB(s.Memory), CPU: unit.Milli(s.CPU), HostMemory: unit.MiB(s.Host)},
		Estimate:  j.Declared, TimeLimit: j.TimeLimit, Deadline: j.Deadline, Retries: j.Retries, Traits: workload.Traits{Class: v.Class(j.Class),
			Skew: unit.Milli(s.Skew), Traffic: unit.Mbps(j.Traffic)},
		Checkpoint: workload.Checkpoint{Every: j.Checkpoint.Every, OnRequest: j.Checkpoint.OnRequest, Save: j.Checkpoint.Save, Load: j.Checkpoint.Load}}
	for m := range v.Cluster().Models {
		if s.Models&(1<<m) != 0 {
			job.Models = append(job.Models, v.Cluster().Models[m].Name)
		}
	}
	for _, size := range s.Sizes {
		if size > 0 {
			job.Sizes = append(job.Sizes, size)
		}
	}
	return job
}
