package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/budget"
	"github.com/musterdl/muster/internal/client"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/server"
	"github.com/musterdl/muster/internal/server/door"
	"github.com/musterdl/muster/internal/spec"
	"github.com/musterdl/muster/internal/store"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run"
)

// apiBench is a measurement of the API: submissions at a rate, each durable before it
// is answered, to a control plane whose devices are all busy.
type apiBench struct {
	socket, strategy, cluster string
	rate                      float64 // submissions per second; 0 is as fast as the clients go
	clients, seconds, waiting int
	asJSON                    bool
}

// apiResult is what was measured. A latency counts from when a submission was due,
// so that a server that stalls cannot hide it.
type apiResult struct {
	Devices     int     `json:"devices"`
	Waiting     int     `json:"waiting"`
	Strategy    string  `json:"strategy"`
	RatePerSec  float64 `json:"rate_per_s"`
	Seconds     float64 `json:"seconds"`
	Submitted   int     `json:"submitted"`
	Failed      int     `json:"failed"`
	Achieved    float64 `json:"achieved_per_s"`
	P50Sec      float64 `json:"p50_s"`
	P99Sec      float64 `json:"p99_s"`
	MaxSec      float64 `json:"max_s"`
	CommitP50   float64 `json:"commit_p50_s,omitempty"` // of the journal, latest 1,024 writes
	CommitP99   float64 `json:"commit_p99_s,omitempty"`
	JobsABatch  float64 `json:"jobs_per_batch,omitempty"`
	FillSeconds float64 `json:"fill_s,omitempty"` // to submit what waits
	// Processor time of each process, in seconds per 1,000 submissions.
	ServerCPU float64 `json:"server_cpu_s_per_1000,omitempty"`
	ClientCPU float64 `json:"client_cpu_s_per_1000"`
}

func newAPIBench() *apiBench {
	return &apiBench{strategy: "fifo", cluster: "gpus:125x8", rate: 500, clients: 64, seconds: 10, waiting: 10_000}
}

func benchAPICommand() *cobra.Command {
	b := newAPIBench()
	cmd := &cobra.Command{Use: "api", Args: cobra.NoArgs, Short: "Measure durable submissions to a busy control plane",
		Long: "Start a control plane with many devices, all busy with jobs that never end, and a long queue; submit to it from\n" +
			"another process at a steady rate, each job durable before it is answered, and print the latencies.",
		RunE: func(cmd *cobra.Command, _ []string) error { return b.run(cmd.Context(), cmd.OutOrStdout()) }}
	fl := cmd.Flags()
	fl.StringVar(&b.socket, "socket", "", "measure the server on this socket instead of starting one")
	fl.StringVar(&b.strategy, "strategy", b.strategy, "what decides")
	fl.StringVar(&b.cluster, "cluster", b.cluster, "what there is")
	b.pace(fl)
	fl.IntVar(&b.waiting, "waiting", b.waiting, "jobs in the queue at the start")
	fl.BoolVar(&b.asJSON, "json", false, "print one JSON object")
	cmd.AddCommand(loadCommand())
	return cmd
}

func (b *apiBench) run(ctx context.Context, w io.Writer) error {
	r := apiResult{Strategy: b.strategy, RatePerSec: b.rate}
	if b.socket != "" {
		r.Strategy = ""
		if err := b.load(ctx, b.socket, &r); err != nil {
			return err
		}
		return b.print(w, &r)
	}
	dir, err := os.MkdirTemp("", "muster-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p, done, err := b.start(ctx, dir)
	if err != nil {
		return err
	}
	err = b.measure(ctx, p, filepath.Join(dir, "muster.sock"), &r)
	cancel()
	return errors.Join(err, done(), b.print(w, &r))
}

// start starts a plane and its server in this process; done waits for their end.
func (b *apiBench) start(ctx context.Context, dir string) (p *plane.Plane, done func() error, err error) {
	c, err := spec.Resolve(b.cluster, spec.ResolveOptions{})
	if err != nil {
		return nil, nil, err
	}
	composition, err := catalogue.Resolve(b.strategy)
	if err != nil {
		return nil, nil, err
	}
	journal, err := store.Open(filepath.Join(dir, "journal"), store.Options{Now: now})
	if err != nil {
		return nil, nil, err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	p, err = plane.Open(plane.Config{Cluster: c, Strategy: composition, Seed: 1, Policy: engine.DefaultPolicy(), Journal: journal,
		Driver: newIdleDriver(ctx), Now: now, Log: log})
	if err != nil {
		return nil, nil, errors.Join(err, journal.Close())
	}
	l, err := door.ListenUnix(filepath.Join(dir, "muster.sock"))
	if err != nil {
		return nil, nil, errors.Join(err, journal.Close())
	}
	s := server.New(server.Config{Plane: p, Version: version(), Log: log, RatePerSec: 1e6, Burst: 1e6})
	errs := make(chan error, 2)
	go func() { errs <- p.Run(ctx) }()
	go func() { errs <- s.Serve(ctx, l) }()
	return p, func() error { return errors.Join(<-errs, <-errs, journal.Close()) }, nil
}

// measure fills the cluster and the queue, lets another process submit, and adds
// what this process saw.
func (b *apiBench) measure(ctx context.Context, p *plane.Plane, socket string, r *apiResult) error {
	devices := 0
	if err := p.Query(ctx, func(v plan.View) { devices = v.Devices() }); err != nil {
		return err
	}
	began := time.Now()
	if err := fill(ctx, p, devices+b.waiting); err != nil {
		return err
	}
	r.Devices, r.Waiting, r.FillSeconds = devices, b.waiting, time.Since(began).Seconds()
	var before, after plane.Stats
	if err := p.Query(ctx, func(plan.View) { before = p.Stats() }); err != nil {
		return err
	}
	used := budget.Used().Seconds()
	if err := b.load(ctx, socket, r); err != nil {
		return err
	}
	r.ServerCPU = (budget.Used().Seconds() - used) / float64(max(1, r.Submitted)) * 1000
	err := p.Query(ctx, func(plan.View) {
		after = p.Stats()
		after.CommitSec = slices.Clone(after.CommitSec)
	})
	slices.Sort(after.CommitSec)
	r.CommitP50, r.CommitP99 = quantile(after.CommitSec, 0.5), quantile(after.CommitSec, 0.99)
	r.JobsABatch = float64(r.Submitted) / float64(max(1, after.Batches-before.Batches))
	return err
}

// fill submits jobs of one device each.
func fill(ctx context.Context, p *plane.Plane, n int) error {
	jobs := make(chan int)
	errs := make(chan error, 256)
	var all sync.WaitGroup
	for range cap(errs) {
		all.Go(func() {
			for i := range jobs {
				j := benchJob("fill-" + strconv.Itoa(i))
				if _, err := p.Request(ctx, engine.Event{Kind: engine.Submit, Spec: &j}, ""); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	for i := range n {
		select {
		case jobs <- i:
		case err := <-errs:
			close(jobs)
			return fmt.Errorf("filling the queue: %w", err)
		}
	}
	close(jobs)
	all.Wait()
	return nil
}

func benchJob(name string) workload.Job {
	return workload.Job{Name: name, Resources: workload.Resources{Gang: 1, Devices: 1, Share: unit.Whole}, Estimate: unit.Hour,
		Program: workload.Program{Command: []string{"true"}}}
}

// load runs the submitting process and takes over what it measured.
func (b *apiBench) load(ctx context.Context, socket string, r *apiResult) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	child := exec.CommandContext(ctx, self, "bench", "api", "load", "--socket", socket, "--rate", fmt.Sprint(b.rate), "--clients", strconv.Itoa(b.clients), "--seconds", strconv.Itoa(b.seconds))
	child.Stderr = os.Stderr
	out, err := child.Output()
	if err != nil {
		return fmt.Errorf("submitting from another process: %w", err)
	}
	return json.Unmarshal(out, r)
}

func (b *apiBench) print(w io.Writer, r *apiResult) error {
	if b.asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	ms := func(sec float64) string { return fmt.Sprintf("%.1f ms", sec*1000) }
	var text bytes.Buffer
	fmt.Fprintf(&text, "%d durable submissions in %.1f s: %.1f per second of %.0f wanted, %d failed\n", r.Submitted, r.Seconds, r.Achieved, r.RatePerSec, r.Failed)
	fmt.Fprintf(&text, "processor %.2f s per 1,000 in the server, %.2f s in the clients\n", r.ServerCPU, r.ClientCPU)
	fmt.Fprintf(&text, "latency   p50 %s, p99 %s, most %s\n", ms(r.P50Sec), ms(r.P99Sec), ms(r.MaxSec))
	if r.Devices > 0 {
		fmt.Fprintf(&text, "journal   p50 %s, p99 %s, %.1f jobs a batch\n", ms(r.CommitP50), ms(r.CommitP99), r.JobsABatch)
		fmt.Fprintf(&text, "plane     %s, %d devices busy, %d jobs waiting at the start, filled in %.1f s\n", r.Strategy, r.Devices, r.Waiting, r.FillSeconds)
	}
	_, err := w.Write(text.Bytes())
	return err
}

// loadCommand is what the submitting process runs.
func loadCommand() *cobra.Command {
	b := newAPIBench()
	cmd := &cobra.Command{Use: "load", Hidden: true, Args: cobra.NoArgs, Short: "Submit at a steady rate",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return json.NewEncoder(cmd.OutOrStdout()).Encode(b.steady(cmd.Context(), client.New(b.socket)))
		}}
	cmd.Flags().StringVar(&b.socket, "socket", "", "the server's socket")
	b.pace(cmd.Flags())
	return cmd
}

// pace adds the flags that say who submits how fast.
func (b *apiBench) pace(fl *pflag.FlagSet) {
	fl.Float64Var(&b.rate, "rate", b.rate, "submissions per second; 0 is as fast as the clients go")
	fl.IntVar(&b.clients, "clients", b.clients, "each submits one job at a time")
	fl.IntVar(&b.seconds, "seconds", b.seconds, "for how long")
}

// steady has clients submit job after job, each when it is due: where all of them still
// wait for an answer then, its latency counts from there all the same. Without a rate a
// job is due when its client has an answer to the one before.
func (b *apiBench) steady(ctx context.Context, c *client.Client) map[string]any {
	began := time.Now().Add(50 * time.Millisecond)
	over := began.Add(time.Duration(b.seconds) * time.Second)
	prefix := fmt.Sprintf("load-%d-", os.Getpid())
	took, failed := make([][]float64, b.clients), make([]int, b.clients)
	var next atomic.Int64
	var all sync.WaitGroup
	for k := range b.clients {
		all.Go(func() {
			for {
				i := next.Add(1) - 1
				due := time.Now()
				if b.rate > 0 {
					due = began.Add(time.Duration(float64(i) / b.rate * float64(time.Second)))
					time.Sleep(time.Until(due))
				}
				if !due.Before(over) {
					return
				}
				name := prefix + strconv.FormatInt(i, 10)
				if _, err := c.Submit(ctx, []workload.Job{benchJob(name)}, name); err != nil {
					if failed[k]++; failed[k] == 1 {
						fmt.Fprintln(os.Stderr, "muster: the first submission of a client that failed:", err)
					}
				}
				took[k] = append(took[k], time.Since(due).Seconds())
			}
		})
	}
	all.Wait()
	elapsed, sorted, wrong := time.Since(began).Seconds(), slices.Concat(took...), 0
	slices.Sort(sorted)
	for _, n := range failed {
		wrong += n
	}
	n := len(sorted) - wrong
	return map[string]any{"submitted": n, "failed": wrong, "seconds": elapsed, "achieved_per_s": float64(n) / elapsed, "client_cpu_s_per_1000": budget.Used().Seconds() / float64(max(1, n)) * 1000,
		"p50_s": quantile(sorted, 0.5), "p99_s": quantile(sorted, 0.99), "max_s": quantile(sorted, 1)}
}

// quantile is that of sorted values by nearest rank.
func quantile(sorted []float64, q float64) float64 {
	n := len(sorted)
	if n == 0 {
		return 0
	}
	rank := int(q*float64(n)+0.999999) - 1
	return sorted[min(max(rank, 0), n-1)]
}

// idleDriver confirms at once what it is told, and no job on it ever ends by itself.
type idleDriver struct {
	report func(engine.Event)
	orders chan run.Order
}

var _ run.Driver = (*idleDriver)(nil)

func newIdleDriver(ctx context.Context) *idleDriver {
	// Room for more than one step can order: Order must not wait, it is the plane that
	// calls it and that takes the reports.
	d := &idleDriver{orders: make(chan run.Order, 1<<16)}
	go func() {
		for {
			select {
			case o := <-d.orders:
				d.confirm(o)
			case <-ctx.Done():
				return
			}
		}
	}()
	return d
}

// Recover has nothing to find again.
func (d *idleDriver) Recover(_ []run.Order, report func(engine.Event)) { d.report = report }

// Order queues an order.
func (d *idleDriver) Order(o run.Order) { d.orders <- o }

func (d *idleDriver) confirm(o run.Order) {
	kinds := map[plan.Verb]engine.Kind{plan.Start: engine.Started, plan.Stop: engine.Stopped, plan.Suspend: engine.Suspended, plan.Resume: engine.Resumed,
		plan.Reshape: engine.Reshaped}
	if kind, ok := kinds[o.Verb]; ok {
		d.report(engine.Event{Kind: kind, Job: o.Job, Attempt: o.Attempt, Device: o.Device, Change: o.Change})
	}
}
