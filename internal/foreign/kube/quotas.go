package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Quotas is what Kueue's and Volcano's queues say of themselves.
type Quotas struct {
	// Kueue: ClusterQueue and Cohort
	Cohort, CohortName, ParentName string
	Parent                         string // Cohort of v1alpha1; and of a Volcano queue
	ResourceGroups                 []struct{ Flavors []flavor }
	FairSharing                    *struct{ Weight json.RawMessage }
	Preemption                     *struct{ WithinClusterQueue, ReclaimWithinCohort string }
	StopPolicy                     string
	// Volcano
	Weight      json.RawMessage
	Capability  map[string]json.RawMessage
	Deserved    map[string]json.RawMessage
	Guarantee   struct{ Resource map[string]json.RawMessage }
	Reclaimable *bool
}

type flavor struct {
	Name      string
	Resources []struct {
		Name                                       string
		NominalQuota, BorrowingLimit, LendingLimit json.RawMessage
	}
}

// Quota is what a queue has of the devices of one flavor; Borrow and Lend are nil where nothing bounds them.
type Quota struct {
	Flavor       string
	Nominal      float64
	Borrow, Lend *float64
}

// GPUs are a queue's quotas of devices, and whether there are others.
func (q *Quotas) GPUs() (all []Quota, others bool, err error) {
	for _, g := range q.ResourceGroups {
		for _, f := range g.Flavors {
			for _, r := range f.Resources {
				if !IsGPU(r.Name) {
					others = true
					continue
				}
				quota := Quota{Flavor: f.Name}
				if quota.Nominal, err = Number(r.NominalQuota, 0); err != nil {
					return nil, false, fmt.Errorf("%s: %w", f.Name, err)
				}
				var errs [2]error
				quota.Borrow, errs[0] = bound(r.BorrowingLimit)
				quota.Lend, errs[1] = bound(r.LendingLimit)
				if err := errors.Join(errs[:]...); err != nil {
					return nil, false, fmt.Errorf("%s: %w", f.Name, err)
				}
				all = append(all, quota)
			}
		}
	}
	return all, others, nil
}

// bound is a quantity, nil where none is given.
func bound(raw json.RawMessage) (*float64, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	n, err := quantity(raw)
	return &n, err
}

// Devices adds up the devices of a list of resources, and says whether it has others.
func Devices(list map[string]json.RawMessage) (n float64, others bool, err error) {
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if !IsGPU(name) {
			others = true
			continue
		}
		more, err := quantity(list[name])
		if err != nil {
			return 0, false, fmt.Errorf("%s: %w", name, err)
		}
		n += more
	}
	return n, others, nil
}

// Number is a quantity that may be left out.
func Number(raw json.RawMessage, otherwise float64) (float64, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return otherwise, nil
	}
	return quantity(raw)
}
