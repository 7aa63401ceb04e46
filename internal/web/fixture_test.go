package web_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/internal/web"
)

// now is the time of the made-up cluster.
var now = time.Date(2026, 3, 10, 14, 0, 0, 0, time.UTC)

// nasty is a name that is markup.
const nasty = `<img src=x onerror="document.title='owned'">`

type object = map[string]any

func us(after time.Duration) int64 { return now.Add(after).UnixMicro() }

// fixture is a server that answers as the API would. Its answers may be changed
// before the page asks, and snapshots can be sent to whoever watches.
type fixture struct {
	*httptest.Server
	mu        sync.Mutex
	answers   map[string]any // by method and path; a func() any is asked
	asked     map[string]string
	token     string // wanted of everybody where it is set
	plain     bool   // without the name that is markup
	snapshot  view.Snapshot
	changed   chan struct{}
	connected int
}

func fixed(t *testing.T) *fixture {
	f := &fixture{answers: answers(), asked: map[string]string{}, snapshot: snapshot(), changed: make(chan struct{})}
	mux := http.NewServeMux()
	mux.Handle("/console/", http.StripPrefix("/console", web.Handler()))
	mux.HandleFunc("/v1/watch", f.watch)
	mux.HandleFunc("/", f.answer)
	f.Server = httptest.NewServer(mux)
	t.Cleanup(func() {
		f.CloseClientConnections()
		f.Close()
	})
	return f
}

func (f *fixture) page(hash string) string { return f.URL + "/console/" + hash }

func (f *fixture) allowed(w http.ResponseWriter, r *http.Request) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.token == "" || r.Header.Get("Authorization") == "Bearer "+f.token {
		return true
	}
	w.WriteHeader(http.StatusUnauthorized)
	_ = json.NewEncoder(w).Encode(object{"error": object{"message": "this server wants a token: ask an operator for one"}})
	return false
}

func (f *fixture) answer(w http.ResponseWriter, r *http.Request) {
	if !f.allowed(w, r) {
		return
	}
	body, _ := io.ReadAll(r.Body)
	key := r.Method + " " + r.URL.Path
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked[key] = string(body)
	switch a := f.answers[key].(type) {
	case nil:
		w.WriteHeader(http.StatusNotFound)
		message := "there is nothing here: the API is under /v1"
		if strings.HasPrefix(r.URL.Path, "/v1/jobs/") && strings.Count(r.URL.Path, "/") == 3 {
			message = fmt.Sprintf("there is no job %q: muster ls --all lists them", strings.TrimPrefix(r.URL.Path, "/v1/jobs/"))
		}
		_ = json.NewEncoder(w).Encode(object{"error": object{"message": message}})
	case string:
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprint(w, a)
	default:
		w.Header().Set("Content-Type", "application/json")
		_ = f.encode(w, a)
	}
}

func (f *fixture) encode(w io.Writer, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if f.plain {
		markup, _ := json.Marshal(nasty)
		data = bytes.ReplaceAll(data, markup[1:len(markup)-1], []byte("tuner-3"))
	}
	_, err = w.Write(append(data, '\n'))
	return err
}

// watch sends the snapshot, and again at each change.
func (f *fixture) watch(w http.ResponseWriter, r *http.Request) {
	if !f.allowed(w, r) {
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	f.mu.Lock()
	f.connected++
	f.mu.Unlock()
	for {
		f.mu.Lock()
		var line bytes.Buffer
		err, changed := f.encode(&line, f.snapshot), f.changed
		f.mu.Unlock()
		if err == nil {
			_, err = line.WriteTo(w)
		}
		if err != nil || http.NewResponseController(w).Flush() != nil {
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

// change sends another snapshot.
func (f *fixture) change(edit func(s *view.Snapshot)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	edit(&f.snapshot)
	close(f.changed)
	f.changed = make(chan struct{})
}

// running are the jobs of the made-up cluster: name, queue, user, first device, devices,
// hours since it began, progress and the losses.
var running = []struct {
	name, queue, user string
	at, devices       int
	hours, progress   float64
	first, last       float64
}{
	{"llama-base", "research", "dana", 0, 32, 31, .62, 10.81, 2.118}, {"vision-sweep-0", "research", "kim", 32, 4, 3.2, .4, 2.3, .871}, {"vision-sweep-1", "research", "kim", 36, 4, 3.1, .38, 2.31, .902},
	{"ranker-daily", "product", "ops", 40, 16, 5.5, .81, .71, .312}, {"speech-ft", "product", "ola", 56, 8, 1.4, .22, 4.1, 1.77}, {"notebook-7", "interns", "sam", 64, 1, .6, 0, 0, 0},
	{"notebook-9", "interns", "ines", 65, 1, 2.1, 0, 0, 0}, {"diffusion-a", "research", "dana", 72, 16, 9, .5, .9, .144}, {"ads-embed", "product", "ops", 88, 8, 2.5, .47, 6.2, 3.05},
	{"protein-fold", "biology", "mei", 96, 24, 14, .71, 3.3, 1.402}, {"protein-eval", "biology", "mei", 120, 4, .2, .05, 1.4, 1.39}, {nasty, "interns", nasty, 124, 2, 1, .3, 5, 2},
	{"distill-s", "research", "kim", 136, 8, 6, .9, 3.1, 2.02}, {"asr-long", "product", "ola", 144, 16, 20, .66, 5.1, 1.21}, {"rl-arena", "research", "dana", 160, 12, 4.4, .33, 0, 0},
}

var queued = []struct {
	name, queue, user, phase, reason string
	devices, waited                  float64
}{
	{"llama-long", "research", "dana", "waiting", "48 devices are needed together and 27 are free, on 7 nodes", 48, 9400},
	{"protein-big", "biology", "mei", "waiting", "it fits in number, but not on few enough nodes: free devices are scattered", 16, 5200},
	{"ads-train", "product", "ops", "waiting", "queue product has its limit of 64 devices", 24, 3100}, {"sweep-0", "research", "kim", "waiting", "llama-long goes first", 4, 1500},
	{"sweep-1", "research", "kim", "waiting", "llama-long goes first", 4, 1500}, {"speech-eval", "product", "ola", "blocked", "it comes after speech-ft", 2, 1200},
	{"notebook-12", "interns", "sam", "waiting", "queue interns lends its devices and gets them back in turn", 1, 340}, {"flaky", "interns", "ines", "backoff", "it failed twice and is tried again in 40s", 1, 35},
	{"giant", "research", "dana", "waiting", "can never start here: wants 512 devices on one node; the largest node has 8", 512, 700}, {"tune-later", "research", "kim", "held", "its owner holds it", 8, 86000},
}

const perNode = 8

func snapshot() view.Snapshot {
	s := view.Snapshot{ID: "1", Cluster: view.Cluster{Name: "lab", Strategy: "tiresias+backfill", At: now, Nodes: map[string]int{"up": 22, "cordoned": 1, "down": 1},
		Jobs:  map[string]int{"active": len(running), "waiting": 7, "held": 1, "blocked": 1, "backoff": 1, "finished": 1204, "failed": 17},
		Queue: view.Queue{Waiting: 7, Held: 1, Blocked: 1, Backoff: 1, Devices: 609, Oldest: "llama-long", OldestSec: 9400}}}
	for i := range 24 {
		n := view.Node{Name: fmt.Sprintf("gpu-%02d", i), Model: "h100-80g", Rack: fmt.Sprintf("rack-%c", 'a'+i/8), Status: "up", FreeCPU: 20, FreeMiB: 400 << 10}
		switch i {
		case 22:
			n.Status = "cordoned"
		case 23:
			n.Status, n.Name = "down", "gpu-"+nasty
		}
		for d := range perNode {
			n.Devices = append(n.Devices, view.Device{ID: int32(d), Status: "steady", MemoryMiB: 80 << 10, Free: 1})
		}
		s.Nodes = append(s.Nodes, n)
	}
	s.Nodes[21].Devices[7].Free = 0
	s.Nodes[21].Devices[7].Status, s.Nodes[21].Devices[6].Status, s.Nodes[21].Devices[6].Geometry = "lost", "reshaping", "3g+4g"
	for _, r := range running {
		j := view.Job{Name: r.name, Phase: "active", Reason: "it is its turn", Tenant: r.queue, User: r.user, Gang: int32(max(1, r.devices/8)), Devices: float64(r.devices), Run: "running",
			Times:  view.Times{Submitted: now.Add(-time.Duration((r.hours + 1) * float64(time.Hour))), Started: now.Add(-time.Duration(r.hours * float64(time.Hour))), WaitedSec: 3600, RanSec: r.hours * 3600, EstimateSec: 50 * 3600, LeftSec: 19 * 3600},
			Course: view.Course{Attempt: 1, Progress: r.progress, FirstLoss: r.first, LastLoss: r.last}, Command: []string{"python3", "train.py", "--config", r.name}}
		if r.name == "asr-long" {
			j.Run, j.Preemptions, j.Attempt = "suspended", 2, 3
		}
		for d := r.at; d < r.at+r.devices; d++ {
			n := &s.Nodes[d/perNode]
			share := 1.0
			if r.devices == 1 {
				share = .5
			}
			n.Devices[d%perNode].Free -= share
			n.Devices[d%perNode].Holders = append(n.Devices[d%perNode].Holders, view.Holder{Job: r.name, Run: j.Run, Share: share})
			if len(j.Where) == 0 || j.Where[len(j.Where)-1].Node != n.Name {
				j.Where = append(j.Where, view.Place{Node: n.Name})
			}
			p := &j.Where[len(j.Where)-1]
			p.Devices = append(p.Devices, int32(d%perNode))
			s.Cluster.Devices.Granted += share
		}
		s.Jobs = append(s.Jobs, j)
	}
	for _, q := range queued {
		s.Jobs = append(s.Jobs, view.Job{Name: q.name, Phase: q.phase, Reason: q.reason, Tenant: q.queue, User: q.user, Gang: 1, Devices: q.devices, Times: view.Times{WaitedSec: q.waited,
			Submitted: now.Add(-time.Duration(q.waited) * time.Second)}})
		if q.phase == "backoff" {
			s.Jobs[len(s.Jobs)-1].Failure = &view.Failure{Words: "out of memory: ended by SIGKILL at its limit of 512MiB; it used 511MiB at most (rank 3 on gpu-12)", Attempt: 2, Class: "memory", Rank: 3, Node: "gpu-12",
				Signal: "SIGKILL", MemoryLimitMiB: 512, MemoryPeakMiB: 511}
		}
	}
	s.Cluster.Devices.Total, s.Cluster.Devices.Lost, s.Cluster.Devices.Closed = 192, 9, 8
	s.Cluster.Devices.Free = 192 - 17 - s.Cluster.Devices.Granted
	return s
}
