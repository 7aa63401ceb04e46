package shape

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/parallel"
)

// Told is a plan as a run is told of it, in the file that MUSTER_PLAN names: where the layers are cut,
// and what each rank does in which order. Of a job that names a model it also says what is trained,
// and the sizes of which the plan was made.
type Told struct {
	pipeline.Plan
	Model *Shape          `json:"model,omitempty"`
	Batch int             `json:"batch,omitempty"` // samples of a step, over all copies
	Shape *parallel.Shape `json:"shape,omitempty"`
}

// ReadTold reads what a run is told. It says nothing of whether the plan can be executed.
func ReadTold(data []byte) (*Told, error) {
	t := &Told{}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(t); err != nil {
		return nil, fmt.Errorf("not a plan: %w", err)
	}
	if t.Model == nil && (t.Shape != nil || t.Batch != 0) {
		return nil, fmt.Errorf("not a plan: a shape or a batch without a model: expected all three or none")
	}
	return t, nil
}
