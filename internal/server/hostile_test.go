package server_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterdl/muster/internal/access"
	"github.com/musterdl/muster/internal/client"
	"github.com/musterdl/muster/internal/costtest"
	"github.com/musterdl/muster/internal/server"
	"github.com/musterdl/muster/model/workload"
)

// browse sends a request over the loopback port, as a browser would.
func (w *world) browse(method, path, kind, body string, header ...string) (int, string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.page+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Content-Type", kind)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

// A thousand what-ifs of nobody in particular are refused, and cost next to nothing.
func TestAnonymousWhatIfsAreRefused(t *testing.T) {
	w := start(t, nil)
	w.submit(long("runs", 2, 10), long("wide", 4, 1))
	seen := map[int]int{}
	costtest.Within(t, "a thousand what-ifs of a stranger", 10, func() {
		for range 1000 {
			status, answer := w.browse("POST", "/v1/whatif", "text/plain", `{"add_nodes":10000,"add_devices":1024,"strategy":"srtf"}`)
			if seen[status]++; status == http.StatusForbidden && !strings.Contains(answer, "takes a name") {
				t.Fatalf("%d %s", status, answer)
			}
		}
	})
	if seen[http.StatusForbidden] == 0 || seen[http.StatusForbidden]+seen[http.StatusTooManyRequests] != 1000 {
		t.Errorf("a thousand what-ifs of a stranger: answers by status %v", seen)
	}
	t.Logf("by status %v", seen)
}

// A page of another origin gets nothing done, whoever the browser's user is: not on one
// route of the API.
func TestAPageOfAnotherOrigin(t *testing.T) {
	w := start(t, func(c *server.Config) { c.Loopback = access.Operator })
	w.submit(job("a", 1))
	evil := [][]string{
		{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "empty", "Origin", "http://evil.example"},
		{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty"}, // another port of this machine
		{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"},
		{"Origin", "http://evil.example"},
		{"Origin", "null"},
	}
	own := [][]string{{}, {"Sec-Fetch-Site", "same-origin", "Origin", w.page}, {"Sec-Fetch-Site", "none"}, {"Origin", w.page}}
	for _, route := range w.server.Table() {
		method, path, found := strings.Cut(route.Pattern, " ")
		if !found {
			method, path = "GET", "/none"
		}
		path = strings.NewReplacer("{$}", "", "{job}", "a", "{node}", "node0", "{queue}", "x", "{verb}", "cancel", "{user}", "u", "{token}", "t").Replace(path)
		for _, header := range evil {
			for _, kind := range []string{"text/plain", "application/json"} {
				if status, answer := w.browse(method, path, kind, `{}`, header...); status != http.StatusForbidden || !strings.Contains(answer, "another origin") {
					t.Errorf("%s %s with %v: %d %.200s", method, path, header, status, answer)
				}
			}
		}
	}
	// Nothing of what it sends is read: to scan these would take 40 seconds.
	dear := "command: [" + strings.Repeat("a,", 120_000) + "b]"
	costtest.Within(t, "two hundred files of another origin", 1, func() {
		for range 200 {
			if status, answer := w.browse("POST", "/v1/jobs", "text/plain", dear, evil[0]...); status != http.StatusForbidden {
				t.Fatalf("%d %.200s", status, answer)
			}
		}
	})
	for _, header := range own {
		if status, answer := w.browse("POST", "/v1/whatif", "application/json", `{"strategy": "srtf"}`, header...); status != http.StatusOK {
			t.Errorf("the console's own question with %v: %d %s", header, status, answer)
		}
	}
	// A link on another page leads here.
	link := []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}
	for path, want := range map[string]int{"/": 200, "/console/": 200, "/v1/jobs": 403, "/v1/snapshot": 403} {
		if status, _ := w.browse("GET", path, "", "", link...); status != want {
			t.Errorf("a link to %s: %d, expected %d", path, status, want)
		}
	}
	if j, err := w.client.Job(t.Context(), "a"); err != nil || j.Over() {
		t.Errorf("the job is %+v (%v)", j, err)
	}
}

// No request costs more than the budget, whatever is in it and whoever sends it.
func TestNoRequestCostsMore(t *testing.T) {
	w := start(t, nil)
	many := func(before, item, after string) string {
		return before + strings.Repeat(item, (4<<20-len(before)-len(after)-1)/len(item)) + after
	}
	quoted := func(s string) string { return strings.ReplaceAll(s, "\n", `\n`) }
	for _, c := range []struct{ name, path, kind, body string }{
		{"arguments", "/v1/jobs", yamlKind, many("command: [", "a,", "b]")},
		{"fewer arguments", "/v1/jobs", yamlKind, "name: [" + strings.Repeat("a,", 149_000) + "b]"},
		{"sizes", "/v1/jobs", yamlKind, many("sizes: [", "1,", "1]")},
		{"jobs", "/v1/jobs", yamlKind, many("jobs: [", "{x: 1},", "{x: 1}]")},
		{"fewer jobs", "/v1/jobs", yamlKind, "jobs: [" + strings.Repeat("{x: 1},", 37_000) + "{x: 1}]"},
		{"json", "/v1/jobs", "application/json", many(`{"jobs": [`, `{"name":"x"},`, `{"name":"x"}]}`)},
		{"a job in a question", "/v1/whatif", "application/json", many(`{"job": "command: [`, "a,", `b]"}`)},
		{"jobs in a question", "/v1/whatif", "application/json", quoted(`{"job": "jobs: [` + strings.Repeat("{x: 1},", 28_000) + `{x: 1}]"}`)},
		{"a strategy in a question", "/v1/whatif", "application/json", many(`{"strategy": "order: [`, "a,", `b]"}`)},
		{"many strategies", "/v1/whatif", "application/json", many(`{"strategy": "`, "srtf+", `easy"}`)},
		{"nodes to remove", "/v1/whatif", "application/json", many(`{"remove_nodes": [`, `"n",`, `"n"]}`)},
		{"nodes to add", "/v1/whatif", "application/json", `{"add_nodes":10000,"add_devices":1024,"strategy":"srtf"}`},
		{"as many as are let through", "/v1/whatif", "application/json", `{"add_nodes":10000,"add_devices":10,"strategy":"srtf"}`},
		{"queues", "/v1/queues", "application/json", many(`{"queues": [`, `{"name":"a","parent":0},`, `{"name":"b"}]}`)},
		{"depth", "/v1/queues", "application/json", many(`{"queues": `, `[`, ``)},
		{"a switch", "/v1/strategy", "application/json", many(`{"dry_run": true, "strategy": "`, "las+", `las"}`)},
		{"a shadow", "/v1/shadows", "application/json", many(`{"add": "`, "las+", `las"}`)},
		{"a user", "/v1/users", "application/json", many(`{"name": "x", "role": "viewer", "tenants": [`, `"a",`, `"a"]}`)},
		{"fewer strategies", "/v1/whatif", "application/json", `{"strategy": "` + strings.Repeat("srtf+", 200_000) + `easy"}`},
		{"fewer to switch to", "/v1/strategy", "application/json", `{"dry_run": true, "strategy": "` + strings.Repeat("las+", 250_000) + `las"}`},
		{"fewer in a shadow", "/v1/shadows", "application/json", `{"add": "` + strings.Repeat("las+", 250_000) + `las"}`},
		{"fewer nodes to remove", "/v1/whatif", "application/json", `{"remove_nodes": [` + strings.Repeat(`"node0",`, 100_000) + `"n"]}`},
		{"fewer tenants of a user", "/v1/users", "application/json", `{"name": "y", "role": "viewer", "tenants": [` + strings.Repeat(`"a",`, 250_000) + `"a"]}`},
		{"fewer queues", "/v1/queues", "application/json", `{"queues": [{"name": "", "parent": -1, "weight": 1000},` + strings.Repeat(`{"name":"a","parent":0},`, 40_000) + `{"name":"b"}]}`},
	} {
		var status int
		var answer string
		costtest.Within(t, fmt.Sprintf("%s, %d bytes", c.name, len(c.body)), 1, func() {
			var cut error // one that sends more than is read may find the connection closed
			if status, answer, cut = w.try("POST", c.path, c.kind, c.body); cut != nil && len(c.body) <= 1<<20 {
				t.Fatal(cut)
			}
		})
		t.Logf("%d: %.150s", status, answer)
		if status >= 500 || len(answer) > 1<<20 {
			t.Errorf("%s: %d with %d bytes: %.300s", c.name, status, len(answer), answer)
		}
	}
}

// A question ends with who asked it: the next finds the place free.
func TestAQuestionEndsWithItsClient(t *testing.T) {
	w := start(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 2 { // as many as there are places
		all.Go(func() {
			r, err := http.NewRequestWithContext(ctx, "POST", "http://muster/v1/whatif", strings.NewReader(`{"strategy": "las", "horizon_s": 7000000, "job": "{name: j, array: 9000, workers: 1, estimate: 1h, checkpoint: {on-request: true}}"}`))
			if err != nil {
				t.Error(err)
				return
			}
			resp, err := w.http.Do(r)
			if err == nil {
				resp.Body.Close()
				t.Errorf("a long question was answered at once: %s", resp.Status)
			}
		})
	}
	time.Sleep(300 * time.Millisecond)
	cancel()
	all.Wait()
	gone := time.Now()
	for time.Since(gone) < 10*time.Second {
		if status, _ := w.do("POST", "/v1/whatif", "application/json", `{"remove_nodes": ["none"]}`); status != http.StatusTooManyRequests {
			if took := time.Since(gone); took > 2*time.Second {
				t.Errorf("the place was free after %v", took)
			}
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the place is not free after 10 s")
}

// What a job runs, and where, is shown to those who may read its log.
func TestCommandLinesAreForThoseWhoMaySeeThem(t *testing.T) {
	const key = "key-of-mine"
	w := share(t)
	secret := one("hers")
	secret.Command, secret.Dir = []string{"train", "--key", key}, "/home/sue/"+key
	if _, err := w.as("sue").Submit(t.Context(), []workload.Job{secret}, ""); err != nil {
		t.Fatal(err)
	}
	may := map[string]bool{"sue": true, "ada": true, "olga": true, "root": true}
	for _, who := range []string{"sue", "ada", "olga", "root", "vera", "wide", "sam", "fred"} {
		for _, path := range []string{"/v1/jobs", "/v1/jobs/hers", "/v1/jobs/hers/steps", "/v1/jobs/hers/why", "/v1/watch"} {
			_, answer := w.ask(who, "GET", path, "", "", "")
			if told := strings.Contains(answer, key); told && !may[who] || !told && may[who] && strings.HasSuffix(path, "/jobs/hers") {
				t.Errorf("%s to %s: told %v: %.300s", path, who, told, answer)
			}
		}
	}
	open := start(t, nil)
	open.submit(secret)
	for _, path := range []string{"/v1/jobs", "/v1/jobs/hers", "/"} {
		if _, answer := open.browse("GET", path, "", ""); strings.Contains(answer, key) || !strings.Contains(answer, "hers") {
			t.Errorf("%s to any program of this machine: %.300s", path, answer)
		}
	}
	list, err := open.client.Jobs(t.Context(), client.ListOptions{})
	if err != nil || len(list.Jobs) != 1 || list.Jobs[0].Dir != secret.Dir {
		t.Errorf("its owner sees %+v (%v)", list, err)
	}
}
