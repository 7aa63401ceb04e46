package server

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"os/user"
	"slices"
	"strconv"
	"time"

	"github.com/musterdl/muster/internal/access"
	"github.com/musterdl/muster/internal/server/door"
)

// registrar keeps the users and tokens for those who may change them, and shows the audit log.
type registrar struct {
	registry *access.Registry
	audit    *access.Log
}

func (g *registrar) whoami(w http.ResponseWriter, r *http.Request) error {
	id := access.From(r.Context())
	out := access.Whoami{Name: id.Name, Role: id.Role, Tenants: id.Tenants, Queues: id.Queues, Token: id.Token}
	if id.Operates() {
		out.Tenants = []string{access.Everything}
	}
	if !id.Expires.IsZero() {
		out.ExpiresUs = id.Expires.UnixMicro()
	}
	return door.Answer(w, out)
}

// mistaken translates what the registry says.
func mistaken(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, access.ErrNone):
		return door.Refuse(http.StatusNotFound, err.Error())
	case errors.Is(err, access.ErrExists):
		return door.Refuse(http.StatusConflict, err.Error())
	case errors.Is(err, access.ErrAsked):
		return door.Refuse(http.StatusBadRequest, err.Error())
	}
	return err
}

func (g *registrar) listUsers(w http.ResponseWriter, _ *http.Request) error {
	return door.Answer(w, access.UserList{Users: g.registry.Users()})
}

func (g *registrar) addUser(w http.ResponseWriter, r *http.Request) error {
	return g.changeUser(w, r, "", g.registry.Add)
}

func (g *registrar) setUser(w http.ResponseWriter, r *http.Request) error {
	return g.changeUser(w, r, r.PathValue("user"), g.registry.Set)
}

// changeUser reads a user and has it changed; named is the name in the path.
func (g *registrar) changeUser(w http.ResponseWriter, r *http.Request, named string, change func(access.User, time.Time) error) error {
	var u access.User
	if err := door.Receive(w, r, &u); err != nil {
		return err
	}
	if named != "" {
		u.Name = named
	}
	now := time.Now()
	u.AddedUs, u.By = now.UnixMicro(), access.From(r.Context()).Name
	access.CallOf(r.Context()).Note = fmt.Sprintf("user %s: %s, tenants %v, queues %v", u.Name, u.Role, u.Tenants, u.Queues)
	out := access.ChangedUser{User: u}
	account, err := user.Lookup(u.Name)
	switch {
	case err != nil:
		out.Warning = fmt.Sprintf("this machine has no account %s, so no job of that user can run on it", u.Name)
	case u.Role != access.Operator && (account.Uid == "0" || account.Uid == strconv.Itoa(os.Getuid())): // its jobs would run as that
		return door.Refuse(http.StatusBadRequest, fmt.Sprintf("user %s: on this machine that is root or runs the server, who may do everything: "+
			"choose another name, or make it an operator", u.Name))
	}
	if err := mistaken(change(u, now)); err != nil {
		return err
	}
	return door.Answer(w, out)
}

func (g *registrar) removeUser(w http.ResponseWriter, r *http.Request) error {
	if err := mistaken(g.registry.Remove(r.PathValue("user"), time.Now())); err != nil {
		return err
	}
	return door.Answer(w, struct{}{})
}

// listTokens lists the caller's own, and an operator all.
func (g *registrar) listTokens(w http.ResponseWriter, r *http.Request) error {
	id := access.From(r.Context())
	list := slices.DeleteFunc(g.registry.Tokens(), func(t access.Token) bool { return !id.Owns(t.User) })
	return door.Answer(w, access.TokenList{Tokens: list})
}

// newToken makes a token for the caller, and an operator makes one for anybody. Who
// shows a token gets no other one with it, or a stolen one would never end.
func (g *registrar) newToken(w http.ResponseWriter, r *http.Request) error {
	var ask access.TokenRequest
	if err := door.Receive(w, r, &ask); err != nil {
		return err
	}
	id := access.From(r.Context())
	if ask.User == "" {
		ask.User = id.Name
	}
	switch {
	case !id.Owns(ask.User):
		return door.Refuse(http.StatusForbidden, fmt.Sprintf("a token of %s is made by an operator, or by %s on the server's machine", ask.User, ask.User))
	case id.Token != "" && !id.Operates():
		return door.Refuse(http.StatusForbidden, "a token makes no tokens: do it on the server's machine, or ask an operator")
	case math.IsNaN(ask.LifeS) || math.Abs(ask.LifeS) > 1e9:
		return door.Refuse(http.StatusBadRequest, "life_s: expected seconds")
	}
	life := access.UsualLife
	if ask.LifeS != 0 {
		life = time.Duration(ask.LifeS * float64(time.Second))
	}
	secret, t, err := g.registry.NewToken(ask.User, ask.Note, id.Name, life, time.Now())
	if err != nil {
		return mistaken(err)
	}
	access.CallOf(r.Context()).Note = fmt.Sprintf("token %s of %s", t.ID, t.User)
	w.Header().Set("Cache-Control", "no-store")
	door.WriteJSON(w, http.StatusCreated, access.NewToken{Token: t, Secret: secret})
	return nil
}

// revokeToken ends a token of the caller's, and for an operator anybody's.
func (g *registrar) revokeToken(w http.ResponseWriter, r *http.Request) error {
	id, name := access.From(r.Context()), r.PathValue("token")
	i := slices.IndexFunc(g.registry.Tokens(), func(t access.Token) bool { return t.ID == name && id.Owns(t.User) })
	if i < 0 && !id.Operates() {
		return &door.Failure{Status: http.StatusNotFound, Message: fmt.Sprintf("you have no token %q: muster token ls lists yours", name),
			Denied: fmt.Sprintf("token %q is not one of %s", name, id.Name)}
	}
	t, err := g.registry.Revoke(name, time.Now())
	if err != nil {
		return mistaken(err)
	}
	access.CallOf(r.Context()).Note = fmt.Sprintf("token %s of %s", t.ID, t.User)
	return door.Answer(w, t)
}

// readAudit answers with the latest lines: ?limit=, of ?who=, ?refused=1, ?since_us=.
func (g *registrar) readAudit(w http.ResponseWriter, r *http.Request) error {
	limit, err := door.Number(r, "limit", usualListed, 1, mostListed)
	if err != nil {
		return err
	}
	since, err := door.Number(r, "since_us", 0, 0, math.MaxInt)
	if err != nil {
		return err
	}
	q := access.Query{Who: r.URL.Query().Get("who"), SinceUs: int64(since), Limit: limit}
	q.Refused = r.URL.Query().Get("refused") == "1"
	list, err := g.audit.Read(q)
	if err != nil {
		return err
	}
	return door.Answer(w, access.AuditList{Entries: list})
}
