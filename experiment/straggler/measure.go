package straggler

import (
	_ "embed" // for Claim
	"math"
	"strconv"
	"strings"

	"github.com/musterdl/muster/model/figures"
)

// Claim is what the authors found, as data, for muster reproduce.
//
//go:embed claim.yaml
var Claim []byte

// Measure analyses the authors' traces and tells how far it is off their results.
func Measure(open figures.Open, _ uint64) (map[string]float64, error) {
	got := map[string]float64{}
	// One is a job with a worker that was made slow, one of stages of unequal length.
	for _, name := range []string{"AR", "ST"} {
		trace, err := Read(open, "straggler/trace-"+name+".csv.gz")
		if err != nil {
			return nil, err
		}
		found, err := trace.Cost()
		if err != nil {
			return nil, err
		}
		var want published
		if err := figures.FromJSON(open, "straggler/result-"+name+".json", &want); err != nil {
			return nil, err
		}
		to := strings.ToLower(name) + "_"
		got[to+"slowdown"], got[to+"last"], got[to+"worst"] = found.Slowdown, found.Last, found.Worst
		got[to+"off"] = max(off(found.Launch, want.Launch), off(found.Slowdown, want.Slowdown))
		for dim, by := range map[string]map[string]float64{"dp_rank": want.Copy, "stage": want.Stage, "optype": want.Kind} {
			for group, slowdown := range by {
				got[to+"off"] = max(got[to+"off"], off(found.By[dim][group], slowdown))
			}
		}
		for i, step := range trace.steps {
			at := strconv.Itoa(step)
			most := max(off(found.Measured[i], want.Measured[at]), off(found.Run[i], want.Run[at]), off(found.Usual[i], want.Usual[at]))
			got[to+"steps_off"] = max(got[to+"steps_off"], most)
		}
	}
	return got, nil
}

// off is by how much a figure differs, as a part of what it should be.
func off(got, want float64) float64 { return math.Abs(got/want - 1) }

// published are the authors' results, as far as they have values. Of steps they say seconds,
// by the number of the step.
type published struct {
	Launch   float64            `json:"launch_slowdown"`
	Slowdown float64            `json:"blocking_slowdown"`
	Copy     map[string]float64 `json:"blocking_decompose_by_dp_rank"`
	Stage    map[string]float64 `json:"blocking_decompose_by_stage"`
	Kind     map[string]float64 `json:"blocking_decompose_by_optype"`
	Measured map[string]float64 `json:"step_t_base"`
	Run      map[string]float64 `json:"step_t_nodelay"`
	Usual    map[string]float64 `json:"step_t_noblk"`
}
