// Package door lets requests in: it finds out who asks, applies the limits and rules that
// every request is under, answers with what is wrong, and writes what was changed and refused
// into the audit log. It knows nothing of what is asked.
package door

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/musterdl/muster/internal/access"
)

// Config is a door.
type Config struct {
	Log *slog.Logger
	// Access knows the users and tokens; Audit takes what was changed and refused, nil keeps
	// nothing.
	Access *access.Registry
	Audit  *access.Log
	// Closed asks for a token on the loopback port too. Loopback is the role of programs on
	// this machine while there are no users; less than Viewer is Viewer.
	Closed   bool
	Loopback access.Role
	// RatePerSec and Burst bound the requests of each user; StrangersPerSec and StrangersBurst
	// those of an address that has not said who it is.
	RatePerSec, Burst               float64
	StrangersPerSec, StrangersBurst float64
	// Count is told of each request that was answered.
	Count func(r *http.Request, status int, took time.Duration)
}

// Limits that are not settings. ReadBodyTime is how long a body may take to come.
const (
	maxBody      = 4 << 20 // bytes
	maxAsked     = 1 << 20 // of what is not a submission
	ReadBodyTime = 30 * time.Second
)

// Door is what every request comes in by.
type Door struct {
	config    Config
	limiter   *limiter
	strangers *limiter // by address, of whoever has not said who it is
}

// New returns a door that no request has come through.
func New(config Config) *Door {
	return &Door{config: config, limiter: newLimiter(config.RatePerSec, config.Burst),
		strangers: newLimiter(config.StrangersPerSec, config.StrangersBurst)}
}

// Follow returns the context of a request that is answered for long; it ends with the right
// to ask too: a token may be revoked meanwhile. The caller calls stop.
func (d *Door) Follow(r *http.Request) (ctx context.Context, stop func()) {
	return d.config.Access.Follow(r.Context(), access.From(r.Context()), func() (access.Identity, error) { return d.who(r) })
}

// who finds out who asks: the user of the token that is shown, however the call came,
// else the kernel's word. A token that is no good is refused where none would do.
func (d *Door) who(r *http.Request) (access.Identity, error) {
	p := peerOf(r)
	if header := r.Header.Get("Authorization"); header != "" {
		kind, secret, _ := strings.Cut(header, " ")
		if !strings.EqualFold(kind, "Bearer") {
			return access.Identity{Via: p.via, From: p.from}, Refuse(http.StatusUnauthorized, "the Authorization header is not read: expected Bearer and a token")
		}
		id, err := d.config.Access.Identify(strings.TrimSpace(secret), time.Now())
		id.Via, id.From = p.via, p.from
		if err != nil {
			return id, Refuse(http.StatusUnauthorized, err.Error()+": muster login, or ask an operator for another")
		}
		return id, nil
	}
	switch p.via {
	case access.Socket:
		return d.config.Access.Local(p.name, p.uid, p.gid), nil
	case access.Loopback:
		id := access.Identity{Via: p.via, From: p.from}
		if !d.config.Closed && d.config.Access.Alone() {
			id.Role, id.Tenants = max(access.Viewer, d.config.Loopback), []string{access.Everything}
		}
		return id, nil
	}
	return access.Identity{Via: p.via, From: p.from}, nil
}

// admit applies the limits and rules that every request is under.
func (d *Door) admit(r *http.Request, call *access.Call) error {
	if err := d.slow(&call.Identity, r, call); err != nil {
		return err
	}
	if peerOf(r).via == access.Loopback && !localHost(r.Host) {
		return Refuse(http.StatusForbidden, "this is for programs on this machine: use 127.0.0.1 or localhost as the host")
	}
	if foreign(r) {
		return Refuse(http.StatusForbidden, "a page of another origin asked this of your browser: open the console itself")
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		if err := d.config.Audit.Ready(); err != nil {
			d.config.Log.Error("the audit log cannot be written", "error", err)
			return Refuse(http.StatusServiceUnavailable, "the audit log cannot be written, and nothing is changed until it can: the server's log says why")
		}
	}
	return nil
}

// slow takes one request of what the caller may make in a second. Who has not said who
// it is shares that of its address, so that nobody guesses tokens, or fills the logs,
// at the speed of a user.
func (d *Door) slow(id *access.Identity, r *http.Request, call *access.Call) error {
	l, key := d.limiter, id.Key()
	if id.Role == access.Nobody {
		l, key = d.strangers, network(r.RemoteAddr)
	}
	wait, first := l.take(key, time.Now())
	if wait == 0 {
		return nil
	}
	call.Repeated = !first
	return &Failure{Status: http.StatusTooManyRequests, Retry: int(wait/time.Second) + 1,
		Message: fmt.Sprintf("more than %g requests per second: slow down, or submit several jobs in one request", l.perSec)}
}

// network is the address without its port; of IPv6, the network that one customer has.
func network(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if ip := net.ParseIP(host); ip != nil && ip.To4() == nil {
		return ip.Mask(net.CIDRMask(64, 128)).String()
	}
	return host
}

// localHost keeps pages of other sites out, which a browser may be tricked to send here.
func localHost(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip.IsLoopback()
}

// foreign reports whether a page that did not come from here sent a request: by the word
// of its browser, or of an old browser by the origin it names. Pages that people follow a
// link to are not among them, answers of the API are. Programs send neither header.
func foreign(r *http.Request) bool {
	h := r.Header
	switch h.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return false
	case "":
		origin := h.Get("Origin")
		from, err := url.Parse(origin)
		return origin != "" && (err != nil || from.Host != r.Host)
	}
	link := r.Method == http.MethodGet && h.Get("Sec-Fetch-Mode") == "navigate" && h.Get("Sec-Fetch-Dest") == "document"
	return !link || strings.HasPrefix(r.URL.Path, "/v1/")
}

// Deny answers whoever lacks the right that a route takes.
func (d *Door) Deny(w http.ResponseWriter, r *http.Request, takes access.Right) {
	id := access.From(r.Context())
	f := &Failure{Status: http.StatusForbidden}
	switch {
	case id.Role == access.Nobody:
		f.Status, f.Message = http.StatusUnauthorized, "say who you are: muster login, or show a token"
	case takes == access.Ask:
		f.Message = "looking ahead costs, so it takes a name: muster whatif has yours, and the console has it with a token (muster token new)"
	case id.Name == "":
		f.Message = "changes are made over the unix socket, where the kernel says who asks: use the muster command"
	case takes == access.ViewAll:
		f.Message = fmt.Sprintf("this shows the jobs of all tenants, and %s sees those of %s: ask an operator", id.Name, strings.Join(id.Tenants, ", "))
	default:
		f.Message = fmt.Sprintf("this takes the right to %s, and the role of %s is %s: ask an operator", takes, id.Name, id.Role)
	}
	d.Fail(w, r, f)
}

// audit writes a line of what was changed or refused, before that is answered. What
// was asked and allowed is not in it: it would be mostly watching.
func (d *Door) audit(r *http.Request, call *access.Call, request string, status int) {
	question := r.Method == http.MethodGet || r.Method == http.MethodHead
	if call.Refused == "" && question && call.Right != access.Operate || call.Repeated {
		return
	}
	id := &call.Identity
	e := access.Entry{AtUs: time.Now().UnixMicro(), Who: id.Name, From: id.From, Method: r.Method, Path: r.URL.Path, Right: call.Right.String(),
		Allowed: call.Refused == "", Status: status, Why: call.Refused, Note: call.Note, Request: request}
	switch {
	case id.Token != "":
		e.How = "token " + id.Token
	case id.Via == access.Socket:
		e.How = fmt.Sprintf("uid %d", id.UID)
	}
	if err := d.config.Audit.Write(e); err != nil {
		d.config.Log.Error("writing the audit log", "error", err, "who", id.String(), "method", r.Method, "path", r.URL.Path, "status", status)
	}
}
