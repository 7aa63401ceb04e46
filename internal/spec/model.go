package spec

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/shape"
)

// modelFile is a model as a user writes it: a transformer by its shape, or layers as they were
// measured, a sample each.
type modelFile struct {
	shape.Shape
	Precision shape.Precision
	Layers    []workload.Layer
	Batch     int
	State     parallel.State
}

// Model reads the file of a model that is to be planned. An error is of type Problems.
func Model(file string, data []byte) (*parallel.Model, error) {
	d := newDecoder(file)
	f := modelFile{Precision: shape.Half, State: parallel.ShardedAdam}
	d.document(data, reflect.ValueOf(&f).Elem())
	m := &parallel.Model{Name: f.Name, Batch: f.Batch, State: f.State}
	between(d, "batch", int64(f.Batch), 0, maxDevices)
	switch {
	case len(d.problems) > 0:
	case len(f.Layers) > 0:
		*m = *parallel.Of(workload.Pipeline{Layers: f.Layers, Microbatches: int32(f.Batch)})
		m.Name = f.Name
		if d.has("state") {
			m.State = f.State
		}
		if why := (&pipeline.Params{}).Check(f.Layers, 1, 1); why != "" {
			d.wrong("layers", string(why), "", "")
		}
	default:
		p, wrong := shape.New(f.Shape, f.Precision)
		m = p.Model(f.Name, f.Batch, f.State)
		for _, w := range wrong {
			d.wrong(w.Field, w.Found, w.Expected, w.Do)
		}
	}
	if !slices.Contains(shape.Precisions, f.Precision) {
		d.wrong("precision", quote(string(f.Precision)), fmt.Sprintf("one of %v", shape.Precisions), "")
	}
	if s := f.State; min(s.Weights, s.Gradients, s.Optimizer) < 0 || max(s.Weights, s.Gradients, s.Optimizer) > 100 {
		d.wrong("state", fmt.Sprintf("%+v", s), "multiples of the weights, from 0 to 100", "")
	}
	if err := d.problems.err(); err != nil {
		return nil, err
	}
	return m, nil
}

// Own reads the file of the model that a job trains: a transformer by its shape, and nothing else. The batch
// is the job's, and the kind of its devices says in which precision it computes. An error is of type Problems.
func Own(file string, data []byte) (*shape.Shape, error) {
	m, err := Model(file, data)
	if err != nil {
		return nil, err
	}
	d := newDecoder(file)
	var f modelFile
	d.document(data, reflect.ValueOf(&f).Elem())
	for _, also := range []struct{ field, expected string }{
		{"layers", "the shape of a transformer; measured layers stand in the job, under pipeline"}, {"batch", "nothing: it stands in the job, under pipeline"},
		{"precision", "nothing: slots compute in single precision, other devices in half"}, {"state", "nothing: what Adam holds in that precision"},
	} {
		if d.has(also.field) {
			d.wrong(also.field, "a field of a model that a job trains", also.expected, "remove it")
		}
	}
	if err := d.problems.err(); err != nil {
		return nil, err
	}
	return m.Profile.(*shape.Profile).Shape(), nil
}
