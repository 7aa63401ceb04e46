package kube

import "encoding/json"

// Quotas is what Kueue's and Volcano's queues say of themselves.
type Quotas struct {
	// Kueue: ClusterQueue and Cohort
	Cohort, CohortName, ParentName string
	Parent                         string // Cohort of v1alpha1; and of a Volcano queue
	ResourceGroups                 []struct {
		Flavors []struct {
			Name      string
			Resources []struct {
				Name                                       string
				NominalQuota, BorrowingLimit, LendingLimit json.RawMessage
			}
		}
	}
	FairSharing *struct{ Weight json.RawMessage }
	Preemption  *struct{ WithinClusterQueue, ReclaimWithinCohort string }
	StopPolicy  string
	// Volcano
	Weight                 json.RawMessage
	Capability, Guaranteed map[string]json.RawMessage
	Deserved               map[string]json.RawMessage
	Guarantee              struct{ Resource map[string]json.RawMessage }
	Reclaimable            *bool
	// LocalQueue
	ClusterQueue string
}
