package trace

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/musterdl/muster/model/unit"
)

// musterFormat is our own; FORMAT.md describes it. It is the only one that is
// also written.
var musterFormat = format{
	name:  "muster",
	about: "our own CSV or JSONL, see experiment/trace/FORMAT.md",
	columns: []column{
		{name: "name", kind: label, set: setName, get: func(r *record) string { return r.job.Name }},
		{name: "submit_s", required: true, set: setSubmit,
			get: func(r *record) string { return decimal(unit.Duration(r.job.Submit)) }},
		{name: "duration_s", required: true, blank: true, set: setDuration, get: func(r *record) string {
			if r.truth.Duration == NoDuration {
				return ""
			}
			return decimal(r.truth.Duration)
		}},
		integer("gang", 1, maxDevices, 1, func(r *record) *int32 { return &r.job.Gang }),
		integer("devices_per_worker", 0, maxNodeDevices, 1, func(r *record) *int32 { return &r.job.Devices }),
		integer("share_milli", 1, 1000, 1000, func(r *record) *unit.Milli { return &r.job.Share }),
		named("tenant", func(r *record) *string { return &r.job.Tenant }),
		named("user", func(r *record) *string { return &r.job.User }),
		integer("priority", math.MinInt32, math.MaxInt32, 0, func(r *record) *int32 { return &r.job.Priority }),
		named("class", func(r *record) *string { return &r.job.Class }),
		duration("estimate_s", func(r *record) *unit.Duration { return &r.job.Estimate }),
		duration("time_limit_s", func(r *record) *unit.Duration { return &r.job.TimeLimit }),
		duration("deadline_s", func(r *record) *unit.Duration { return &r.job.Deadline }),
		{name: "sizes", kind: numbers, set: setSizes, get: printSizes},
		{name: "models", kind: labels, set: setModels,
			get: func(r *record) string { return strings.Join(r.job.Models, "|") }},
		integer("memory_mib", 0, maxMiB, 0, func(r *record) *unit.MiB { return &r.job.Memory }),
		integer("cpu_milli", 0, maxMilli, 0, func(r *record) *unit.Milli { return &r.job.CPU }),
		integer("host_memory_mib", 0, maxMiB, 0, func(r *record) *unit.MiB { return &r.job.HostMemory }),
		duration("checkpoint_every_s", func(r *record) *unit.Duration { return &r.job.Checkpoint.Every }),
		{name: "checkpoint_on_request", kind: boolean, set: setOnRequest, get: printOnRequest},
		duration("checkpoint_save_s", func(r *record) *unit.Duration { return &r.job.Checkpoint.Save }),
		duration("checkpoint_load_s", func(r *record) *unit.Duration { return &r.job.Checkpoint.Load }),
		integer("retries", 0, math.MaxInt32, 0, func(r *record) *int32 { return &r.job.Retries }),
		{name: "after", kind: labels, set: setAfter,
			get: func(r *record) string { return strings.Join(r.job.After, "|") }},
		integer("skew_milli", 0, 1000, 0, func(r *record) *unit.Milli { return &r.job.Skew }),
		integer("traffic_mbps", 0, 1_000_000_000, 0, func(r *record) *unit.Mbps { return &r.job.Traffic }),
		factor("sensitivity", 1000, func(r *record) *float64 { return &r.truth.Sensitivity }),
		factor("busy", 1, func(r *record) *float64 { return &r.truth.Busy }),
		duration("fail_after_s", func(r *record) *unit.Duration { return &r.truth.FailAfter }),
	},
	finish: finishMuster,
}

func finishMuster(r *record) (string, error) {
	j := &r.job
	if j.Share < unit.Whole && j.Devices != 1 {
		return "share_milli", fmt.Errorf("%d with %d devices per worker: expected a share of one device", j.Share, j.Devices)
	}
	if j.Checkpoint.Every > 0 {
		r.truth.NeverSaves = false
	}
	if len(j.Sizes) > 0 && !slices.Contains(j.Sizes, j.Gang) {
		return "sizes", fmt.Errorf("%s: expected the gang of %d among them", shown(printSizes(r)), j.Gang)
	}
	if n := len(j.Sizes); n > 0 && int64(j.Sizes[n-1])*int64(j.Devices) > maxDevices {
		return "sizes", fmt.Errorf("%d workers of %d devices: expected at most %d devices", j.Sizes[n-1], j.Devices, maxDevices)
	}
	return "", nil
}

// decimal writes seconds so that they read back to the microsecond.
func decimal(d unit.Duration) string {
	s := strconv.FormatInt(int64(d/unit.Second), 10)
	if part := int64(d % unit.Second); part != 0 {
		s += strings.TrimRight(fmt.Sprintf(".%06d", part), "0")
	}
	return s
}

// The makers of columns over one field of the record. A value equal to the
// default is written as an empty cell.

func integer[T ~int32 | ~int64](name string, low, high, normal int64, field func(*record) *T) column {
	return column{name: name, kind: number,
		set: func(r *record, cell string) error {
			n, err := whole(cell, low, high)
			*field(r) = T(n)
			return err
		},
		get: func(r *record) string {
			if n := int64(*field(r)); n != normal {
				return strconv.FormatInt(n, 10)
			}
			return ""
		}}
}

func duration(name string, field func(*record) *unit.Duration) column {
	return optional(name, field, seconds, decimal)
}

func factor(name string, high float64, field func(*record) *float64) column {
	return optional(name, field, func(cell string) (float64, error) { return numeric(cell, 0, high) },
		func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) })
}

// optional is a column of numbers of which none is as good as 0.
func optional[T unit.Duration | float64](name string, field func(*record) *T, read func(string) (T, error), write func(T) string) column {
	return column{name: name, kind: number,
		set: func(r *record, cell string) (err error) {
			*field(r), err = read(cell)
			return err
		},
		get: func(r *record) string {
			if *field(r) == 0 {
				return ""
			}
			return write(*field(r))
		}}
}

func named(name string, field func(*record) *string) column {
	return column{name: name, kind: label,
		set: func(r *record, cell string) (err error) {
			*field(r), err = text(cell)
			return err
		},
		get: func(r *record) string { return *field(r) }}
}

func setSizes(r *record, cell string) error {
	r.job.Sizes = nil
	for part := range strings.SplitSeq(cell, "|") {
		n, err := whole(part, 1, maxDevices)
		if err != nil {
			return err
		}
		if k := len(r.job.Sizes); k > 0 && r.job.Sizes[k-1] >= int32(n) {
			return fmt.Errorf("%s: expected ascending worker counts", shown(cell))
		}
		r.job.Sizes = append(r.job.Sizes, int32(n))
	}
	return nil
}

func printSizes(r *record) string {
	parts := make([]string, len(r.job.Sizes))
	for i, n := range r.job.Sizes {
		parts[i] = strconv.Itoa(int(n))
	}
	return strings.Join(parts, "|")
}

func setModels(r *record, cell string) (err error) {
	r.job.Models, err = splitLabels(cell)
	return err
}

func setAfter(r *record, cell string) (err error) {
	r.job.After, err = splitLabels(cell)
	return err
}

func splitLabels(cell string) ([]string, error) {
	if _, err := text(cell); err != nil {
		return nil, err
	}
	all := strings.Split(cell, "|")
	if slices.Contains(all, "") {
		return nil, fmt.Errorf("%s: expected names separated by single |", shown(cell))
	}
	return all, nil
}

func setOnRequest(r *record, cell string) error {
	if cell != "true" && cell != "false" {
		return errors.New(shown(cell) + ": expected true or false")
	}
	r.job.Checkpoint.OnRequest, r.truth.NeverSaves = cell == "true", cell == "false"
	return nil
}

func printOnRequest(r *record) string {
	switch {
	case r.job.Checkpoint.OnRequest:
		return "true"
	case r.truth.NeverSaves:
		return "false"
	}
	return ""
}
