package local

import (
	"reflect"
	"testing"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run"
)

// TestCaps: a worker with a part of a GPU tells MPS so, a guest up to its ceiling; one
// with whole devices says nothing.
func TestCaps(t *testing.T) {
	devices := []plan.DeviceID{0, 1}
	for _, c := range []struct {
		name   string
		order  run.Order
		worker run.Worker
		memory unit.MiB
		want   []string
	}{
		{"whole", run.Order{}, run.Worker{Share: 1000, Ceiling: 1000, Devices: devices}, 1024, nil},
		{"a share", run.Order{}, run.Worker{Share: 250, Ceiling: 1000, Devices: devices[:1]}, 0, []string{"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=25"}},
		{"a ceiling", run.Order{Terms: plan.Terms{Share: plan.ShareTerms{Ceiling: 500}}}, run.Worker{Share: 250, Ceiling: 500, Devices: devices}, 2048,
			[]string{"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=2048M,1=2048M"}},
		{"up to all", run.Order{Terms: plan.Terms{Share: plan.ShareTerms{Ceiling: 1000}}}, run.Worker{Share: 600, Ceiling: 1000, Devices: devices[:1]}, 2048,
			[]string{"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=2048M"}},
		{"a guest", run.Order{Guest: true}, run.Worker{Ceiling: 300, Devices: devices[:1]}, 0, []string{"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=30"}},
		{"the least", run.Order{}, run.Worker{Share: 5, Devices: devices[:1]}, 0, []string{"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=1"}},
	} {
		c.order.Spec = &workload.Job{Resources: workload.Resources{Memory: c.memory}}
		if got := capsOf(&c.order, &c.worker); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	config := Config{GPU: []string{"GPU-b", "GPU-d"}}
	if got := config.visible(devices); got != "GPU-b,GPU-d" {
		t.Errorf("the GPUs are named %q", got)
	}
}
