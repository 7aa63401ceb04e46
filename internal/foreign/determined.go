package foreign

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/musterdl/muster/internal/foreign/kube"
	"github.com/musterdl/muster/model/workload"
)

// experiment is what is used of an experiment of Determined.
type experiment struct {
	Name        string
	Entrypoint  any
	MaxRestarts int32 `yaml:"max_restarts"`
	Resources   struct {
		SlotsPerTrial *int   `yaml:"slots_per_trial"`
		Pool          string `yaml:"resource_pool"`
		Priority      int32
	}
	Searcher struct {
		Name      string
		MaxTrials int `yaml:"max_trials"`
	}
	Environment struct {
		Variables any `yaml:"environment_variables"`
	}
	Workspace string
}

var (
	// launcher is Determined's own start of PyTorch's processes, one a slot.
	launcher    = regexp.MustCompile(`^(python3?\s+-m\s+)?determined\.launch\.torch_distributed\s+(--\s+)?`)
	anyLauncher = regexp.MustCompile(`\bdetermined\.launch\.\w+`)
	// trialClass is a Trial that Determined's library drives.
	trialClass = regexp.MustCompile(`^[\w.]+:[\w.]+$`)
)

func determined(f *Found, data []byte) error {
	e, err := document[experiment](f, data)
	if err != nil {
		return err
	}
	slots := kube.Given(e.Resources.SlotsPerTrial, 1)
	entry := strings.TrimSpace(fmt.Sprint(e.Entrypoint))
	if list, is := e.Entrypoint.([]any); is {
		var words []string
		for _, word := range list {
			words = append(words, fmt.Sprint(word))
		}
		entry = quoted(words)
	}
	switch name := e.Searcher.Name; {
	case name != "" && name != "single":
		return f.refuse("it searches by %s, which Determined's master does; muster submit --array %d --devices-per-worker %d -- COMMAND runs trials, each with its number in MUSTER_ARRAY_INDEX", name, max(2, e.Searcher.MaxTrials), slots)
	case trialClass.MatchString(entry):
		return f.refuse("its entrypoint %s is a class that Determined's library drives: muster submit --workers %d -- python3 TRAIN.py runs a script that trains by itself", entry, slots)
	case anyLauncher.MatchString(entry) && !launcher.MatchString(entry):
		return f.refuse("its launcher %s is Determined's: muster submit --workers %d -- COMMAND runs what it starts", anyLauncher.FindString(entry), slots)
	}
	j := job(e.Name)
	j.Tenant, j.Priority, j.Retries = e.Workspace, e.Resources.Priority, e.MaxRestarts
	j.Devices, j.Command = small(slots), shell(entry)
	if at := launcher.FindString(entry); at != "" {
		j.Gang, j.Devices, j.Command = small(max(1, slots)), small(min(1, slots)), shell(strings.TrimPrefix(entry, at))
		f.note("determined.launch.torch_distributed is left out: each slot is a worker")
	}
	if variables, list := e.Environment.Variables.([]any); list {
		for _, v := range variables {
			j.Env = append(j.Env, fmt.Sprint(v))
		}
	}
	if e.Resources.Pool != "" {
		f.note("resources.resource_pool: %s has no meaning here and is left out", e.Resources.Pool)
	}
	f.note("hyperparameters, bind_mounts and checkpoint_storage are Determined's: a script reads its own, and saves in MUSTER_CHECKPOINT_DIR")
	f.Jobs = []workload.Job{j}
	return nil
}
