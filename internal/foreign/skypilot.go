package foreign

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// task is what is used of a task of SkyPilot.
type task struct {
	Name, Workdir, Setup, Run string
	NumNodes                  int `yaml:"num_nodes"`
	Resources                 struct {
		Accelerators any
		CPUs         any `yaml:"cpus"`
		Memory       any
	}
	Envs, Secrets map[string]any
	FileMounts    any `yaml:"file_mounts"`
	Service       any
}

func skypilot(f *Found, data []byte) error {
	t, err := document[task](f, data)
	if err != nil {
		return err
	}
	if t.Service != nil {
		f.What = "a service of SkyPilot"
		return f.refuse("it answers requests on as many copies as they need; muster submit -- COMMAND runs one copy")
	}
	if err := f.unsaid(data); err != nil {
		return err
	}
	j := job(t.Name)
	nodes := max(1, t.NumNodes)
	models, gpus, err := accelerators(t.Resources.Accelerators)
	if err != nil {
		return f.refuse("resources.accelerators: %v", err)
	}
	j.Gang, j.Devices, j.Models, j.Dir = small(nodes), small(gpus), models, t.Workdir
	body := []string{t.Setup, t.Run}
	l, called := launches(t.Run)
	if called {
		if why := l.shape(&j, nodes, gpus); why != "" {
			return f.refuse("%s", why)
		}
		body = []string{withoutTorchrun(t.Setup + "\n" + t.Run)}
		f.note("every worker runs all of run, and in place of torchrun its program")
	}
	if err := t.cores(&j, nodes); err != nil {
		return f.refuse("%v", err)
	}
	for _, name := range slices.Sorted(maps.Keys(t.Envs)) {
		if t.Envs[name] == nil {
			f.note("%s: its value comes from the command line; give it with env or secrets", name)
			continue
		}
		j.Env = append(j.Env, fmt.Sprintf("%s=%v", name, t.Envs[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(t.Secrets)) {
		f.note("%s: its value is left out; give it with secrets", name)
	}
	if t.Setup != "" {
		f.note("setup is run before each start, by every worker")
	}
	if t.FileMounts != nil {
		f.note("file_mounts: nothing is mounted or copied here")
	}
	surroundings := fmt.Sprintf("export SKYPILOT_NUM_NODES=%d SKYPILOT_NUM_GPUS_PER_NODE=%d SKYPILOT_NODE_RANK=${GROUP_RANK:-0} SKYPILOT_NODE_IPS=${MASTER_ADDR:-localhost} SKYPILOT_TASK_ID=$MUSTER_JOB", nodes, gpus)
	if !called {
		surroundings = strings.Replace(surroundings, "GROUP_RANK", "RANK", 1)
	}
	j.Command = []string{"bash", "-c", strings.Join(slices.DeleteFunc(append([]string{surroundings}, body...), func(s string) bool { return s == "" }), "\n")}
	f.Jobs = []workload.Job{j}
	return nil
}

// skyTaken are the fields of a task that have a meaning here, or are told of beside it.
var skyTaken = strings.Fields("name workdir setup run num_nodes resources envs secrets file_mounts service accelerators cpus memory")

// unsaid tells what else a task and its resources say.
func (f *Found) unsaid(data []byte) error {
	all, err := document[map[string]any](f, data)
	if err != nil {
		return err
	}
	resources, _ := all["resources"].(map[string]any)
	for _, of := range []struct {
		path   string
		fields map[string]any
	}{{"", all}, {"resources.", resources}} {
		for _, name := range slices.Sorted(maps.Keys(of.fields)) {
			if !slices.Contains(skyTaken, name) {
				f.note("%s%s has no meaning here and is left out", of.path, name)
			}
		}
	}
	return nil
}

// cores takes cores and memory of a node, of which workers on it have a part each.
func (t *task) cores(j *workload.Job, nodes int) error {
	each := max(1, int(j.Gang)/nodes)
	for _, of := range []struct {
		name  string
		value any
		set   func(n int)
	}{
		{"cpus", t.Resources.CPUs, func(n int) { j.CPU = unit.Milli(n) * unit.Whole / unit.Milli(each) }},
		{"memory", t.Resources.Memory, func(n int) { j.HostMemory = unit.MiB(n) * 1024 / unit.MiB(each) }},
	} {
		if of.value == nil {
			continue
		}
		n, err := ceil(strings.TrimSuffix(fmt.Sprint(of.value), "GB"))
		if err != nil {
			return fmt.Errorf("resources.%s: %w", of.name, err)
		}
		of.set(n)
	}
	return nil
}

// accelerators reads A100:8, {A100: 8} and lists of them, of which any will do.
func accelerators(of any) (models []string, count int, err error) {
	var all []string
	switch x := of.(type) {
	case nil:
		return nil, 0, nil
	case []any:
		for _, one := range x {
			all = append(all, fmt.Sprint(one))
		}
	case map[string]any:
		for _, model := range slices.Sorted(maps.Keys(x)) {
			all = append(all, fmt.Sprintf("%s:%v", model, cmp.Or(x[model], any(1))))
		}
	default:
		all = []string{fmt.Sprint(x)}
	}
	for i, one := range all {
		model, number, _ := strings.Cut(one, ":")
		n, err := ceil(cmp.Or(number, "1"))
		if err != nil {
			return nil, 0, err
		}
		if i > 0 && n != count {
			return nil, 0, fmt.Errorf("found %s, expected as many of each model, as workers here are alike", strings.Join(all, ", "))
		}
		models, count = append(models, model), n
	}
	return models, count, nil
}

// ceil is the least whole number that is no less than what a text begins with (8, 8+, 7.5).
func ceil(text string) (int, error) {
	x, err := strconv.ParseFloat(strings.TrimRight(text, "+x"), 64)
	if err != nil || !(x >= 0 && x < 1e9) {
		return 0, fmt.Errorf("found %q, expected a number, as in 8 or 8+", text)
	}
	return int(math.Ceil(x)), nil
}
