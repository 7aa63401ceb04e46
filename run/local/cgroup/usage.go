package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/musterdl/muster/model/unit"
)

// Usage is what the processes of a group have used.
type Usage struct {
	CPU      unit.Duration
	Memory   unit.MiB // now, without what the kernel caches for them
	Peak     unit.MiB // the most ever, with that
	OOMKills int64    // processes ended because the group was out of memory
}

// Usage reads what the group has used; what is not measured stays 0.
func (g Group) Usage() (Usage, error) {
	var u Usage
	var errs []error
	read := func(dir, file, key string, into func(int64)) {
		if dir == "" {
			return
		}
		v, err := value(filepath.Join(dir, file), key)
		if err == nil {
			into(v)
		} else if !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	if g.Unified != "" {
		read(g.Unified, "cpu.stat", "usage_usec", func(v int64) { u.CPU = unit.Duration(v) })
	} else {
		read(g.Account, "cpuacct.usage", "", func(v int64) { u.CPU = unit.Duration(v / 1000) })
	}
	memory := func(v int64) { u.Memory = unit.MiB(v >> 20) }
	peak := func(v int64) { u.Peak = unit.MiB(v >> 20) }
	kills := func(v int64) { u.OOMKills = v }
	if g.Memory != "" {
		read(g.Memory, "memory.stat", "rss", memory)
		read(g.Memory, "memory.max_usage_in_bytes", "", peak)
		read(g.Memory, "memory.oom_control", "oom_kill", kills)
	} else {
		read(g.Unified, "memory.stat", "anon", memory)
		read(g.Unified, "memory.peak", "", peak)
		read(g.Unified, "memory.events", "oom_kill", kills)
	}
	if len(errs) > 0 {
		return u, fmt.Errorf("read usage of control group: %w", errors.Join(errs...))
	}
	return u, nil
}

// value reads a number from a file: the one behind key, or the only one.
func value(path, key string) (int64, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		switch {
		case key == "" && len(f) == 1:
			return strconv.ParseInt(f[0], 10, 64)
		case len(f) == 2 && f[0] == key:
			return strconv.ParseInt(f[1], 10, 64)
		}
	}
	return 0, fmt.Errorf("%s has no value %s", path, key)
}
