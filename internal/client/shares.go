package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/model/queue"
)

// Queues returns the tree of queues, as far as the caller sees it.
func (c *Client) Queues(ctx context.Context) (queue.Tree, error) {
	return call[queue.Tree](ctx, c, http.MethodGet, "/v1/queues")
}

// SetQueues gives the cluster another tree of queues.
func (c *Client) SetQueues(ctx context.Context, t queue.Tree) (queue.Tree, error) {
	return send[queue.Tree](ctx, c, http.MethodPost, "/v1/queues", t)
}

// Shares says how the queues stand.
func (c *Client) Shares(ctx context.Context) (view.Shares, error) {
	return call[view.Shares](ctx, c, http.MethodGet, "/v1/shares")
}

// Accounts returns the books of device time.
func (c *Client) Accounts(ctx context.Context) (view.Accounts, error) {
	return call[view.Accounts](ctx, c, http.MethodGet, "/v1/accounts")
}

// Calendar says what occupies nodes and what is planned.
func (c *Client) Calendar(ctx context.Context) (view.Calendar, error) {
	return call[view.Calendar](ctx, c, http.MethodGet, "/v1/calendar")
}

// CloseNode plans a maintenance window; ChangeNode with "reopen" takes it back.
func (c *Client) CloseNode(ctx context.Context, name string, w view.WindowRequest) (view.Node, error) {
	return send[view.Node](ctx, c, http.MethodPost, "/v1/nodes/"+url.PathEscape(name)+"/close", w)
}
