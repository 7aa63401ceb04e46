package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"
)

// outlive is how a client goes on when the server is restarted.
type outlive struct {
	contacts atomic.Int64 // how often the server was there
	// Away is told once of each time that the server is gone and waited for; nil is not.
	Away func(err error)
}

// patience is how long a server that was there is waited for, and nextTry how often it
// is looked for then.
const (
	patience = 10 * time.Minute
	nextTry  = 250 * time.Millisecond
)

// again calls f, and again for as long as it fails because a server that was there is
// gone or just starting. A server that never answered is not waited for.
func (c *Client) again(ctx context.Context, f func() error) error {
	var until time.Time
	for seen := int64(0); ; {
		err := f()
		if err == nil || !away(err) {
			return err
		}
		now := time.Now()
		if n := c.contacts.Load(); n != seen {
			seen, until = n, now.Add(patience)
			if c.Away != nil {
				c.Away(err)
			}
		}
		if now.After(until) {
			return err
		}
		select {
		case <-time.After(nextTry):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// away reports whether an error says that the server is gone, or on its way.
func away(err error) bool {
	var refused *Error
	return errors.Is(err, ErrNoServer) ||
		errors.As(err, &refused) && refused.Status == http.StatusServiceUnavailable && refused.later
}

// cut reports whether an error is that of a connection that the other end gave up.
func cut(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
