package server

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/musterdl/muster/internal/access"
	"github.com/musterdl/muster/internal/plane"
)

// who finds out who asks: the user of the token that is shown, however the call came,
// else the kernel's word. A token that is no good is refused where none would do.
func (s *Server) who(r *http.Request) (access.Identity, error) {
	p := peerOf(r)
	if header := r.Header.Get("Authorization"); header != "" {
		kind, secret, _ := strings.Cut(header, " ")
		if !strings.EqualFold(kind, "Bearer") {
			return access.Identity{Via: p.via, From: p.from}, refuse(http.StatusUnauthorized, "the Authorization header is not read: expected Bearer and a token")
		}
		id, err := s.access.Identify(strings.TrimSpace(secret), time.Now())
		id.Via, id.From = p.via, p.from
		if err != nil {
			return id, refuse(http.StatusUnauthorized, err.Error()+": muster login, or ask an operator for another")
		}
		return id, nil
	}
	switch p.via {
	case access.Socket:
		return s.access.Local(p.name, p.uid, p.gid), nil
	case access.Loopback:
		id := access.Identity{Via: p.via, From: p.from}
		if !s.config.Closed && s.access.Alone() {
			id.Role, id.Tenants = max(access.Viewer, s.config.Loopback), []string{access.Everything}
		}
		return id, nil
	}
	return access.Identity{Via: p.via, From: p.from}, nil
}

// admit applies the limits and rules that every request is under.
func (s *Server) admit(r *http.Request, call *access.Call) error {
	if err := s.slow(&call.Identity, r, call); err != nil {
		return err
	}
	if peerOf(r).via == access.Loopback && !localHost(r.Host) {
		return refuse(http.StatusForbidden, "this is for programs on this machine: use 127.0.0.1 or localhost as the host")
	}
	if foreign(r) {
		return refuse(http.StatusForbidden, "a page of another origin asked this of your browser: open the console itself")
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		if err := s.config.Audit.Ready(); err != nil {
			s.config.Log.Error("the audit log cannot be written", "error", err)
			return refuse(http.StatusServiceUnavailable, "the audit log cannot be written, and nothing is changed until it can: the server's log says why")
		}
	}
	return nil
}

// slow takes one request of what the caller may make in a second. Who has not said who
// it is shares that of its address, so that nobody guesses tokens, or fills the logs,
// at the speed of a user.
func (s *Server) slow(id *access.Identity, r *http.Request, call *access.Call) error {
	l, key := s.limiter, id.Key()
	if id.Role == access.Nobody {
		l, key = s.strangers, network(r.RemoteAddr)
	}
	wait, first := l.take(key, time.Now())
	if wait == 0 {
		return nil
	}
	call.Repeated = !first
	return &failure{Status: http.StatusTooManyRequests, retry: int(wait/time.Second) + 1,
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
	return host == "localhost" || ip != nil && ip.IsLoopback()
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

// deny answers whoever lacks the right that a route takes.
func (s *Server) deny(w http.ResponseWriter, r *http.Request, takes access.Right) {
	id := access.From(r.Context())
	f := &failure{Status: http.StatusForbidden}
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
	s.fail(w, r, f)
}

// audit writes a line of what was changed or refused, before that is answered. What
// was asked and allowed is not in it: it would be mostly watching.
func (s *Server) audit(r *http.Request, call *access.Call, request string, status int) {
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
	if err := s.config.Audit.Write(e); err != nil {
		s.config.Log.Error("writing the audit log", "error", err, "who", id.String(), "method", r.Method, "path", r.URL.Path, "status", status)
	}
}

// tenantOf is the tenant of a job, for Identity.Sees and its like.
func tenantOf(info plane.JobInfo) string {
	if info.Spec == nil {
		return ""
	}
	return info.Spec.Tenant
}

func ownerOf(info plane.JobInfo) string {
	if info.Spec == nil {
		return ""
	}
	return info.Spec.User
}

func sees(id *access.Identity, info plane.JobInfo) bool {
	return id.Sees(tenantOf(info), ownerOf(info))
}

// missing is what is said of a job that is not there, or not for the identity: the
// same, or its name could be found out. The audit log is told which it is.
func missing(ref string, id *access.Identity, there bool) error {
	f := &failure{Status: http.StatusNotFound, Message: fmt.Sprintf("there is no job %q: muster ls --all lists them", ref)}
	if there {
		f.denied = fmt.Sprintf("job %s is not of a tenant that %s sees", ref, id.Name)
	}
	return f
}
