package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/experiment/reproduce"
	"github.com/musterdl/muster/internal/snapshot"
	"github.com/musterdl/muster/internal/spec"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/internal/whatif"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// whatIfFlags are what can be different, as it is typed.
type whatIfFlags struct {
	q                     whatif.Request
	strategy, nodes, job  string
	queue                 string
	guarantee             float64
	last, horizon         unit.Duration
	snapshotFile, picture string
}

func whatIfCommand() *cobra.Command {
	var l live
	var f whatIfFlags
	cmd := &cobra.Command{Use: "whatif", GroupID: "operate", Args: cobra.NoArgs, Short: "Run the cluster forward twice, as it is and with a change",
		Long: "Run the cluster forward from this moment twice, as it is and with a change, and compare: waiting, completion times,\n" +
			"utilisation, preemptions, and every job that starts or ends otherwise. The cluster is not touched. Running times are\n" +
			"those that are believed (declared, learned, or of like jobs), and nobody else submits anything.\n\n" +
			"With --last the cluster goes back that long, and the jobs come that came, with the running times that were observed.\n" +
			"With --snapshot the question is put to a file of muster snapshot save, and no server is asked.",
		Example: "  muster whatif --strategy srtf\n  muster whatif --add-nodes 2x8 --model H100\n  muster whatif --remove-nodes gpu-3,gpu-4\n" +
			"  muster whatif --queue research --guarantee 64\n  muster whatif --job big.yaml\n" +
			"  muster whatif --last 7d --strategy tiresias --html last-week.html",
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			if err := f.read(cmd.Flags().Changed("guarantee")); err != nil {
				return err
			}
			a, err := f.ask(ctx, &l)
			if err != nil {
				return err
			}
			if f.picture != "" {
				if err := toFile(f.picture, func(w io.Writer) error { return whatif.WriteHTML(w, &a) }); err != nil {
					return err
				}
			}
			return l.show(cmd.OutOrStdout(), a, func(w io.Writer, _ view.TextOptions) error { return whatif.Write(w, &a) })
		}}
	l.flags(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.strategy, "strategy", "", "another strategy: a name, several joined by +, or a YAML file")
	fl.StringVar(&f.nodes, "add-nodes", "", "so many more nodes, N or NxM with M devices each (default as many as those there are)")
	fl.StringVar(&f.q.Model, "model", "", "device model of the nodes that are added")
	fl.Float64Var(&f.q.Speed, "speed", 0, "how fast that model is, where the cluster has none; 1 is the reference")
	fl.StringSliceVar(&f.q.Remove, "remove-nodes", nil, "nodes that go; what runs there saves and queues")
	fl.StringVar(&f.queue, "queue", "", "a queue that gets another guarantee")
	fl.Float64Var(&f.guarantee, "guarantee", 0, "devices guaranteed to it")
	fl.StringVar(&f.job, "job", "", "YAML file of jobs that would be submitted now")
	fl.Var(durationFlag(&f.last), "last", "go back so long and let the jobs come that came, as in 7d")
	fl.Var(durationFlag(&f.horizon), "horizon", "how far to look (default 7d, or all of --last)")
	fl.StringVar(&f.snapshotFile, "snapshot", "", "ask a file of muster snapshot save, not a server")
	fl.StringVar(&f.picture, "html", "", "write a page with both futures over each other to this file")
	cmd.MarkFlagsRequiredTogether("queue", "guarantee")
	cmd.MarkFlagsMutuallyExclusive("snapshot", "socket")
	cmd.MarkFlagsMutuallyExclusive("snapshot", "server")
	return cmd
}

// read completes the request with what was typed.
func (f *whatIfFlags) read(guaranteed bool) error {
	q := &f.q
	if f.strategy != "" {
		c, err := catalogue.ResolveLive(f.strategy)
		if err != nil {
			return err
		}
		q.Strategy = c.Text
	}
	if f.nodes != "" {
		nodes, each, given := strings.Cut(f.nodes, "x")
		var errs [2]error
		q.AddNodes, errs[0] = strconv.Atoi(nodes)
		if given {
			q.AddDevices, errs[1] = strconv.Atoi(each)
		}
		if errors.Join(errs[:]...) != nil || q.AddNodes < 1 || given && q.AddDevices < 1 {
			return misused("--add-nodes is %q: expected a number of nodes, or NxM with M devices each", f.nodes)
		}
	}
	if guaranteed {
		q.Queue = &whatif.Share{Name: f.queue, GuaranteeDevices: f.guarantee}
	}
	if f.job != "" {
		data, err := spec.ReadFile(f.job)
		if err != nil {
			return err
		}
		q.Job = string(data)
	}
	q.LastS, q.HorizonS = f.last.Seconds(), f.horizon.Seconds()
	return q.Check()
}

// ask puts the request to the server, or to a snapshot.
func (f *whatIfFlags) ask(ctx context.Context, l *live) (whatif.Answer, error) {
	if f.snapshotFile == "" {
		return l.client().WhatIf(ctx, f.q)
	}
	base, err := f.offline(ctx)
	if err != nil {
		return whatif.Answer{}, err
	}
	a, err := whatif.Ask(ctx, base, f.q)
	a.Keep(func(string) bool { return true })
	if !l.asJSON {
		view.PlainAll(&a)
	}
	return a, err
}

// offline is what a snapshot says of the end of its history, or of the time before.
func (f *whatIfFlags) offline(ctx context.Context) (base whatif.Base, err error) {
	file, err := snapshot.Open(f.snapshotFile)
	if err != nil {
		return base, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	from := unit.Never
	if f.last > 0 {
		from = file.Manifest.To.Add(-f.last)
	}
	w, err := snapshot.ReadWindow(ctx, file.Each, from, snapshot.ReadOptions{Restart: reproduce.Defaults().Prices.Restart})
	if err != nil {
		return base, err
	}
	if base, err = whatif.Of(w); err != nil || f.q.Job == "" {
		return base, err
	}
	jobs, err := spec.Jobs(f.job, []byte(f.q.Job))
	if err != nil {
		return base, err
	}
	base.Jobs = supposed(jobs, filepath.Base(f.job))
	return base, nil
}

// supposed names jobs that have no name and makes the copies of arrays.
func supposed(jobs []workload.Job, file string) (out []workload.Job) {
	for i := range jobs {
		j := &jobs[i]
		if j.Name == "" {
			j.Name = fmt.Sprintf("%s-%d", file, i)
		}
		out = append(out, j.Copies()...)
	}
	return out
}
