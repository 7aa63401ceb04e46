// Package foreign reads the job files that people have written for other systems: Slurm's
// batch scripts, lines and scripts that call torchrun, Kubernetes objects, SkyPilot's tasks and Determined's
// experiments. Of each it takes the command and the shape, and says what of it has no meaning here.
package foreign

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/musterdl/muster/internal/spec"
	"github.com/musterdl/muster/model/objection"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// Found is what a file comes to.
type Found struct {
	// What the file is, as in "an sbatch script of Slurm".
	What string
	Jobs []workload.Job
	// Notes say what of the file is not held here, each once.
	Notes []string
}

func (f *Found) note(format string, args ...any) {
	if s := fmt.Sprintf(format, args...); !slices.Contains(f.Notes, s) {
		f.Notes = append(f.Notes, s)
	}
}

// refuse is the one line that says what a file is, and what to do; names in the file may have line ends in them.
func (f *Found) refuse(format string, args ...any) error {
	line := fmt.Sprintf("this is %s: %s", f.What, fmt.Sprintf(format, args...))
	return errors.New(strings.ReplaceAll(line, "\n", " "))
}

// kind is one kind of file: what it is called, how it is known, and who reads it.
type kind struct {
	what  string
	looks func(data []byte, keys map[string]any) bool
	read  func(f *Found, data []byte) error
}

var kinds = []kind{
	{"an sbatch script of Slurm", func(data []byte, _ map[string]any) bool { return sbatchLine.Match(data) }, sbatch},
	{"an object of Kubernetes", has("apiVersion", "kind"), objects},
	{"a task of SkyPilot", has("run", "resources|num_nodes|setup|workdir|envs|service"), skypilot},
	{"an experiment of Determined", has("entrypoint", "searcher|resources|hyperparameters|max_restarts"), determined},
	{"a script that calls torchrun", func(data []byte, _ map[string]any) bool { return isShell(data) && torchrun.Match(data) }, torchScript},
}

var sbatchLine = regexp.MustCompile(`(?m)^#SBATCH\s`)

// has looks for files of YAML with fields of these names at the top; of those with | between them one.
func has(names ...string) func([]byte, map[string]any) bool {
	return func(_ []byte, keys map[string]any) bool {
		for _, name := range names {
			if !slices.ContainsFunc(strings.Split(name, "|"), func(n string) bool { return keys[n] != nil }) {
				return false
			}
		}
		return true
	}
}

// isShell says whether a file is a script for a shell.
func isShell(data []byte) bool {
	line, _, _ := bytes.Cut(data, []byte("\n"))
	return bytes.HasPrefix(line, []byte("#!")) && bytes.HasSuffix(bytes.TrimRight(bytes.Fields(line)[len(bytes.Fields(line))-1], " "), []byte("sh"))
}

// kindOf is the kind of a file, nil where it is none of ours.
func kindOf(data []byte) *kind {
	var keys map[string]any
	if !bytes.HasPrefix(data, []byte("#!")) {
		if all, err := spec.Documents[map[string]any](data); err == nil && len(all) > 0 {
			keys = all[0]
		}
	}
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.looks(data, keys) })
	if i < 0 {
		return nil
	}
	return &kinds[i]
}

// Jobs reads a file of another system. Its errors are one line that says what the file is and what to do.
func Jobs(file string, data []byte) (Found, error) {
	k := kindOf(data)
	switch {
	case k == nil && isShell(data):
		return Found{}, fmt.Errorf("%s: this is a script that says nothing of what it runs on: muster submit --workers N -- %s", file, file)
	case k == nil:
		return Found{}, fmt.Errorf("%s: this is no file of Slurm, Kubernetes, SkyPilot or Determined, and no script that calls torchrun", file)
	}
	f := Found{What: k.what}
	if err := k.read(&f, data); err != nil {
		return f, fmt.Errorf("%s: %w", file, err)
	}
	for i := range f.Jobs {
		j := &f.Jobs[i]
		j.Name = named(cmp.Or(j.Name, strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))))
		// Our own reader has the last word.
		if _, err := spec.Jobs(file, spec.FormatJob(*j)); err != nil {
			return f, fmt.Errorf("%s: %w", file, f.refuse("%v", firstOf(err)))
		}
	}
	return f, nil
}

// firstOf is the first of the problems that our own reader has with what a file comes to, without its place in a text that
// nobody sees; nil where it takes it.
func firstOf(err error) error {
	if list := spec.Problems(nil); errors.As(err, &list) {
		p := list[0]
		return objection.Objection{Field: p.Field, Found: p.Found, Expected: p.Expected, Do: p.Do}
	}
	return err
}

// What says what a file is where it is of another system, "" otherwise.
func What(data []byte) string {
	k := kindOf(data)
	if k == nil {
		return ""
	}
	f := Found{What: k.what}
	_ = k.read(&f, data) // which says it more exactly
	return f.What
}

var unnameable = regexp.MustCompile(`[^A-Za-z0-9._-]`)

// named makes a name that a job may have.
func named(name string) string {
	name = unnameable.ReplaceAllString(name, "-")
	return strings.TrimLeft(name[:min(len(name), 128)], "-.")
}

// small is a number as jobs have it. What is too large stays too large.
func small(n int) int32 { return int32(min(max(n, math.MinInt32), math.MaxInt32)) }

// job is one to fill: a worker of one device.
func job(name string) workload.Job {
	return workload.Job{Name: name, Resources: workload.Resources{Gang: 1, Devices: 1, Share: unit.Whole}}
}

// oneLine is an error of a reader of YAML in a line: that of the first place, without the text around it.
func oneLine(err error) string {
	if list := spec.Problems(nil); errors.As(err, &list) {
		return fmt.Sprintf("line %d: %v", list[0].Line, firstOf(err))
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// document reads the first document of a file.
func document[T any](f *Found, data []byte) (one T, err error) {
	all, err := spec.Documents[T](data)
	if err == nil && len(all) == 0 {
		err = errors.New("it is empty")
	}
	if err != nil {
		return one, f.refuse("%v", oneLine(err))
	}
	return all[0], nil
}

// shell has a shell run lines.
func shell(lines ...string) []string {
	return spec.ShellLine(strings.Join(slices.DeleteFunc(lines, func(s string) bool { return s == "" }), "\n"))
}
