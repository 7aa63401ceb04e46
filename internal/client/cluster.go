package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/musterdl/muster/internal/view"
)

// Nodes lists the nodes.
func (c *Client) Nodes(ctx context.Context) (view.Nodes, error) {
	return call[view.Nodes](ctx, c, http.MethodGet, "/v1/nodes")
}

// ChangeNode asks to cordon, uncordon, drain or reopen a node.
func (c *Client) ChangeNode(ctx context.Context, name, verb string) (view.Node, error) {
	return call[view.Node](ctx, c, http.MethodPost, "/v1/nodes/"+url.PathEscape(name)+"/"+url.PathEscape(verb))
}

// Cluster sums up.
func (c *Client) Cluster(ctx context.Context) (view.Cluster, error) {
	return call[view.Cluster](ctx, c, http.MethodGet, "/v1/cluster")
}

// Pause stops all decisions, and Unpause lets them go on.
func (c *Client) Pause(ctx context.Context) (view.Cluster, error) {
	return call[view.Cluster](ctx, c, http.MethodPost, "/v1/pause")
}

// Unpause lets decisions go on.
func (c *Client) Unpause(ctx context.Context) (view.Cluster, error) {
	return call[view.Cluster](ctx, c, http.MethodPost, "/v1/unpause")
}

// Version says what answers.
func (c *Client) Version(ctx context.Context) (view.Version, error) {
	return call[view.Version](ctx, c, http.MethodGet, "/v1/version")
}
