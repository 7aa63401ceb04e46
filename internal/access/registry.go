package access

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
)

// User is a person or a service account.
type User struct {
	Name    string   `json:"name"` // also of the account on the machine that its jobs run as
	Service bool     `json:"service,omitempty"`
	Role    Role     `json:"role"`
	Tenants []string `json:"tenants,omitempty"` // "*" is all
	Queues  []string `json:"queues,omitempty"`  // that a queue-admin administers; "*" is all
	AddedUs int64    `json:"added_us"`
	By      string   `json:"by,omitempty"`
}

// Registry knows the users and their tokens. Every change is durable before it is
// answered, and counts from then on. The zero Registry forgets them when it goes.
type Registry struct {
	path string // of the file; empty is none

	mu        sync.RWMutex
	book      book
	byHash    map[[sha256.Size]byte]int // index of book.Tokens
	followers map[*follower]struct{}
}

// book is the file.
type book struct {
	Format int      `json:"format"`
	Users  []User   `json:"users"`
	Tokens []stored `json:"tokens"`
}

const bookFormat = 1

// Mistakes that a caller makes.
var (
	ErrExists = errors.New("it exists")
	ErrNone   = errors.New("there is none")
	ErrAsked  = errors.New("that cannot be")
)

// Open reads the registry of a directory, which it makes where there is none.
func Open(dir string) (*Registry, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the directory of users and tokens: %w", err)
	}
	r := &Registry{path: filepath.Join(dir, "users.json")}
	data, err := os.ReadFile(r.path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading users and tokens: %w", err)
	}
	if err := json.Unmarshal(data, &r.book); err != nil {
		return nil, fmt.Errorf("reading users and tokens: %s: %w", r.path, err)
	}
	if r.book.Format != bookFormat {
		return nil, fmt.Errorf("%s has format %d, this program reads %d", r.path, r.book.Format, bookFormat)
	}
	r.book.sort() // a person may have written it
	r.index()
	return r, nil
}

func (r *Registry) index() {
	r.byHash = make(map[[sha256.Size]byte]int, len(r.book.Tokens))
	for i := range r.book.Tokens {
		r.byHash[r.book.Tokens[i].Hash] = i
	}
}

// change makes a change: to a copy, then to the file, then for everybody.
func (r *Registry) change(now time.Time, f func(b *book) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := book{Format: bookFormat, Users: slices.Clone(r.book.Users), Tokens: slices.Clone(r.book.Tokens)}
	if err := f(&b); err != nil {
		return err
	}
	b.Tokens = slices.DeleteFunc(b.Tokens, func(t stored) bool { return t.forgotten(now) })
	if r.path != "" {
		data, err := json.MarshalIndent(&b, "", " ")
		if err != nil {
			return fmt.Errorf("encoding users and tokens: %w", err)
		}
		if err := replace(r.path, append(data, '\n')); err != nil {
			return fmt.Errorf("writing users and tokens: %w", err)
		}
	}
	r.book = b
	r.index()
	for f := range r.followers {
		go f.check() // which asks the registry
	}
	return nil
}

// replace writes a file so that after a crash there is the old one or the new one.
func replace(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // for its owner only
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// check says what is wrong with a user.
func (u *User) check() error {
	if err := u.wrong(); err != nil {
		return fmt.Errorf("%w: %w", ErrAsked, err)
	}
	return nil
}

func (u *User) wrong() error {
	if !named(u.Name, "@") {
		return fmt.Errorf("name %q: expected up to %d letters, digits and any of -_.@, and neither - nor . first", u.Name, mostName)
	}
	for _, path := range slices.Concat(u.Tenants, u.Queues) {
		if path != Everything && slices.ContainsFunc(strings.Split(path, "/"), func(part string) bool { return !named(part, "@") }) {
			return fmt.Errorf("%q: expected the name of a tenant or queue, such as research/vision, or * for all", path)
		}
	}
	switch {
	case u.Role < Viewer || u.Role > Operator:
		return fmt.Errorf("user %s has no role: expected %s", u.Name, strings.Join(roleNames[1:], ", "))
	case u.Role == QueueAdmin && len(u.Queues) == 0:
		return fmt.Errorf("user %s: no queues: expected those that a queue-admin administers, * is all", u.Name)
	case u.Role != QueueAdmin && len(u.Queues) > 0:
		return fmt.Errorf("user %s: queues are for a queue-admin, not for a %s", u.Name, u.Role)
	}
	return nil
}

const mostName = 200

// named reports whether a word is a name.
func named(word, also string) bool {
	return word != "" && len(word) <= mostName && word[0] != '-' && word[0] != '.' && !strings.ContainsFunc(word, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_."+also, c))
	})
}

// Add adds a user. The error wraps ErrExists where there is one of that name.
func (r *Registry) Add(u User, now time.Time) error {
	return r.change(now, func(b *book) error {
		if b.user(u.Name) != nil {
			return fmt.Errorf("user %s: %w", u.Name, ErrExists)
		}
		b.Users = append(b.Users, u)
		b.sort()
		return u.check()
	})
}

// Set replaces a user, whose tokens stay. The error wraps ErrNone where there is none
// of that name.
func (r *Registry) Set(u User, now time.Time) error {
	return r.change(now, func(b *book) error {
		old := b.user(u.Name)
		if old == nil {
			return fmt.Errorf("user %s: %w", u.Name, ErrNone)
		}
		u.AddedUs, u.By = old.AddedUs, old.By
		*old = u
		return u.check()
	})
}

// Remove removes a user and the tokens; the user's jobs stay.
func (r *Registry) Remove(name string, now time.Time) error {
	return r.change(now, func(b *book) error {
		if b.user(name) == nil {
			return fmt.Errorf("user %s: %w", name, ErrNone)
		}
		b.Users = slices.DeleteFunc(b.Users, func(u User) bool { return u.Name == name })
		b.Tokens = slices.DeleteFunc(b.Tokens, func(t stored) bool { return t.User == name })
		return nil
	})
}

// Users are all users, by name.
func (r *Registry) Users() []User {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return append([]User{}, r.book.Users...)
}

func (b *book) sort() {
	slices.SortFunc(b.Users, func(x, y User) int { return strings.Compare(x.Name, y.Name) })
}

// user is the user of a name, or nil.
func (b *book) user(name string) *User {
	i, found := slices.BinarySearchFunc(b.Users, name, func(u User, name string) int { return strings.Compare(u.Name, name) })
	if !found {
		return nil
	}
	return &b.Users[i]
}

// Alone reports whether there are no users: this is one person's machine.
func (r *Registry) Alone() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.book.Users) == 0
}

// Local is the identity of a peer of the socket. Root and the user that the server
// runs as are operators, whatever the registry says: they can read its file. A user
// that the registry knows is what it says. Others submit for themselves, and see
// everything where there are no users, only their own jobs where there are.
func (r *Registry) Local(name string, uid, gid uint32) Identity {
	id := Identity{Name: name, Role: Submitter, Via: Socket, From: "socket", UID: uid, GID: gid}
	r.mu.RLock()
	defer r.mu.RUnlock()
	switch u := r.book.user(name); {
	case uid == 0 || int(uid) == os.Getuid():
		id.Role = Operator
	case u != nil:
		id.Role, id.Tenants, id.Queues = u.Role, u.Tenants, u.Queues
	case len(r.book.Users) == 0:
		id.Tenants = []string{Everything}
	}
	return id
}

// follower is an answer that stays open.
type follower struct{ check func() }

// Follow returns a context that ends when the token of an identity does, or when the
// registry changes so that again, which identifies the caller once more, no longer
// returns the same. The caller calls stop.
func (r *Registry) Follow(ctx context.Context, id *Identity, again func() (Identity, error)) (followed context.Context, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	over := func() bool { return true }
	if !id.Expires.IsZero() {
		over = time.AfterFunc(time.Until(id.Expires), cancel).Stop
	}
	f := &follower{check: func() {
		if now, err := again(); err != nil || !reflect.DeepEqual(&now, id) {
			cancel()
		}
	}}
	r.mu.Lock()
	if r.followers == nil {
		r.followers = map[*follower]struct{}{}
	}
	r.followers[f] = struct{}{}
	r.mu.Unlock()
	f.check() // what changed since the caller was let in
	return ctx, func() {
		over()
		cancel()
		r.mu.Lock()
		delete(r.followers, f)
		r.mu.Unlock()
	}
}
