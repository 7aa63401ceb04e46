package equal

import (
	"slices"
	"testing"

	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline"
)

func TestCut(t *testing.T) {
	for _, c := range []struct {
		layers, stages int
		want           []int32
	}{
		{4, 1, []int32{}},
		{4, 2, []int32{2}},
		{10, 4, []int32{3, 6, 8}},
		{3, 3, []int32{1, 2}},
	} {
		got, why := Partitioner{}.Cut(make([]workload.Layer, c.layers), c.stages, pipeline.Params{})
		if why != "" || !slices.Equal(got, c.want) {
			t.Errorf("%d layers in %d stages: %v, %q, want %v", c.layers, c.stages, got, why, c.want)
		}
	}
	for _, stages := range []int{-1, 0, 4} {
		if _, why := (Partitioner{}).Cut(make([]workload.Layer, 3), stages, pipeline.Params{}); why == "" {
			t.Errorf("3 layers are cut into %d stages", stages)
		}
	}
}
