package local

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/musterdl/muster/mechanism/control"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run"
	"github.com/musterdl/muster/run/local/cgroup"
	"github.com/musterdl/muster/run/local/supervise"
)

// spec says how one rank is to be run: the job's command with the environment that
// the field uses, so that scripts written for torchrun work unchanged.
func (a *attempt) spec(rank int, port int) (supervise.Spec, error) {
	o, c, w := &a.order, &a.driver.config, &a.order.Workers[rank]
	who, err := identity(o.Spec.User, c.AllowRoot)
	if err != nil {
		return supervise.Spec{}, err
	}
	home, err := a.home(who)
	if err != nil {
		return supervise.Spec{}, err
	}
	dir := o.Spec.Dir
	if dir == "" {
		dir = filepath.Join(home, "work")
	}
	s := supervise.Spec{State: c.State, Job: o.Name, Attempt: o.Attempt, Rank: int32(rank),
		Command: o.Spec.Command, Dir: dir, User: who, TimeLimit: o.Spec.TimeLimit,
		Stop: supervise.Stop{Grace: c.Grace}, Watch: supervise.Watch{SummaryEvery: c.SummaryEvery},
		Limits: c.limits(o, w), Pool: c.pool(o, w), Law: o.Spec.Law}
	if o.Guest && o.Terms.Share.Bond == plan.InGaps && s.Law == "" {
		s.Law = control.ForGuests
	}
	if o.Guest && o.Host.Name != "" {
		s.Host = a.driver.MemberDir(o.Host.Name, o.Host.Attempt, 0)
	}
	if c.SummaryEvery < 2*unit.Second {
		s.SampleEvery = c.SummaryEvery // what is to be told more often has to be looked at more often
	}
	if o.Spec.Checkpoint.OnRequest {
		s.Stop.CheckpointWait = c.CheckpointWait
	}
	if s.Secrets, err = a.driver.secrets(o.Spec); err != nil {
		return s, err
	}
	s.Env = append(append(s.Env, o.Spec.Env...),
		"MASTER_ADDR=127.0.0.1", "MASTER_PORT="+strconv.Itoa(port),
		"RANK="+strconv.Itoa(rank), "LOCAL_RANK="+strconv.Itoa(rank), "GROUP_RANK=0",
		"WORLD_SIZE="+strconv.Itoa(len(o.Workers)), "LOCAL_WORLD_SIZE="+strconv.Itoa(len(o.Workers)),
		"MUSTER_JOB="+o.Name, "MUSTER_ATTEMPT="+strconv.Itoa(int(o.Attempt)),
		"MUSTER_CHECKPOINT_DIR="+filepath.Join(home, "checkpoints"),
		"MUSTER_PROGRESS="+supervise.ProgressPath(a.dirs[rank]), "MUSTER_CONTROL="+supervise.ControlPath(a.dirs[rank]))
	if !slices.ContainsFunc(o.Spec.Env, func(kv string) bool { return strings.HasPrefix(kv, "PYTHONUNBUFFERED=") }) {
		// Else what it prints before it fails comes after what it fails with.
		s.Env = append(s.Env, "PYTHONUNBUFFERED=1")
	}
	if n := o.Spec.Copy; n > 0 {
		s.Env = append(s.Env, "MUSTER_ARRAY_INDEX="+strconv.Itoa(int(n)-1))
	}
	if c.GPUs {
		s.Env = append(s.Env, "CUDA_VISIBLE_DEVICES="+c.visible(w.Devices))
		s.Env = append(s.Env, capsOf(o, w)...)
	}
	if n := o.Terms.Share.Batch; n > 0 {
		s.Env = append(s.Env, "MUSTER_BATCH="+strconv.Itoa(int(n)))
	}
	if o.Plan != nil {
		file := filepath.Join(home, planFile(o))
		if err := give(file, o.Plan.JSON, who); err != nil {
			return s, fmt.Errorf("writing the pipeline plan: %w", err)
		}
		s.Env = append(s.Env, "MUSTER_PLAN="+file, "MUSTER_TIMINGS="+supervise.TimingsPath(a.dirs[rank]))
	}
	return s, nil
}

// limits are what the worker's part of its devices amounts to: declared slots are
// cores and memory, and a share of one is that share of both. A guest has no share: it
// may use cores up to its ceiling, and the memory it asks for. So may one whose strategy
// names a ceiling above its share, which is then what it has for sure.
func (c *Config) limits(o *run.Order, w *run.Worker) cgroup.Limits {
	l := cgroup.Limits{CPU: w.CPU, Memory: w.Memory}
	cpu, memory := w.Share, w.Share
	switch {
	case o.Guest:
		cpu, memory = w.Ceiling, o.Spec.Share
	case o.Terms.Share.Ceiling > 0:
		cpu, l.Weight = w.Ceiling, w.Share
	}
	if c.SlotCPU > 0 {
		l.CPU += c.SlotCPU * unit.Milli(len(w.Devices)) * cpu / unit.Whole
		l.Memory += c.SlotMemory * unit.MiB(len(w.Devices)) * unit.MiB(memory) / 1000
	}
	return l
}

// pool is around all workers on the same slots, so that together they use no more than
// those are. A guest that fills gaps stays outside: it yields to everybody on the machine.
// Cores asked for besides belong to no slot.
func (c *Config) pool(o *run.Order, w *run.Worker) cgroup.Pool {
	if c.SlotCPU == 0 || len(w.Devices) == 0 || w.CPU > 0 || o.Guest && o.Terms.Share.Bond == plan.InGaps {
		return cgroup.Pool{}
	}
	name := "slot"
	for _, d := range w.Devices {
		name += "-" + strconv.Itoa(int(d))
	}
	return cgroup.Pool{Name: name + "." + supervise.Mark(c.State), CPU: c.SlotCPU * unit.Milli(len(w.Devices))}
}

// visible names devices as CUDA does.
func (c *Config) visible(ids []plan.DeviceID) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = strconv.Itoa(int(id))
		if int(id) < len(c.GPU) {
			words[i] = c.GPU[id]
		}
	}
	return strings.Join(words, ",")
}

// capsOf are the limits that NVIDIA's MPS reads when a client starts, where its daemon
// runs: the part of the multiprocessors, and the memory on each device.
func capsOf(o *run.Order, w *run.Worker) (env []string) {
	part := w.Share
	if o.Guest || o.Terms.Share.Ceiling > 0 {
		part = w.Ceiling
	}
	if part > 0 && part < unit.Whole {
		env = append(env, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE="+strconv.Itoa(int(max(1, part/10))))
	}
	if w.Share < unit.Whole && o.Spec.Memory > 0 {
		var limits []string
		for i := range w.Devices {
			limits = append(limits, fmt.Sprintf("%d=%dM", i, o.Spec.Memory))
		}
		env = append(env, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT="+strings.Join(limits, ","))
	}
	return env
}

// home makes the job's own directory, which all its attempts share: checkpoints
// and, where it names none, the working directory. Those two are the user's alone; the
// directory around them is not, or the user could put a link in their place, and
// what the control plane gives away or writes here would be something else.
func (a *attempt) home(who supervise.Identity) (string, error) {
	jobs := filepath.Join(a.driver.config.State, "jobs")
	home := filepath.Join(jobs, a.order.Name)
	for _, dir := range []string{jobs, home, filepath.Join(home, "checkpoints"), filepath.Join(home, "work")} {
		own := dir != jobs && dir != home
		err := os.Mkdir(dir, 0o700) // the user may open it to others later
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("making the job's directory: %w", err)
		}
		if !own { // to be passed and not listed: names of jobs are not for everybody
			if err := os.Chmod(dir, 0o711); err != nil {
				return "", fmt.Errorf("closing the job's directory: %w", err)
			}
		}
		if own && os.Geteuid() == 0 {
			if err := os.Lchown(dir, who.UID, who.GID); err != nil {
				return "", fmt.Errorf("giving the job its directory: %w", err)
			}
		}
	}
	return home, nil
}

// give writes a file that only the job's user reads, and this program.
func give(file string, data []byte, who supervise.Identity) error {
	if err := os.WriteFile(file, data, 0o600); err != nil || os.Geteuid() != 0 {
		return err
	}
	return os.Lchown(file, who.UID, who.GID)
}

// port is where rank 0 listens: free when it was chosen, and written down so that a
// restarted control plane gives the remaining ranks the same.
func (a *attempt) port() (int, error) {
	dir := filepath.Dir(a.dirs[0])
	file := filepath.Join(dir, "port")
	if data, err := os.ReadFile(file); err == nil {
		return strconv.Atoi(strings.TrimSpace(string(data)))
	} else if !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		return 0, err
	}
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return 0, err
	}
	return port, os.WriteFile(file, []byte(strconv.Itoa(port)), 0o600)
}
