package client

import (
	"context"
	"net/http"

	"github.com/musterdl/muster/internal/whatif"
)

// WhatIf runs two futures of the cluster and compares them.
func (c *Client) WhatIf(ctx context.Context, q whatif.Request) (whatif.Answer, error) {
	return send[whatif.Answer](ctx, c, http.MethodPost, "/v1/whatif", q)
}

// SwitchStrategy lets another strategy decide, or says what it would do.
func (c *Client) SwitchStrategy(ctx context.Context, q whatif.SwitchRequest) (whatif.Switched, error) {
	return send[whatif.Switched](ctx, c, http.MethodPost, "/v1/strategy", q)
}
