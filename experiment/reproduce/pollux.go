package reproduce

import (
	"path/filepath"
	"strings"

	"github.com/musterdl/muster/experiment/reproduce/stand"
	"github.com/musterdl/muster/experiment/trace"
)

// askedBatch behind a pollux trace keeps every job at the batch its user asked for;
// else the job takes the best one on what it is given.
const askedBatch = "?batch=asked"

// openPollux opens a pollux trace with the profiles that lie beside it, or up to two
// folders up.
func openPollux(ref string, o trace.Options) (trace.Reader, error) {
	ref, fixed := strings.CutSuffix(ref, askedBatch)
	path, _, _ := strings.Cut(strings.TrimPrefix(ref, "pollux:"), "#")
	tried := []string{filepath.Join(path, "profiles")}
	for dir := filepath.Dir(path); len(tried) < 4; dir = filepath.Dir(dir) {
		tried = append(tried, filepath.Join(dir, "profiles"))
	}
	apps, err := stand.Polluxes(tried...)
	if err != nil {
		return nil, err
	}
	r, err := trace.Open(ref, o)
	if err != nil {
		return nil, err
	}
	return stand.Timed(r, apps, fixed, false), nil
}
