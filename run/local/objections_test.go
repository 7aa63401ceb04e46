package local_test

import (
	"log/slog"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/run/local"
)

// TestObjections: what could never run on this machine is refused, with the field and what
// to do.
func TestObjections(t *testing.T) {
	self := strconv.Itoa(os.Geteuid())
	for _, c := range []struct {
		allowRoot bool
		job       workload.Job
		want      []string
	}{
		{true, workload.Job{User: self, Program: workload.Program{Command: []string{"true"}}}, nil},
		{true, workload.Job{Program: workload.Program{Command: []string{"true"}, Dir: "/tmp"}}, nil},
		{true, workload.Job{Program: workload.Program{Command: []string{" "}, Dir: "tmp"}}, []string{"command: found none", `dir: found "tmp", expected an absolute path`}},
		{true, workload.Job{User: "no-such-user", Program: workload.Program{Command: []string{"true"}}}, []string{`user: found "no-such-user"`}},
		{false, workload.Job{User: "root", Program: workload.Program{Command: []string{"true"}}}, []string{"muster up --allow-root"}},
		{false, workload.Job{User: "no-such-user"}, []string{"command: found none", `user: found "no-such-user"`}},
	} {
		d := local.New(local.Config{State: t.TempDir(), Exe: "/none", AllowRoot: c.allowRoot, Log: slog.New(slog.DiscardHandler)})
		list := d.Objections(&c.job)
		if len(list) != len(c.want) {
			t.Errorf("to %+v: %v, expected %q", c.job.Program, list, c.want)
			continue
		}
		for i, o := range list {
			if !strings.Contains(o.Error(), c.want[i]) || o.Field == "" || o.Do == "" {
				t.Errorf("to %+v: %q, expected %q", c.job.Program, o, c.want[i])
			}
		}
	}
}
