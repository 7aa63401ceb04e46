package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/experiment/reproduce"
	"github.com/musterdl/muster/experiment/reproduce/stand"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run/report"
	"github.com/musterdl/muster/run/simulated"
)

// durationFlag lets a quantity of time be given as "90s" or "2h30m".
func durationFlag(d *unit.Duration) pflag.Value {
	return quantityFlag[unit.Duration]{d, "duration", unit.ParseDuration}
}

// quantityFlag lets something be given with its unit.
type quantityFlag[Q interface {
	comparable
	fmt.Stringer
}] struct {
	into  *Q
	kind  string
	parse func(string) (Q, error)
}

// String is the quantity as it would be given.
func (f quantityFlag[Q]) String() string {
	var none Q
	if f.into == nil || *f.into == none { // help shows no default then
		return ""
	}
	return (*f.into).String()
}

// Type names what the flag takes in the help.
func (f quantityFlag[Q]) Type() string { return f.kind }

// Set reads the flag.
func (f quantityFlag[Q]) Set(s string) (err error) {
	*f.into, err = f.parse(s)
	return err
}

// setupFlags are the flags that name a simulation.
func setupFlags(f *pflag.FlagSet, s *reproduce.Setup) {
	f.StringVar(&s.Trace, "trace", s.Trace, "what is asked: FORMAT:PATH (philly, helios, pai, openb, pollux, tiresias, chronus, muster), gen:NAME, or stand:NAME, which gives the cluster and prices too: "+strings.Join(stand.Names(), ", "))
	f.StringVar(&s.Cluster, "cluster", s.Cluster, "what there is: gpus:NxM, philly, venus, openb or a YAML file")
	f.Float64Var(&s.Load, "load", s.Load, "rescale arrivals to this offered load; 0 leaves them as they are")
	f.Uint64Var(&s.Seed, "seed", s.Seed, "seed of everything drawn")
	f.IntVar(&s.Limit, "limit", s.Limit, "only the first so many jobs; 0 is all")
	f.StringArrayVar(&s.Without, "without", nil, "replace a step by its null: "+strings.Join(catalogue.Steps, ", ")+" (may be repeated)")
	for _, d := range []struct {
		name, help string
		into       *unit.Duration
	}{
		{"restart-cost", "what a resumed job loses unless its trace says otherwise", &s.Prices.Restart},
		{"start-cost", "what the start of a worker takes", &s.Prices.Start},
		{"pause-cost", "what suspending a run takes, or resuming it, besides what moves", &s.Prices.Pause},
		{"part-cost", "what making or removing one part of a device takes", &s.Prices.Instance},
		{"rent-delay", "how long a rented node takes to come", &s.Prices.Arrival},
		{"answer-cost", "how long the answer to a question takes, for each KiB of it", &s.Prices.Answer},
		{"probe-cost", "what measuring one offer of a job's menu takes, once", &s.Prices.Probe},
		{"window-cost", "what handing a device to a guest, or back, takes in each window that a plan leaves idle", &s.Prices.Switch},
		{"law-settle", "how long a law takes with a new guest until it holds", &s.Prices.Settle},
		{"checkpoint-every", "how often jobs save by themselves whose trace says nothing of how they save; 0 is only when asked", &s.Saving.Every},
		{"node-mtbf", "mean time between failures of a node; 0 is never", &s.NodeEvery},
		{"node-repair", "mean time to repair a node; strategies learn it from nodes that come back", &s.NodeFor},
		{"device-mtbf", "mean time between failures of a device; 0 is never", &s.DeviceEvery},
		{"device-repair", "mean time to repair a device", &s.DeviceFor},
		{"link-mtbf", "mean time between failures of a link; 0 is never", &s.LinkEvery},
		{"link-repair", "mean time to repair a link", &s.LinkFor},
	} {
		f.Var(durationFlag(d.into), d.name, d.help)
	}
	f.Float64Var(&s.Prices.HostGBps, "host-link", s.Prices.HostGBps, "GB/s at which a suspended run moves out of each device, and back; 0 takes no time")
	f.Float64Var(&s.Prices.StoreGBps, "store-link", s.Prices.StoreGBps, "GB/s at which a job saves that does not say how long it takes; 0 takes no time")
	f.Float64Var(&s.Prices.ProbeError, "probe-error", s.Prices.ProbeError, "spread of what is measured of a job around the truth: the standard deviation of its logarithm")
	f.Float64Var(&s.LinkJitter, "link-jitter", s.LinkJitter, "by how much links fall short of what is written on them: the spread of a normal draw for each")
	f.BoolFunc("free", "nothing costs anything, as far as jobs do not say otherwise; put it before the costs that stay", func(value string) error {
		free, err := strconv.ParseBool(value)
		if free {
			s.Prices, s.LinkJitter = simulated.Prices{}, 0
		}
		return err
	})
	f.StringVar(&s.Queues, "queues", "", "a tree of queues: venus, philly, queues:NxG or a YAML file; empty is one queue")
	f.StringVar(&s.Tenants, "tenants", "", "draw tenants, users and priorities for jobs that have none, in the shape of: venus or philly")
	f.Float64Var(&s.Saving.Never, "never-save", 0, "part of the jobs whose trace says nothing of how they save that never do; the others save when asked")
	f.Float64Var(&s.StragglerPart, "stragglers", 0, "part of the jobs that run slow")
	f.Float64Var(&s.StragglerSlowdown, "straggler-slowdown", 2, "how many times slower those run")
}

func simulateCommand() *cobra.Command {
	s := reproduce.Defaults()
	var asJSON, quiet bool
	var decisions, perfetto, verify, html, plot string
	cmd := &cobra.Command{Use: "simulate", GroupID: "try", Args: cobra.NoArgs,
		Short: "Run a trace through a strategy on a simulated cluster",
		Example: "  muster simulate --trace gen:rw-a --cluster gpus:15x4 --strategy tiresias\n" +
			"  muster simulate --trace helios:../shared/data/helios --cluster gpus:74x8 --strategy srtf --json\n" +
			"  muster simulate --trace gen:philly --cluster gpus:80x8 --strategy tiresias+fgd --html report.html",
		RunE: func(cmd *cobra.Command, _ []string) error {
			defer simulatedScripts(cmd.ErrOrStderr())()
			if verify != "" {
				return verifyDecisions(cmd.OutOrStdout(), s, verify)
			}
			if html != "" {
				s.Limits.Spans = report.ChartSpans
			}
			var files outputs
			if err := errors.Join(files.open(decisions, &s.Decisions), files.open(perfetto, &s.Perfetto)); err != nil {
				return errors.Join(err, files.close())
			}
			if !quiet && !asJSON {
				s.Progress = progressBar(os.Stderr)
			}
			o, err := reproduce.Simulate(s)
			if err := errors.Join(err, files.close()); err != nil {
				return err
			}
			if err := writePage(o, html, plot); err != nil {
				return err
			}
			return show(cmd.OutOrStdout(), &o.Result, asJSON)
		}}
	setupFlags(cmd.Flags(), &s)
	cmd.Flags().StringVar(&s.Strategy, "strategy", s.Strategy, "a strategy, several joined by +, script:PATH (see docs/external.md) or a YAML file (see muster strategies)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.Flags().BoolVar(&quiet, "quiet", false, "no progress bar")
	cmd.Flags().BoolVar(&s.Check, "check", false, "prove the state legal after every step (slow)")
	cmd.Flags().StringVar(&decisions, "decisions", "", "write every commit to this file, one JSON line each")
	cmd.Flags().StringVar(&verify, "verify", "", "simulate again and compare with this file of --decisions; print the first commit that differs")
	cmd.Flags().StringVar(&html, "html", "", "write a report with plots to this file")
	cmd.Flags().StringVar(&plot, "plot", "", "draw its plots to this file, as SVG")
	cmd.Flags().StringVar(&perfetto, "perfetto", "", "write a trace of all runs for ui.perfetto.dev to this file")
	for _, output := range []string{"decisions", "html", "perfetto", "plot"} {
		cmd.MarkFlagsMutuallyExclusive(output, "verify")
	}
	return cmd
}

// show prints a result and fails when its ledger does not balance.
func show(w io.Writer, r *report.Result, asJSON bool) error {
	var err error
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		err = enc.Encode(r)
	} else {
		err = report.WriteText(w, *r, report.TextOptions{Width: width(), Color: colour()})
	}
	if err == nil && !r.Balanced {
		fmt.Fprintln(os.Stderr, "muster: the ledger does not balance: device time or jobs were lost or counted twice; this is a bug")
		return exit(1)
	}
	return err
}

// outputs are the files that a simulation writes while it goes on; each closes one.
type outputs []func() error

// open sets the writer to a file of this name, where there is a name.
func (o *outputs) open(name string, to *io.Writer) error {
	if name == "" {
		return nil
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	b := bufio.NewWriterSize(f, 1<<20)
	*to, *o = b, append(*o, func() error { return errors.Join(b.Flush(), f.Close()) })
	return nil
}

func (o outputs) close() error {
	var failed error
	for _, c := range o {
		failed = errors.Join(failed, c())
	}
	return failed
}

// verifyDecisions simulates again and fails with the first commit that differs.
func verifyDecisions(w io.Writer, s reproduce.Setup, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	same, difference, err := reproduce.Verify(s, f)
	if err != nil {
		return err
	}
	if difference != nil {
		fmt.Fprintf(w, "commit %d differs\n%s: %s\nnow: %s\n", difference.Line, file, orNone(difference.Recorded), orNone(difference.Decided))
		return exit(1)
	}
	_, err = fmt.Fprintf(w, "all %d commits are the same\n", same)
	return err
}

func orNone(line string) string {
	if line == "" {
		return "none"
	}
	return line
}

// writePage writes what pictures are asked for of a run.
func writePage(o *reproduce.Outcome, html, plot string) error {
	if html == "" && plot == "" {
		return nil // what they are drawn from is not gathered for nothing
	}
	return writePictures(report.Page{Title: o.Result.Strategy + " on " + o.Result.Trace, When: time.Now().Format(time.RFC1123),
		Runs: []report.Run{{Row: report.Row{Result: o.Result}, View: o.Collector.View()}}, Lanes: o.Lanes()}, html, plot)
}

// writePictures writes a page as a report and as a picture of its plots, each to a file where there is one.
func writePictures(page report.Page, html, plot string) error {
	if html != "" {
		if err := toFile(html, func(w io.Writer) error { return report.HTML(w, page) }); err != nil {
			return err
		}
	}
	if plot == "" {
		return nil
	}
	return toFile(plot, func(w io.Writer) error { return report.SVG(w, page) })
}

func toFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// progressBar returns a callback that redraws one line a few times a second; where
// standard error is no terminal it says nothing.
func progressBar(w *os.File) func(unit.Time, int64, int64) {
	if !term.IsTerminal(int(w.Fd())) {
		return nil
	}
	last, steps := time.Now(), 0
	return func(now unit.Time, submitted, ended int64) {
		if steps++; steps%1024 != 0 || time.Since(last) < 200*time.Millisecond {
			return
		}
		last = time.Now()
		fmt.Fprintf(w, "\r%s simulated, %d jobs submitted, %d ended \x1b[K", unit.Duration(now), submitted, ended)
	}
}
