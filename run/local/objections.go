package local

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/musterdl/muster/model/objection"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/run/local/supervise"
)

// Objections are why a job could never run on this machine. A control plane asks before it
// takes the job, and an attempt once more before it starts: the settings may be others by then.
func (d *Driver) Objections(j *workload.Job) (list []*objection.Objection) {
	if len(j.Command) == 0 || strings.TrimSpace(j.Command[0]) == "" {
		list = append(list, &objection.Objection{Field: "command", Found: "none", Expected: "a program and its arguments", Do: "say what is to be run"})
	}
	if j.Dir != "" && !filepath.IsAbs(j.Dir) {
		list = append(list, &objection.Objection{Field: "dir", Found: strconv.Quote(j.Dir), Expected: "an absolute path", Do: "begin it with /"})
	}
	var wrong *objection.Objection
	if _, err := identity(j.User, d.config.AllowRoot); errors.As(err, &wrong) {
		list = append(list, wrong)
	}
	return list
}

// identity looks up the user a job runs as: who submitted it, or who runs the
// control plane where nobody is named. That one needs no name, as in a container.
func identity(name string, allowRoot bool) (supervise.Identity, error) {
	self := os.Geteuid()
	uid, gid := self, os.Getegid()
	if name == "" {
		name = strconv.Itoa(self)
	}
	if name != strconv.Itoa(self) {
		u, err := user.Lookup(name)
		if errors.As(err, new(user.UnknownUserError)) {
			return supervise.Identity{}, &objection.Objection{Field: "user", Found: strconv.Quote(name) + ", whom this machine does not know", Expected: "a user of this machine", Do: "name another, or make that user"}
		}
		if err != nil {
			return supervise.Identity{}, fmt.Errorf("looking up the user %q: %w", name, err)
		}
		of, err1 := strconv.Atoi(u.Uid)
		own, err2 := strconv.Atoi(u.Gid)
		if err := errors.Join(err1, err2); err != nil {
			return supervise.Identity{}, fmt.Errorf("the user %q: %w", name, err)
		}
		if of != self { // the control plane's group may be another than its user's
			uid, gid = of, own
		}
	}
	switch {
	case (uid == 0 || gid == 0) && !allowRoot:
		return supervise.Identity{}, &objection.Objection{Field: "user", Found: fmt.Sprintf("%s (user %d, group %d)", name, uid, gid), Expected: "somebody without the rights of root",
			Do: "submit as another user, or let such jobs run with muster up --allow-root"}
	case self != 0 && uid != self:
		return supervise.Identity{}, &objection.Objection{Field: "user", Found: name, Expected: "the user of the control plane, which is not root",
			Do: "submit as that one, or run muster up as root"}
	}
	return supervise.Identity{UID: uid, GID: gid, AllowRoot: allowRoot}, nil
}
