// Package client talks to a Muster server over its unix socket, or from elsewhere over
// TLS with a token. What it returns are the values of package view; what the server
// refused is an *Error that lists all the problems.
package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"

	"github.com/musterdl/muster/internal/access"
	"github.com/musterdl/muster/internal/spec"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/model/workload"
)

// Client is a connection to one server, to be used by many goroutines at once.
type Client struct {
	base   string // of every address
	server string // as people know it
	token  string
	http   http.Client
	broken error // every call's, where there is no way to call
	// Plain makes the texts of answers plain, for whoever prints them; those of errors are.
	Plain bool
	outlive
}

// New returns a client of the server on a socket; nothing is dialled yet.
func New(socket string) *Client {
	c := &Client{base: "http://muster", server: socket}
	c.http.Transport = &http.Transport{MaxIdleConnsPerHost: 64,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		}}
	return c
}

// Error is what the server refused, and why.
type Error struct {
	Status   int
	Message  string    `json:"message"`
	Problems []Problem `json:"problems"`
	later    bool      // it may be otherwise soon
}

// Problem is one thing that was wrong.
type Problem struct {
	Text string `json:"text"`
}

// Error writes the message, and the problems a line each.
func (e *Error) Error() string {
	if len(e.Problems) == 0 {
		return e.Message
	}
	lines := []string{e.Message}
	for _, p := range e.Problems {
		lines = append(lines, "  "+p.Text)
	}
	return strings.Join(lines, "\n")
}

// ErrNoServer is wrapped by every error of a call that reached no server.
var ErrNoServer = errors.New("no muster server is running")

// do sends a request and returns the answer, which the caller closes.
func (c *Client) do(ctx context.Context, method, path string, header http.Header, body io.Reader) (*http.Response, error) {
	if c.broken != nil {
		return nil, c.broken
	}
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, err
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	for name, values := range header {
		r.Header[name] = values
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	if resp.StatusCode != http.StatusServiceUnavailable {
		c.contacts.Add(1)
	}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	var answer struct{ Error Error }
	if err := json.NewDecoder(io.LimitReader(resp.Body, 16<<20)).Decode(&answer); err != nil || answer.Error.Message == "" {
		return nil, fmt.Errorf("the server answered %s, and not in words this program reads", resp.Status)
	}
	view.PlainAll(&answer.Error)
	answer.Error.Status, answer.Error.later = resp.StatusCode, resp.Header.Get("Retry-After") != ""
	return nil, &answer.Error
}

// unreachable says what to do when nobody answers.
func (c *Client) unreachable(ctx context.Context, err error) error {
	var unknown *tls.CertificateVerificationError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &unknown) && len(unknown.UnverifiedCertificates) > 0:
		return fmt.Errorf("%s shows a certificate that nobody vouches for (%w): if its fingerprint, %s, is what muster up printed there, say so with --fingerprint",
			c.server, unknown.Err, access.Fingerprint(unknown.UnverifiedCertificates[0].Raw))
	case errors.Is(err, syscall.ECONNREFUSED) && c.token != "":
		return fmt.Errorf("%w: nobody listens on %s", ErrNoServer, c.server)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w: nobody listens on %s: start one with \"muster up\", or name its socket with --socket or MUSTER_SOCKET", ErrNoServer, c.server)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("you may not use the socket %s: join the group that owns it, or ask its operator", c.server)
	case cut(err):
		c.contacts.Add(1)
		return fmt.Errorf("%w any more on %s: it went away before it answered", ErrNoServer, c.server)
	}
	return fmt.Errorf("asking the server on %s: %w", c.server, err)
}

// call sends a request without a body and reads a JSON answer.
func call[T any](ctx context.Context, c *Client, method, path string) (out T, err error) {
	return exchange[T](ctx, c, method, path, nil)
}

// send sends a value and reads a JSON answer.
func send[T any](ctx context.Context, c *Client, method, path string, value any) (out T, err error) {
	body, err := json.Marshal(value)
	if err != nil {
		return out, fmt.Errorf("encoding the request: %w", err)
	}
	return exchange[T](ctx, c, method, path, bytes.NewReader(body))
}

func exchange[T any](ctx context.Context, c *Client, method, path string, body io.Reader) (out T, err error) {
	header := http.Header{}
	if body != nil {
		header.Set("Content-Type", "application/json")
	}
	resp, err := c.do(ctx, method, path, header, body)
	if err != nil {
		return out, err
	}
	defer resp.Body.Close()
	return read[T](c, resp)
}

// read reads a JSON answer.
func read[T any](c *Client, resp *http.Response) (out T, err error) {
	if err = json.NewDecoder(resp.Body).Decode(&out); cut(err) {
		return out, fmt.Errorf("%w any more on %s: it went away while it answered", ErrNoServer, c.server)
	}
	if err != nil {
		return out, fmt.Errorf("reading the server's answer: %w", err)
	}
	if c.Plain {
		view.PlainAll(&out)
	}
	return out, nil
}

// Submit submits jobs. Sent again under the same key, the same jobs are not
// submitted a second time: with a key it is sent again by itself when the connection
// breaks. An empty key is none.
func (c *Client) Submit(ctx context.Context, jobs []workload.Job, key string) (view.Submitted, error) {
	var b bytes.Buffer
	for i := range jobs {
		b.WriteString("---\n")
		b.Write(spec.FormatJob(jobs[i]))
	}
	return c.SubmitYAML(ctx, "request", b.Bytes(), key)
}

// SubmitYAML submits a file as it is; name is what its problems are told under.
func (c *Client) SubmitYAML(ctx context.Context, name string, data []byte, key string) (out view.Submitted, err error) {
	header := http.Header{"Content-Type": {"application/yaml"}}
	post := func() error {
		resp, err := c.do(ctx, http.MethodPost, "/v1/jobs?file="+url.QueryEscape(name), header, bytes.NewReader(data))
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		out, err = read[view.Submitted](c, resp)
		return err
	}
	if key == "" {
		return out, post()
	}
	header.Set("Idempotency-Key", key)
	err = c.again(ctx, post)
	return out, err
}

// ListOptions choose jobs.
type ListOptions struct {
	All    bool     // also those that have ended
	Phases []string // empty is any
	Limit  int      // 0 is the server's
}

// Jobs lists jobs.
func (c *Client) Jobs(ctx context.Context, o ListOptions) (view.Jobs, error) {
	q := url.Values{}
	if o.All {
		q.Set("all", "1")
	}
	if len(o.Phases) > 0 {
		q.Set("phase", strings.Join(o.Phases, ","))
	}
	if o.Limit > 0 {
		q.Set("limit", strconv.Itoa(o.Limit))
	}
	return call[view.Jobs](ctx, c, http.MethodGet, "/v1/jobs?"+q.Encode())
}

func jobPath(name, rest string) string { return "/v1/jobs/" + url.PathEscape(name) + rest }

// Job describes the job of a name or an id.
func (c *Client) Job(ctx context.Context, name string) (view.Job, error) {
	return call[view.Job](ctx, c, http.MethodGet, jobPath(name, ""))
}

// Why explains where a job stands.
func (c *Client) Why(ctx context.Context, name string) (view.Why, error) {
	return call[view.Why](ctx, c, http.MethodGet, jobPath(name, "/why"))
}

// Steps returns a job's dossier.
func (c *Client) Steps(ctx context.Context, name string) (view.Steps, error) {
	return call[view.Steps](ctx, c, http.MethodGet, jobPath(name, "/steps"))
}

// Plan returns by which plan a job runs, what is predicted of it, and what was measured.
func (c *Client) Plan(ctx context.Context, name string) (view.Plan, error) {
	return call[view.Plan](ctx, c, http.MethodGet, jobPath(name, "/plan"))
}

// Wait returns when a job has ended. It outlives a restart of the server.
func (c *Client) Wait(ctx context.Context, name string) (job view.Job, err error) {
	for {
		err = c.again(ctx, func() error {
			job, err = call[view.Job](ctx, c, http.MethodGet, jobPath(name, "?wait=60"))
			return err
		})
		if err != nil || job.Settled() {
			return job, err
		}
	}
}

// ChangeJob asks to cancel, hold, release or requeue a job.
func (c *Client) ChangeJob(ctx context.Context, name, verb string) (view.Job, error) {
	return call[view.Job](ctx, c, http.MethodPost, jobPath(name, "/"+url.PathEscape(verb)))
}

// LogOptions choose a log.
type LogOptions struct {
	Rank    int32
	Attempt int32 // 0 is the latest
	From    int64 // byte of all output
	Follow  bool  // until the job has ended
}

// Logs copies a log to w. One that is followed outlives a restart of the server.
func (c *Client) Logs(ctx context.Context, name string, o LogOptions, w io.Writer) error {
	if o.Follow {
		return c.again(ctx, func() error { return c.follow(ctx, name, &o, w) })
	}
	resp, err := c.do(ctx, http.MethodGet, o.path(name), nil, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(w, resp.Body); err != nil && ctx.Err() == nil {
		return fmt.Errorf("reading the log of %s: %w", name, err)
	}
	return ctx.Err()
}

func (o *LogOptions) path(name string) string {
	q := url.Values{"rank": {strconv.Itoa(int(o.Rank))}, "from": {strconv.FormatInt(o.From, 10)}}
	if o.Attempt > 0 {
		q.Set("attempt", strconv.Itoa(int(o.Attempt)))
	}
	if o.Follow {
		q.Set("follow", "1")
	}
	return jobPath(name, "/logs?"+q.Encode())
}

// follow copies a log until its job has ended, and notes in o where to read on if the
// connection breaks before.
func (c *Client) follow(ctx context.Context, name string, o *LogOptions, w io.Writer) error {
	resp, err := c.do(ctx, http.MethodGet, o.path(name), http.Header{"Accept": {"application/x-ndjson"}}, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	for d := json.NewDecoder(resp.Body); ; {
		var piece view.LogPiece
		err := d.Decode(&piece)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case cut(err):
			return fmt.Errorf("%w any more on %s: it went away before the log of %s ended", ErrNoServer, c.server, name)
		case err != nil:
			return fmt.Errorf("reading the log of %s: %w", name, err)
		case piece.Over:
			return nil
		}
		if _, err := w.Write(piece.Text); err != nil {
			return fmt.Errorf("writing the log of %s: %w", name, err)
		}
		o.Attempt, o.From = piece.Attempt, piece.Next
	}
}

// Watch calls each with a snapshot now and after every change, until the context
// ends, the server goes away or each returns an error.
func (c *Client) Watch(ctx context.Context, each func(view.Snapshot) error) error {
	resp, err := c.do(ctx, http.MethodGet, "/v1/watch", http.Header{"Accept": {"application/x-ndjson"}}, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	for d := json.NewDecoder(resp.Body); ; {
		var s view.Snapshot
		if err := d.Decode(&s); err != nil {
			if ctx.Err() != nil || errors.Is(err, io.EOF) {
				return ctx.Err()
			}
			return fmt.Errorf("watching the server: %w", err)
		}
		if err := each(s); err != nil {
			return err
		}
	}
}
