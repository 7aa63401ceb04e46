package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
)

// SaveSnapshot copies a snapshot of everything to w; with anonymise "1" names are
// replaced before they leave the server, with "0" they are not. What arrives may be cut
// short: who uses it checks it.
func (c *Client) SaveSnapshot(ctx context.Context, anonymise string, w io.Writer) error {
	resp, err := c.do(ctx, http.MethodGet, "/v1/snapshot?anonymise="+anonymise, nil, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(w, resp.Body); err != nil {
		return fmt.Errorf("receiving the snapshot: %w", err)
	}
	return nil
}
