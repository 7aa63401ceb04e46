package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/client-go/rest"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run/kube/advise"
	"github.com/musterdl/muster/run/kube/api"
)

// tellEvery is how often the log has the comparison on a line.
const tellEvery = time.Minute

// onlyReads lets through to the API server what changes nothing there, whatever rights
// the process has.
type onlyReads struct{ next http.RoundTripper }

// RoundTrip refuses what is no read.
func (o onlyReads) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return nil, fmt.Errorf("%s %s: nothing is written in advise mode", r.Method, r.URL.Path)
	}
	return o.next.RoundTrip(r)
}

func reading(c *rest.Config) *rest.Config {
	c = rest.CopyConfig(c)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return onlyReads{next} })
	return c
}

// adviser is an advise.Adviser that several goroutines may ask.
type adviser struct {
	mu   sync.Mutex
	is   *advise.Adviser
	errs chan error
}

// do lets the Adviser do something; the first error ends the process.
func (a *adviser) do(what func(*advise.Adviser) error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := what(a.is); err != nil {
		select {
		case a.errs <- err:
		default:
		}
	}
}

func (a *adviser) advice() advise.Advice {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.is.Advice()
}

// advise follows the scheduler of that name until the context ends, and then prints the
// comparison.
func (s *scheduler) advise(ctx context.Context) error {
	if s.elect {
		return errors.New("--leader-elect: nobody leads in advise mode, which takes no lease: leave it out")
	}
	s.config = reading(s.config)
	client, err := s.client()
	if err != nil {
		return err
	}
	host, err := s.filters(ctx)
	if err != nil {
		return err
	}
	if s.strategy.Text == "" {
		if s.strategy, err = catalogue.Resolve(catalogue.House); err != nil {
			return err
		}
	}
	is, err := advise.New(advise.Options{Scheduler: s.flags.scheduler, All: s.adviseAll, Rules: s.rules, Filter: host, Strategy: s.strategy, Seed: 1,
		Queues: s.tree, Lag: unit.Duration(s.adviseLag.Microseconds()), Restart: unit.Duration(s.adviseRestart.Microseconds()), Log: s.log})
	if err != nil {
		return err
	}
	a := &adviser{is: is, errs: make(chan error, 1)}
	s.front.show(adviceOf(a.advice))
	if _, err := client.Watch(ctx, func(changes []api.Change) {
		a.do(func(is *advise.Adviser) error { return is.Observe(now(), changes) })
	}); err != nil {
		return fmt.Errorf("watching the cluster: %w", err)
	}
	s.log.Info("following", "scheduler", s.flags.scheduler, "strategy", s.strategy.Name)
	err = s.follow(ctx, a)
	r := a.advice()
	fmt.Fprint(os.Stdout, r.Table())
	return err
}

// follow lets time pass until the context ends.
func (s *scheduler) follow(ctx context.Context, a *adviser) error {
	second, minute := time.NewTicker(time.Second), time.NewTicker(tellEvery)
	defer second.Stop()
	defer minute.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-a.errs:
			return err
		case <-second.C:
			a.do(func(is *advise.Adviser) error { return is.Advance(now()) })
		case <-minute.C:
			r := a.advice()
			s.log.Info("so far", "advice", r.Line())
		}
	}
}

// adviceOf answers with the comparison: with names of jobs only on this machine, as who
// may forward a port to the pod may read its log too; and with sums to anybody.
func adviceOf(get func() advise.Advice) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(advise.NewCollector(get), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	for _, path := range []string{"GET /healthz", "GET /readyz"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok: advising") })
	}
	mux.HandleFunc("GET /v1/advice", func(w http.ResponseWriter, r *http.Request) {
		if host, _, err := net.SplitHostPort(r.RemoteAddr); err != nil || !net.ParseIP(host).IsLoopback() {
			http.Error(w, "the advice names jobs: ask from the pod itself, by kubectl port-forward", http.StatusForbidden)
			return
		}
		advice := get()
		if r.URL.Query().Get("format") == "text" {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			fmt.Fprint(w, advice.Table())
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(advice) // who asked may have gone
	})
	return mux
}
