// Package journeytest has the jobs of somebody's first hour: the tests of the command line
// and of the console run the same.
package journeytest

import "slices"

// Kind is a job, and how it ends.
type Kind struct {
	Name    string
	Command []string
	Flags   []string // of muster submit and muster run
	Code    int      // that muster run and muster wait exit with
	Words   string   // that say how it failed
	Last    string   // what the worker printed last
	Class   string   // whose failure
}

// Args is the command line that submits or runs it.
func (k *Kind) Args(verb string) []string {
	return slices.Concat([]string{verb, "--name", k.Name}, k.Flags, []string{"--"}, k.Command)
}

// Fine is a job that finishes.
var Fine = Kind{Name: "ok", Command: []string{"echo", "hello"}}

// Failing are jobs that fail, each in its own way.
var Failing = []Kind{
	{"code", []string{"sh", "-c", "echo out; echo no data >&2; exit 7"}, nil, 7, "exit code 7 (rank 0 on ", "no data", "user"},
	{"signal", []string{"sh", "-c", "kill -SEGV $$"}, nil, 128 + 11, "ended by SIGSEGV (rank 0 on ", "", "user"},
	{"missing", []string{"nosuchprogram"}, nil, 127, "no such program: nosuchprogram", "", "user"},
	{"folder", []string{"true"}, []string{"--dir", "/no/such"}, 127, "no such working directory: /no/such", "", "user"},
	{"rights", []string{"/etc/passwd"}, nil, 126, "no right to use the program /etc/passwd", "", "user"},
	{"gang", []string{"sh", "-c", `[ $RANK = 0 ] && exec sleep 60; sleep .2; echo rank $RANK fell >&2; exit 9`}, []string{"--workers", "2"}, 9, "exit code 9 (rank 1 on ", "rank 1 fell", "user"},
	{"late", []string{"sleep", "60"}, []string{"--time-limit", "300ms"}, 128 + 15, "time limit", "", "time-limit"},
	{"line", []string{"echo begun; exit 5"}, nil, 5, "exit code 5 (rank 0 on ", "begun", "user"},
}

// Sweep is an array that finishes, Broken one of which most copies fail, and Rest one that
// goes on until it is cancelled.
var (
	Sweep  = Kind{Name: "sweep", Command: []string{"true"}, Flags: []string{"--array", "100", "--share", "100m"}}
	Broken = Kind{Name: "broken", Command: []string{"sh", "-c", "exit $MUSTER_ARRAY_INDEX"}, Flags: []string{"--array", "4"}, Code: 1, Words: "broken-1 failed: exit code 1 (rank 0 on "}
	Rest   = Kind{Name: "rest", Command: []string{"sleep", "1000"}, Flags: []string{"--array", "100"}}
)

// Long makes way for Short where the shorter goes first on four devices, and comes back.
var (
	Long  = Kind{Name: "long", Command: []string{"sleep", "1000"}, Flags: []string{"--workers", "4", "--estimate", "1h", "--checkpoint-every", "1s"}}
	Short = Kind{Name: "short", Command: []string{"sleep", "1"}, Flags: []string{"--workers", "2", "--estimate", "2s"}}
)
