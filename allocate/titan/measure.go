package titan

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Measure runs a hundred fine-tunes of five models on sixteen devices of 80 GiB. Three
// models are Default's; the other two are the V100 profiles of two of them, as models
// of their own. Sizes come as often as in the authors' traces; a device's batch is 16 as
// there for texts, 48 as there for images, and 8 as small data sets have it.
func Measure(seed uint64) map[string]float64 {
	out := map[string]float64{}
	for _, load := range []float64{1, 2} {
		for _, batch := range []float64{8, 16, 48} {
			merged := simulate(seed, true, true, batch, load)
			srtf := simulate(seed, false, true, batch, load)
			key := fmt.Sprintf("_b%g_load%g", batch, load)
			out["jct_h_merged"+key], out["jct_h_srtf"+key] = merged.jct, srtf.jct
			out["jct_ratio"+key] = merged.jct / srtf.jct
			out["merges"+key] = float64(merged.merges)
			out["makespan_ratio"+key] = merged.makespan / srtf.makespan
		}
	}
	// Every job a model of its own: nothing to merge, so the same history.
	lone, srtf := simulate(seed, true, false, 16, 2), simulate(seed, false, false, 16, 2)
	out["jct_difference_all_models_differ_h"] = math.Abs(lone.jct-srtf.jct) + math.Abs(lone.makespan-srtf.makespan)
	return out
}

type outcome struct {
	jct, makespan float64 // h, mean; h
	merges        int
}

// fiveModels are the table's three and two more.
func fiveModels() []Model {
	return append(Default().Models,
		Model{Name: "vit-large on V100", StepUS: [4]float64{70730, 70532, 70765, 141704}, SampleUS: 5487, MemoryMiB: 1795, SampleMiB: 260.2},
		Model{Name: "roberta-base on V100", StepUS: [4]float64{20559, 20967, 21070, 41733}, SampleUS: 10553, MemoryMiB: 657, SampleMiB: 525.4})
}

// job is a fine-tune with its history.
type job struct {
	tune
	submit, end float64 // s
}

// simulate carries the jobs through in whole decisions: at every arrival and end.
// Starting, stopping and changing a run costs nothing, with and without merging.
func simulate(seed uint64, merge, few bool, batch, load float64) outcome {
	const devices, deviceMiB, perHour = 16, 80 << 10, 3.6e9
	c := Default()
	c.Merge = merge
	all := draw(seed, &c, few, batch, devices, load)
	left := map[*tune]*job{}
	for _, j := range all {
		left[&j.tune] = j
	}
	var out outcome
	var on []*group
	now := 0.0
	for next := 0; next < len(all) || len(left) > 0; {
		if len(left) == 0 {
			break
		}
		var waiting []*tune
		held := map[*tune]bool{}
		for _, g := range on {
			for _, j := range g.jobs {
				held[j] = true
			}
		}
		for _, j := range all[:next] {
			if left[&j.tune] != nil && !held[&j.tune] {
				waiting = append(waiting, &j.tune)
			}
		}
		runs := c.plan(on, waiting, devices, deviceMiB)
		until := math.Inf(1)
		if next < len(all) {
			until = all[next].submit
		}
		for _, g := range runs {
			until = min(until, now+c.course(g.jobs, g.gang, nil).ends[0]/1e6)
		}
		for _, g := range runs {
			did := (until - now) * 1e6 / c.step(g.jobs, g.gang)
			for _, j := range g.jobs {
				if j.steps -= did; j.steps < 1e-6 {
					left[j].end = until
					delete(left, j)
				}
			}
		}
		now = until
		on = keep(on, runs, left, &out)
		for next < len(all) && all[next].submit <= now {
			next++
		}
	}
	for _, j := range all {
		out.jct += (j.end - j.submit) / 3600 / float64(len(all))
		out.makespan = max(out.makespan, j.end/3600)
	}
	return out
}

// keep are the runs that go on: those that ran and those of several jobs that are set
// aside, without who has ended. A lone job set aside waits.
func keep(before, runs []*group, left map[*tune]*job, out *outcome) []*group {
	var on []*group
	for _, g := range before {
		if len(g.jobs) > 1 && !slices.Contains(runs, g) {
			on = append(on, g)
		}
	}
	for _, g := range runs {
		if !slices.Contains(before, g) {
			out.merges += len(g.jobs) - 1
		}
		on = append(on, g)
	}
	// Without its host a run falls apart: whoever is left is planned anew.
	on = slices.DeleteFunc(on, func(g *group) bool { return left[g.jobs[0]] == nil })
	for _, g := range on {
		g.jobs = slices.DeleteFunc(g.jobs, func(j *tune) bool { return left[j] == nil })
	}
	return on
}

// draw makes the stream: run times log-normal about half an hour, load times as much
// work as the devices do until the last submission.
func draw(seed uint64, c *Config, few bool, batch float64, devices int32, load float64) []*job {
	r := rand.New(rand.NewPCG(seed, 4))
	models := fiveModels()
	all := make([]*job, 100)
	total := 0.0
	for i := range all {
		m := &models[r.IntN(len(models))]
		if !few {
			m = new(Model)
			*m = models[i%len(models)]
		}
		j := &job{tune: tune{model: m, gang: 1}}
		switch u := r.Float64(); { // the traces' mix
		case u > .55:
			j.gang = 8
		case u > .49:
			j.gang = 4
		case u > .40:
			j.gang = 2
		}
		j.batch = batch * float64(j.gang)
		seconds := min(max(1800*math.Exp(1.3*r.NormFloat64()), 60), 8*3600)
		j.steps = seconds * 1e6 / c.step([]*tune{&j.tune}, j.gang)
		total += seconds * float64(j.gang)
		all[i] = j
	}
	for _, j := range all {
		j.submit = r.Float64() * total / float64(devices) / load
	}
	slices.SortFunc(all, func(a, b *job) int { return cmp.Compare(a.submit, b.submit) })
	for i, j := range all {
		j.id = int32(i)
	}
	return all
}
