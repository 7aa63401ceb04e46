package kubetest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// stopLimit is how long a program may take to end by itself before it is killed.
const stopLimit = 5 * time.Second

// Program is a command that runs beside the control plane: one of its own, or one under test.
type Program struct {
	// Name is how the Cluster's methods call it, and its log file.
	Name string
	Path string
	Args []string
	// Env is added to the environment of the test.
	Env []string
}

// Run starts a program of the test. It ends with the test at the latest.
func (c *Cluster) Run(program Program) {
	c.t.Helper()
	if err := c.processes.run(program); err != nil {
		c.t.Fatal(err)
	}
}

// Kill ends a program at once, as a crash does.
func (c *Cluster) Kill(name string) { c.processes.end(name, syscall.SIGKILL) }

// Stop asks a program to end, and kills it when it takes long.
func (c *Cluster) Stop(name string) { c.processes.end(name, syscall.SIGTERM) }

// Pause stops a program without ending it, as a machine that hangs does; Resume lets it go on.
func (c *Cluster) Pause(name string) { c.processes.signal(name, syscall.SIGSTOP) }

// Resume lets a paused program go on.
func (c *Cluster) Resume(name string) { c.processes.signal(name, syscall.SIGCONT) }

// Restart runs a program again that was killed or stopped, with the same command line.
func (c *Cluster) Restart(name string) {
	c.t.Helper()
	p := c.processes.find(name)
	if p == nil {
		c.t.Fatalf("restarting %s: it never ran", name)
	}
	c.Run(p.program)
}

// Log returns what a program has written so far.
func (c *Cluster) Log(name string) string {
	text, err := os.ReadFile(c.processes.logPath(name))
	if err != nil {
		return fmt.Sprintf("no log of %s: %v", name, err)
	}
	return string(text)
}

// processes are the running programs, in the order they started.
type processes struct {
	logs string
	mu   sync.Mutex
	list []*process
}

// process is one run of a program.
type process struct {
	program Program
	cmd     *exec.Cmd
	ended   chan struct{} // closed once the process has been waited for
	wanted  atomic.Bool   // the end was asked for
}

func (p *processes) logPath(name string) string { return filepath.Join(p.logs, name+".log") }

// find returns the latest run of a program, or nil.
func (p *processes) find(name string) *process {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range slices.Backward(p.list) {
		if one.program.Name == name {
			return one
		}
	}
	return nil
}

func (p *processes) run(program Program) error {
	if old := p.find(program.Name); old != nil && !old.hasEnded() {
		return fmt.Errorf("starting %s: it runs already", program.Name)
	}
	log, err := os.OpenFile(p.logPath(program.Name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("opening the log of %s: %w", program.Name, err)
	}
	defer log.Close()
	cmd := exec.Command(program.Path, program.Args...)
	cmd.Dir = p.logs
	cmd.Env = append(os.Environ(), program.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := spawn(cmd); err != nil {
		return fmt.Errorf("starting %s: %w", program.Name, err)
	}
	one := &process{program: program, cmd: cmd, ended: make(chan struct{})}
	p.mu.Lock()
	p.list = append(p.list, one)
	p.mu.Unlock()
	go func() {
		_ = cmd.Wait() // how it ended is read from its state
		close(one.ended)
	}()
	return nil
}

// spawn starts a process from a thread that lives as long as this process does. The kernel sends the parent's death
// signal when the starting thread ends, and Go ends threads at will.
var spawn = func() func(*exec.Cmd) error {
	type request struct {
		cmd  *exec.Cmd
		done chan error
	}
	requests := make(chan request)
	start := sync.OnceFunc(func() {
		go func() {
			runtime.LockOSThread()
			for r := range requests {
				r.done <- r.cmd.Start()
			}
		}()
	})
	return func(cmd *exec.Cmd) error {
		start()
		r := request{cmd: cmd, done: make(chan error)}
		requests <- r
		return <-r.done
	}
}()

func (one *process) hasEnded() bool {
	select {
	case <-one.ended:
		return true
	default:
		return false
	}
}

// exited says why a program is gone that should run.
func (p *processes) exited(name string) error {
	one := p.find(name)
	if one == nil {
		return fmt.Errorf("%s never ran", name)
	}
	if !one.hasEnded() {
		return nil
	}
	return fmt.Errorf("%s ended: %s\n%s", name, one.cmd.ProcessState, p.tail(name))
}

// tail returns the last lines a program wrote.
func (p *processes) tail(name string) string {
	text, err := os.ReadFile(p.logPath(name))
	if err != nil {
		return err.Error()
	}
	return lastLines(string(text), 12)
}

func (p *processes) signal(name string, signal syscall.Signal) {
	if one := p.find(name); one != nil && !one.hasEnded() {
		_ = syscall.Kill(-one.cmd.Process.Pid, signal) // it may be gone by now, which is as good
	}
}

func (p *processes) end(name string, signal syscall.Signal) {
	one := p.find(name)
	if one == nil || one.hasEnded() {
		return
	}
	one.wanted.Store(true)
	p.signal(name, signal)
	p.signal(name, syscall.SIGCONT)
	select {
	case <-one.ended:
	case <-time.After(stopLimit):
		p.signal(name, syscall.SIGKILL)
		<-one.ended
	}
}

// stopAll kills every program, newest first: their data goes with the test.
func (p *processes) stopAll() {
	for _, one := range slices.Backward(p.list) {
		p.end(one.program.Name, syscall.SIGKILL)
	}
}

// keepLogs moves the logs out of the test's folder and returns where they are.
func (p *processes) keepLogs() (string, error) {
	kept, err := os.MkdirTemp("", "muster-kubetest-logs-")
	if err != nil {
		return "", err
	}
	return kept, os.CopyFS(filepath.Join(kept, "logs"), os.DirFS(p.logs))
}

// unexpected lists the programs that ended without being asked to.
func (p *processes) unexpected() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var names []string
	for _, one := range p.list {
		if one.hasEnded() && !one.wanted.Load() {
			names = append(names, fmt.Sprintf("%s (%s)", one.program.Name, one.cmd.ProcessState))
		}
	}
	return names
}

// nextPort walks through the ports below those that the kernel hands out itself, so that a port stays free while
// its program is down; processes running side by side start at different places.
var nextPort = func() func() int {
	const low, high = 20000, 32000
	var count atomic.Int64
	count.Store(int64(os.Getpid()) * 97)
	return func() int { return low + int(count.Add(1)%(high-low)) }
}()

// freePorts returns loopback ports nobody listens on.
func freePorts(n int) ([]int, error) {
	var ports []int
	var last error
	for tries := 0; len(ports) < n && tries < 1000; tries++ {
		port := nextPort()
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			last = err
			continue
		}
		listener.Close()
		ports = append(ports, port)
	}
	if len(ports) < n {
		return nil, fmt.Errorf("finding free ports: %w", last)
	}
	return ports, nil
}
