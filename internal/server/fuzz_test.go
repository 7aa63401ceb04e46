package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterdl/muster/internal/server"
)

// odd draws values that no caller means: of JSON, of a query, of a path.
type odd struct{ *rand.Rand }

func (o odd) of(list ...string) string { return list[o.IntN(len(list))] }

func (o odd) text() string {
	return o.of("", "a", "node0", "0", "-1", "2147483648", "1e309", "nan", "..", "a/b", "%00", "\x00", "\u202e", "é", "las", "fifo", "srtf+easy", "script:/bin/true",
		"ops", "research/vision", "cancel", "close", "root", strings.Repeat("x", 5000), "workers: 1", "{name: y, after: [y]}", "order: [", "*", "{}", "[]", "null")
}

func (o odd) value(depth int) string {
	switch n := o.IntN(9); {
	case n < 2:
		return o.of("0", "-1", "1", "1e308", "-9223372036854775808", "9223372036854775807", "18446744073709551616", "0.5", "1e-300")
	case n < 4 || depth > 3:
		data, _ := json.Marshal(o.text())
		return string(data)
	case n < 5:
		return o.of("null", "true", "false")
	case n < 7:
		return o.object(depth + 1)
	}
	var items []string
	for range o.IntN(4) {
		items = append(items, o.value(depth+1))
	}
	return "[" + strings.Join(items, ",") + "]"
}

// object has fields of requests, of which many belong elsewhere.
func (o odd) object(depth int) string {
	var fields []string
	for range o.IntN(5) {
		name := o.of("name", "role", "tenants", "queues", "parent", "weight", "limit", "guarantee", "milli", "model", "half_life_us", "max_priority", "strategy", "dry_run", "undo",
			"add", "remove", "add_nodes", "add_devices", "speed", "remove_nodes", "queue", "guarantee_devices", "job", "last_s", "horizon_s", "moves_most", "price_most_device_hours",
			"apply", "digest", "user", "note", "life_s", "from_us", "to_us", "every_s", "jobs", "command", "array", "workers", "after", "priority", "env", "secrets", "reason")
		fields = append(fields, fmt.Sprintf("%q:%s", name, o.value(depth)))
	}
	return "{" + strings.Join(fields, ",") + "}"
}

// Whatever is sent to a route, by somebody who may do everything, is answered, in words, and
// never by a failure of the server's own.
func TestNoRouteFailsOnOddRequests(t *testing.T) {
	var log bytes.Buffer
	w := start(t, func(c *server.Config) {
		c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError}))
	})
	w.submit(job("a", 1), job("b", 4))
	o, seen := odd{rand.New(rand.NewPCG(1, 2))}, map[int]int{}
	each := 60
	if os.Getenv("MUSTER_LONG") == "" {
		each = 15
	}
	for _, route := range w.server.Table() {
		method, pattern, found := strings.Cut(route.Pattern, " ")
		if !found {
			method, pattern = "PATCH", "/none"
		}
		for range each {
			path := strings.ReplaceAll(pattern, "{$}", "")
			for i, part := range strings.Split(pattern, "/") {
				if strings.HasPrefix(part, "{") && i > 0 {
					path = strings.Replace(path, part, url.PathEscape(o.of("a", "b", "node0", "cancel", o.text())), 1)
				}
			}
			q := url.Values{}
			for range o.IntN(3) {
				q.Set(o.of("limit", "phase", "all", "wait", "rank", "attempt", "from", "follow", "who", "since_us", "refused", "anonymise", "file", "q", "by", "points", "last_s"), o.of("1", "0", o.text()))
			}
			kind, body := o.of("application/json", "application/yaml", "text/plain"), o.object(0)
			if o.IntN(4) == 0 {
				body = o.value(0)
			}
			status, answer := w.odd(method, path+"?"+q.Encode(), kind, body)
			if seen[status]++; status >= 500 && status != http.StatusServiceUnavailable || status >= 400 && !json.Valid(answer) && !strings.HasPrefix(path, "/console") {
				t.Errorf("%s %s?%s with %s: %d %.300s", method, path, q.Encode(), body, status, answer)
			}
		}
	}
	if log.Len() > 0 {
		t.Errorf("the server's log has errors:\n%.3000s", log.String())
	}
	if status, _ := w.do("GET", "/readyz", "", ""); status != http.StatusOK {
		t.Errorf("and then readyz is %d", status)
	}
	t.Logf("answers by status: %v", seen)
}

// odd sends a request and reads the beginning of the answer; 0 is none within a moment, of
// one that is waited for.
func (w *world) odd(method, path, kind, body string) (status int, answer []byte) {
	ctx, cancel := context.WithTimeout(w.t.Context(), 3*time.Second)
	defer cancel()
	if strings.Contains(path, "watch") || strings.Contains(path, "follow=") || strings.Contains(path, "wait=") {
		time.AfterFunc(50*time.Millisecond, cancel)
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://muster"+path, strings.NewReader(body))
	if err != nil {
		return 0, nil // no address at all
	}
	r.Header.Set("Content-Type", kind)
	resp, err := w.http.Do(r)
	if err != nil {
		// One that is answered before its body is read may find nobody reading on.
		if ctx.Err() == nil && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
			w.t.Errorf("%s %s with %s: %v", method, path, body, err)
		}
		return 0, nil
	}
	defer resp.Body.Close()
	answer, _ = io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, answer
}
