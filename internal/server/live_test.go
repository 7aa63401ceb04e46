package server_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/client"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/server"
	"github.com/musterdl/muster/internal/server/door"
	"github.com/musterdl/muster/internal/store"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run"
)

// driver confirms at once; jobs end when the test says so.
type driver struct {
	report func(engine.Event)
	orders chan run.Order
}

func (d *driver) Recover(_ []run.Order, report func(engine.Event)) {
	d.report = report
	go func() {
		for o := range d.orders {
			switch o.Verb {
			case plan.Start:
				d.report(engine.Event{Kind: engine.Started, Job: o.Job, Attempt: o.Attempt})
			case plan.Stop:
				d.report(engine.Event{Kind: engine.Stopped, Job: o.Job, Attempt: o.Attempt})
			}
		}
	}()
}

func (d *driver) Order(o run.Order) { d.orders <- o }

// world is a plane behind a server on a socket.
type world struct {
	t      *testing.T
	driver *driver
	client *client.Client
	socket string
	logs   string
	http   *http.Client // over the socket
	page   string       // base address of the loopback port
	server *server.Server
}

// start makes a world of two nodes with two devices each.
func start(t *testing.T, change func(*server.Config)) *world {
	t.Helper()
	return startOn(t, 2, change)
}

// startOn makes a world of so many nodes.
func startOn(t *testing.T, nodes int, change func(*server.Config)) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "mst") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	w := &world{t: t, driver: &driver{orders: make(chan run.Order, max(1024, 4*nodes))}, socket: filepath.Join(dir, "muster.sock"), logs: filepath.Join(dir, "logs")}
	journal, err := store.Open(filepath.Join(dir, "journal"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	composition, err := catalogue.Resolve("fifo")
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	p, err := plane.Open(plane.Config{Cluster: cluster.Uniform("lab", nodes, 2, cluster.Model{Name: "gpu", Memory: 32 << 10, Speed: 1}, 16),
		Strategy: composition, Seed: 1, Policy: engine.DefaultPolicy(), Journal: journal, Driver: w.driver,
		Now: func() unit.Time { return unit.Time(began.UnixMicro() + time.Since(began).Microseconds()) }, Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	config := server.Config{Plane: p, Version: "test", Log: quiet(), Logs: func(name string, attempt, rank int32) string {
		return filepath.Join(w.logs, name, string('0'+attempt), string('0'+rank))
	}}
	if change != nil {
		change(&config)
	}
	s := server.New(config)
	w.server = s
	ctx, cancel := context.WithCancel(context.Background())
	socket, err := door.ListenUnix(w.socket)
	if err != nil {
		t.Fatal(err)
	}
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 3)
	go func() { ended <- p.Run(ctx) }()
	go func() { ended <- s.Serve(ctx, socket) }()
	go func() { ended <- s.Serve(ctx, port) }()
	t.Cleanup(func() {
		cancel()
		for range 3 {
			if err := <-ended; err != nil {
				t.Errorf("ended with %v", err)
			}
		}
		close(w.driver.orders)
		if err := journal.Close(); err != nil {
			t.Error(err)
		}
	})
	w.client, w.page = client.New(w.socket), "http://"+port.Addr().String()
	w.http = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", w.socket)
	}}}
	return w
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// do sends a request over the socket and returns the status and the body.
func (w *world) do(method, path, kind, body string, header ...string) (int, string) {
	w.t.Helper()
	status, answer, err := w.try(method, path, kind, body, header...)
	if err != nil {
		w.t.Fatal(err)
	}
	return status, answer
}

// try is do where the connection may end before all is sent.
func (w *world) try(method, path, kind, body string, header ...string) (int, string, error) {
	r, err := http.NewRequest(method, "http://muster"+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := w.http.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(data), err
}

func (w *world) submit(jobs ...workload.Job) {
	w.t.Helper()
	if _, err := w.client.Submit(w.t.Context(), jobs, ""); err != nil {
		w.t.Fatal(err)
	}
}

// job is a job of so many devices on one worker.
func job(name string, devices int32) workload.Job {
	return workload.Job{Name: name, Resources: workload.Resources{Gang: 1, Devices: devices, Share: unit.Whole},
		Program: workload.Program{Command: []string{"train", "--fast"}}}
}

// until waits for a job to be in a phase, with a run of a status if that is given.
func (w *world) until(name, phase, status string) {
	w.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		j, err := w.client.Job(w.t.Context(), name)
		if err != nil {
			w.t.Fatal(err)
		}
		if j.Phase == phase && (status == "" || j.Run == status) {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("%s is %s (%s), not %s (%s)", name, j.Phase, j.Run, phase, status)
		}
	}
}

// finish lets a job's run end by itself.
func (w *world) finish(name string, class plan.FailureClass) {
	w.t.Helper()
	j, err := w.client.Job(w.t.Context(), name)
	if err != nil {
		w.t.Fatal(err)
	}
	w.driver.report(engine.Event{Kind: engine.Exited, Job: plan.JobID(j.ID), Attempt: j.Attempt, Ending: engine.Ending{Class: class}})
}
