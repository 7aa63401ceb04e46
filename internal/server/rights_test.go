package server_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterdl/muster/internal/access"
	"github.com/musterdl/muster/internal/client"
	"github.com/musterdl/muster/internal/server"
	"github.com/musterdl/muster/model/workload"
)

// shared is a world that other machines reach, with users and an audit log.
type shared struct {
	*world
	registry *access.Registry
	audit    *access.Log
	dir      string
	remote   string // host:port of the TLS port
	print    string // its fingerprint
	tokens   map[string]string
}

func share(t *testing.T) *shared {
	t.Helper()
	return shareOn(t, 2, io.Discard)
}

// shareOn has so many nodes, and writes the server's log somewhere.
func shareOn(t *testing.T, nodes int, log io.Writer) *shared {
	t.Helper()
	dir := t.TempDir()
	registry, err := access.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	audit, err := access.OpenLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { audit.Close() })
	w := &shared{registry: registry, audit: audit, dir: dir, tokens: map[string]string{}}
	w.world = startOn(t, nodes, func(c *server.Config) {
		c.Access, c.Audit, c.Closed = registry, audit, true
		c.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	w.server.Unhurried()
	cert, err := access.OwnCertificate(dir, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.remote, w.print = l.Addr().String(), access.Fingerprint(cert.Certificate[0])
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() {
		ended <- w.server.Serve(ctx, tls.NewListener(l, &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}}))
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	for _, u := range []access.User{
		{Name: "vera", Role: access.Viewer, Tenants: []string{"research"}},
		{Name: "wide", Role: access.Viewer, Tenants: []string{access.Everything}},
		{Name: "sue", Role: access.Submitter, Tenants: []string{"research/vision"}},
		{Name: "sam", Role: access.Submitter, Tenants: []string{"research"}},
		{Name: "fred", Role: access.Submitter, Tenants: []string{"ops"}},
		{Name: "fay", Role: access.QueueAdmin, Tenants: []string{"ops"}, Queues: []string{"ops"}},
		{Name: "ada", Role: access.QueueAdmin, Queues: []string{"research"}},
		{Name: "olga", Role: access.Operator},
		{Name: "gone", Role: access.Operator},
	} {
		if err := registry.Add(u, time.Now()); err != nil {
			t.Fatal(err)
		}
		w.token(u.Name, u.Name, time.Now())
	}
	w.token("expired", "olga", time.Now().Add(-2*time.Hour))
	revoked := w.token("revoked", "olga", time.Now())
	if _, err := registry.Revoke(revoked, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := registry.Remove("gone", time.Now()); err != nil {
		t.Fatal(err)
	}
	w.tokens["garbage"] = strings.Repeat("x", 70)
	return w
}

// token makes a token that lives an hour from the given time.
func (w *shared) token(who, user string, at time.Time) (id string) {
	w.t.Helper()
	secret, t, err := w.registry.NewToken(user, "", "", time.Hour, at)
	if err != nil {
		w.t.Fatal(err)
	}
	w.tokens[who] = secret
	return t.ID
}

func (w *shared) as(user string) *client.Client {
	return client.NewRemote(client.Remote{Address: w.remote, Token: w.tokens[user], Fingerprint: w.print})
}

// ask sends a request as somebody and returns the status and the answer.
func (w *shared) ask(who, method, path, kind, body, id string) (int, string) {
	w.t.Helper()
	var answer bytes.Buffer
	status := w.read(&answer, who, method, path, kind, body, id)
	return status, answer.String()
}

// read sends a request as somebody, writes the answer somewhere, and returns its status. Of
// a stream, which has no end, nothing is read but that it begins.
func (w *shared) read(into io.Writer, who, method, path, kind, body, id string) (status int) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel() // of a stream its beginning is enough
	base, c := "https://"+w.remote, &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	switch who {
	case "root":
		base, c = "http://muster", w.http
	case "neighbour":
		base = w.page
	}
	r, err := http.NewRequestWithContext(ctx, method, base+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Content-Type", kind)
	r.Header.Set("X-Request-Id", id)
	if token := w.tokens[who]; token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	if !strings.HasSuffix(path, "watch") {
		_, _ = io.Copy(into, resp.Body) // some close the connection before they have read all
	}
	return resp.StatusCode
}

// TestRights asks everything of everybody. A route that is added gets a line here too:
// who may is said twice, once by who writes it and once by who thinks about it.
func TestRights(t *testing.T) {
	const (
		known    = "vera wide sue sam fred fay ada olga root" // who say who they are
		seers    = "vera wide sue sam ada olga root"          // of the job of sue's
		steerers = "sue ada olga root"                        // who change it and read its log
		others   = "fred fay"                                 // those who do not see it and might change what they do
		operates = "olga root"
		everyone = known + " neighbour stranger"
	)
	const job, user = "name: new-%d\n", `{"name": "new-%d", "role": "viewer"}`
	lines := map[string]struct{ may, missing, path, body string }{
		"POST /v1/jobs":                {"sue sam fred fay ada olga root", "", "", job},
		"GET /v1/jobs":                 {known, "", "", ""},
		"GET /v1/jobs/{job}":           {seers, others, "/v1/jobs/hers", ""},
		"GET /v1/jobs/{job}/why":       {seers, others, "/v1/jobs/0/why", ""},
		"GET /v1/jobs/{job}/when":      {seers, others, "/v1/jobs/hers/when", ""},
		"GET /v1/jobs/{job}/steps":     {seers, others, "/v1/jobs/hers/steps", ""},
		"GET /v1/jobs/{job}/plan":      {seers, others, "/v1/jobs/hers/plan", ""},
		"GET /v1/jobs/{job}/logs":      {steerers, others, "/v1/jobs/hers/logs", ""},
		"POST /v1/jobs/{job}/{verb}":   {steerers, others, "/v1/jobs/hers/requeue", ""},
		"GET /v1/nodes":                {known, "", "", ""},
		"POST /v1/nodes/{node}/{verb}": {operates, "", "/v1/nodes/node0/cordon", ""},
		"POST /v1/nodes/{node}/close":  {operates, "", "/v1/nodes/node0/close", `{"from_us": 4102444800000000, "to_us": 4102448400000000}`},
		"POST /v1/nodes/{node}/reopen": {operates, "", "/v1/nodes/node0/reopen", ""},
		"GET /v1/queues":               {known, "", "", ""},
		"POST /v1/queues":              {operates, "", "", `{"queues": [{"name": "", "parent": -1, "weight": 1000}]}`},
		"GET /v1/shares":               {known, "", "", ""},
		"GET /v1/shares/history":       {known, "", "", ""},
		"GET /v1/accounts":             {known, "", "", ""},
		"GET /v1/calendar":             {known, "", "", ""},
		"POST /v1/{verb}":              {operates, "", "/v1/unpause", ""},
		"GET /v1/promises":             {known, "", "", ""},
		"GET /v1/shadows":              {"wide olga root", "", "", ""},
		"POST /v1/shadows":             {operates, "", "", `{"add": "las"}`},
		"POST /v1/defrag":              {operates, "", "", `{"apply": false}`},
		"POST /v1/strategy":            {operates, "", "", `{"strategy": "las", "dry_run": true}`},
		"POST /v1/whatif":              {known, "", "", `{"strategy": "las"}`},
		"GET /v1/cluster":              {known, "", "", ""},
		"GET /v1/watch":                {known, "", "", ""},
		"GET /v1/version":              {known, "", "", ""},
		"GET /v1/snapshot":             {operates, "", "", ""},
		"GET /v1/whoami":               {known, "", "", ""},
		"GET /v1/users":                {operates, "", "", ""},
		"POST /v1/users":               {operates, "", "", user},
		"PUT /v1/users/{user}":         {operates, "", "/v1/users/nobody", `{"role": "viewer"}`},
		"DELETE /v1/users/{user}":      {operates, "", "/v1/users/nobody", ""},
		"GET /v1/tokens":               {known, "", "", ""},
		"POST /v1/tokens":              {operates, "", "", `{"user": "vera"}`},
		"DELETE /v1/tokens/{token}":    {operates, "vera wide sue sam fred fay ada", "/v1/tokens/none", ""}, // of others; 404 is for who may
		"GET /v1/audit":                {operates, "", "", ""},
		"GET /healthz":                 {everyone, "", "", ""},
		"GET /readyz":                  {everyone, "", "", ""},
		"GET /metrics":                 {known + " neighbour", "", "", ""},
		"GET /{$}":                     {"wide olga root", "", "/", ""},
		"GET /console/":                {everyone, "", "", ""},
		"/":                            {everyone, "", "/none", ""},
	}
	w := share(t)
	if _, err := w.as("sue").Submit(t.Context(), []workload.Job{one("hers")}, ""); err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, route := range w.server.Table() {
		line, ok := lines[route.Pattern]
		if !ok {
			t.Errorf("route %q takes the right to %s: add a line that says who may", route.Pattern, route.Right)
			continue
		}
		delete(lines, route.Pattern)
		method, path, found := strings.Cut(route.Pattern, " ")
		if !found {
			method = "GET"
		}
		if line.path != "" {
			path = line.path
		}
		kind := "application/json"
		if line.body == job {
			kind = yamlKind
		}
		for _, who := range strings.Fields(everyone + " garbage expired revoked gone") {
			asked++
			id, body := fmt.Sprintf("%s-%d", who, asked), line.body
			if strings.Contains(body, "%d") {
				body = fmt.Sprintf(body, asked)
			}
			status, answer := w.ask(who, method, path, kind, body, id)
			is := func(list string) bool { return slices.Contains(strings.Fields(list), who) }
			want := http.StatusForbidden
			switch {
			case is(line.may):
				want = status // any but these
				if status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusNotFound && strings.Contains(route.Pattern, "{job}") {
					want = http.StatusOK
				}
			case is(line.missing):
				want = http.StatusNotFound
			case !is(known):
				want = http.StatusUnauthorized
			}
			if status != want {
				t.Errorf("%s %s as %s: %d, want %d: %s", method, path, who, status, want, answer)
			}
			w.audited(id, method, route, !is(line.may))
		}
	}
	for pattern := range lines {
		t.Errorf("there is no route %q any more: remove its line", pattern)
	}
	t.Logf("%d calls", asked)
}

// audited checks that a call is in the log if it was refused, or changed something.
func (w *shared) audited(request, method string, route access.Route, refused bool) {
	w.t.Helper()
	list, err := w.audit.Read(access.Query{Limit: 50})
	if err != nil {
		w.t.Fatal(err)
	}
	i := slices.IndexFunc(list, func(e access.Entry) bool { return e.Request == request })
	switch {
	case i < 0 && (refused || method != "GET" || route.Right == access.Operate):
		w.t.Errorf("%s, call %s (refused: %v) is not in the audit log", route.Pattern, request, refused)
	case i >= 0 && list[i].Allowed == refused:
		w.t.Errorf("%s: the audit log has %+v", route.Pattern, list[i])
	case i >= 0 && refused && list[i].Why == "":
		w.t.Errorf("%s: the audit log does not say why: %+v", route.Pattern, list[i])
	}
}

// one is a job of one device.
func one(name string) workload.Job { return job(name, 1) }
