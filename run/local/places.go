package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/local/supervise"
)

// KeepPlaces gives each GPU the place that it has had since a control plane of this state
// directory first saw it, so that a job's devices are the same ones whatever others are lost,
// come back or join; a new one has the next place. It returns the places whose GPU is not
// there. Slots are all alike and have no places to keep.
func (m *Machine) KeepPlaces(state string) (absent []plan.DeviceID, err error) {
	if !m.GPUs {
		return nil, nil
	}
	path := filepath.Join(state, "gpus")
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading which GPU has which place: %w", err)
	}
	places := strings.Fields(string(text))
	known := len(places)
	for _, gpu := range m.GPU {
		if !slices.Contains(places, gpu) {
			places = append(places, gpu)
		}
	}
	if len(places) > known {
		if err := supervise.WriteFile(path, []byte(strings.Join(places, "\n")+"\n")); err != nil {
			return nil, fmt.Errorf("keeping which GPU has which place: %w", err)
		}
	}
	for place, gpu := range places {
		if !slices.Contains(m.GPU, gpu) {
			absent = append(absent, plan.DeviceID(place))
		}
	}
	node := m.Cluster.Nodes[0]
	m.Cluster.Nodes, m.Cluster.Devices = nil, nil
	m.Cluster.AddNode(node, len(places))
	m.GPU = places
	return absent, nil
}
