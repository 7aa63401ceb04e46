package supervise

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterdl/muster/run/local/cgroup"
	"github.com/musterdl/muster/run/trainer/progress"
)

// ErrNotListening is returned for an order that no supervisor can receive: it has
// not begun yet, or has ended.
var ErrNotListening = errors.New("no supervisor is listening")

// Order is what the control plane wants of a supervisor.
type Order string

// The orders. Go and Abort answer Prepared; the others are for a running worker.
const (
	Go      Order = "go"
	Abort   Order = "abort"
	Save    Order = "checkpoint"
	Halt    Order = "stop"  // save if the spec says so, SIGTERM, grace, SIGKILL
	Leave   Order = "leave" // after Halt: go on to SIGTERM, another worker told what the job saved or is lost
	Kill    Order = "kill"  // SIGKILL at once
	Suspend Order = "suspend"
	Resume  Order = "resume"
)

// Replaces reports whether an earlier order says nothing more once this one is given.
func (o Order) Replaces(earlier Order) bool {
	sort := func(o Order) string {
		word, _, _ := strings.Cut(string(o), " ")
		return strings.Replace(word, string(Resume), string(Suspend), 1)
	}
	return sort(o) == sort(earlier)
}

// Grant is the order to hold the worker to other limits from now on.
func Grant(l cgroup.Limits) Order {
	return Order(fmt.Sprintf("grant %d %d %d", l.CPU, l.Memory, l.Weight))
}

// granted reads such an order.
func (o Order) granted() (l cgroup.Limits, ok bool) {
	n, err := fmt.Sscanf(string(o), "grant %d %d %d", &l.CPU, &l.Memory, &l.Weight)
	return l, n == 3 && err == nil && l.CPU >= 0 && l.Memory >= 0 && l.Weight >= 0
}

// Batch is the order to tell the worker its global batch.
func Batch(n int32) Order {
	return Order(progress.Command{Verb: progress.Batch, Batch: int(n)}.String())
}

// Plan is the order to tell the worker the file of another pipeline plan.
func Plan(path string) Order {
	return Order(progress.Command{Verb: progress.Plan, Path: path}.String())
}

// Send gives an order. It returns once the supervisor is sure to read it; the
// record tells when it has been carried out.
func Send(dir string, o Order) error {
	f, err := os.OpenFile(filepath.Join(dir, "orders"), os.O_WRONLY|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ENXIO) || errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("send %s: %w", o, ErrNotListening)
	}
	if err != nil {
		return fmt.Errorf("send %s: %w", o, err)
	}
	defer f.Close()
	if err := f.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
		return fmt.Errorf("send %s: %w", o, err)
	}
	if _, err := f.WriteString(string(o) + "\n"); err != nil {
		return fmt.Errorf("send %s: %w", o, err)
	}
	return nil
}
