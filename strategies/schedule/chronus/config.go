package chronus

import (
	"fmt"

	"github.com/musterdl/muster/model/unit"
)

// Config tunes the promises.
type Config struct {
	// Lease is how long one is.
	Lease unit.Duration `yaml:"lease" above:"0"`
	// Fill is how often the room beside the leases is given out anew. It divides Lease.
	Fill unit.Duration `yaml:"fill" above:"0"`
	// Margin is what estimates are multiplied by before they are promised room.
	Margin float64 `yaml:"margin" least:"1"`
	// Switch is what a job of one device loses in a lease by being stopped and started;
	// one of twice as many loses twice, one of four times as many three times that.
	Switch unit.Duration `yaml:"switch" least:"0"`
	// Repack finds new places for all promises where a job has none beside them.
	Repack bool `yaml:"repack"`
	// ExactJobs is up to how many jobs are packed by the integer program where the
	// greedy packing fails; 0 is never. It takes up to seconds, in which nothing else is
	// decided, and on the published trace the jobs it saves cost others their place.
	ExactJobs int `yaml:"exact-jobs" least:"0"`
	// Unguaranteed lets jobs in whose deadline cannot be promised, as best effort,
	// instead of refusing them.
	Unguaranteed bool `yaml:"unguaranteed"`
}

// Default is what the published scripts use, but for the integer program.
func Default() Config {
	return Config{Lease: 20 * unit.Minute, Fill: 5 * unit.Minute, Margin: 1.1, Switch: 30 * unit.Second, Repack: true}
}

// Validate says whether a lease is whole times of filling.
func (c Config) Validate() error {
	if c.Lease%c.Fill != 0 {
		return fmt.Errorf("lease is %s and fill %s: fill must divide lease", c.Lease, c.Fill)
	}
	return nil
}
