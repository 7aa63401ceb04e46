package snapshot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/store"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/report"
	"github.com/musterdl/muster/run/simulated"
)

// Row is one history: the recorded one, or what a strategy would have made of it.
type Row struct {
	Result report.Result
	// Jobs are matched by ID with those of the recorded history.
	Jobs []report.JobRecord
}

// Past is a recorded history, ready to be replayed.
type Past struct {
	Recorded Row
	Arrivals *Arrivals
	// Cluster is its name.
	Cluster string

	setting  plane.Setting
	from, to unit.Time
	start    unit.Duration     // what any start takes: the median of those observed
	later    []simulated.Later // what happens besides jobs and their runs
}

// ReadOptions say how a history is made ready.
type ReadOptions struct {
	// Restart is what a job loses by being resumed that says nothing of it.
	Restart unit.Duration
}

// Read goes through the history of a snapshot.
func Read(f *File, o ReadOptions) (*Past, error) {
	var past plane.Past
	r, decisions := newRecorder(), sha256.New()
	commits := int64(0)
	err := f.Each(func(b store.Batch) error {
		moment, err := past.Fold(b)
		if err != nil {
			return err
		}
		if moment.Out.Commit != nil {
			commits++
			decisions.Write(b.Commits[0].Data)
		}
		r.recordBatch(past.View(), moment)
		return nil
	})
	if err == nil && past.Seq() == 0 {
		err = errors.New("the history has no batch")
	}
	if err != nil {
		return nil, fmt.Errorf("reading the history of a snapshot: %w", err)
	}
	p := &Past{from: r.start, to: r.now, later: r.later}
	if p.setting, err = plane.ReadSetting(past.Setting()); err != nil {
		return nil, fmt.Errorf("reading the history of a snapshot: %w", err)
	}
	v := past.View()
	p.setting.Cluster = v.Cluster() // nodes may have joined: they are there from the start
	r.closeHistory(v)
	p.Arrivals, p.Cluster = r.arrivals(v, o.Restart), p.setting.Cluster.Name
	slices.Sort(r.starts)
	p.start = report.Quantile(r.starts, 500)
	result := r.close(v, p.Arrivals.truths)
	composition, err := catalogue.Parse("the recorded strategy", p.setting.Strategy)
	if err != nil {
		return nil, fmt.Errorf("reading the history of a snapshot: %w", err)
	}
	result.Strategy, result.Seed = "recorded: "+composition.Name, p.setting.Seed
	result.Commits, result.DecisionHash = commits, hex.EncodeToString(decisions.Sum(nil))
	b := p.Arrivals.bounds(p.setting.Cluster, r.shared)
	result.JCTBoundSec, result.IsolatedSec = b.MeanJCT.Seconds(), b.Isolated.Seconds()
	result.SquashedSRPTSec, result.QueueingSec = b.SquashedSRPT.Seconds(), b.Queueing.Seconds()
	if result.Notes = p.Arrivals.notes(); b.Why != "" {
		result.Notes = append(result.Notes, b.Why)
	}
	p.describe(&result)
	p.Recorded = Row{result, r.collector.View().Jobs}
	return p, nil
}

// describe fills in what is the same in all rows.
func (p *Past) describe(r *report.Result) {
	var work, seconds float64
	var last unit.Time
	for i := range p.Arrivals.jobs {
		job, d := &p.Arrivals.jobs[i], p.Arrivals.truths[i].Duration.Seconds()
		work += float64(job.Workers()) / 1000 * d
		seconds += d
		last = job.Submit
	}
	if span := last.Sub(p.from).Seconds(); span > 0 {
		r.OfferedLoad = work / (span * float64(len(p.setting.Cluster.Devices)))
	}
	r.MeanDurationSec = seconds / float64(max(1, len(p.Arrivals.jobs)))
	r.Load = 1
}

// Replay runs the history's arrivals through strategies, several at once, up to the
// instant of the snapshot: jobs that have not ended by then are censored as they are in
// the recorded history. What people asked and what broke happens at its instant again.
func (p *Past) Replay(ctx context.Context, strategies []string) ([]Row, error) {
	rows, errs := make([]Row, len(strategies)), make([]error, len(strategies))
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	var all sync.WaitGroup
	for i, name := range strategies {
		all.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			if rows[i], errs[i] = p.replay(ctx, name); errs[i] != nil {
				errs[i] = fmt.Errorf("replaying under %s: %w", name, errs[i])
			}
		})
	}
	all.Wait()
	return rows, errors.Join(errs...)
}

func (p *Past) replay(ctx context.Context, strategy string) (Row, error) {
	composition, err := catalogue.Resolve(strategy)
	if err != nil {
		return Row{}, err
	}
	built, err := composition.Build(catalogue.Env{Seed: p.setting.Seed}, false)
	if err != nil {
		return Row{}, err
	}
	collector := report.NewCollector(report.Limits{Points: 2, Jobs: math.MaxInt})
	idle := plan.NewState(p.setting.Cluster)
	idle.Now = p.from // queues remember use by the clock
	config := simulated.Config{Cluster: p.setting.Cluster, Beginning: simulated.Beginning{From: idle}, Jobs: p.Arrivals.source(), Scheduler: built.Scheduler, Strategy: built.Composition.Name,
		Policy: p.setting.Policy, TellTruth: built.TellTruth, Prices: simulated.Prices{Start: p.start}, Until: p.to, Later: p.later, Collector: collector}
	for len(config.Later) > 0 && config.Later[0].At == p.from { // before the first job
		config.First, config.Later = append(config.First, config.Later[0].Event), config.Later[1:]
	}
	result, err := simulated.Run(ctx, config)
	if err != nil {
		return Row{}, err
	}
	result.Strategy, result.Seed = built.Composition.Name, p.setting.Seed
	p.describe(&result)
	if built.TellTruth {
		result.Notes = append(result.Notes, "it is told true run times, which nobody knows live: add +declared or +history to leave that out")
	}
	return Row{result, collector.View().Jobs}, nil
}
