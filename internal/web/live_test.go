package web_test

import (
	"context"
	"fmt"
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

// driver confirms at once; its jobs run until they are stopped.
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

// serve starts a real server of two nodes with two devices each. It returns the address
// that a browser asks, and a client that may change things.
func serve(t *testing.T) (page string, c *client.Client, d *driver) {
	t.Helper()
	dir, err := os.MkdirTemp("", "msw") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	journal, err := store.Open(filepath.Join(dir, "journal"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	composition, err := catalogue.Resolve("fifo")
	if err != nil {
		t.Fatal(err)
	}
	d = &driver{orders: make(chan run.Order, 1024)}
	began := time.Now()
	p, err := plane.Open(plane.Config{Cluster: cluster.Uniform("lab", 2, 2, cluster.Model{Name: "gpu", Memory: 32 << 10, Speed: 1}, 16),
		Strategy: composition, Seed: 1, Policy: engine.DefaultPolicy(), Journal: journal, Driver: d,
		Now: func() unit.Time { return unit.Time(began.UnixMicro() + time.Since(began).Microseconds()) }, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	s := server.New(server.Config{Plane: p, Version: "test", Log: log})
	path := filepath.Join(dir, "muster.sock")
	socket, err := door.ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
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
		close(d.orders)
		if err := journal.Close(); err != nil {
			t.Error(err)
		}
	})
	return "http://" + port.Addr().String() + "/console/", client.New(path), d
}

func job(name, tenant string, devices int32) workload.Job {
	return workload.Job{Name: name, Tenant: tenant, Resources: workload.Resources{Gang: 1, Devices: devices, Share: unit.Whole},
		Program: workload.Program{Command: []string{"train", "--name", name}}}
}

// The console shows what a real server answers, and what happens while it is open.
func TestRealServer(t *testing.T) {
	page, c, d := serve(t)
	resp, err := http.Get(page)
	if err != nil || resp.StatusCode != 200 || resp.Header.Get("Content-Security-Policy") == "" {
		t.Fatalf("the console is not there: %v (%v)", resp, err)
	}
	resp.Body.Close()
	p := open(t, desk, page)
	p.says("Live", "lab", "fifo", "No job has been submitted yet", "node0", "node1")
	if _, err := c.Submit(t.Context(), []workload.Job{job("first", "research", 2), job("second", "product", 1), job("big", "research", 2)}, ""); err != nil {
		t.Fatal(err)
	}
	p.says("3 of 4", "research", "product", "Longest wait")
	again := job("again", "product", 2)
	again.Retries = 3
	p.until("document.querySelectorAll('.node .device i').length === 3")
	p.shot("real-map")

	p.eval("location.hash = '#/queue'", nil)
	p.says("Waiting, 1", "big", "Running, 2", "first", "second", "node0:0-1")
	p.until("/room|devices|free/i.test(document.querySelector('.why').textContent)")
	p.shot("real-queue")

	p.eval("location.hash = '#/job/big'", nil)
	p.says("Why it waits", "The counts behind it", "2 devices", "research", "When it starts")
	p.shot("real-waiting")

	p.eval("location.hash = '#/job/first'", nil)
	p.says("State running has devices", "attempt 1", "Dossier", "Which devices?", "node0", "1 decision in all")
	p.until("!document.body.innerText.includes('train --name')") // what is run is not for a browser that nobody knows
	first, err := c.Job(t.Context(), "first")
	if err != nil {
		t.Fatal(err)
	}
	for i, loss := range []float64{4, 3, 2.5} {
		d.report(engine.Event{Kind: engine.Observed, Job: plan.JobID(first.ID), Attempt: first.Attempt, Observation: engine.Observation{Progress: int32(i+1) * 100_000, Loss: loss}})
		time.Sleep(300 * time.Millisecond) // a snapshot comes five times a second at most
	}
	p.says("From 4 to 2.5")
	p.until("document.querySelector('svg .line').getAttribute('d').split('L').length === 3")
	p.shot("real-job")

	second, err := c.Job(t.Context(), "second")
	if err != nil {
		t.Fatal(err)
	}
	d.report(engine.Event{Kind: engine.Exited, Job: plan.JobID(second.ID), Attempt: second.Attempt, Ending: engine.Ending{Class: plan.UserFailure, Failure: &plan.Failure{Node: 1, Code: 7, Why: "exit code 7"}}})
	p.eval("location.hash = '#/job/second'", nil)
	p.says("failed", "Why it failed", "Exit code 7 (rank 0 on node1)", "Whose failure")
	p.shot("real-failed")
	p.eval("location.hash = '#/job/first'", nil)
	if _, err := c.ChangeJob(t.Context(), "first", "cancel"); err != nil {
		t.Fatal(err)
	}
	p.says("cancelled")
	p.eval("location.hash = '#/job/big'", nil)
	p.says("State running has devices")
	if _, err := c.ChangeNode(t.Context(), "node1", "cordon"); err != nil {
		t.Fatal(err)
	}
	p.eval("location.hash = '#/?by=state&node=node1'", nil)
	p.says("cordoned", "Devices in use", "Held by")
	p.until("document.querySelector('.node.is-cordoned')")

	// A job that can never start, one whose first attempt failed, and what was promised:
	// every view shows them.
	if _, err := c.Submit(t.Context(), []workload.Job{job("giant", "research", 64), again}, ""); err != nil {
		t.Fatal(err)
	}
	p.eval("location.hash = '#/queue'", nil)
	p.says("giant", "Can never start here: wants 64 devices on one node; the largest node has 2", "never")
	p.eval("location.hash = '#/job/giant'", nil)
	p.says("When it starts", "Never, as things are", "What would have to change")
	if _, err := c.ChangeJob(t.Context(), "big", "cancel"); err != nil {
		t.Fatal(err)
	}
	p.eval("location.hash = '#/job/again'", nil)
	p.says("State running has devices", "attempt 1")
	tried, err := c.Job(t.Context(), "again")
	if err != nil {
		t.Fatal(err)
	}
	d.report(engine.Event{Kind: engine.Exited, Job: plan.JobID(tried.ID), Attempt: 1, Ending: engine.Ending{Class: plan.UserFailure, Failure: &plan.Failure{Code: 7, Why: "exit code 7"}}})
	p.says("backoff", "Why it failed", "waits") // its bar ends with the attempt
	if _, err := c.ChangeJob(t.Context(), "again", "release"); err != nil {
		t.Fatal(err)
	}
	p.says("State running has devices", "attempt 2", "2 decisions in all")
	var held, all int
	p.eval("document.querySelectorAll('.strip .stay-runs').length", &held)
	if p.eval("document.querySelectorAll('.strip i').length", &all); held != 2 || all < 3 {
		t.Errorf("the bar of attempts has %d parts, %d of them with devices: expected two that another is between", all, held)
	}
	p.shot("real-again")

	// What this server does not offer, or not to a browser that nobody knows, is said.
	for _, hash := range []string{"#/", "#/queue", "#/shares", "#/calendar", "#/calendar?by=job", "#/promises", "#/whatif?nodes=1", "#/defrag", "#/job/big", "#/job/second"} {
		p.eval("location.hash = "+quote(hash), nil)
		p.until("document.querySelector('main .card') && !document.querySelector('main .waiting')")
		p.everywhere(func(at screen) {
			p.until("document.querySelector('main .card') && !document.querySelector('main .waiting')")
			p.shot(fmt.Sprintf("real%s-%d-%s", strings.ReplaceAll(hash[1:], "/", "-"), at.width, at.scheme))
		})
	}
}
