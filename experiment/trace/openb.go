package trace

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
)

// openbFormat reads the pods of Alibaba's GPU-sharing cluster of 2023. A pod is
// one worker. It runs from creation to deletion, which counts the little time it
// waited there; the lists without times submit all pods at once, for ever.
var openbFormat = format{
	name:  "openb",
	about: "Alibaba GPU sharing 2023 (FGD): pods with fractions of a GPU (research use)",
	file:  "openb_pod_list_default.csv.gz",
	columns: []column{
		{name: "name", required: true, set: setName},
		{name: "cpu_milli", required: true, set: setCPU},
		{name: "memory_mib", required: true, set: setHostMemory},
		{name: "num_gpu", required: true, set: setPodDevices},
		{name: "gpu_milli", required: true, set: setPodShare},
		{name: "gpu_spec", set: setSpec},
		{name: "qos"},
		{name: "pod_phase"},
		{name: "creation_time", set: setSubmit},
		{name: "deletion_time", set: setEnd},
		{name: "scheduled_time"},
	},
	finish: finishPod,
}

func finishPod(r *record) (string, error) {
	// gpu_milli means something for one GPU only: pods without have 0, pods with
	// several have 1000.
	if r.job.Devices != 1 {
		r.job.Share = unit.Whole
	} else if r.job.Share == 0 {
		return "gpu_milli", errors.New(`"0": expected 1 to 1000 for a pod with a GPU`)
	}
	if r.end == unit.Never {
		return "", nil
	}
	if r.truth.Duration = r.end.Sub(r.job.Submit); r.truth.Duration < 0 {
		return "deletion_time", errors.New("lies before creation_time: expected it later")
	}
	return "", nil
}

func setCPU(r *record, cell string) error {
	n, err := whole(cell, 0, maxMilli)
	r.job.CPU = unit.Milli(n)
	return err
}

func setHostMemory(r *record, cell string) error {
	n, err := whole(cell, 0, maxMiB)
	r.job.HostMemory = unit.MiB(n)
	return err
}

func setPodDevices(r *record, cell string) error {
	n, err := whole(cell, 0, maxNodeDevices)
	r.job.Devices = int32(n)
	return err
}

func setPodShare(r *record, cell string) error {
	n, err := whole(cell, 0, int64(unit.Whole))
	r.job.Share = unit.Milli(n)
	return err
}

// setSpec reads the allowed models; some pods name one twice.
func setSpec(r *record, cell string) error {
	if err := setModels(r, cell); err != nil {
		return err
	}
	slices.Sort(r.job.Models)
	r.job.Models = slices.Compact(r.job.Models)
	return nil
}

func setEnd(r *record, cell string) error {
	d, err := seconds(cell)
	r.end = unit.Time(d)
	return err
}

// openbNodes is the well-known node list of the data set.
const openbNodes = "openb_node_list_gpu_node.csv"

// nodeFormat is read by the same machinery as jobs: a node's model rides in the
// record's Class.
var nodeFormat = format{
	name: "openb nodes",
	columns: []column{
		{name: "sn", required: true, set: setName},
		{name: "cpu_milli", required: true, set: setCPU},
		{name: "memory_mib", required: true, set: setHostMemory},
		{name: "gpu", required: true, set: setPodDevices},
		{name: "model", required: true, blank: true, set: setClass},
	},
	finish: func(r *record) (string, error) {
		if (r.job.Devices > 0) != (r.job.Class != "") {
			return "model", fmt.Errorf("%q with %d GPUs: expected a model exactly where there are GPUs",
				r.job.Class, r.job.Devices)
		}
		return "", nil
	},
}

// OpenbCluster reads the nodes of the openb data set: a node list, or the
// directory that holds it (then its 1,213 nodes with GPUs). The list knows no
// racks and no speeds, so there is one rack and every model has speed 1. The
// memory of a device is what the model's name or data sheet says; for G2 and G3,
// whose vendor is not disclosed, it is 0 and so satisfies no declared need.
func OpenbCluster(path string) (*cluster.Cluster, error) {
	src, err := locate(path, openbNodes)
	if err != nil {
		return nil, fmt.Errorf("reading openb nodes: %w", err)
	}
	records, err := readAll(&nodeFormat, src)
	if err != nil {
		return nil, fmt.Errorf("reading openb nodes: %w", err)
	}
	memory := map[string]unit.MiB{"A10": 24 << 10, "P100": 16 << 10, "T4": 16 << 10,
		"V100M16": 16 << 10, "V100M32": 32 << 10}
	c := &cluster.Cluster{Name: "openb"}
	rack := c.AddRack(cluster.Rack{Name: "rack0"})
	for _, r := range records {
		model := r.job.Class
		if model == "" {
			model = "none" // a node without devices still names a model
		}
		id := c.AddModel(cluster.Model{Name: model, Memory: memory[model], Speed: 1})
		c.AddNode(cluster.Node{Name: strings.Clone(r.job.Name), Rack: rack, Model: id,
			CPU: r.job.CPU, Memory: r.job.HostMemory}, int(r.job.Devices))
	}
	return c, nil
}
