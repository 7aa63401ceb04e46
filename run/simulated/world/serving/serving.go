// Package serving says what is true of inference services that share a device, for the
// simulated world, and what somebody believes who profiles them: the coefficients of the
// law in package sharing, fitted to what was measured. Strategies must not import it.
//
// The measurements are those of iGniter's public repository: four networks on a V100. The
// file may be used and not passed on, so it is read from the folder of published data.
package serving

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"

	"github.com/musterdl/muster/model/sharing"
)

// v100 is the measured profile, Networks what is in it, in the order in which they are fitted.
const v100 = "inference-sharing/igniter/v100_coefficients.config"

// Networks are those that were measured.
var Networks = []string{"alexnet", "resnet50", "vgg19", "ssd"}

// Measured is the profile of a device and of networks on it.
type Measured struct {
	Device   DeviceProfile
	Networks map[string]Profile
}

// V100 reads what was measured on one; open takes a path in the folder of published data.
func V100(open func(path string) (io.ReadCloser, error)) (Measured, error) {
	file, err := open(v100)
	if err != nil {
		return Measured{}, err
	}
	defer file.Close()
	m, err := Read(file)
	if err != nil {
		return m, fmt.Errorf("reading the profile of the V100: %w", err)
	}
	return m, nil
}

// Fit returns the law that goes through the measurements best.
func (m *Measured) Fit() (*sharing.Law, error) {
	d, err := m.Device.Fit()
	if err != nil {
		return nil, err
	}
	law := &sharing.Law{Device: d}
	for _, name := range Networks {
		p := m.Networks[name]
		s, err := p.Fit(name, &d)
		if err != nil {
			return nil, err
		}
		law.Services = append(law.Services, s)
	}
	return law, nil
}

// Again is what another profiling would have measured: each time and power of a network is
// off by a factor whose logarithm has this standard deviation.
func (m *Measured) Again(spread float64, r *rand.Rand) Measured {
	again := Measured{Device: m.Device, Networks: map[string]Profile{}}
	off := func(x *float64) { *x *= math.Exp(spread * r.NormFloat64()) }
	for _, name := range Networks {
		p := m.Networks[name]
		for i := range p.LatencyMs {
			for j := range p.LatencyMs[i] {
				off(&p.LatencyMs[i][j])
				off(&p.Watts[i][j])
			}
			off(&p.Cache[i])
		}
		off(&p.BesideMs)
		again.Networks[name] = p
	}
	return again
}
