package web_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/musterdl/muster/engine/defrag"
	"github.com/musterdl/muster/internal/access"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/internal/whatif"
)

// as is an answer as the server itself would write it: with all fields that its struct
// always has, and with no field that it has not.
func as[T any](answer object) (out T) {
	data, err := json.Marshal(answer)
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		err = d.Decode(&out)
	}
	if err != nil {
		panic(fmt.Sprintf("the server has no such answer: %v", err))
	}
	return out
}

// answers are those of a server that offers everything.
func answers() map[string]any {
	s := snapshot()
	a := map[string]any{
		"GET /v1/version": view.Version{Version: "0.3.0", API: "v1"}, "GET /v1/whoami": as[access.Whoami](object{"name": "vera", "role": "viewer", "tenants": []string{"research", "product"}}), "GET /v1/shares": shares(), "GET /v1/shares/history": sharesHistory(), "GET /v1/calendar": calendar(s),
		"POST /v1/whatif": futures(), "POST /v1/defrag": moves(), "GET /v1/promises": promises(),
		"GET /v1/jobs/llama-base/logs": logText(), "GET /v1/jobs/" + nasty + "/logs": "[muster] " + nasty + "\n",
	}
	for i, j := range s.Jobs {
		a["GET /v1/jobs/"+j.Name] = j
		a["GET /v1/jobs/"+j.Name+"/steps"] = dossier(j)
		a["GET /v1/jobs/"+j.Name+"/why"] = why(j)
		a["GET /v1/jobs/"+j.Name+"/plan"] = planOf(j)
		if j.Phase == "waiting" {
			a["GET /v1/jobs/"+j.Name+"/when"] = when(j, time.Duration(i-13)*7*time.Minute)
		}
	}
	return a
}

// when is a range, or what there is in its place: of one job the high end is not known, of
// another neither that nor the median, of a third nothing but words.
func when(j view.Job, low time.Duration) view.When {
	w := object{"job": j.Name, "phase": j.Phase, "now_us": us(0), "low_us": us(low), "median_us": us(low + 14*time.Minute), "high_us": us(low + 55*time.Minute),
		"basis": "the running jobs' estimates and the arrivals of past weeks", "samples": 64, "calibration": object{"queue": j.Tenant, "coverage": .81, "promises": 412}}
	switch j.Name {
	case "sweep-0":
		delete(w, "high_us")
	case "sweep-1":
		delete(w, "high_us")
		delete(w, "median_us")
	case "giant":
		w = object{"job": j.Name, "phase": j.Phase, "now_us": us(0), "never": true, "words": j.Reason, "samples": 0}
	}
	return as[view.When](w)
}

func why(j view.Job) view.Why {
	w := object{"job": j.Name, "phase": j.Phase, "state": j.State(), "words": j.Reason, "needs": []string{}, "detail": []string{"27 of 183 devices it may use are free", "has waited 2h36m in all"}}
	if j.Failure != nil {
		f := *j.Failure
		f.LastLines = []string{"step 12", "<b>RuntimeError: " + nasty}
		w["failure"] = f
	}
	if j.Name == "llama-long" {
		w["code"] = "no-room"
		w["obstacles"] = []object{{"obstacle": "full", "nodes": 14}, {"obstacle": "too few devices free", "nodes": 7}, {"obstacle": "closed to new work", "nodes": 1}, {"obstacle": "down", "nodes": 1}, {"obstacle": "reserved for " + nasty, "nodes": 1}}
		w["needs"] = []string{"21 more devices on nodes of one rack, or", "llama-base to end, which it is expected to in 19h, or", "a gang of at most 24 devices, which would start now"}
		w["holders"] = []object{{"job": "llama-base", "queue": "research", "devices": 32, "until_us": us(19 * time.Hour)}, {"job": "protein-fold", "queue": "biology", "devices": 24, "until_us": us(6 * time.Hour)}, {"job": nasty, "queue": "interns", "devices": 2, "until_us": -1}}
		w["tried"] = object{"at_us": us(-42 * time.Second), "words": "no set of nodes had 48 free devices"}
	}
	return as[view.Why](w)
}

func dossier(j view.Job) view.Steps {
	steps := []view.Step{{Number: 1, Name: "profile", Chose: "expects 2d02h", Rejected: "the declared 1d16h", Because: "estimated 2d02h, declared 1d16h"},
		{Number: 2, Name: "allocate", Chose: "gpu-00 to gpu-03", Rejected: "gpu-08", Because: "score 412 against 388"}, {Number: 3, Name: "schedule", Chose: j.Name, Rejected: "ads-embed", Because: "rank 3 against 7, lower goes first"},
		{Number: 4, Name: "pipeline", Chose: "min-max+zb-h1", Rejected: "equal layers, gpipe", Because: "412ms an iteration against 508ms"}, {Number: 5, Name: "flow", Chose: "class 2", Rejected: "class 0", Because: "weight 2, 1 where nothing is decided"},
		{Number: 6, Name: "run", Chose: "attempt 2", Rejected: "nothing", Because: "it saves every 12m00s, a restart takes 45s"}}
	at := func(part float64) time.Time {
		return j.Submitted.Add(time.Duration(part * float64(now.Sub(j.Submitted))))
	}
	d := view.Steps{Job: j.Name, Decisions: []view.Decision{}}
	if j.Phase == "active" {
		d.Decisions = []view.Decision{{At: at(.03), Verb: "start", Attempt: 1, Reason: "it is its turn", Steps: steps}, {At: at(.4), Verb: "stop", Attempt: 1, Reason: "it made way for ranker-daily of queue product", Steps: nil},
			{At: at(.47), Verb: "start", Attempt: 2, Reason: "room became free", Steps: steps}, {At: at(.7), Verb: "suspend", Attempt: 2, Reason: "its turn is over", Steps: nil}, {At: at(.75), Verb: "resume", Attempt: 2, Reason: "it is its turn again", Steps: steps}}
	}
	return d
}

// planOf is measured of one job, predicted of another, and of a third one of a menu.
func planOf(j view.Job) view.Plan {
	p := object{"job": j.Name, "attempt": j.Attempt, "words": "it has no plan: it asks for no pipeline"}
	line := func(from, late float64, ops ...string) (spans []object) {
		for _, op := range ops {
			spans = append(spans, object{"op": op, "start_us": from, "end_us": from + 90_000})
			from += 100_000 + late
		}
		return spans
	}
	both := func(late float64) [][]object {
		return [][]object{line(0, late, "0F0", "0F1", "0I0", "0W0", "0I1", "0W1"), line(100_000, late, "1F0", "1R0", "1B0", "1F1", "1B1")}
	}
	switch j.Name {
	case "llama-base", "protein-fold":
		p = object{"job": j.Name, "attempt": 1, "schedule": "min-max+zb-h1", "iteration_s": .5, "null_iteration_s": .508, "cuts": []int32{3}, "predicted": both(0), "kept_mib": []float64{512, 384.5}}
		if j.Name == "llama-base" {
			p["cause"], p["chosen"], p["reacted_us"], p["reactions"] = "lost", "re-cut", us(-time.Hour), []object{{"way": "re-cut", "pause_s": 41, "redo_s": .25, "step_s": .62, "price_device_s": 5120.4},
				{"way": "drop a replica", "pause_s": 60, "redo_s": .25, "step_s": 1.02, "price_device_s": 20480}, {"way": "wait", "pause_s": 43260, "redo_s": 1800, "step_s": .5, "price_device_s": 721000},
				{"way": "swap a spare", "why": "1 broken nodes of the full plan have no spare"}}
			p["measured_s"], p["measured"] = .61, object{"step": 20, "passes": []object{{"stage": 0, "kind": "F", "count": 40, "mean_us": 90_000, "most_us": 95_000}}, "timeline": both(20_000)}
		}
	case nasty:
		p = object{"job": j.Name, "attempt": 1, "schedule": nasty, "iteration_s": 2.5, "passes_s": 2.25, "predicted": both(0), "menu": []object{{"schedule": nasty, "model": nasty, "workers": 8, "nodes": 1, "step_s": 2.5, "chosen": true},
			{"schedule": "tp4 pp2 dp1", "workers": 8, "nodes": 2, "step_s": 3.25}}}
	}
	return as[view.Plan](p)
}

func shares() view.Shares {
	queue := func(name, parent string, weight, guarantee, limit, deserved, used, borrowed, lent, risk, past float64, waiting, running int) object {
		return object{"name": name, "parent": parent, "weight": weight, "priority": 0, "guarantee_devices": guarantee, "limit_devices": limit, "deserved_devices": deserved, "used_devices": used, "borrowed_devices": borrowed,
			"lent_devices": lent, "at_risk_devices": risk, "past_device_hours": past, "waiting_jobs": waiting, "running_jobs": running,
			"arithmetic": fmt.Sprintf("guarantee %v + weight %v of 4 of the 23 that nobody is guaranteed, times 0.87 for past use = %v", guarantee, weight, deserved)}
	}
	return as[view.Shares](object{"at_us": us(0), "half_life_s": 7 * 86400, "queues": []object{
		queue("", "", 1, 183, -1, 183, 156, 0, 0, 0, 41210.4, 6, 15), queue("research", "", 2, 64, -1, 70, 76, 6, 0, 4, 20114.25, 3, 6), queue("product", "", 1, 48, 64, 52, 48, 0, 4, 0, 12001.5, 1, 4),
		queue("biology", "", 1, 32, -1, 36, 28, 0, 8, 0, 6003, 1, 2), queue("interns", "", .5, 4, 16, 6, 4, 0, 2, 0, 92.125, 1, 3), queue("interns/summer", "interns", 1, 0, -1, 3, 2, 0, 0, 0, 40, 0, 1)}})
}

func sharesHistory() view.ShareHistory {
	names := []string{"", "research", "product", "biology", "interns", "interns/summer"}
	points := []object{}
	for i := range 240 {
		x := float64(i) / 24
		used := []float64{0, math.Round(60 + 22*math.Sin(x)), math.Round(44 + 8*math.Sin(2*x+1)), math.Round(20 + 14*math.Sin(x/2+2)), math.Round(5 + 3*math.Sin(5*x)), 2}
		used[0] = used[1] + used[2] + used[3] + used[4]
		points = append(points, object{"at_us": us(time.Duration(i-240) * 6 * time.Minute), "used_devices": used})
	}
	return as[view.ShareHistory](object{"queues": names, "points": points})
}

func calendar(s view.Snapshot) view.Calendar {
	entries := []object{}
	for i, j := range s.Jobs {
		if j.Phase != "active" {
			continue
		}
		nodes := []string{}
		for _, p := range j.Where {
			nodes = append(nodes, p.Node)
		}
		to := us(time.Duration(3+i*7%19) * time.Hour)
		if i%5 == 0 {
			to = -1
		}
		entries = append(entries, object{"kind": "run", "job": j.Name, "queue": j.Tenant, "nodes": nodes, "devices": j.Devices, "from_us": j.Started.UnixMicro(), "to_us": to, "words": "expected from the median of its kind"})
	}
	return as[view.Calendar](object{"now_us": us(0), "entries": append(entries,
		object{"kind": "claim", "job": "llama-long", "queue": "research", "nodes": []string{"gpu-16", "gpu-17", "gpu-18", "gpu-19", "gpu-20", "gpu-21"}, "devices": 48, "from_us": us(22 * time.Hour), "to_us": us(30 * time.Hour), "words": "the first gang that waits"},
		object{"kind": "window", "job": "", "queue": "", "nodes": []string{"gpu-08", "gpu-09"}, "devices": 16, "from_us": us(24 * time.Hour), "to_us": us(28 * time.Hour), "words": "new firmware"})})
}

func futures() whatif.Answer {
	series := func(level, tail float64) []object {
		out := []object{}
		for i := range 97 {
			x := float64(i)
			out = append(out, object{"at_us": us(time.Duration(i) * 15 * time.Minute), "busy_devices": math.Round(math.Min(level, 150+20*math.Sin(x/9))), "waiting_jobs": math.Max(0, math.Round(9-x*tail+3*math.Sin(x/5)))})
		}
		return out
	}
	jobs := []object{}
	for i, q := range queued {
		base := time.Duration(40+i*55) * time.Minute
		alt := base - time.Duration(60-i*17)*time.Minute
		jobs = append(jobs, object{"job": q.name, "base_start_us": us(base), "alternative_start_us": us(max(0, alt)), "base_end_us": us(base + 5*time.Hour), "alternative_end_us": us(max(0, alt) + 5*time.Hour)})
	}
	jobs = append(jobs, object{"job": nasty, "base_start_us": us(0), "alternative_start_us": -1, "base_end_us": us(time.Hour), "alternative_end_us": -1})
	return as[whatif.Answer](object{"base": object{"mean_wait_s": 5400, "mean_jct_s": 31200, "utilisation": .853, "preemptions": 14, "finished": 211, "series": series(165, .06)},
		"alternative": object{"mean_wait_s": 3720, "mean_jct_s": 29800, "utilisation": .881, "preemptions": 19, "finished": 217, "series": series(181, .1)},
		"jobs":        jobs, "words": "with srtf instead of tiresias jobs wait 28m less on average, and there are 5 more preemptions, over the next 24h"})
}

func moves() defrag.Shown {
	node := func(name string, jobs ...string) object { return object{"node": name, "devices": jobs} }
	return as[defrag.Shown](object{"moves": []object{{"job": "notebook-7", "from": []string{"gpu-08"}, "to": []string{"gpu-15"}, "devices": 1, "price_s": 40}, {"job": "vision-sweep-0", "from": []string{"gpu-09"}, "to": []string{"gpu-08", "gpu-15"}, "devices": 4, "price_s": 410}, {"job": nasty, "from": []string{"gpu-15"}, "to": []string{"gpu-16"}, "devices": 2, "price_s": 95}},
		"price_device_hours": .5275, "starts": object{"job": "protein-big", "nodes": []string{"gpu-09"}, "devices": 8}, "words": "three moves make gpu-09 free as a whole, so that protein-big (8 devices) starts now instead of in 3h",
		"before": []object{node("gpu-08", "notebook-7", "", "", "", "ads", "ads", "ads", "ads"), node("gpu-09", "vision-sweep-0", "vision-sweep-0", "vision-sweep-0", "vision-sweep-0", "", "", "", ""), node("gpu-15", "", "", "", "", "x", "x", nasty, nasty), node("gpu-16", "y", "y", "y", "y", "y", "", "", "")},
		"after":  []object{node("gpu-08", "vision-sweep-0", "vision-sweep-0", "", "", "ads", "ads", "ads", "ads"), node("gpu-09", "protein-big", "protein-big", "protein-big", "protein-big", "protein-big", "protein-big", "protein-big", "protein-big"), node("gpu-15", "notebook-7", "vision-sweep-0", "vision-sweep-0", "", "x", "x", "", ""), node("gpu-16", "y", "y", "y", "y", "y", nasty, nasty, "")}})
}

// promises are of all queues together first, then of each.
func promises() view.Promises {
	return as[view.Promises](object{"queues": []object{{"queue": "", "promises": 834, "scored": 709, "scored_ends": 640, "hit_rate": .78, "coverage": .77, "end_coverage": .8, "median_error": .37},
		{"queue": "research", "promises": 520, "scored": 412, "scored_ends": 400, "hit_rate": .84, "coverage": .81, "end_coverage": .87, "median_error": .31},
		{"queue": "product", "promises": 204, "scored": 198, "scored_ends": 160, "hit_rate": .66, "coverage": .61, "end_coverage": .7, "median_error": .52},
		{"queue": "biology", "promises": 96, "scored": 90, "scored_ends": 80, "hit_rate": .95, "coverage": .93, "end_coverage": .96, "median_error": .22},
		{"queue": "interns", "promises": 14, "scored": 9, "scored_ends": 0, "hit_rate": .9, "coverage": .89, "end_coverage": nil, "median_error": .4},
		{"queue": "guests", "promises": 3, "scored": 0, "scored_ends": 0, "hit_rate": nil, "coverage": nil, "end_coverage": nil, "pending": 6}}})
}

func logText() (text string) {
	for i := range 60 {
		text += fmt.Sprintf("step %5d  loss %.4f  tokens/s 412801  lr 2.1e-4\n", 48000+i*10, 2.2-float64(i)*.0013)
	}
	return text
}
