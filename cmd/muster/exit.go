package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/musterdl/muster/internal/client"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/model/objection"
	"github.com/musterdl/muster/plan"
)

// The exit codes that are not a job's own.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitNotStarted  = 3
	exitUnreached   = 125
	exitInterrupted = 130
)

// exits say what the exit codes mean.
var exits = []struct{ code, means string }{
	{"0", "what was asked is done; every job that was waited for has finished"},
	{fmt.Sprint(exitFailed), "it failed, or was refused: the standard error says why"},
	{fmt.Sprint(exitUsage), "no such command, flag or argument; nothing was done"},
	{fmt.Sprint(exitNotStarted), "a job did not start: the strategy refused it, as it cannot meet its deadline; or it was waited for and can never start here"},
	{fmt.Sprint(exitUnreached), "no server answered"},
	{fmt.Sprint(exitInterrupted), "a job that was waited for was cancelled, or left alone after a second interrupt"},
	{"its own", "of run, wait and submit --wait: the first job that failed exited with this code"},
	{"126, 127", "likewise: its program or its directory may not be used, or is not there"},
	{"128 + N", "likewise: signal N ended it; 137 is SIGKILL, as for want of memory, 139 SIGSEGV, 143 SIGTERM"},
}

// exitTopic is the page about them, which muster help shows.
func exitTopic() *cobra.Command {
	var b strings.Builder
	fmt.Fprintln(&b, "Every command exits with one of these:")
	for _, e := range exits {
		fmt.Fprintf(&b, "\n  %-10s%s", e.code, e.means)
	}
	return &cobra.Command{Use: "exit-codes", Short: "What the exit codes mean", Long: b.String()}
}

// exit is an error that only carries the exit code; what there is to say was said.
type exit int

// Error is for whoever prints it all the same.
func (e exit) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// usage is an error in how the program was called.
type usage struct{ error }

// Unwrap returns what was wrong.
func (u usage) Unwrap() error { return u.error }

func misused(format string, args ...any) error { return usage{fmt.Errorf(format, args...)} }

// codeOf is the exit code that stands for an error.
func codeOf(err error) int {
	var code exit
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	case errors.As(err, new(usage)):
		return exitUsage
	case errors.Is(err, client.ErrNoServer), errors.As(err, new(*url.Error)):
		return exitUnreached
	}
	return exitFailed
}

// exitOf is the exit code that stands for how a job ended, or for why it is no longer waited for.
func exitOf(j *view.Job) int {
	if j.Never {
		return exitNotStarted
	}
	switch j.Phase {
	case plan.Finished.String():
		return 0
	case plan.Cancelled.String():
		return exitInterrupted
	case plan.Refused.String():
		return exitNotStarted
	}
	f := j.Failure
	if f == nil || j.Copies == nil && f.Attempt != j.Attempt {
		return exitFailed // another job's failure ended it
	}
	if signal := unix.SignalNum(f.Signal); signal != 0 {
		return 128 + int(signal)
	}
	return cmp.Or(f.ExitCode, exitFailed)
}

// strict makes every wrong use of a command an error of its own kind, also where help would
// be printed as if all were well.
func strict(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return misused("%w: see %s --help", flagError(err), c.CommandPath())
	})
	for _, c := range cmd.Commands() {
		strict(c)
	}
	switch accepted := cmd.Args; {
	case cmd.Name() == "help":
		cmd.Run, cmd.RunE = nil, help
	case cmd.HasSubCommands() && !cmd.Runnable():
		cmd.Args, cmd.RunE = cobra.ArbitraryArgs, group
	case accepted != nil:
		cmd.Args = func(c *cobra.Command, args []string) error {
			if err := accepted(c, args); err != nil {
				return misused("%w: see %s --help", err, c.CommandPath())
			}
			return nil
		}
	}
}

// takes says in words what flags of a type take.
var takes = map[string]string{"float64": "a number", "int": "a whole number", "int32": "a whole number", "int64": "a whole number",
	"bool": "true or false", "boolfunc": "true or false", "uint64": "a whole number that is not negative", "int32Slice": "whole numbers with commas between them"}

// flagError says what was expected where a flag takes a number and got none.
func flagError(err error) error {
	var wrong *pflag.InvalidValueError
	if !errors.As(err, &wrong) {
		return err
	}
	f := wrong.GetFlag()
	expected := takes[f.Value.Type()]
	if expected == "" {
		return fmt.Errorf("--%s: %w", f.Name, wrong.Unwrap())
	}
	if errors.Is(err, strconv.ErrRange) {
		expected += ", and none that large"
	}
	return objection.Objection{Field: "--" + f.Name, Found: strconv.Quote(wrong.GetValue()), Expected: expected}
}

// group is a command that only holds others: it shows which.
func group(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	if said := theirs(args); said != "" && !cmd.HasParent() {
		return misused("unknown command %q: %s", args[0], said)
	}
	err := fmt.Sprintf("unknown command %q: see %s --help", args[0], cmd.CommandPath())
	if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
		err += "; did you mean " + strings.Join(like, " or ") + "?"
	}
	return misused("%s", err)
}

// help shows a command's help.
func help(cmd *cobra.Command, args []string) error {
	of, rest, err := cmd.Root().Find(args)
	if of == nil || err != nil || len(rest) > 0 {
		return misused("unknown help topic %q: see muster --help", strings.Join(args, " "))
	}
	of.InitDefaultHelpFlag()
	return of.Help()
}
