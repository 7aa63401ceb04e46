package server_test

import (
	"fmt"
	"hash/crc32"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/internal/costtest"
)

// No look ahead of who does not operate the cluster costs more than a request may, whatever
// decides in it and however much is added, and where that was not enough it is said.
func TestNoLookAheadCostsMore(t *testing.T) {
	if costtest.Slowed {
		t.Skip("beside the race detector nothing is measured")
	}
	w := share(t)
	// The solver is compiled for whoever is first to need it.
	w.ask("root", "POST", "/v1/whatif", "application/json", `{"strategy": "gavel", "job": "{name: j, array: 9, estimate: 1h}"}`, "")
	seen := map[int]int{}
	for _, name := range catalogue.Names(nil) {
		if os.Getenv("MUSTER_LONG") == "" && crc32.ChecksumIEEE([]byte(name))%20 != 0 || name == "external" { // which asks a script, and none is started here
			continue
		}
		for what, body := range map[string]string{
			"small jobs":         `"job": "{name: j, tenant: research/vision, array: 1000, estimate: 1h, checkpoint: {on-request: true}}"`,
			"jobs of many sizes": `"job": "{name: j, tenant: research/vision, array: 1000, workers: 2, sizes: [1, 2, 4], estimate: 1h, checkpoint: {on-request: true}}"`,
			"many nodes":         `"add_nodes": 1000, "add_devices": 1, "job": "{name: j, tenant: research/vision, array: 1000, workers: 4, sizes: [1, 2, 4], estimate: 1h, checkpoint: {on-request: true}}"`,
			"many of both":       `"add_nodes": 48, "add_devices": 8, "job": "{name: j, tenant: research/vision, array: 400, workers: 4, sizes: [1, 2, 4], estimate: 1h, checkpoint: {on-request: true}}"`,
		} {
			var status int
			var answer string
			costtest.Within(t, name+", "+what, 1, func() {
				status, answer = w.ask("sue", "POST", "/v1/whatif", "application/json", fmt.Sprintf(`{"strategy": %q, "horizon_s": 7000000, %s}`, name, body), "")
			})
			if seen[status]++; status == http.StatusServiceUnavailable && !strings.Contains(answer, "a second of the server's processor") || status > http.StatusServiceUnavailable || status == http.StatusInternalServerError {
				t.Errorf("%s, %s: %d %.300s", name, what, status, answer)
			}
		}
	}
	if seen[http.StatusOK] == 0 || os.Getenv("MUSTER_LONG") != "" && seen[http.StatusServiceUnavailable] == 0 {
		t.Errorf("answers by status: %v", seen)
	}
	t.Logf("answers by status: %v", seen)
}
