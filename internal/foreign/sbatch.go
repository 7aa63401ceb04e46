package foreign

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/musterdl/muster/internal/foreign/slurm"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// Options of sbatch by their letters.
var letters = map[byte]string{'J': "job-name", 'a': "array", 'G': "gpus", 'N': "nodes", 'n': "ntasks", 'c': "cpus-per-task", 't': "time", 'd': "dependency",
	'o': "output", 'e': "error", 'A': "account", 'D': "chdir", 'p': "partition", 'C': "constraint", 'q': "qos", 'H': "hold", 'w': "nodelist", 'x': "exclude", 'L': "licenses", 'M': "clusters", 'i': "input"}

// taken are the options that have a meaning here; what is said of one is told beside it.
var taken = map[string]string{"job-name": "", "array": "", "gpus": "", "nodes": "", "ntasks": "", "cpus-per-task": "", "time": "", "dependency": "", "output": "", "error": "",
	"account": "", "chdir": "", "gres": "", "gpus-per-node": "", "gpus-per-task": "", "ntasks-per-node": "", "mem": "", "mem-per-cpu": "", "mem-per-gpu": "", "cpus-per-gpu": "",
	"requeue": "a run that its node or another job's claim ends is always started again here", "no-requeue": "a run that its node or another job's claim ends is started again here all the same",
	"signal": "SIGTERM comes when its time is over, and SIGKILL after a grace; with checkpoint: {on-request: true} it is asked to save before, by a line in the file that MUSTER_CONTROL names (docs/environment.md)"}

// script is what a batch script says.
type script struct {
	*Found
	options map[string]string
	body    string
	job     workload.Job

	nodes, tasks, gpus int // gpus are those of all nodes
	err                error
}

// sbatch reads a batch script: the options, and the script itself, which every worker runs with srun
// and torchrun taken out of it.
func sbatch(f *Found, data []byte) error {
	text := strings.ReplaceAll(string(data), "\r\n", "\n")
	if !isShell(data) {
		return f.refuse("it is for another interpreter than a shell: muster submit --workers N --devices-per-worker M -- PROGRAM %s", "FILE")
	}
	s := script{Found: f, options: map[string]string{}, body: text, job: job("")}
	s.read(text)
	s.shape()
	s.rest()
	s.job.Command = []string{"bash", "-c", strings.Join(append(s.surroundings(), s.body), "\n")}
	f.Jobs = []workload.Job{s.job}
	return s.err
}

var optionWord = regexp.MustCompile(`"[^"]*"|'[^']*'|[^\s"']+`)

// read takes the options up to the first line that is a command.
func (s *script) read(text string) {
	for line := range strings.SplitSeq(text, "\n") {
		if trimmed := strings.TrimSpace(line); trimmed != "" && trimmed[0] != '#' {
			break
		}
		rest, ok := strings.CutPrefix(line, "#SBATCH")
		if !ok {
			continue
		}
		rest, _, _ = strings.Cut(rest, " #")
		words := optionWord.FindAllString(strings.ReplaceAll(rest, "=", "= "), -1)
		for i := 0; i < len(words); i++ {
			name, value := optionOf(words[i])
			if next := i + 1; value == "" && next < len(words) && !strings.HasPrefix(words[next], "-") {
				value, i = strings.Trim(words[next], `"'`), next
			}
			s.options[name] = value
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.options)) {
		says, known := taken[name]
		if !known {
			says = "it has no meaning here and is left out"
		}
		if says != "" {
			s.note("--%s: %s", name, says)
		}
	}
}

// optionOf is the name in a word, and of a letter with its value behind it the value.
func optionOf(word string) (name, value string) {
	if long, ok := strings.CutPrefix(word, "--"); ok {
		return strings.TrimSuffix(long, "="), ""
	}
	if len(word) < 2 || word[0] != '-' {
		return word, ""
	}
	return cmp.Or(letters[word[1]], word[1:2]), strings.TrimSuffix(word[2:], "=")
}

// number is the whole number of an option, otherwise where it is not given. Of a range (2-4) it is the first.
func (s *script) number(name string, otherwise int) int {
	value, given := s.options[name]
	if !given {
		return otherwise
	}
	first, last, ranged := strings.Cut(value, "-")
	n, err := strconv.Atoi(first)
	if err != nil || n < 0 || n > 1_000_000 {
		s.fail("--%s: found %q, expected a number", name, value)
	}
	if ranged {
		s.note("--%s: %s of %s to %s", name, first, first, last)
	}
	return n
}

func (s *script) fail(format string, args ...any) { s.err = cmp.Or(s.err, s.refuse(format, args...)) }

// devices counts the GPUs of an option, as gres (gpu:a100:8) or as gpus (a100:8).
func (s *script) devices(name, before string) int {
	value, given := s.options[name]
	if !given {
		return 0
	}
	n, model, err := slurm.GPUs(before + value)
	if err != nil {
		s.fail("--%s: %v", name, err)
	}
	if model != "" {
		s.job.Models = []string{model}
	}
	return n
}

// shape makes workers of tasks or of what torchrun starts.
func (s *script) shape() {
	each := s.number("ntasks-per-node", 0)
	s.nodes = max(1, s.number("nodes", 1))
	s.tasks = max(1, s.number("ntasks", s.nodes*max(1, each)))
	if _, given := s.options["nodes"]; !given && each > 0 {
		s.nodes = max(1, s.tasks/each)
	}
	perNode := max(s.devices("gres", ""), s.devices("gpus-per-node", "gpu:"))
	s.gpus = max(perNode*s.nodes, s.devices("gpus", "gpu:"), s.devices("gpus-per-task", "gpu:")*s.tasks)
	l, called := launches(s.body)
	if called {
		s.body = withoutTorchrun(s.body)
	}
	switch {
	case called:
		if why := l.shape(&s.job, s.nodes, s.gpus/s.nodes); why != "" {
			s.fail("%s", why)
		}
		s.note("every worker runs the whole script, and in place of torchrun its program")
	case srunLine.MatchString(s.body):
		s.job.Gang, s.job.Devices = small(s.tasks), small(s.gpus/s.tasks)
		if s.gpus%s.tasks != 0 {
			s.fail("%d GPUs do not divide among %d tasks: workers here are alike", s.gpus, s.tasks)
		}
		if s.tasks > 1 {
			s.note("every worker runs the whole script, and in place of srun its program")
		}
	case s.nodes > 1:
		s.fail("it asks for %d nodes and has neither srun nor torchrun: submit what each node runs, as in muster submit --workers %d --devices-per-worker %d -- COMMAND", s.nodes, s.nodes, s.gpus/s.nodes)
	default:
		s.job.Devices = small(s.gpus)
	}
}

var srunLine = regexp.MustCompile(`(?m)^[^#\n]*\bsrun\s`)

// rest takes what is not of the number of devices.
func (s *script) rest() {
	j := &s.job
	j.Name, j.Tenant, j.Dir = s.options["job-name"], s.options["account"], s.options["chdir"]
	workers := unit.MiB(max(1, j.Gang))
	// Cores of a task, of which there may be fewer than workers.
	cores := max(s.number("cpus-per-task", 0)*s.tasks, s.number("cpus-per-gpu", 0)*s.gpus)
	j.CPU = unit.Milli(cores) * unit.Whole / unit.Milli(workers)
	for name, times := range map[string]int{"mem": s.nodes, "mem-per-cpu": max(1, cores), "mem-per-gpu": s.gpus} {
		if value := s.options[name]; value != "" {
			amount, _, err := slurm.Memory(value)
			if err != nil {
				s.fail("--%s: %v", name, err)
			}
			j.HostMemory = amount * unit.MiB(times) / workers
		}
	}
	var err error
	if j.TimeLimit, _, err = slurm.Span(s.options["time"]); err != nil {
		s.fail("--time: %v", err)
	}
	s.after(s.options["dependency"])
}

// after takes what must have ended before.
func (s *script) after(dependency string) {
	if strings.Contains(dependency, "?") {
		s.note("--dependency: it waits for all of them, where ? has it wait for any")
	}
	for part := range strings.FieldsFuncSeq(dependency, func(c rune) bool { return c == ',' || c == '?' }) {
		kind, names, _ := strings.Cut(part, ":")
		switch kind {
		case "afterok", "afterany", "afternotok":
		case "after", "aftercorr":
			s.note("--dependency: %s is taken for afterok: it waits until they have finished well, and fails where one does not", kind)
		default:
			s.note("--dependency: %s has no meaning here and is left out", kind)
			continue
		}
		for name := range strings.FieldsFuncSeq(names, func(c rune) bool { return c == ':' }) {
			name, _, _ = strings.Cut(name, "+")
			name = strings.Trim(name, "${}")
			s.job.After = append(s.job.After, map[string]string{"afterany": "any:", "afternotok": "failed:"}[kind]+name)
		}
	}
}

// surroundings are what Slurm gives a script: its variables, and srun and scontrol as far as scripts use them to start
// themselves and to find their first node.
func (s *script) surroundings() []string {
	lines := []string{
		`export SLURM_JOB_ID=$MUSTER_JOB SLURM_JOBID=$MUSTER_JOB SLURM_JOB_NAME=$MUSTER_JOB SLURM_SUBMIT_DIR=$PWD SLURM_RESTART_COUNT=$((${MUSTER_ATTEMPT:-1} - 1))`,
		`export SLURM_PROCID=${RANK:-0} SLURM_LOCALID=${LOCAL_RANK:-0} SLURM_NODEID=${GROUP_RANK:-0} SLURM_NTASKS=${WORLD_SIZE:-1} SLURM_NPROCS=${WORLD_SIZE:-1}`,
		`export SLURM_JOB_NODELIST=${MASTER_ADDR:-localhost} SLURM_NODELIST=${MASTER_ADDR:-localhost}`,
		fmt.Sprintf("export SLURM_NNODES=%d SLURM_JOB_NUM_NODES=%d SLURM_GPUS_ON_NODE=%d SLURM_CPUS_PER_TASK=%d", s.nodes, s.nodes, s.gpus/s.nodes, s.number("cpus-per-task", 1)),
		s.array(),
	}
	if strings.Contains(s.body, "scontrol") {
		lines = append(lines, `scontrol() { echo "$SLURM_JOB_NODELIST"; }`)
	}
	if srunLine.MatchString(s.body) {
		lines = append(lines, srun)
	}
	output, failures := s.path("output"), s.path("error")
	if failures != "" {
		lines = append(lines, fmt.Sprintf(`exec 2> >(tee -a "%s" >&2)`, failures))
	}
	if output != "" {
		lines = append(lines, fmt.Sprintf(`exec > >(tee -a "%s")`, output))
	}
	if output != "" && failures == "" {
		lines = append(lines, "exec 2>&1")
	}
	return slices.DeleteFunc(lines, func(l string) bool { return l == "" })
}

// srun runs what is behind its options.
const srun = `srun() {
  while [ $# -gt 0 ]; do
    case $1 in
      --) shift; break ;;
      --exclusive | --label | --unbuffered | --overlap | --kill-on-bad-exit | --pty | --quiet | --verbose | -l | -u | -K | -Q | -v | -*=* | -[a-zA-Z]?*) shift ;;
      -*) shift 2 ;;
      *) break ;;
    esac
  done
  "$@"
}`

// path is the file of an option, with Slurm's marks as the shell finds them.
func (s *script) path(option string) string {
	return strings.NewReplacer("%j", "${MUSTER_JOB}", "%A", "${MUSTER_JOB}", "%J", "${MUSTER_JOB}", "%x", "${MUSTER_JOB}", "%a", "${SLURM_ARRAY_TASK_ID}",
		"%t", "${SLURM_PROCID}", "%n", "${SLURM_NODEID}", "%N", "${SLURM_JOB_NODELIST}", "%u", "${USER}", "%%", "%").Replace(s.options[option])
}

// arrayPart has the first and the last number of a part of an array, and the step.
var arrayPart = regexp.MustCompile(`^(\d{1,7})(?:-(\d{1,7}))?(?::([1-9]\d{0,6}))?$`)

// spanOf reads 4, 0-9 or 0-9:3; by is 0 where it is none of them.
func spanOf(part string) (first, last, by int) {
	at := arrayPart.FindStringSubmatch(part)
	if at == nil {
		return 0, 0, 0
	}
	// They are numbers, by their form.
	first, _ = strconv.Atoi(at[1])
	last, _ = strconv.Atoi(cmp.Or(at[2], at[1]))
	by, _ = strconv.Atoi(cmp.Or(at[3], "1"))
	return first, last, by
}

// mostTasks is far more than an array has: more is a slip, and not worked out.
const mostTasks = 100_000

// array makes copies of 0-9:3%2 or 1,4,7, and returns the line that gives each its number.
func (s *script) array() string {
	text := s.options["array"]
	if text == "" {
		return ""
	}
	list, bound, bounded := strings.Cut(text, "%")
	if bounded {
		s.note("--array: that no more than %s run at once is not held; user_limit of a queue bounds the devices of one user", bound)
	}
	var ids []string
	for part := range strings.SplitSeq(list, ",") {
		first, last, by := spanOf(part)
		if by == 0 || len(ids)+(last-first)/by >= mostTasks {
			s.fail("--array: found %q, expected numbers, as in 0-9:3%%2 or 1,4,7", text)
			return ""
		}
		for id := first; id <= last; id += by {
			ids = append(ids, strconv.Itoa(id))
		}
	}
	s.job.Array = int32(len(ids))
	return fmt.Sprintf("export SLURM_ARRAY_JOB_ID=${MUSTER_JOB%%-*} SLURM_ARRAY_TASK_COUNT=%d SLURM_ARRAY_TASK_ID=$(set -- %s; shift ${MUSTER_ARRAY_INDEX:-0}; echo $1)",
		len(ids), strings.Join(ids, " "))
}
