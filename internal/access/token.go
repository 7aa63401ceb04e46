package access

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Token is what is told of a token. The token itself is told once, to who made it.
type Token struct {
	ID        string `json:"id"`
	User      string `json:"user"`
	Note      string `json:"note,omitempty"`
	MadeUs    int64  `json:"made_us"`
	ExpiresUs int64  `json:"expires_us"`
	RevokedUs int64  `json:"revoked_us,omitempty"`
	By        string `json:"by,omitempty"` // who made it
}

// stored is a token as the file has it.
type stored struct {
	Token
	Hash digest `json:"sha256"`
}

type digest [sha256.Size]byte

// MarshalText writes the digest in hexadecimal digits.
func (d digest) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, d[:]), nil }

// UnmarshalText reads what MarshalText wrote.
func (d *digest) UnmarshalText(text []byte) error {
	sum, err := hex.DecodeString(string(text))
	if err != nil || len(sum) != len(d) {
		return fmt.Errorf("sha256 %q: expected %d hexadecimal digits", text, 2*len(d))
	}
	copy(d[:], sum)
	return nil
}

// How tokens are made. The prefix lets programs that look for leaked secrets find them.
const (
	prefix      = "muster_"
	idLetters   = 10
	secretBytes = 32
	mostNote    = 200
	// keptEnded is how long a token that has ended is still listed.
	keptEnded = 90 * 24 * time.Hour
	// MostLife is the longest that a token may live, UsualLife how long it lives where
	// nothing is said.
	MostLife  = 366 * 24 * time.Hour
	UsualLife = 90 * 24 * time.Hour
)

// ended reports whether a token no longer counts.
func (t *Token) ended(now time.Time) bool { return t.RevokedUs != 0 || now.UnixMicro() >= t.ExpiresUs }

func (t *stored) forgotten(now time.Time) bool {
	end := t.ExpiresUs
	if t.RevokedUs != 0 {
		end = t.RevokedUs
	}
	return end < now.Add(-keptEnded).UnixMicro()
}

var letters = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// NewToken makes a token for a user and returns it: nobody can ask for it again.
func (r *Registry) NewToken(user, note, by string, life time.Duration, now time.Time) (secret string, t Token, err error) {
	switch {
	case life <= 0 || life > MostLife:
		return "", t, fmt.Errorf("%w: a life of %v: expected more than none and at most %d days", ErrAsked, life, MostLife/(24*time.Hour))
	case len(note) > mostNote:
		return "", t, fmt.Errorf("%w: the note has %d bytes: expected at most %d", ErrAsked, len(note), mostNote)
	}
	var random [secretBytes]byte
	rand.Read(random[:])
	t = Token{ID: strings.ToLower(rand.Text()[:idLetters]), User: user, Note: note, By: by, MadeUs: now.UnixMicro(), ExpiresUs: now.Add(life).UnixMicro()}
	secret = prefix + t.ID + "_" + letters.EncodeToString(random[:])
	err = r.change(now, func(b *book) error {
		if b.user(user) == nil {
			return fmt.Errorf("user %s: %w", user, ErrNone)
		}
		b.Tokens = append(b.Tokens, stored{t, sha256.Sum256([]byte(secret))})
		return nil
	})
	if err != nil {
		return "", Token{}, err
	}
	return secret, t, nil
}

// Revoke ends a token at once. The error wraps ErrNone where there is none of that id.
func (r *Registry) Revoke(id string, now time.Time) (t Token, err error) {
	err = r.change(now, func(b *book) error {
		i := slices.IndexFunc(b.Tokens, func(t stored) bool { return t.ID == id })
		if i < 0 {
			return fmt.Errorf("token %s: %w", id, ErrNone)
		}
		if b.Tokens[i].RevokedUs == 0 {
			b.Tokens[i].RevokedUs = now.UnixMicro()
		}
		t = b.Tokens[i].Token
		return nil
	})
	return t, err
}

// Tokens are all tokens that have not ended long ago, in the order they were made.
func (r *Registry) Tokens() []Token {
	r.mu.RLock()
	defer r.mu.RUnlock()
	out := []Token{}
	for i := range r.book.Tokens {
		out = append(out, r.book.Tokens[i].Token)
	}
	return out
}

// ErrToken is wrapped by what is wrong with a token that was shown.
var ErrToken = errors.New("the token is not valid")

// Identify returns whose token a secret is. Of a token that has ended it returns
// whose it was, without a role, beside the error. The look-up is by digest, so what
// it takes says nothing about the secret.
func (r *Registry) Identify(secret string, now time.Time) (Identity, error) {
	sum := sha256.Sum256([]byte(secret))
	r.mu.RLock()
	defer r.mu.RUnlock()
	i, known := r.byHash[sum]
	if !known {
		return Identity{}, fmt.Errorf("%w: nobody has it, or it was withdrawn", ErrToken)
	}
	t := &r.book.Tokens[i]
	id := Identity{Name: t.User, Token: t.ID}
	u := r.book.user(t.User)
	switch {
	case t.RevokedUs != 0:
		return id, fmt.Errorf("%w: it was revoked", ErrToken)
	case t.ended(now):
		return id, fmt.Errorf("%w: it expired on %s", ErrToken, time.UnixMicro(t.ExpiresUs).UTC().Format(time.DateTime))
	case u == nil:
		return id, fmt.Errorf("%w: there is no user %s", ErrToken, t.User)
	}
	id.Role, id.Tenants, id.Queues, id.Expires = u.Role, u.Tenants, u.Queues, time.UnixMicro(t.ExpiresUs)
	return id, nil
}
