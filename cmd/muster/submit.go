package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/musterdl/muster/internal/client"
	"github.com/musterdl/muster/internal/foreign"
	"github.com/musterdl/muster/internal/spec"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// jobFlags describe a job on the command line.
type jobFlags struct {
	job                     workload.Job
	share, cpu, memory, ram string
	env, secrets            []string
	from                    string // of submit: files of other systems are read
}

func (f *jobFlags) add(cmd *cobra.Command) {
	f.job = workload.Job{Resources: workload.Resources{Gang: 1, Devices: 1, Share: unit.Whole}}
	fl, j := cmd.Flags(), &f.job
	fl.StringVar(&j.Name, "name", "", "name of the job; the server makes one where none is given")
	fl.Int32Var(&j.Gang, "workers", 1, "workers, which all start together")
	fl.Int32Var(&j.Devices, "devices-per-worker", 1, "whole devices of each worker; 0 is a task without")
	fl.StringVar(&f.share, "share", "", "part of a device of each worker, as in 500m")
	fl.StringSliceVar(&j.Models, "model", nil, "device models it may use (default any)")
	fl.StringVar(&f.memory, "memory", "", "memory of each device, as in 16GiB")
	fl.StringVar(&f.cpu, "cpu", "", "cores of each worker")
	fl.StringVar(&f.ram, "host-memory", "", "host memory of each worker")
	fl.StringVar(&j.Tenant, "tenant", "", "whose share of the cluster it counts against: the queue it is in, as in research/vision")
	fl.Int32Var(&j.Priority, "priority", 0, "higher goes first, where the order honours it")
	fl.Int32Var(&j.Retries, "retries", 0, "how often it is started again after failures of its own making")
	fl.Int32Var(&j.Array, "array", 0, "submit so many copies, NAME-0, NAME-1, ...")
	fl.StringSliceVar(&j.After, "after", nil, "jobs and arrays that must have finished first; any:NAME must have ended, failed:NAME not have finished")
	fl.StringVar(&j.Dir, "dir", "", "working directory (default the present one)")
	fl.StringArrayVar(&f.env, "env", nil, "a variable, as NAME=VALUE or as NAME to pass it on; PATH, HOME, USER and LANG are passed on always")
	fl.StringArrayVar(&f.secrets, "secret", nil, "a variable whose value never is in the journal, as NAME to pass it on or as NAME=VALUE")
	fl.Var(durationFlag(&j.Estimate), "estimate", "how long it should run")
	fl.Var(durationFlag(&j.TimeLimit), "time-limit", "end a run of it after this long")
	fl.Var(durationFlag(&j.Deadline), "deadline", "when it should be done, from now")
	fl.Var(durationFlag(&j.Checkpoint.Every), "checkpoint-every", "how often it saves by itself")
	fl.BoolVar(&j.Checkpoint.OnRequest, "checkpoint-on-request", false, "it saves when asked to, before it is stopped")
}

// build completes the job with its command.
func (f *jobFlags) build(command []string) (workload.Job, error) {
	j := f.job
	j.Command = command
	var err error
	parse := func(name, text string, into func(string) error) {
		if text != "" && err == nil {
			if err = into(text); err != nil {
				err = misused("--%s: %w", name, err)
			}
		}
	}
	parse("share", f.share, func(s string) (err error) { j.Share, err = unit.ParseMilli(s); return err })
	parse("cpu", f.cpu, func(s string) (err error) { j.CPU, err = unit.ParseMilli(s); return err })
	parse("memory", f.memory, func(s string) (err error) { j.Memory, err = unit.ParseMiB(s); return err })
	parse("host-memory", f.ram, func(s string) (err error) { j.HostMemory, err = unit.ParseMiB(s); return err })
	if err != nil {
		return j, err
	}
	for i, kv := range slices.Concat(f.env, f.secrets) {
		flag, secret := "--env", i >= len(f.env)
		if secret {
			flag = "--secret"
		}
		name, _, given := strings.Cut(kv, "=")
		if !given {
			value, ok := os.LookupEnv(name)
			if !ok {
				return j, misused("%s %s: it is not set here: give it a value, as in %s %s=1", flag, name, flag, name)
			}
			kv = name + "=" + value
		}
		j.Env = append(j.Env, kv)
		if secret {
			j.Secrets = append(j.Secrets, name)
		}
	}
	err = surround(&j, ".")
	j.Command = shellLine(j.Command, j.Dir)
	return j, err
}

// shellLine has a shell run a command of one argument that reads as a line for one, as in
// a file of jobs, unless there is a program of that name.
func shellLine(command []string, dir string) []string {
	if len(command) != 1 || !strings.ContainsAny(command[0], spec.ShellMarks) {
		return command
	}
	path := command[0]
	if strings.Contains(path, "/") && !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	if _, err := exec.LookPath(path); errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return spec.ShellLine(command[0])
	}
	return command
}

// surround gives a job what of its submitter's surroundings it did not name: the
// directory, resolved against base, and the variables that programs expect.
func surround(j *workload.Job, base string) error {
	dir, err := filepath.Abs(base)
	if err != nil {
		return fmt.Errorf("finding the present directory: %w", err)
	}
	switch {
	case len(j.Command) == 0: // it runs nowhere
	case j.Dir == "":
		j.Dir = dir
	case !filepath.IsAbs(j.Dir):
		j.Dir = filepath.Join(dir, j.Dir)
	}
	for _, name := range []string{"PATH", "HOME", "USER", "LANG"} {
		named := slices.ContainsFunc(j.Env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
		if value, set := os.LookupEnv(name); set && !named && len(j.Command) > 0 {
			j.Env = append(j.Env, name+"="+value)
		}
	}
	return nil
}

func submitCommand() *cobra.Command {
	var l live
	var f jobFlags
	var wait, asYAML bool
	cmd := &cobra.Command{Use: "submit {FILE... | [flags] -- COMMAND [ARGUMENT...]}", GroupID: "run", Args: cobra.MinimumNArgs(1),
		Short: "Submit jobs from files, or one command",
		Example: "  muster submit jobs.yaml\n  muster submit - < jobs.yaml\n" +
			"  muster submit --from auto train.sbatch\n  muster submit --from auto pytorchjob.yaml --yaml > job.yaml\n" +
			"  muster submit --workers 2 --name mnist --estimate 20m -- python train.py --epochs 5",
		RunE: func(cmd *cobra.Command, args []string) error {
			jobs, err := f.jobs(cmd, args)
			if err != nil {
				return err
			}
			if asYAML {
				return printJobs(cmd.OutOrStdout(), jobs)
			}
			c := l.client()
			out, err := c.Submit(cmd.Context(), jobs, rand.Text())
			if err != nil {
				return err
			}
			err = l.show(cmd.OutOrStdout(), out, func(w io.Writer, _ view.TextOptions) error {
				for _, j := range out.Jobs {
					fmt.Fprintln(w, j.Name)
				}
				return nil
			})
			tellNotes(cmd.ErrOrStderr(), out)
			if err == nil {
				err = tellRefused(cmd.Context(), c, jobs, out.Jobs, wait, cmd.ErrOrStderr())
			}
			if err != nil || !wait {
				return err
			}
			return waitAll(cmd.Context(), c, refNames(out.Jobs), cmd.ErrOrStderr())
		}}
	l.flags(cmd)
	f.add(cmd)
	cmd.Flags().StringVar(&f.from, "from", "", "auto: the files are of Slurm (sbatch), Kubernetes, SkyPilot or Determined, or the command is one that torchrun starts")
	cmd.Flags().BoolVar(&asYAML, "yaml", false, "print the jobs as a file that submit reads, and submit nothing")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until all have ended or can never start here, and exit as the first that did not finish")
	cmd.Long = "Submit jobs from files, or one command. Of a job that is refused at once, as those are whose deadlines cannot be met\n" +
		"where the strategy promises them, the earliest deadline that can be is told (see muster help exit-codes). One that can\n" +
		"never start here is told of, and waits until the cluster or its queues are others. A single\n" +
		"argument behind -- that is no program is run by sh -c."
	return cmd
}

// tellNotes says what was asked for and is not held.
func tellNotes(w io.Writer, out view.Submitted) {
	for _, note := range out.Notes {
		fmt.Fprintln(w, "muster:", note)
	}
}

// mostAsked is how many jobs are asked about once they are submitted; with deadlines all are.
const mostAsked = 16

// tellRefused says which of the jobs just submitted were refused at once, as those are
// whose deadlines cannot be met, and exits then as run does; and which can never start,
// unless they are waited for, which says it too.
func tellRefused(ctx context.Context, c *client.Client, jobs []workload.Job, refs []view.Ref, wait bool, w io.Writer) error {
	if len(refs) > mostAsked && !slices.ContainsFunc(jobs, func(j workload.Job) bool { return j.Deadline > 0 }) {
		return nil
	}
	worst := 0
	for _, ref := range refs {
		name := ref.Name
		if ref.Array > 0 {
			name += "-0"
		}
		j, err := c.Job(ctx, name)
		if err != nil {
			return err
		}
		if j.Never && !wait {
			fmt.Fprintln(w, "muster:", ending(&j))
		}
		if j.Phase == plan.Refused.String() {
			fmt.Fprintf(w, "muster: %s is refused: %s\n", j.Name, j.Reason)
			worst = exitOf(&j)
		}
	}
	return code(worst)
}

func refNames(refs []view.Ref) (names []string) {
	for _, r := range refs {
		names = append(names, r.Name)
	}
	return names
}

// jobs are those of the files, or the one of the command behind --.
func (f *jobFlags) jobs(cmd *cobra.Command, args []string) ([]workload.Job, error) {
	switch dash := cmd.ArgsLenAtDash(); {
	case f.from != "" && f.from != auto:
		return nil, misused("--from: found %q, expected auto", f.from)
	case dash > 0:
		return nil, misused("give either files, or a command behind --")
	case cmd.Flags().Changed("array") && f.job.Array < 1:
		return nil, misused("--array: found %d, expected 1 or more copies", f.job.Array)
	case dash == 0 && f.from == auto:
		return f.fromLine(cmd, args)
	case dash == 0:
		unread(args, cmd.ErrOrStderr())
		j, err := f.build(args)
		return []workload.Job{j}, err
	case f.from == auto:
		return fromOthers(args, cmd.ErrOrStderr())
	}
	var jobs []workload.Job
	for _, name := range args {
		found, err := readJobs(name)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, found...)
	}
	return jobs, nil
}

// readJobs reads a file of jobs, here, so that its problems name the file.
func readJobs(name string) ([]workload.Job, error) {
	data, err := readFile(name)
	if err != nil {
		return nil, err
	}
	jobs, err := spec.Jobs(name, data)
	if err != nil {
		if what := foreign.What(data); what != "" {
			err = fmt.Errorf("%s: this is %s: muster submit --from auto %s reads it", name, what, name)
		}
		return nil, err
	}
	return complete(jobs)
}

// ownModel reads the model that a job trains where it names a file: the shape goes with the job, under
// the name that the file gives it.
func ownModel(p *workload.Pipeline) error {
	if p.Shape != "" || !strings.ContainsAny(p.Model, "./") {
		return nil
	}
	data, err := spec.ReadFile(p.Model)
	if err != nil {
		return fmt.Errorf("reading the model of a job: %w", err)
	}
	own, err := spec.Own(p.Model, data)
	if err != nil {
		return err
	}
	if own.Name == "" {
		base := filepath.Base(p.Model)
		own.Name = strings.TrimSuffix(base, filepath.Ext(base))
	}
	text, err := json.Marshal(own)
	p.Model, p.Shape = own.Name, string(text)
	return err
}

func runCommand() *cobra.Command {
	var l live
	var f jobFlags
	cmd := &cobra.Command{Use: "run [flags] -- COMMAND [ARGUMENT...]", GroupID: "run", Args: cobra.MinimumNArgs(1),
		Short: "Submit a command, follow its output and exit as it did",
		Long: "Submit a command, follow the output of its first worker and exit as it did (see muster help exit-codes). An interrupt\n" +
			"cancels the job; a second one leaves it alone. One that can never start here is told of, left alone, and not waited for.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() != 0 {
				return misused("the command goes behind --, as in muster run -- python train.py")
			}
			j, err := f.build(args)
			if err != nil {
				return err
			}
			if j.Array != 0 {
				return misused("run follows one job: submit arrays with muster submit")
			}
			// From here on an interrupt is the job's: one that comes while it is being
			// submitted cancels it.
			interrupts := make(chan os.Signal, 2)
			signal.Notify(interrupts, syscall.SIGINT, syscall.SIGTERM)
			defer signal.Stop(interrupts)
			c := l.client()
			out, err := c.Submit(cmd.Context(), []workload.Job{j}, rand.Text())
			if err != nil {
				return err
			}
			tellNotes(cmd.ErrOrStderr(), out)
			return follow(cmd, c, out.Jobs[0].Name, &l, interrupts)
		}}
	l.flags(cmd)
	f.add(cmd)
	return cmd
}

// follow copies a job's log until it has ended, and exits as it did. The first
// interrupt cancels the job, the second leaves it alone.
func follow(cmd *cobra.Command, c *client.Client, name string, l *live, interrupts <-chan os.Signal) error {
	fmt.Fprintf(cmd.ErrOrStderr(), "muster: submitted %s\n", name)
	ctx, detach := context.WithCancel(cmd.Context())
	defer detach()
	go func() {
		<-interrupts
		fmt.Fprintf(cmd.ErrOrStderr(), "\nmuster: cancelling %s; interrupt once more to leave it alone\n", name)
		if _, err := c.ChangeJob(ctx, name, "cancel"); err != nil {
			fmt.Fprintln(cmd.ErrOrStderr(), "muster:", err)
		}
		<-interrupts
		detach()
	}()
	var refused *client.Error
	err := c.Logs(ctx, name, client.LogOptions{Follow: true}, cmd.OutOrStdout())
	if errors.As(err, &refused) {
		fmt.Fprintln(cmd.ErrOrStderr(), "muster: no output to follow:", err)
		err = nil
	}
	var job view.Job
	if err == nil {
		job, err = c.Wait(ctx, name)
	}
	if ctx.Err() != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "muster: left %s alone: muster show %s tells how it goes\n", name, name)
		return exit(exitInterrupted)
	}
	if err != nil {
		return err
	}
	if l.asJSON {
		if err := l.show(cmd.OutOrStdout(), job, nil); err != nil {
			return err
		}
	}
	fmt.Fprintln(cmd.ErrOrStderr(), "muster:", ending(&job))
	return code(exitOf(&job))
}

// ending says in a line how a job ended, or that it can never start.
func ending(j *view.Job) string {
	if j.Never {
		is := " "
		if j.Copies != nil {
			is = ": "
		}
		return j.Name + is + j.Reason + "; it waits until the cluster or its queues change, or it is cancelled"
	}
	line := fmt.Sprintf("%s %s after %s", j.Name, j.Phase, view.SpanSec(j.WaitedSec+j.RanSec))
	if j.Phase != plan.Finished.String() {
		line += ": " + j.Reason
	}
	return line
}

func waitCommand() *cobra.Command {
	var l live
	cmd := &cobra.Command{Use: "wait JOB...", GroupID: "run", Args: cobra.MinimumNArgs(1),
		Short: "Wait until jobs have ended, and exit as the first that did not finish",
		Long:  "Wait until jobs have ended, and exit as the first that did not finish (see muster help exit-codes). One that can never\nstart here is told of, and not waited for.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if l.asJSON {
				return waitJSON(cmd.Context(), &l, args, cmd.OutOrStdout())
			}
			return waitAll(cmd.Context(), l.client(), args, cmd.OutOrStdout())
		}}
	l.flags(cmd)
	return cmd
}

// waitAll waits for each job in turn and exits as the first that did not finish.
func waitAll(ctx context.Context, c *client.Client, names []string, w io.Writer) error {
	worst := 0
	for _, name := range names {
		job, err := c.Wait(ctx, name)
		if err != nil {
			return err
		}
		fmt.Fprintln(w, ending(&job))
		job.Failure.WriteLastLines(w, view.TextOptions{})
		worst = cmp.Or(worst, exitOf(&job))
	}
	return code(worst)
}

func waitJSON(ctx context.Context, l *live, names []string, w io.Writer) error {
	c, worst, list := l.client(), 0, view.Jobs{}
	for _, name := range names {
		job, err := c.Wait(ctx, name)
		if err != nil {
			return err
		}
		list.Jobs, worst = append(list.Jobs, job), cmp.Or(worst, exitOf(&job))
	}
	if err := l.show(w, list, nil); err != nil {
		return err
	}
	return code(worst)
}
