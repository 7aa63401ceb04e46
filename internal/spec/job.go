package spec

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline/shape"
)

// Limits of a job.
const (
	maxGang      = 1_000_000
	maxPerWorker = 1024 // devices
	maxArray     = 100_000
	maxRetries   = 1000
	maxStages    = 10_000
	maxName      = 128 // bytes
	maxRate      = 1_000_000
)

// Jobs reads the jobs of a file: one per document, or a list of them under jobs.
// Names are unique in the file, where given. An error is of type Problems.
func Jobs(file string, data []byte) ([]workload.Job, error) {
	d := newDecoder(file)
	var jobs []workload.Job
	first := map[string]bool{}
	for _, body := range d.parse(data) {
		var found struct{ Jobs []workload.Job }
		if _, list := body.(*ast.SequenceNode); list {
			d.report(position(body), "", "a list", "the fields of a job, or jobs", "write jobs: on a line before the list")
			continue
		}
		if listsJobs(body) {
			d.root(body, reflect.ValueOf(&found).Elem())
		} else {
			found.Jobs = []workload.Job{starts[reflect.TypeFor[workload.Job]()].Interface().(workload.Job)}
			d.root(body, reflect.ValueOf(&found.Jobs[0]).Elem())
		}
		for i := range found.Jobs {
			if d.full() {
				break
			}
			path := ""
			if d.has("jobs") {
				path = fmt.Sprintf("jobs[%d]", i)
			}
			job := &found.Jobs[i]
			d.checkJob(path, job)
			if job.Name != "" && first[job.Name] {
				d.wrong(join(path, "name"), "the name "+quote(job.Name)+" a second time", "a name of its own", "")
			}
			first[job.Name] = true
		}
		jobs = append(jobs, found.Jobs...)
	}
	if len(jobs) == 0 && len(d.problems) == 0 {
		d.wrong("", "no job", "at least one", "describe it, or list several under jobs")
	}
	if err := d.problems.err(); err != nil {
		return nil, err
	}
	return jobs, nil
}

// listsJobs says whether a document has the field jobs rather than those of a job.
func listsJobs(body ast.Node) bool {
	m, ok := body.(*ast.MappingNode)
	return ok && slices.ContainsFunc(m.Values, func(v *ast.MappingValueNode) bool {
		name, _ := textOf(v.Key)
		return name == "jobs"
	})
}

// checkJob holds a job that was read against the rules that its types do not say.
func (d *decoder) checkJob(path string, j *workload.Job) {
	at := func(name string) string { return join(path, name) }
	d.checkName(at("name"), j.Name, "")
	d.checkName(at("tenant"), j.Tenant, "/@")
	d.checkName(at("user"), j.User, "/@")
	between(d, at("workers"), j.Gang, 1, maxGang)
	between(d, at("devices-per-worker"), j.Devices, 0, maxPerWorker)
	between(d, at("share"), j.Share, 1, unit.Whole)
	between(d, at("retries"), j.Retries, 0, maxRetries)
	if d.has(at("array")) {
		between(d, at("array"), j.Array, 1, maxArray)
	}
	between(d, at("skew"), j.Skew, 0, unit.Whole)
	if j.Share > 0 && j.Share < unit.Whole && j.Devices != 1 {
		d.wrong(at("share"), fmt.Sprintf("%v of a device with %d devices per worker", j.Share, j.Devices), "parts of one device",
			"set devices-per-worker to 1 or remove share")
	}
	d.checkPositive(at("estimate"), j.Estimate)
	d.checkPositive(at("time-limit"), j.TimeLimit)
	d.checkPositive(at("deadline"), j.Deadline)
	d.checkPositive(at("checkpoint.every"), j.Checkpoint.Every)
	d.checkSizes(at, j)
	d.checkDistinct(at("models"), j.Models)
	d.checkDistinct(at("after"), j.After)
	d.checkDistinct(at("secrets"), j.Secrets)
	for i, name := range j.Secrets {
		if !slices.ContainsFunc(j.Env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") }) {
			d.wrong(fmt.Sprintf("%s[%d]", at("secrets"), i), quote(name), "the name of a variable under env", "")
		}
	}
	itself := func(text string) bool { name, _ := workload.ParseAfter(text); return name == j.Name }
	if i := slices.IndexFunc(j.After, itself); i >= 0 && j.Name != "" {
		d.wrong(fmt.Sprintf("%s[%d]", at("after"), i), "the job itself", "jobs that must finish first", "remove it")
	}
	if d.has(at("command")) && (len(j.Command) == 0 || strings.TrimSpace(j.Command[0]) == "") {
		d.wrong(at("command"), "an empty command", "a program and its arguments", "write [python, train.py] or one line for a shell")
	}
	d.checkProfile(at, j)
	if d.has(at("pipeline")) {
		d.checkPipeline(at("pipeline"), &j.Pipeline)
		d.checkPipelines(at, j)
	}
}

// checkPositive reports a span that is given as nothing.
func (d *decoder) checkPositive(path string, v unit.Duration) {
	if v == 0 && d.has(path) {
		d.wrong(path, "0s", "more than that", "remove the field if there is none")
	}
}

func (d *decoder) checkSizes(at func(string) string, j *workload.Job) {
	for i, size := range j.Sizes {
		p := fmt.Sprintf("%s[%d]", at("sizes"), i)
		between(d, p, size, 1, maxGang)
		if i > 0 && size <= j.Sizes[i-1] {
			d.wrong(p, fmt.Sprintf("%d after %d", size, j.Sizes[i-1]), "sizes in ascending order", "sort them, each once")
			break
		}
	}
	if len(j.Sizes) > 0 && !d.bad[at("workers")] && !slices.Contains(j.Sizes, j.Gang) {
		d.wrong(at("sizes"), fmt.Sprintf("%d sizes without %d", len(j.Sizes), j.Gang), "workers among them",
			fmt.Sprintf("add %d, or set workers to one of the sizes", j.Gang))
	}
}

func (d *decoder) checkDistinct(path string, names []string) {
	seen := map[string]bool{}
	for i, name := range names {
		p := fmt.Sprintf("%s[%d]", path, i)
		if name == "" {
			d.wrong(p, `""`, "a name", "remove it")
		} else if seen[name] {
			d.wrong(p, quote(name)+" a second time", "", "remove it")
		}
		seen[name] = true
	}
}

// checkProfile holds what is said of a job's speed and kind against the rules.
func (d *decoder) checkProfile(at func(string) string, j *workload.Job) {
	for i, o := range j.Menu {
		p := fmt.Sprintf("%s[%d]", at("menu"), i)
		between(d, p+".workers", o.Workers, 1, maxGang)
		between(d, p+".nodes", o.Nodes, 0, maxGang)
		between(d, p+".batch", o.Batch, 0, math.MaxInt32)
		if !(o.Rate > 0 && o.Rate <= maxRate) {
			d.wrong(p+".rate", fmt.Sprint(o.Rate), fmt.Sprintf("more than 0, up to %d, where 1 is the job as it asks", maxRate), "")
		}
	}
	between(d, at("servers"), j.Servers, 0, max(0, j.Gang))
	between(d, at("persistent"), j.Persistent, 0, max(0, j.Memory))
	if d.has(at("target-loss")) && !(j.TargetLoss > 0) {
		d.wrong(at("target-loss"), fmt.Sprint(j.TargetLoss), "more than 0", "remove the field if there is none")
	}
	d.checkName(at("group"), j.Group, "/")
	d.checkName(at("base"), j.Base, "/")
	if s := j.Service; d.has(at("service")) && (!(s.RatePerSec > 0 && s.RatePerSec <= maxRate) || s.SLO <= 0) {
		d.wrong(at("service"), fmt.Sprintf("%g requests per second within %s", s.RatePerSec, s.SLO), "both more than 0", "write {rate-per-sec: 40, slo: 200ms}")
	}
}

func (d *decoder) checkPipeline(path string, p *workload.Pipeline) {
	if d.has(join(path, "model")) {
		between(d, join(path, "batch"), p.Batch, 1, 1_000_000)
		if d.has(join(path, "shape")) {
			d.checkName(join(path, "model"), p.Model, "")
			if _, why := shape.Of(p.Model, cmp.Or(p.Shape, "nothing")); why != "" {
				d.wrong(join(path, "shape"), string(why), "a transformer in JSON, in the words of a model's file", "name the file as model: muster submit reads it")
			}
		}
		if p.Stages != 0 || len(p.Layers) > 0 || p.Microbatches != 0 || p.Tensor != 0 {
			d.wrong(path, "a model beside stages, microbatches, tensor or layers", "one or the other", "leave the rest to the planner")
		}
		return
	}
	if d.has(join(path, "shape")) {
		d.wrong(join(path, "shape"), "a shape of no model", "a model beside it", "name it, or remove the shape")
	}
	between(d, join(path, "stages"), p.Stages, 1, maxStages)
	between(d, join(path, "microbatches"), p.Microbatches, 1, 1_000_000)
	between(d, join(path, "tensor"), p.Tensor, 0, maxPerWorker)
	if n := len(p.Layers); n > 0 && int64(n) < int64(p.Stages) {
		d.wrong(join(path, "layers"), fmt.Sprintf("%d layers for %d stages", n, p.Stages), "a layer for each stage at least", "use fewer stages")
	}
}

// checkPipelines wants whole pipelines of whatever number of workers the job may have.
func (d *decoder) checkPipelines(at func(string) string, j *workload.Job) {
	each := int64(j.Pipeline.Stages) * int64(max(1, j.Pipeline.Tensor))
	if each < 1 || d.bad[at("pipeline.stages")] || d.bad[at("pipeline.tensor")] {
		return
	}
	whole := func(path string, n int32) {
		if rest := int64(n) % each; rest != 0 {
			d.wrong(path, fmt.Sprintf("%d workers for pipelines of %d", n, each), "a worker for each stage and slice of a layer, or a multiple of them for pipelines that share the batch",
				fmt.Sprintf("set it to %d", int64(n)+each-rest))
		}
	}
	whole(at("workers"), j.Gang)
	for i, size := range j.Sizes {
		whole(fmt.Sprintf("%s[%d]", at("sizes"), i), size)
	}
}

// between reports a number that is out of range, or that the file does not give
// although the default is out of range.
func between[T ~int32 | ~int64](d *decoder, path string, v, low, high T) {
	if v >= low && v <= high {
		return
	}
	found := fmt.Sprint(v)
	if !d.has(path) {
		found = "nothing"
	}
	d.wrong(path, found, fmt.Sprintf("%v to %v", low, high), "")
}

// checkName allows what is safe in file names, labels and on command lines; an
// empty name is for the server to fill in.
func (d *decoder) checkName(path, name, also string) {
	bad := strings.IndexFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_."+also, r))
	})
	if name == "" && d.has(path) || bad >= 0 || len(name) > maxName || strings.HasPrefix(name, "-") || strings.HasPrefix(name, ".") {
		d.wrong(path, quote(name), fmt.Sprintf("at most %d letters, digits and %s, the first not - or .", maxName, strings.Join(strings.Split("-_."+also, ""), " ")), "")
	}
}
