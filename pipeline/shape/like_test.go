package shape_test

import (
	"testing"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/shape"
)

// TestLike: a device is known by its name, by the beginning of it and by what nvidia-smi calls it;
// of several kinds it is the one whose memory is nearest, and a name that says it all stands for itself.
func TestLike(t *testing.T) {
	for _, c := range []struct {
		name   string
		memory unit.MiB
		want   string
	}{
		{"A100-40GB", 0, "A100-40GB"}, {"a100", 0, "A100-80GB"}, {"A100", 40 << 10, "A100-40GB"},
		{"NVIDIA A100-SXM4-40GB", 40536, "A100-40GB"}, {"NVIDIA A100-SXM4-80GB", 81920, "A100-80GB"}, {"NVIDIA H100 80GB HBM3", 81559, "H100"},
		{"Tesla V100-SXM2-16GB", 16160, "V100-16GB"}, {"Tesla T4", 15360, "T4"}, {"NVIDIA GH200 480GB", 97871, "GH200-96GB"},
		{"NVIDIA A10", 23028, ""}, {"NVIDIA T400", 4096, ""}, {"", 0, ""},
	} {
		if got, why := shape.Like(c.name, c.memory, shape.Half); got.Name != c.want || (why == "") != (c.want != "") {
			t.Errorf("%q with %v is %q (%s), want %q", c.name, c.memory, got.Name, why, c.want)
		}
	}
}
