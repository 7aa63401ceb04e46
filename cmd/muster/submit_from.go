package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/musterdl/muster/internal/foreign"
	"github.com/musterdl/muster/internal/spec"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/model/workload"
)

// auto is the one word that --from takes.
const auto = "auto"

// fromOthers are the jobs of files that were written for other systems; what of them is not
// held here is told.
func fromOthers(names []string, told io.Writer) (jobs []workload.Job, err error) {
	for _, name := range names {
		data, err := readFile(name)
		if err != nil {
			return nil, err
		}
		found, err := foreign.Jobs(name, data)
		if err != nil {
			return nil, err
		}
		tell(told, name, &found)
		jobs = append(jobs, found.Jobs...)
	}
	return complete(jobs)
}

func tell(w io.Writer, name string, found *foreign.Found) {
	for _, note := range found.Notes {
		fmt.Fprintf(w, "muster: %s, %s: %s\n", name, found.What, view.Plain(note))
	}
}

// fromLine is the job of a command that torchrun starts, as far as flags do not say otherwise.
func (f *jobFlags) fromLine(cmd *cobra.Command, command []string) ([]workload.Job, error) {
	found, is, err := foreign.Line(command)
	if err != nil {
		return nil, err
	}
	if !is {
		return nil, misused("--from auto reads files, and commands that torchrun starts: leave it out")
	}
	j := found.Jobs[0]
	for flag, into := range map[string]*int32{"workers": &f.job.Gang, "retries": &f.job.Retries} {
		if !cmd.Flags().Changed(flag) {
			*into = map[string]int32{"workers": j.Gang, "retries": j.Retries}[flag]
		}
	}
	if f.job.Gang == j.Gang {
		f.job.Sizes = j.Sizes
	}
	built, err := f.build(j.Command)
	return []workload.Job{built}, err
}

// unread says what of a command is not read that says more than a command does: the lines of a script for Slurm, and how
// many processes torchrun starts.
func unread(command []string, w io.Writer) {
	if _, torchrun, _ := foreign.Line(command); torchrun {
		fmt.Fprintln(w, "muster: torchrun starts its processes inside each worker: submit --from auto makes a worker of each process instead")
		return
	}
	for _, word := range command[:min(len(command), 3)] {
		if data, err := os.ReadFile(word); err == nil && len(data) < maxScript {
			if what := foreign.What(data); what != "" {
				fmt.Fprintf(w, "muster: %s is %s, and what it asks for is not read this way: muster submit --from auto %s reads it\n", word, what, word)
			}
		}
	}
}

// maxScript is how large a script may be in which is looked for what it asks for.
const maxScript = 1 << 20

// printJobs writes jobs as the file that submit reads.
func printJobs(w io.Writer, jobs []workload.Job) error {
	var texts []string
	for i := range jobs {
		texts = append(texts, string(spec.FormatJob(jobs[i])))
	}
	_, err := io.WriteString(w, strings.Join(texts, "---\n"))
	return err
}

// readFile reads a file, or the standard input where it is called -.
func readFile(name string) (data []byte, err error) {
	if name == "-" {
		data, err = io.ReadAll(os.Stdin)
	} else {
		data, err = os.ReadFile(name)
	}
	if err != nil {
		err = fmt.Errorf("reading jobs: %w (a command goes behind --)", err)
	}
	return data, err
}

// complete gives jobs of files what they do not say of their surroundings.
func complete(jobs []workload.Job) ([]workload.Job, error) {
	for i := range jobs {
		if err := errors.Join(surround(&jobs[i], "."), ownModel(&jobs[i].Pipeline)); err != nil {
			return nil, err
		}
	}
	return jobs, nil
}
