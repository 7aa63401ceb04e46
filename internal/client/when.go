package client

import (
	"context"
	"net/http"

	"github.com/musterdl/muster/internal/view"
)

// When says when a job starts and ends.
func (c *Client) When(ctx context.Context, name string) (view.When, error) {
	return call[view.When](ctx, c, http.MethodGet, jobPath(name, "/when"))
}

// Promises says how good what was said of starts and ends was.
func (c *Client) Promises(ctx context.Context) (view.Promises, error) {
	return call[view.Promises](ctx, c, http.MethodGet, "/v1/promises")
}

// Shadows says how the strategies in the shadow stand.
func (c *Client) Shadows(ctx context.Context) (view.Shadows, error) {
	return call[view.Shadows](ctx, c, http.MethodGet, "/v1/shadows")
}

// Regrets is Shadows with the history replayed under each.
func (c *Client) Regrets(ctx context.Context) (view.Shadows, error) {
	return call[view.Shadows](ctx, c, http.MethodGet, "/v1/shadows?regret=1")
}

// ChangeShadows adds a shadow or removes one.
func (c *Client) ChangeShadows(ctx context.Context, r view.ShadowRequest) (view.Shadows, error) {
	return send[view.Shadows](ctx, c, http.MethodPost, "/v1/shadows", r)
}
