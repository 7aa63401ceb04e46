// Package script keeps the child processes of outside deciders: one line in, one line
// out, each within a time limit. A process that fails is ended and started anew at the
// next question, live not before a back-off has passed; what it prints to its standard
// error goes to the log. It knows nothing of what the lines say.
package script

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Host runs scripts: one process for each command, whoever asks it, started when it is
// first asked. Its fields are set before the first use.
type Host struct {
	Log *slog.Logger
	// Allowed, where it is given, says which commands may be run: a strategy may come
	// over the wire, and then must not name a program.
	Allowed func(command []string) bool
	// BackOff is how long a process that failed is left alone at first; it doubles with
	// each further failure in a row, up to a minute. 0 starts it anew at once.
	BackOff time.Duration
	// GiveUp is the number of failures in a row after which it is not started any more;
	// 0 never gives up. A simulation has no time to wait in, so it gives up instead.
	GiveUp int

	mu        sync.Mutex
	processes []*Process
	ending    context.Context // ends with Close
	end       context.CancelFunc
}

const longestBackOff = time.Minute

// longestLine bounds a reply: a hundred thousand wishes fit.
const longestLine = 16 << 20

// Process returns the process of a command, which it shares with all who name the same.
func (h *Host) Process(command []string, limit time.Duration) *Process {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.processes {
		if slices.Equal(p.command, command) && p.limit == limit {
			return p
		}
	}
	if h.ending == nil {
		h.ending, h.end = context.WithCancel(context.Background())
	}
	p := &Process{ending: h.ending, host: h, command: slices.Clone(command), limit: limit}
	h.processes = append(h.processes, p)
	return p
}

// Close ends all processes; none is started any more.
func (h *Host) Close() {
	h.mu.Lock()
	all := h.processes
	if h.end != nil {
		h.end()
	}
	h.mu.Unlock()
	for _, p := range all {
		p.mu.Lock()
		p.stop()
		p.mu.Unlock()
	}
}

// Process is one script.
type Process struct {
	host    *Host
	ending  context.Context
	command []string
	limit   time.Duration

	mu       sync.Mutex // one question at a time
	running  *running   // nil where there is none
	answered bool       // the last question; whether sensibly the next one shows
	failures int        // in a row
	last     error      // the latest of them
	again    time.Time  // not started before
}

// running is a process that was started.
type running struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan []byte
	ended chan struct{} // closed when it is stopped
	hello []byte
}

// Ask writes a line and returns the next that comes back, and the first that the process
// ever wrote.
func (p *Process) Ask(line []byte) (hello, reply []byte, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ctx, cancel := context.WithTimeout(p.ending, p.limit)
	defer cancel()
	if p.answered {
		p.answered, p.failures = false, 0
	}
	if p.running == nil {
		if err := p.start(ctx); err != nil {
			return nil, nil, err
		}
	}
	r := p.running
	wrote := make(chan error, 1)
	go func() { // a process that reads nothing would hold it up
		_, err := r.in.Write(append(slices.Clip(line), '\n'))
		wrote <- err
	}()
	if reply, err = r.next(ctx); err != nil {
		return nil, nil, p.fail(fmt.Errorf("no reply: %w", err))
	}
	select {
	case err = <-wrote:
	case <-ctx.Done():
		err = errors.New("it replies without reading the question")
	}
	if err != nil {
		return nil, nil, p.fail(fmt.Errorf("writing the question: %w", err))
	}
	p.answered = true
	return r.hello, reply, nil
}

// End ends the process, which did not keep to the protocol.
func (p *Process) End(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.fail(why) // it is the caller's own
}

// fail ends the process and says when it may be started again.
func (p *Process) fail(why error) error {
	p.stop()
	p.answered = false
	p.failures++
	p.last = why
	wait := min(p.host.BackOff<<min(p.failures-1, 30), longestBackOff)
	p.again = time.Now().Add(wait)
	if p.givenUp() {
		p.host.Log.Error("a script failed and is given up; jobs go by what it last said, then by id", "script", p.name(), "err", why, "failures", p.failures)
	} else {
		p.host.Log.Error("a script failed; jobs go by what it last said, then by id", "script", p.name(), "err", why, "again_in", wait)
	}
	return why
}

func (p *Process) givenUp() bool { return p.host.GiveUp > 0 && p.failures >= p.host.GiveUp }

func (p *Process) name() string { return strings.Join(p.command, " ") }

// start starts the process and waits for its first line.
func (p *Process) start(ctx context.Context) error {
	switch {
	case p.ending.Err() != nil:
		return errors.New("the program is ending")
	case p.givenUp():
		return fmt.Errorf("it failed %d times in a row and was given up: %w", p.failures, p.last)
	case time.Now().Before(p.again):
		return fmt.Errorf("it is left alone for a while after it failed: %w", p.last)
	case len(p.command) == 0:
		return p.fail(errors.New("no script is named: name one with --strategy script:PATH, or as command in the options of external"))
	case p.host.Allowed != nil && !p.host.Allowed(p.command):
		return p.fail(errors.New("it is not a script that this server was started with: name it there with --script"))
	}
	cmd := exec.Command(p.command[0], p.command[1:]...)
	cmd.Stderr = &logged{p: p}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what it starts is ended with it
	cmd.WaitDelay = time.Second
	in, err := cmd.StdinPipe()
	if err != nil {
		return p.fail(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return p.fail(err)
	}
	if err := cmd.Start(); err != nil {
		return p.fail(err)
	}
	r := &running{cmd: cmd, in: in, lines: make(chan []byte), ended: make(chan struct{})}
	go r.read(out)
	p.running = r
	if r.hello, err = r.next(ctx); err != nil {
		return p.fail(fmt.Errorf("it did not say hello: %w", err))
	}
	return nil
}

// stop ends the process, if there is one, and all that it started.
func (p *Process) stop() {
	r := p.running
	if r == nil {
		return
	}
	p.running = nil
	r.in.Close()
	_ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL) // it may have ended already
	close(r.ended)
	_ = r.cmd.Wait() // that it was killed is no news
}

// read passes the lines on that the process writes, until it is stopped.
func (r *running) read(out io.Reader) {
	defer close(r.lines)
	lines := bufio.NewScanner(out)
	lines.Buffer(make([]byte, 0, 1<<16), longestLine)
	for lines.Scan() {
		select {
		case r.lines <- bytes.Clone(lines.Bytes()):
		case <-r.ended:
			return
		}
	}
}

// next is the next line.
func (r *running) next(ctx context.Context) ([]byte, error) {
	select {
	case line, ok := <-r.lines:
		if !ok {
			return nil, errors.New("it ended, closed its standard output or wrote an endless line")
		}
		return line, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("its time limit has passed, or the program is ending: %w", ctx.Err())
	}
}

// logged passes the lines of standard error on to the log.
type logged struct {
	p    *Process
	rest []byte
}

const longestMessage = 4 << 10

// Write logs every line that is complete, and the beginning of one that is too long.
func (l *logged) Write(b []byte) (int, error) {
	l.rest = append(l.rest, b...)
	for {
		at := bytes.IndexByte(l.rest, '\n')
		if at < 0 && len(l.rest) < longestMessage {
			return len(b), nil
		}
		if at < 0 {
			at = len(l.rest) - 1
		}
		l.p.host.Log.Warn("a script says", "script", l.p.name(), "line", string(l.rest[:min(at, longestMessage)]))
		l.rest = l.rest[at+1:]
	}
}
