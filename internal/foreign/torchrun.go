package foreign

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/musterdl/muster/model/workload"
)

// A gang here gets what torchrun gives its processes (RANK, WORLD_SIZE, MASTER_ADDR ...), each as a worker
// of its own. So torchrun is taken out: what it would start on all nodes are the workers.

var (
	torchrun = regexp.MustCompile(`(?m)^[^#\n]*?\b(torchrun|python3?\s+-m\s+torch\.distributed\.(run|launch))\s+(.*)$`)
	asModule = regexp.MustCompile(`python3?\s+-m\s+torch\.distributed\.(run|launch)\b`)
	joined   = regexp.MustCompile(`\\\n\s*`)
)

// The options of torchrun that take no value; --no-python and -m say how its program is started.
var torchFlags = []string{"standalone", "no-python", "m", "module", "run-path", "use-env"}

// launch is what a line of torchrun asks for.
type launch struct {
	options map[string]string
	program []string
}

// launchOf reads the words behind torchrun.
func launchOf(words []string) (l launch) {
	l.options = map[string]string{}
	for i := 0; i < len(words); i++ {
		name, value, given := strings.Cut(words[i], "=")
		plain := strings.ReplaceAll(strings.TrimLeft(name, "-"), "_", "-")
		switch {
		case !strings.HasPrefix(name, "-"):
			l.program = words[i:]
			return l
		case !given && !slices.Contains(torchFlags, plain) && i+1 < len(words):
			i++
			value = words[i]
		}
		l.options[plain] = strings.Trim(value, `"'`)
	}
	return l
}

// option is a number of an option, as in 2, or two, as in 1:4; 0 where there is none, and -1 where it is no number.
func (l *launch) option(name string) (low, high int) {
	text, there := l.options[name]
	if !there {
		return 0, 0
	}
	first, last, _ := strings.Cut(text, ":")
	low, errLow := strconv.Atoi(first)
	high, errHigh := strconv.Atoi(cmp.Or(last, first))
	if errors.Join(errLow, errHigh) != nil {
		return -1, -1
	}
	return low, high
}

// mostWorkers is far more than any job has: more is a slip, and not worked out.
const mostWorkers = 1_000_000

// shape gives a job the workers that torchrun would start, on so many nodes with so many devices each where those are known.
// The string is what stands in the way.
func (l *launch) shape(j *workload.Job, nodes, gpus int) string {
	low, high := l.option("nnodes")
	if high < 1 {
		low, high = max(1, nodes), max(1, nodes)
	}
	_, each := l.option("nproc-per-node")
	if each = cmp.Or(each, 1); each < 0 {
		each = gpus
	}
	_, restarts := l.option("max-restarts")
	switch {
	case each < 1:
		return "its --nproc-per-node is no number: write how many devices a node has"
	case high > mostWorkers/each:
		return fmt.Sprintf("it starts %d processes on each of %d nodes: expected at most %d in all", each, high, mostWorkers)
	case gpus%each != 0:
		return fmt.Sprintf("%d devices of a node do not divide among %d processes", gpus, each)
	}
	j.Gang, j.Retries, j.Devices = int32(high*each), small(max(0, restarts)), 1
	for n := max(1, low); low < high && n <= high; n++ {
		j.Sizes = append(j.Sizes, int32(n*each))
	}
	if gpus > 0 {
		j.Devices = int32(gpus / each)
	}
	return ""
}

// Line takes torchrun out of a command: what is behind it is the program of each worker.
func Line(command []string) (f Found, is bool, err error) {
	f.What = "a line of torchrun"
	if line := shellsLine(command); line != "" {
		if _, is = launches(line); !is {
			return f, false, nil
		}
		return f, true, f.script(line)
	}
	before, behind, is := aroundTorchrun(command)
	if !is {
		return f, false, nil
	}
	l := launchOf(behind)
	j := job("")
	if why := l.shape(&j, 1, 0); why != "" {
		return f, true, f.refuse("%s", why)
	}
	if len(l.program) == 0 {
		return f, true, f.refuse("it names no program")
	}
	_, bare := l.options["no-python"]
	_, short := l.options["m"]
	_, long := l.options["module"]
	var python []string
	switch {
	case bare:
	case short || long:
		python = []string{"python3", "-u", "-m"}
	default:
		python = []string{"python3", "-u"}
	}
	j.Command = slices.Concat(before, python, l.program)
	f.Jobs = []workload.Job{j}
	return f, true, nil
}

// aroundTorchrun are the words of a command before torchrun, as in env NAME=VALUE, and behind it.
func aroundTorchrun(command []string) (before, behind []string, is bool) {
	for i, word := range command {
		module := i >= 2 && command[i-1] == "-m" && (word == "torch.distributed.run" || word == "torch.distributed.launch")
		switch {
		case module:
			return command[:i-2], command[i+1:], true
		case filepath.Base(word) == "torchrun":
			return command[:i], command[i+1:], true
		}
	}
	return nil, nil, false
}

// shellsLine is the line that a command has a shell run, "" where no shell does.
func shellsLine(command []string) string {
	switch {
	case len(command) == 1:
		return command[0]
	case len(command) == 3 && command[1] == "-c" && strings.HasSuffix(command[0], "sh"):
		return command[2]
	}
	return ""
}

// launches is the line of torchrun in a script.
func launches(script string) (launch, bool) {
	at := torchrun.FindStringSubmatch(joined.ReplaceAllString(script, " "))
	if at == nil {
		return launch{}, false
	}
	return launchOf(strings.Fields(at[3])), true
}

// withoutTorchrun has a script call its program where it calls torchrun.
func withoutTorchrun(script string) string {
	return `torchrun() {
  local python='python3 -u' m=
  while [ $# -gt 0 ]; do
    case $1 in
      --no?python) python=; shift ;;
      -m | --module) m=-m; shift ;;
      --standalone | --run?path | --use?env | -*=*) shift ;;
      -*) shift 2 ;;
      *) break ;;
    esac
  done
  $python $m "$@"
}
` + asModule.ReplaceAllString(script, "torchrun")
}

// torchScript reads a script that calls torchrun and says nothing else of what it runs on.
func torchScript(f *Found, data []byte) error { return f.script(string(data)) }

// script makes a job whose workers each run a script that calls torchrun.
func (f *Found) script(text string) error {
	l, _ := launches(text)
	j := job("")
	if why := l.shape(&j, 1, 0); why != "" {
		return f.refuse("%s", why)
	}
	j.Command = []string{"bash", "-c", withoutTorchrun(text)}
	f.note("every worker runs the whole script, and in place of torchrun its program")
	f.Jobs = []workload.Job{j}
	return nil
}
