// Package supervise runs one worker of a job attempt on this machine: a small
// supervisor process per worker, which outlives the control plane, and a keeper, which
// goes on with the worker where the supervisor is killed.
//
// Everything about one worker lies in one directory, STATE/attempts/JOB.ATTEMPT/RANK:
//
//	spec.json       what to run
//	lock            locked while one of the two lives: "is it alive" is "is it locked"
//	record          what happened, append-only, each line durable before its effect
//	orders          a FIFO: what the control plane wants (go, stop, suspend, ...)
//	control         what the worker is asked to do, lines of package progress
//	progress        what the worker reports, likewise
//	log, log.N      what the worker printed, within a quota
//	supervisor.log  what the supervisor itself had to say; empty if all is well
//
// A gang starts all or nothing in two phases. Launch makes every supervisor do all
// that can fail (switch the user, find the command, make the control group) up to a
// process that only has to become the command; that is recorded as prepared. The
// order go, given when all ranks are prepared, lets it. The process id in the
// record is that of the worker from then on.
//
// An attempt is used once: it has at most one started and one ended record, and
// when keeper and supervisor both died without the latter, whoever finds the lock
// free ends the worker and writes it (Reap). So no kill of one process repeats what has
// come to its end. Nobody can know of a worker that was killed, or died with both of them,
// between its last word and its exit: that attempt has not ended.
package supervise

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run/local/cgroup"
)

// Spec says what one worker is and how it is to be run.
type Spec struct {
	State   string `json:"state"` // directory of the local driver
	Job     string `json:"job"`
	Attempt int32  `json:"attempt"`
	Rank    int32  `json:"rank"`

	Command []string `json:"command"`
	Dir     string   `json:"dir"`
	// Env is the whole environment of the worker but for Secrets, both as KEY=VALUE.
	Env []string `json:"env"`
	// Secrets lie in a file of their own until the worker starts, and nowhere else.
	Secrets []string `json:"-"`
	User    Identity `json:"user"`
	Umask   int      `json:"umask,omitempty"` // 0 is 022
	Rlimits []Rlimit `json:"rlimits,omitempty"`

	Limits cgroup.Limits `json:"limits,omitzero"`
	// Pool is around the worker's group: its devices, which other workers may share.
	Pool cgroup.Pool `json:"pool,omitzero"`
	// Law is stepped with every sample and sets the worker's cores between a tenth of
	// its limit and all of it; empty is none. Host is the member directory of the
	// protected job's first worker beside it, whose progress the law is told; empty is
	// none.
	Law   string `json:"law,omitempty"`
	Host  string `json:"host,omitempty"`
	Ports []int  `json:"ports,omitempty"` // TCP ports that must be free
	// TimeLimit ends the worker after this much running time; 0 is none.
	TimeLimit unit.Duration `json:"time_limit_us,omitempty"`
	Stop      Stop          `json:"stop,omitzero"`
	// WaitGo bounds how long a prepared worker waits for the order go; 0 is 10 minutes.
	WaitGo unit.Duration `json:"wait_go_us,omitempty"`
	Watch
}

// Watch is how closely a worker is watched.
type Watch struct {
	// LogBytes bounds what is kept of the worker's output; 0 is 64 MiB.
	LogBytes int64 `json:"log_bytes,omitempty"`
	// SampleEvery and SummaryEvery are the least intervals between measurements and
	// between progress records; 0 is 2 and 10 seconds.
	SampleEvery  unit.Duration `json:"sample_every_us,omitempty"`
	SummaryEvery unit.Duration `json:"summary_every_us,omitempty"`
}

// Identity is whom the worker runs as.
type Identity struct {
	UID    int   `json:"uid"`
	GID    int   `json:"gid"`
	Groups []int `json:"groups,omitempty"`
	// AllowRoot lets UID or GID be 0, which is refused otherwise.
	AllowRoot bool `json:"allow_root,omitempty"`
}

// Stop is how a worker is stopped.
type Stop struct {
	// CheckpointWait is how long a worker that was asked to save may take before it
	// is asked to end; 0 does not ask.
	CheckpointWait unit.Duration `json:"checkpoint_wait_us,omitempty"`
	// Grace is the time from SIGTERM to SIGKILL; 0 is 10 seconds.
	Grace unit.Duration `json:"grace_us,omitempty"`
}

// Rlimit is one resource limit, named as ulimit and systemd do: "nofile", "core".
type Rlimit struct {
	Name string `json:"name"`
	Soft uint64 `json:"soft"`
	Hard uint64 `json:"hard"`
}

var rlimits = map[string]int{
	"as": unix.RLIMIT_AS, "core": unix.RLIMIT_CORE, "cpu": unix.RLIMIT_CPU, "data": unix.RLIMIT_DATA, "fsize": unix.RLIMIT_FSIZE,
	"memlock": unix.RLIMIT_MEMLOCK, "nofile": unix.RLIMIT_NOFILE, "nproc": unix.RLIMIT_NPROC, "stack": unix.RLIMIT_STACK,
}

// MemberDir is the directory of a worker.
func (s *Spec) MemberDir() string {
	return filepath.Join(s.State, "attempts", fmt.Sprintf("%s.%d", s.Job, s.Attempt), strconv.Itoa(int(s.Rank)))
}

// groupName names the control group of the worker; another state directory on this
// machine may have the same job.
func (s *Spec) groupName() string {
	return fmt.Sprintf("%s.%d.%d-%s", s.Job, s.Attempt, s.Rank, Mark(s.State))
}

// Mark tells the groups of one state directory from those of another.
func Mark(state string) string {
	h := fnv.New32a()
	h.Write([]byte(state))
	return fmt.Sprintf("%08x", h.Sum32())
}

// withDefaults fills in what was left open.
func (s Spec) withDefaults() Spec {
	setDefault(&s.Umask, 0o022)
	setDefault(&s.Stop.Grace, 10*unit.Second)
	setDefault(&s.WaitGo, 10*unit.Minute)
	setDefault(&s.LogBytes, 64<<20)
	setDefault(&s.SampleEvery, 2*unit.Second)
	setDefault(&s.SummaryEvery, 10*unit.Second)
	return s
}

func setDefault[T comparable](v *T, value T) {
	var zero T
	if *v == zero {
		*v = value
	}
}

var jobName = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$`)

// Validate refuses what cannot be run, naming the field.
func (s *Spec) Validate() error {
	switch {
	case !filepath.IsAbs(s.State):
		return fmt.Errorf("state %q: expected an absolute path", s.State)
	case !jobName.MatchString(s.Job):
		return fmt.Errorf("job %q: expected letters, digits, '.', '_' and '-', at most 128", s.Job)
	case s.Attempt < 0 || s.Rank < 0:
		return fmt.Errorf("attempt %d and rank %d: expected 0 or more", s.Attempt, s.Rank)
	case len(s.Command) == 0 || s.Command[0] == "":
		return errors.New("command is empty")
	case !filepath.IsAbs(s.Dir):
		return fmt.Errorf("dir %q: expected an absolute path", s.Dir)
	case s.Umask < 0 || s.Umask > 0o777:
		return fmt.Errorf("umask %#o: expected 0 to 0777", s.Umask)
	case s.LogBytes < 0:
		return fmt.Errorf("log_bytes %d: expected 0 or more", s.LogBytes)
	case s.Limits.CPU < 0 || s.Limits.Memory < 0:
		return fmt.Errorf("limits %s and %s: expected 0 or more", s.Limits.CPU, s.Limits.Memory)
	}
	for _, port := range s.Ports {
		if port < 1 || port > 65535 {
			return fmt.Errorf("ports: %d: expected 1 to 65535", port)
		}
	}
	for _, r := range s.Rlimits {
		if _, ok := rlimits[r.Name]; !ok || r.Soft > r.Hard {
			return fmt.Errorf("rlimits: %s %d of %d: expected a known name and soft within hard", r.Name, r.Soft, r.Hard)
		}
	}
	return errors.Join(s.User.validate(), s.validateTimes(), s.validateText())
}

func (u *Identity) validate() error {
	if u.UID < 0 || u.GID < 0 || slices.ContainsFunc(u.Groups, func(g int) bool { return g < 0 }) {
		return fmt.Errorf("user: uid %d, gid %d, groups %v: expected 0 or more", u.UID, u.GID, u.Groups)
	}
	if (u.UID == 0 || u.GID == 0 || slices.Contains(u.Groups, 0)) && !u.AllowRoot {
		return fmt.Errorf("user: uid %d, gid %d, groups %v: jobs do not run as root unless allow_root is set", u.UID, u.GID, u.Groups)
	}
	return nil
}

func (s *Spec) validateTimes() error {
	for _, d := range []struct {
		name string
		span unit.Duration
	}{
		{"time_limit", s.TimeLimit}, {"stop.checkpoint_wait", s.Stop.CheckpointWait}, {"stop.grace", s.Stop.Grace},
		{"wait_go", s.WaitGo}, {"sample_every", s.SampleEvery}, {"summary_every", s.SummaryEvery},
	} {
		if d.span < 0 {
			return fmt.Errorf("%s %s: expected 0 or more", d.name, d.span)
		}
	}
	return nil
}

// validateText refuses what the kernel or the file of secrets could not hold.
func (s *Spec) validateText() error {
	for _, word := range s.Command {
		if strings.ContainsRune(word, 0) {
			return fmt.Errorf("command: %q contains a zero byte", word)
		}
	}
	for _, list := range []struct {
		name  string
		words []string
	}{{"env", s.Env}, {"secrets", s.Secrets}} {
		for i, kv := range list.words {
			// The text of a secret has no place in an error.
			if key, _, ok := strings.Cut(kv, "="); !ok || key == "" || strings.ContainsRune(kv, 0) {
				return fmt.Errorf("%s: entry %d: expected KEY=VALUE without zero bytes", list.name, i)
			}
		}
	}
	return nil
}

// readSpec reads and checks the spec in a member directory.
func readSpec(dir string) (Spec, error) {
	path := filepath.Join(dir, "spec.json")
	b, err := os.ReadFile(path)
	if err != nil {
		return Spec{}, fmt.Errorf("read spec: %w", err)
	}
	var s Spec
	if err := json.Unmarshal(b, &s); err != nil {
		return Spec{}, fmt.Errorf("read spec %s: %w", path, err)
	}
	s = s.withDefaults()
	if err := s.Validate(); err != nil {
		return Spec{}, fmt.Errorf("read spec %s: %w", path, err)
	}
	return s, nil
}

// ControlPath and ProgressPath are what the environment of a worker names as
// MUSTER_CONTROL and MUSTER_PROGRESS.
func ControlPath(dir string) string { return filepath.Join(dir, "control") }

// ProgressPath is where a worker reports its progress.
func ProgressPath(dir string) string { return filepath.Join(dir, "progress") }

// TimingsPath is where it reports how long the passes of its plan took.
func TimingsPath(dir string) string { return filepath.Join(dir, "timings") }
