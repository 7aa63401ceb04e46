package supervise

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// stageVariable says which of the processes of an attempt this one is, which all run the
// same program: the keeper has none.
const stageVariable = "MUSTER_SUPERVISE_STAGE"

const (
	stageSupervisor = "supervisor" // see keep
	// stageWorker becomes the worker: it does everything but become the command, says so and
	// waits. Doing it there, as the user and in the control group, is the only honest check
	// that it can be done.
	stageWorker = "worker"
)

// The stage's descriptors: it reads one byte to go on, and writes "ready", or why not.
const (
	stageGo     = 3
	stageStatus = 4
)

const (
	exitStage = 126 // of a stage that failed
	ready     = "ready\n"
)

// stage prepares this process and becomes the command. It returns only on failure.
func stage(dir string) int {
	unix.CloseOnExec(stageGo)
	unix.CloseOnExec(stageStatus)
	path, argv, env, f := prepareStage(dir)
	if f == nil {
		if _, err := unix.Write(stageStatus, []byte(ready)); err != nil {
			return exitStage
		}
		var b [1]byte
		if n, err := readRetrying(stageGo, b[:]); n == 1 && err == nil {
			f = unstartable(path, syscall.Exec(path, argv, env))
		} else {
			f = &failure{class: Node, err: errors.New("its supervisor died before the worker was started")}
		}
	}
	_, _ = unix.Write(stageStatus, []byte(f.String()))
	return exitStage
}

func readRetrying(fd int, b []byte) (n int, err error) {
	for {
		if n, err = unix.Read(fd, b); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// failure is an error and whose it is.
type failure struct {
	class Class
	err   error
	code  int // what a shell would exit with
}

// unready is a failure to prepare or start a worker: this machine's fault, unless it is of what passes.
func unready(err error) *failure {
	if Passing(err) {
		return &failure{class: Temporary, err: err}
	}
	return &failure{class: Node, err: err}
}

// Passing reports whether an error is of what passes, and no sign of a machine that cannot do it: a full disk, no
// process, file or memory left, a port that somebody has, something too slow.
func Passing(err error) bool {
	for _, e := range []error{unix.ENOSPC, unix.EDQUOT, unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.EAGAIN, unix.EADDRINUSE, unix.EINTR,
		os.ErrDeadlineExceeded} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// What a shell exits with where a command is there and cannot be run, and where it is not
// there.
const (
	exitUnable  = 126
	exitMissing = 127
)

// own is a failure of the job's own: what it names is not there, or it may not use it.
func own(err error) *failure {
	if errors.Is(err, fs.ErrNotExist) {
		return &failure{User, err, exitMissing}
	}
	return &failure{User, err, exitUnable}
}

// unstartable is the failure to become a program that was found.
func unstartable(path string, err error) *failure {
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		return own(fmt.Errorf("%s is no program: it begins neither as one nor with #! and an interpreter", path))
	case errors.Is(err, fs.ErrNotExist):
		return own(inWords{path + " cannot be run: the interpreter that its first line names does not exist", err})
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.E2BIG):
		return own(fmt.Errorf("%s cannot be run: %w", path, err))
	}
	return unready(fmt.Errorf("start %s: %w", path, err))
}

// inWords is an error told otherwise.
type inWords struct {
	words string
	error
}

// Error is what people are told.
func (e inWords) Error() string { return e.words }

// Unwrap is what the machine said.
func (e inWords) Unwrap() error { return e.error }

// String is the failure as parseFailure reads it.
func (f *failure) String() string { return fmt.Sprintf("%s %d %s\n", f.class, f.code, f.err) }

// parseFailure reads what a stage wrote instead of ready.
func parseFailure(text string) *failure {
	if words := strings.SplitN(strings.TrimSuffix(text, "\n"), " ", 3); len(words) == 3 {
		if code, err := strconv.Atoi(words[1]); err == nil {
			return &failure{Class(words[0]), errors.New(words[2]), code}
		}
	}
	if text == "" {
		return &failure{class: Temporary, err: errors.New("the process that was to become the worker was ended by something else")}
	}
	return &failure{class: Node, err: fmt.Errorf("worker could not be prepared, see its log: %q", text)}
}

func prepareStage(dir string) (path string, argv, env []string, f *failure) {
	node := func(err error) (string, []string, []string, *failure) {
		return "", nil, nil, unready(err)
	}
	spec, err := readSpec(dir)
	if err != nil {
		return node(err)
	}
	secrets, err := readSecrets(dir)
	if err != nil {
		return node(err)
	}
	env = append(spec.Env, secrets...)
	unix.Umask(spec.Umask)
	for _, r := range spec.Rlimits {
		// The one of package syscall keeps Exec from restoring nofile.
		if err := syscall.Setrlimit(rlimits[r.Name], &syscall.Rlimit{Cur: r.Soft, Max: r.Hard}); err != nil {
			return node(fmt.Errorf("set limit %s to %d of %d: %w", r.Name, r.Soft, r.Hard, err))
		}
	}
	if err := become(spec.User); err != nil {
		return node(err)
	}
	if err := os.Chdir(spec.Dir); err != nil {
		return "", nil, nil, own(unusable("working directory", spec.Dir, err))
	}
	if path, err = lookCommand(spec.Command[0], env); err != nil {
		return "", nil, nil, own(err)
	}
	return path, spec.Command, env, nil
}

// become switches to the user of the worker, for good.
func become(u Identity) error {
	if os.Geteuid() != 0 {
		if u.UID != os.Getuid() || u.GID != os.Getgid() {
			return fmt.Errorf("switch to user %d, group %d: only root can, this is user %d, group %d", u.UID, u.GID, os.Getuid(), os.Getgid())
		}
		return nil
	}
	groups := u.Groups
	if len(groups) == 0 {
		groups = []int{u.GID}
	}
	if err := syscall.Setgroups(groups); err != nil {
		return fmt.Errorf("switch to groups %v: %w", groups, err)
	}
	if err := syscall.Setgid(u.GID); err != nil {
		return fmt.Errorf("switch to group %d: %w", u.GID, err)
	}
	if err := syscall.Setuid(u.UID); err != nil {
		return fmt.Errorf("switch to user %d: %w", u.UID, err)
	}
	return nil
}

// lookCommand finds the command in the PATH of the worker's environment, as the
// user and in the working directory that this process has by now.
func lookCommand(name string, env []string) (string, error) {
	dirs := []string{"/usr/local/bin", "/usr/bin", "/bin"}
	for _, kv := range env {
		if path, ok := strings.CutPrefix(kv, "PATH="); ok {
			dirs = filepath.SplitList(path)
		}
	}
	direct := strings.Contains(name, "/")
	if direct {
		dirs = []string{""}
	}
	found := fs.ErrNotExist
	for _, dir := range dirs {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		switch {
		case err != nil && !direct: // a directory that it may not look into has none
			continue
		case err != nil:
		case info.IsDir():
			err = fmt.Errorf("%s is a directory", path)
		default:
			if err = unix.Access(path, unix.X_OK); err == nil {
				return path, nil
			}
		}
		if errors.Is(found, fs.ErrNotExist) {
			found = err
		}
	}
	switch err := unusable("program", name, found); {
	case errors.Is(found, fs.ErrNotExist) && !direct:
		return "", inWords{fmt.Sprintf("%s (looked for in %s)", err, strings.Join(dirs, ":")), found}
	case errors.Is(found, fs.ErrPermission):
		return "", inWords{err.Error() + ": is it executable (chmod +x)?", found}
	default:
		return "", err
	}
}

// unusable says of what a job names that it is not there, or that its user may not use it.
func unusable(what, name string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return inWords{fmt.Sprintf("no such %s: %s", what, name), err}
	case errors.Is(err, fs.ErrPermission):
		return inWords{fmt.Sprintf("no right to use the %s %s as user %d", what, name, os.Getuid()), err}
	}
	return fmt.Errorf("the %s %s: %w", what, name, err)
}

// readSecrets reads the rest of the environment; no file is no secrets.
func readSecrets(dir string) ([]string, error) {
	b, err := os.ReadFile(filepath.Join(dir, "secrets"))
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(b) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read secrets: %w", err)
	}
	return strings.Split(string(b), "\x00"), nil
}

// staged is a stage as its supervisor sees it.
type staged struct {
	pid    int
	goOn   *os.File // write end
	status *os.File // read end
	output *os.File // read end of the worker's stdout and stderr
}

// startStage starts this program again as the stage of the worker.
func startStage(p pipes) (*staged, error) {
	goR, goW, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	defer goR.Close()
	pid, err := startAgain(stageWorker, p.outputW, p.outputW, int(goR.Fd()), p.statusW)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start worker: %w", err), goW.Close())
	}
	p.closeWriters()
	return p.staged(pid, goW), nil
}

// said returns what the stage said next, "" when its end of the line was closed.
func (s *staged) said() (string, error) {
	b := make([]byte, 4096)
	n, err := s.status.Read(b)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return string(b[:n]), err
}
