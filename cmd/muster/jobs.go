package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/musterdl/muster/internal/client"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/plan"
)

func lsCommand() *cobra.Command {
	var l live
	var o client.ListOptions
	cmd := &cobra.Command{Use: "ls", GroupID: "run", Args: cobra.NoArgs, Short: "List jobs: those that run, then those that wait",
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := l.client().Jobs(cmd.Context(), o)
			if err != nil {
				return err
			}
			return l.show(cmd.OutOrStdout(), list, func(w io.Writer, t view.TextOptions) error {
				err := view.WriteJobs(w, list.Jobs, t)
				if err == nil && list.LeftOut > 0 {
					_, err = fmt.Fprintf(w, "and %d more; --limit shows more of them\n", list.LeftOut)
				}
				for _, words := range list.Quarantined {
					if err == nil {
						_, err = fmt.Fprintln(w, words)
					}
				}
				return err
			})
		}}
	l.flags(cmd)
	cmd.Flags().BoolVar(&o.All, "all", false, "also those that have ended")
	cmd.Flags().StringSliceVar(&o.Phases, "phase", nil, "only those of which ls says: waiting, held, blocked, backoff, promised, starting, running, suspended, resuming, stopping, finished, failed, cancelled, refused; active is all with a run")
	cmd.Flags().IntVar(&o.Limit, "limit", 0, "how many to list at most (default 1000)")
	return cmd
}

func showCommand() *cobra.Command {
	var l live
	var steps, byPlan bool
	var html string
	cmd := &cobra.Command{Use: "show JOB", GroupID: "run", Args: cobra.ExactArgs(1), Short: "Show all there is to say about a job",
		RunE: func(cmd *cobra.Command, args []string) error {
			if steps {
				s, err := l.client().Steps(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return l.show(cmd.OutOrStdout(), s, func(w io.Writer, o view.TextOptions) error { return view.WriteSteps(w, &s, o) })
			}
			if byPlan || html != "" {
				return showPlan(cmd, &l, args[0], html)
			}
			j, err := l.client().Job(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return l.show(cmd.OutOrStdout(), j, func(w io.Writer, o view.TextOptions) error { return view.WriteJob(w, &j, o) })
		}}
	l.flags(cmd)
	cmd.Flags().BoolVar(&steps, "steps", false, "what each of the six steps decided, what it rejected, and the number that decided")
	cmd.Flags().BoolVar(&byPlan, "plan", false, "by which plan its layers run: what each rank is predicted to do when, above what was measured, and its menu")
	cmd.Flags().StringVar(&html, "html", "", "write a page of its plan to this file")
	return cmd
}

func whyCommand() *cobra.Command {
	return answered(&cobra.Command{Use: "why JOB", GroupID: "run", Args: cobra.ExactArgs(1), Short: "Say why a job waits, what would have to change, and who holds it"},
		func(ctx context.Context, c *client.Client, args []string) (view.Why, error) {
			return c.Why(ctx, args[0])
		}, view.WriteWhy)
}

func logsCommand() *cobra.Command {
	var l live
	var o client.LogOptions
	cmd := &cobra.Command{Use: "logs JOB", GroupID: "run", Args: cobra.ExactArgs(1), Short: "Print what a job printed",
		RunE: func(cmd *cobra.Command, args []string) error {
			c := l.client()
			job, err := c.Job(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if job.Attempt == 0 && job.Copies == nil && !(o.Follow && job.Never) {
				fmt.Fprintf(cmd.ErrOrStderr(), "muster: %s has printed nothing, it has not started: it is %s: %s\n", job.Name, job.State(), job.Reason)
			}
			if job.Copies == nil {
				err = c.Logs(cmd.Context(), args[0], o, cmd.OutOrStdout())
			} else {
				err = logsOfCopies(cmd.Context(), c, &job, o, cmd.OutOrStdout())
			}
			if err != nil || !o.Follow {
				return err
			}
			return neverStarts(cmd.Context(), c, args[0], cmd.ErrOrStderr())
		}}
	l.target(cmd)
	cmd.Flags().BoolVarP(&o.Follow, "follow", "f", false, "go on until the job has ended or can never start here, through its later attempts")
	cmd.Flags().Int32Var(&o.Rank, "rank", 0, "which worker")
	cmd.Flags().Int32Var(&o.Attempt, "attempt", 0, "which attempt (default the latest)")
	cmd.Flags().Int64Var(&o.From, "from", 0, "begin at this byte of all output")
	return cmd
}

// neverStarts says of a job that was followed that it can never start, and exits then as wait does.
func neverStarts(ctx context.Context, c *client.Client, name string, w io.Writer) error {
	job, err := c.Job(ctx, name)
	if err != nil || !job.Never {
		return err
	}
	fmt.Fprintln(w, "muster:", ending(&job))
	return exit(exitNotStarted)
}

// logsOfCopies prints what the copies of an array printed, one after the other.
func logsOfCopies(ctx context.Context, c *client.Client, array *view.Job, o client.LogOptions, w io.Writer) error {
	n := 0
	for _, k := range array.Copies {
		n += k
	}
	for i := range n {
		name := fmt.Sprintf("%s-%d", array.Name, i)
		fmt.Fprintf(w, "==> %s <==\n", name)
		if err := c.Logs(ctx, name, o, w); err != nil {
			return err
		}
	}
	return nil
}

// changeCommand is a command that asks one thing of jobs.
func changeCommand(verb, short string) *cobra.Command {
	return changed(&cobra.Command{Use: verb + " JOB...", GroupID: "run", Short: short},
		func(ctx context.Context, c *client.Client, name string) (view.Job, error) {
			return c.ChangeJob(ctx, name, verb)
		},
		func(j view.Job) string {
			if j.Copies != nil {
				return fmt.Sprintf("%s: %s", j.Name, view.Counts(j.Copies))
			}
			if j.Over() || j.Phase == plan.Held.String() { // its run may still be stopping
				return fmt.Sprintf("%s is %s", j.Name, j.Phase)
			}
			return fmt.Sprintf("%s is %s", j.Name, j.State())
		})
}
