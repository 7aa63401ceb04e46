package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/musterdl/muster/internal/access"
)

// Whoami says who the server takes the caller for.
func (c *Client) Whoami(ctx context.Context) (access.Whoami, error) {
	return call[access.Whoami](ctx, c, http.MethodGet, "/v1/whoami")
}

// Users lists the users.
func (c *Client) Users(ctx context.Context) (access.UserList, error) {
	return call[access.UserList](ctx, c, http.MethodGet, "/v1/users")
}

// AddUser adds a user.
func (c *Client) AddUser(ctx context.Context, u access.User) (access.ChangedUser, error) {
	return send[access.ChangedUser](ctx, c, http.MethodPost, "/v1/users", u)
}

// SetUser replaces a user; the tokens stay.
func (c *Client) SetUser(ctx context.Context, u access.User) (access.ChangedUser, error) {
	return send[access.ChangedUser](ctx, c, http.MethodPut, "/v1/users/"+url.PathEscape(u.Name), u)
}

// RemoveUser removes a user and the tokens.
func (c *Client) RemoveUser(ctx context.Context, name string) error {
	_, err := call[struct{}](ctx, c, http.MethodDelete, "/v1/users/"+url.PathEscape(name))
	return err
}

// Tokens lists the caller's tokens, or everybody's for an operator.
func (c *Client) Tokens(ctx context.Context) (access.TokenList, error) {
	return call[access.TokenList](ctx, c, http.MethodGet, "/v1/tokens")
}

// NewToken makes a token.
func (c *Client) NewToken(ctx context.Context, r access.TokenRequest) (access.NewToken, error) {
	return send[access.NewToken](ctx, c, http.MethodPost, "/v1/tokens", r)
}

// RevokeToken ends the token of an id.
func (c *Client) RevokeToken(ctx context.Context, id string) (access.Token, error) {
	return call[access.Token](ctx, c, http.MethodDelete, "/v1/tokens/"+url.PathEscape(id))
}

// Audit returns lines of the audit log, the latest last; a limit of 0 is the server's.
func (c *Client) Audit(ctx context.Context, q access.Query) (access.AuditList, error) {
	v := url.Values{"who": {q.Who}, "since_us": {strconv.FormatInt(q.SinceUs, 10)}}
	if q.Refused {
		v.Set("refused", "1")
	}
	if q.Limit > 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	return call[access.AuditList](ctx, c, http.MethodGet, "/v1/audit?"+v.Encode())
}
