package local

import (
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/musterdl/muster/model/unit"
)

// cores is what this machine has to compute with.
func cores() unit.Milli { return unit.Milli(runtime.NumCPU()) * unit.Whole }

// hostMemory is this machine's memory.
func hostMemory() unit.MiB {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0
	}
	return unit.MiB(uint64(info.Totalram) * uint64(info.Unit) >> 20)
}
