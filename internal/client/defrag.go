package client

import (
	"context"
	"net/http"

	"github.com/musterdl/muster/engine/defrag"
)

// Defrag asks for a plan of moves, or for one to be carried out.
func (c *Client) Defrag(ctx context.Context, r defrag.Request) (defrag.Shown, error) {
	return send[defrag.Shown](ctx, c, http.MethodPost, "/v1/defrag", r)
}
