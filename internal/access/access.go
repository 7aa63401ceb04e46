// Package access says who may do what. A call has an identity: the kernel's word for
// the peer of the local socket, or the user of a token that was shown. An identity
// has a role, and sees the jobs of its tenants; a route of the API names the right
// that it takes, in one table. What was refused, and every change, goes to an
// append-only log.
//
// Tokens are 256 random bits, kept as their SHA-256 only. A slow hash such as bcrypt
// protects passwords, which people choose and others guess; nobody guesses 256 random
// bits, and a slow hash would only make every call slow.
package access

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Role is how much an identity may do; each may do what those below it may.
type Role uint8

// The roles. Nobody has not said who it is.
const (
	Nobody Role = iota
	Viewer
	Submitter
	QueueAdmin
	Operator
)

var roleNames = [...]string{"nobody", "viewer", "submitter", "queue-admin", "operator"}

// String is the role's name.
func (r Role) String() string { return roleNames[r] }

// MarshalText writes the role's name.
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads the name of a role that a user can have.
func (r *Role) UnmarshalText(text []byte) error {
	i := slices.Index(roleNames[1:], string(text))
	if i < 0 {
		return fmt.Errorf("role %q: expected %s", text, strings.Join(roleNames[1:], ", "))
	}
	*r = Role(i + 1)
	return nil
}

// Right is what a route takes. The zero Right is none: no route can have it.
type Right uint8

// The rights.
const (
	Anyone     Right = iota + 1 // whoever reaches the server: nothing but signs of life
	Machine                     // any program on this machine, and whoever may look: sums without names
	View                        // to see the jobs of one's tenants: handlers ask Identity.Sees
	Ask                         // to have something worked out, which costs: takes a name, or a role above Viewer
	ViewAll                     // to see the jobs of all tenants
	Submit                      // to submit, and to change what one owns: handlers ask Identity.Steers
	Administer                  // to change queues: handlers ask Identity.Administers
	Operate                     // to change what is everybody's
)

var rightNames = [...]string{"", "anyone", "machine", "view", "ask", "view-all", "submit", "administer", "operate"}

// String is the right's name.
func (r Right) String() string { return rightNames[r] }

// Via is the way a call came.
type Via uint8

// The ways. Remote is the one that promises nothing.
const (
	Remote   Via = iota
	Loopback     // a port that only this machine reaches
	Socket       // the unix socket, whose peers the kernel names
)

// Everything, as a tenant or a queue, is all of them.
const Everything = "*"

// Identity is who calls. The zero Identity is somebody unknown, from elsewhere.
type Identity struct {
	Name    string // whose jobs are its own; empty for who has not said
	Role    Role
	Tenants []string // whose jobs it sees and submits, those below in the tree too
	Queues  []string // it administers, those below too
	Via     Via
	From    string // the address, for the log
	// Token is the id of the token that was shown, and Expires its end; both are zero
	// where the kernel or nobody vouches.
	Token    string
	Expires  time.Time
	UID, GID uint32 // on the socket
}

// String names the identity for events and logs.
func (id *Identity) String() string {
	switch {
	case id.Token != "":
		return id.Name + " token=" + id.Token
	case id.Via == Socket:
		return fmt.Sprintf("%s uid=%d gid=%d", id.Name, id.UID, id.GID)
	}
	return "anonymous"
}

// Key is the same for all calls of one identity, however it calls, and of no other.
func (id *Identity) Key() string {
	switch {
	case id.Token != "":
		return "@" + id.Name
	case id.Via == Socket:
		return fmt.Sprint(id.UID)
	}
	return "anonymous"
}

// May reports whether the identity has a right.
func (id *Identity) May(r Right) bool {
	switch r {
	case Anyone:
		return true
	case Machine:
		return id.Via != Remote || id.Role >= Viewer
	case View:
		return id.Role >= Viewer
	case Ask:
		return id.Role > Viewer || id.Role == Viewer && id.Name != ""
	case ViewAll:
		return id.Role >= Viewer && id.SeesAll()
	case Submit:
		return id.Role >= Submitter
	case Administer:
		return id.Role >= QueueAdmin
	case Operate:
		return id.Operates()
	}
	return false
}

// Operates reports whether it may change what belongs to nobody or to others.
func (id *Identity) Operates() bool { return id.Role == Operator }

// Owns reports whether what belongs to a user is its own.
func (id *Identity) Owns(user string) bool {
	return id.Operates() || id.Name != "" && id.Name == user
}

// SeesAll reports whether it sees the jobs of all tenants.
func (id *Identity) SeesAll() bool {
	return id.Operates() || id.Role >= Viewer && (slices.Contains(id.Tenants, Everything) || slices.Contains(id.Queues, Everything))
}

// Sees reports whether it sees what belongs to a user of a tenant; an owner of "" is
// no one's, such as a queue.
func (id *Identity) Sees(tenant, owner string) bool {
	return id.Operates() || id.Role >= Viewer && (within(tenant, id.Tenants) || within(tenant, id.Queues) || id.Name != "" && id.Name == owner)
}

// Administers reports whether it may change a queue, and the jobs that are in it.
func (id *Identity) Administers(queue string) bool {
	return id.Operates() || id.Role >= QueueAdmin && within(queue, id.Queues)
}

// Steers reports whether it may change the job of a user of a tenant and read its log.
func (id *Identity) Steers(tenant, owner string) bool {
	return id.Owns(owner) || id.Administers(tenant)
}

// Tenant is the tenant of a job that it submits for a tenant, the first of its own
// where the job names none; false is one that it may not submit for.
func (id *Identity) Tenant(named string) (string, bool) {
	own := slices.Concat(id.Tenants, id.Queues)
	switch {
	case id.SeesAll():
		return named, true
	case named == "" && len(own) > 0:
		return own[0], true
	}
	return named, named == "" || within(named, own)
}

// within reports whether a path is one of the given or below one.
func within(path string, of []string) bool {
	return slices.ContainsFunc(of, func(o string) bool { return o == Everything || path == o || strings.HasPrefix(path, o+"/") })
}

// Call is what is known of a call while it is answered.
type Call struct {
	Identity Identity
	Right    Right  // that its route takes, once that is known
	Refused  string // why it was refused; empty where it was not
	Repeated bool   // as the one before it was: one line in the log is enough
	Note     string // what it did, where method and path do not say
}

type callKey struct{}

// With returns a context that carries a call.
func With(ctx context.Context, c *Call) context.Context { return context.WithValue(ctx, callKey{}, c) }

// From is who calls. Without a call in the context it is nobody, who may do nothing.
func From(ctx context.Context) *Identity { return &CallOf(ctx).Identity }

// CallOf is the call that a context carries, or an empty one.
func CallOf(ctx context.Context) *Call {
	if c, ok := ctx.Value(callKey{}).(*Call); ok {
		return c
	}
	return &Call{}
}
