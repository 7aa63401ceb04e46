package trace

import (
	"errors"
	"strings"

	"github.com/musterdl/muster/model/unit"
)

var phillyFormat = format{
	name:  "philly",
	about: "Microsoft Philly 2017: cleaned job table (CC BY 4.0)",
	file:  "philly_2017-09_to_11.csv.gz",
	columns: []column{
		{name: "timestamp", required: true, set: setClock},
		{name: "duration", required: true, set: setDuration},
		{name: "num_gpus", required: true, set: setGang},
		{name: "gpu_time"},
		{name: "cluster", required: true, set: setTenant},
	},
}

var heliosFormat = format{
	name:  "helios",
	about: "SenseTime Helios 2020: Venus GPU jobs, clamped at 48 h (CC BY 4.0)",
	file:  "venus_gpu_jobs_2020-03_to_08.csv.gz",
	columns: []column{
		{name: "job_id", required: true, set: setName},
		{name: "submit_time", required: true, set: setClock},
		{name: "duration", required: true, set: setDuration},
		{name: "gpu_num", required: true, set: setGang},
	},
}

var paiFormat = format{
	name:  "pai",
	about: "Alibaba PAI 2020: sample of GPU tasks, fractions rounded up (CC BY 4.0)",
	file:  "pai_gpu_tasks_sample_d00-48.csv.gz",
	columns: []column{
		{name: "job_id", required: true, set: setName},
		{name: "arrival_s", required: true, set: setSubmit},
		{name: "service_sec", required: true, set: setDuration},
		{name: "gpu_count", required: true, set: setGang},
	},
}

// polluxFormat has no durations: how long such a job runs is in the profiles of
// its class, application/batch.
var polluxFormat = format{
	name:  "pollux",
	about: "Pollux and Sia workloads: applications without durations (Apache-2.0)",
	file:  "pollux_workloads.tar.gz#workloads/workload-6.csv",
	columns: []column{
		{name: "name", required: true, set: setName},
		{name: "time", required: true, set: setSubmit},
		{name: "application", required: true, set: setClass},
		{name: "num_replicas", required: true, set: setGang},
		{name: "batch_size", required: true, set: setBatch},
	},
	finish: func(r *record) (string, error) {
		r.job.Class += "/" + r.batch
		return "", nil
	},
}

var tiresiasFormat = format{
	name:  "tiresias",
	about: "Tiresias simulator: 60 jobs shaped like its testbed run (Apache-2.0)",
	file:  "60_job.csv",
	columns: []column{
		{name: "job_id", required: true, set: setName},
		{name: "num_gpu", required: true, set: setGang},
		{name: "submit_time", required: true, set: setSubmit},
		{name: "iterations"},
		{name: "model_name", required: true, set: setClass},
		{name: "duration", required: true, set: setDuration},
		{name: "interval"},
	},
}

// chronusFormat counts in minutes, and has jobs of no GPU. Of the several
// deadlines of a soft job the first is taken; rewards are left out.
var chronusFormat = format{
	name:  "chronus",
	about: "Chronus 2021: Philly jobs with deadlines (MIT)",
	file:  "trace_job_Philly_MIX1.csv.gz",
	columns: []column{
		{name: "job_id", required: true, set: setName},
		{name: "user", required: true, set: setTenant},
		{name: "num_gpu", required: true, set: setGangOrNone},
		{name: "submit_time", required: true, set: setSubmitMinutes},
		{name: "iterations"},
		{name: "model_name", required: true, set: setClass},
		{name: "duration", required: true, set: setDurationMinutes},
		{name: "interval"},
		{name: "expect_time_list", required: true, set: setDeadlineMinutes},
		{name: "expect_value_list"},
		{name: "best_effort", required: true, set: setBestEffort},
		{name: "job_type"},
	},
	finish: func(r *record) (string, error) {
		if r.best {
			r.job.Deadline = 0
		}
		return "", nil
	},
}

func setName(r *record, cell string) (err error) {
	r.job.Name, err = text(cell)
	return err
}

func setTenant(r *record, cell string) (err error) {
	r.job.Tenant, err = text(cell)
	return err
}

func setClass(r *record, cell string) (err error) {
	r.job.Class, err = text(cell)
	return err
}

func setBatch(r *record, cell string) error {
	_, err := whole(cell, 1, 1<<30)
	r.batch = cell
	return err
}

func setClock(r *record, cell string) (err error) {
	r.job.Submit, err = wallClock(cell)
	return err
}

func setSubmit(r *record, cell string) error {
	d, err := seconds(cell)
	r.job.Submit = unit.Time(d)
	return err
}

func setSubmitMinutes(r *record, cell string) error {
	d, err := span(cell, unit.Minute)
	r.job.Submit = unit.Time(d)
	return err
}

func setDuration(r *record, cell string) (err error) {
	r.truth.Duration, err = seconds(cell)
	return err
}

func setDurationMinutes(r *record, cell string) (err error) {
	r.truth.Duration, err = span(cell, unit.Minute)
	return err
}

func setDeadlineMinutes(r *record, cell string) (err error) {
	first, _, _ := strings.Cut(cell, "-")
	r.job.Deadline, err = span(first, unit.Minute)
	return err
}

func setGang(r *record, cell string) error {
	n, err := whole(cell, 1, maxDevices)
	r.job.Gang = int32(n)
	return err
}

func setGangOrNone(r *record, cell string) error {
	if cell == "0" {
		r.job.Devices = 0
		return nil
	}
	return setGang(r, cell)
}

func setBestEffort(r *record, cell string) error {
	if cell != "0" && cell != "1" {
		return errors.New(shown(cell) + ": expected 0 or 1")
	}
	r.best = cell == "1"
	return nil
}
