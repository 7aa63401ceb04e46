package foreign

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/musterdl/muster/internal/foreign/kube"
	"github.com/musterdl/muster/internal/spec"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// objects makes jobs of the objects of a file that are jobs: their roles' pods are the workers, each running its role's command.
func objects(f *Found, data []byte) error {
	all, err := kube.Objects(data)
	if err != nil {
		return f.refuse("%v", oneLine(err))
	}
	var beside []string
	for i := range all {
		o := &all[i]
		roles, known, err := o.Roles()
		if !known {
			beside = append(beside, cmp.Or(o.Kind, "object without a kind"))
			continue
		}
		f.What = article(o.Kind) + " of Kubernetes"
		if o.APIVersion == "batch.volcano.sh/v1alpha1" {
			f.What = "a Job of Volcano"
		}
		if err != nil {
			return f.refuse("%v", err)
		}
		if err := f.object(o, roles); err != nil {
			return err
		}
	}
	switch {
	case len(all) == 0:
		return f.refuse("it lists no object")
	case len(f.Jobs) == 0:
		f.What = article(cmp.Or(beside...)) + " of Kubernetes"
		return f.refuse("it runs no job; muster queues import reads queues, muster-kube schedules pods (docs/kubernetes.md)")
	}
	for _, kind := range beside {
		f.note("%s: left out", article(kind))
	}
	return nil
}

// article puts a or an before the name of a kind.
func article(kind string) string {
	if strings.ContainsRune("AEIOUX", rune(kind[0])) || strings.HasPrefix(kind, "MPI") {
		return "an " + kind
	}
	return "a " + kind
}

// object makes a job of one object.
func (f *Found) object(o *kube.Object, roles []kube.Role) error {
	j := job(o.Metadata.Name)
	j.Tenant = cmp.Or(o.Metadata.Labels["kueue.x-k8s.io/queue-name"], o.Metadata.Labels["kai.scheduler/queue"], o.Spec.Queue)
	j.TimeLimit = unit.Seconds(float64(o.Spec.ActiveDeadlineSeconds))
	j.Retries = small(kube.Given(o.Spec.BackoffLimit, 0))
	if o.Kind == "RayCluster" {
		return f.refuse("it runs no job by itself; a RayJob's entrypoint is run here as one worker")
	}
	if len(roles) == 0 {
		return f.refuse("it says nothing of its pods, which its runtime in the cluster does; muster-kube schedules it (docs/kubernetes.md)")
	}
	if o.Spec.Entrypoint != "" {
		return f.ray(j, o, roles)
	}
	first := &roles[0]
	workers := 0
	for i := range roles {
		r := &roles[i]
		workers += r.Count
		j.CPU, j.HostMemory = max(j.CPU, r.CPU), max(j.HostMemory, r.Memory)
		if r.GPUs != first.GPUs {
			return f.refuse("its %s and %s hold unlike devices (%d and %d each), and workers here are alike; muster-kube schedules it (docs/kubernetes.md), and muster submit --workers %d --devices-per-worker %d -- COMMAND runs the larger part here",
				first.Name, r.Name, first.GPUs, r.GPUs, cmp.Or(countOf(roles, max(r.GPUs, first.GPUs)), 1), max(r.GPUs, first.GPUs))
		}
	}
	j.Gang, j.Devices = small(workers), small(first.GPUs)
	if n := kube.Given(o.Spec.Completions, 0); n > workers && o.Spec.CompletionMode != "Indexed" {
		j.Gang, j.Array = 1, small(n)
	}
	if n := kube.Given(o.Spec.Replicas, 1); n > 1 { // of a LeaderWorkerSet
		j.Array = small(n)
	}
	if err := f.command(&j, roles); err != nil {
		return err
	}
	f.Jobs = append(f.Jobs, j)
	return nil
}

func countOf(roles []kube.Role, gpus int) (n int) {
	for i := range roles {
		if roles[i].GPUs == gpus {
			n += roles[i].Count
		}
	}
	return n
}

// command gives a job the command of its roles: where they differ, a worker looks which role its rank is of.
func (f *Found) command(j *workload.Job, roles []kube.Role) error {
	var lines []string
	alike, below := true, 0
	for i := range roles {
		c := &roles[i].Main
		words := slices.Concat(c.Command, c.Args)
		if len(c.Command) == 0 {
			return f.refuse("its program is in the image %s%s: write it behind --, as in muster submit --workers %d --devices-per-worker %d -- COMMAND%s",
				c.Image, argsOf(c), j.Gang, j.Devices, strings.Join(append([]string{""}, c.Args...), " "))
		}
		if below += roles[i].Count; i == 0 {
			j.Command, j.Dir = words, c.WorkingDir
			f.environment(j, c)
		}
		alike = alike && slices.Equal(words, j.Command)
		lines = append(lines, fmt.Sprintf("[ $RANK -lt %d ] && exec %s", below, quoted(words)))
		f.note("the image %s is not run: its programs are looked for on this machine", c.Image)
		if roles[i].Parts != "" {
			f.note("%s: taken for whole devices; share: 500m asks for a part", roles[i].Parts)
		}
	}
	if !alike {
		j.Command = shell(lines...)
	}
	return nil
}

func argsOf(c *kube.Container) string {
	if len(c.Args) == 0 {
		return ""
	}
	return ", which it gives arguments"
}

// environment takes the variables whose values stand in the file.
func (f *Found) environment(j *workload.Job, c *kube.Container) {
	for _, v := range c.Env {
		if v.ValueFrom != nil {
			f.note("%s: its value is in the cluster; give it with env or secrets", v.Name)
			continue
		}
		j.Env = append(j.Env, v.Name+"="+v.Value)
	}
}

// ray makes one worker with all devices of a RayJob: on one machine a Ray cluster is what ray.init starts.
func (f *Found) ray(j workload.Job, o *kube.Object, roles []kube.Role) error {
	devices := 0
	for i := range roles {
		devices += roles[i].Count * roles[i].GPUs
		j.CPU += roles[i].CPU * unit.Milli(roles[i].Count)
		j.HostMemory += roles[i].Memory * unit.MiB(roles[i].Count)
	}
	j.Devices = small(devices)
	j.Command = shell(o.Spec.Entrypoint)
	f.note("one worker holds all devices (%d), in which ray.init() starts a cluster of its own; workers on several nodes need muster-kube", devices)
	f.Jobs = append(f.Jobs, j)
	return nil
}

// quoted writes words as a shell reads them.
func quoted(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = w
		if w == "" || strings.ContainsAny(w, spec.ShellMarks) {
			out[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(out, " ")
}
