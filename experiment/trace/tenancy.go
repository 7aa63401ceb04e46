package trace

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/musterdl/muster/model/workload"
)

// VirtualCluster is a tenant of a published cluster and how large it is.
type VirtualCluster struct {
	Name string
	Size int64 // what it counts is the tenancy's, and only its proportion matters
}

// tenancy is whose the jobs of a published cluster are.
type tenancy struct {
	name     string
	clusters []VirtualCluster
}

var tenancies = []tenancy{
	// 15 virtual clusters by their nodes of 8 GPUs, as published with Helios (SC'21; sizes of September 2020).
	{name: "venus", clusters: venusClusters},
	// 15 virtual clusters by the GPU-hours of their jobs of September to November 2017: Microsoft published no sizes.
	{name: "philly", clusters: phillyClusters},
}

// venusClusters counts nodes: the VC configuration of Venus in S-Lab-System-Group/Lucid
// (ASPLOS'23), of the cluster that Helios published. They are 135 in all, two more
// than the cluster's 133 nodes; proportions are what is taken from them.
var venusClusters = []VirtualCluster{
	{"vcEwI", 9}, {"vcWoR", 5}, {"vcHvQ", 8}, {"vcvGl", 20}, {"vc8Gr", 6}, {"vcKeu", 12}, {"vcKrE", 4}, {"vcYVn", 11},
	{"vchbv", 4}, {"vcLTP", 8}, {"vchA3", 3}, {"vcJsw", 32}, {"vcefl", 10}, {"vcvlY", 2}, {"vcgkz", 1},
}

// phillyClusters counts GPU-hours, whole ones and at least one: durations times GPUs
// of the jobs of each VC in the cleaned table of Philly (CC BY 4.0). It is a stand-in
// for the sizes, which are not public.
var phillyClusters = []VirtualCluster{
	{"ee9e8c", 233_980}, {"7f04ca", 155_779}, {"b436b2", 115_625}, {"6214e9", 85_666}, {"2869ce", 76_592},
	{"6c71a0", 75_045}, {"0e4a51", 73_055}, {"103959", 35_653}, {"11cb48", 24_378}, {"e13805", 10_500},
	{"ed69ec", 8_522}, {"23dbec", 157}, {"51b7ef", 12}, {"795a4c", 5}, {"925e2b", 1},
}

// VirtualClusters returns the tenants of venus or philly and their sizes, nil of any
// other name.
func VirtualClusters(name string) []VirtualCluster {
	for _, t := range tenancies {
		if t.name == name {
			return append([]VirtualCluster(nil), t.clusters...)
		}
	}
	return nil
}

// What is drawn where a trace says nothing. All of it is made up: of the published
// traces only Philly says which tenant a job is of, and none says who submitted it
// or how much it mattered.
const (
	// mostUsers is the number of users of the largest tenant; the k-th largest has a
	// k-th of it (Zipf), at least one. Within a tenant the k-th user submits a k-th as
	// many jobs as the first.
	mostUsers = 64
	// highPart is the part of the jobs, in a hundred, that have HighPriority.
	highPart = 10
)

// HighPriority is the priority of the tenth of the jobs that WithTenants draws to
// matter more; the others keep 0.
const HighPriority = 10

// Streams of chance, apart from those of the generators, whose seed may be the same.
const (
	drawnTenantStream = iota + 101
	drawnUserStream
	drawnPriorityStream
)

// Tenanted is a trace whose jobs all have a tenant, a user and a priority.
type Tenanted struct {
	reader  Reader
	tenancy *tenancy
	seed    uint64
	users   map[string]int // number of users by tenant

	tenants, names, priorities *rand.Rand
	drawn                      struct{ tenants, users, priorities int }
}

// WithTenants dresses the jobs of r up as those of a cluster with the tenants of venus
// or philly. A job without a tenant gets one, drawn in proportion to the sizes; one
// without a user gets one of its tenant's, called synthetic-TENANT-NUMBER; one of
// priority 0 gets HighPriority in one case of ten. What a trace says stays, and
// nothing else of a job or of its truth is changed. The same seed draws the same,
// and each job's draws do not depend on what others say.
func WithTenants(r Reader, name string, seed uint64) (*Tenanted, error) {
	var names []string
	for i := range tenancies {
		t := &tenancies[i]
		if t.name == name {
			stream := func(id uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, id)) }
			return &Tenanted{reader: r, tenancy: t, seed: seed, users: t.users(), tenants: stream(drawnTenantStream),
				names: stream(drawnUserStream), priorities: stream(drawnPriorityStream)}, nil
		}
		names = append(names, t.name)
	}
	return nil, fmt.Errorf("tenants %q: expected one of %s", name, strings.Join(names, ", "))
}

// users is the number of users of each tenant, by its rank in size.
func (t *tenancy) users() map[string]int {
	users := map[string]int{}
	for _, c := range t.clusters {
		rank := 1
		for _, other := range t.clusters {
			rank += count(other.Size > c.Size)
		}
		users[c.Name] = max(1, mostUsers/rank)
	}
	return users
}

// Next returns the next job of the trace with whose it is.
func (t *Tenanted) Next() (workload.Job, workload.Truth, error) {
	job, truth, err := t.reader.Next()
	if err != nil {
		return job, truth, err
	}
	all := t.tenancy.clusters
	tenant := all[pick(t.tenants, len(all), func(i int) float64 { return float64(all[i].Size) })].Name
	if job.Tenant == "" {
		job.Tenant = tenant
		t.drawn.tenants++
	}
	chance := t.names.Float64()
	if job.User == "" {
		job.User = fmt.Sprintf("synthetic-%s-%d", job.Tenant, zipf(chance, max(1, t.users[job.Tenant])))
		t.drawn.users++
	}
	if high := t.priorities.IntN(100) < highPart; job.Priority == 0 {
		if high {
			job.Priority = HighPriority
		}
		t.drawn.priorities++
	}
	return job, truth, nil
}

// zipf turns a number of [0, 1) into one of 1 to n, k with weight 1/k.
func zipf(chance float64, n int) int {
	var sum float64
	for k := 1; k <= n; k++ {
		sum += 1 / float64(k)
	}
	x := chance * sum
	for k := 1; k < n; k++ {
		if x -= 1 / float64(k); x < 0 {
			return k
		}
	}
	return n
}

// Close closes the trace underneath.
func (t *Tenanted) Close() error { return t.reader.Close() }

// About says, of the jobs handed out so far, what was made up; it belongs beside every
// figure that depends on tenants, users or priorities.
func (t *Tenanted) About() string {
	var what []string
	for _, d := range []struct {
		n    int
		name string
	}{{t.drawn.tenants, "tenants"}, {t.drawn.users, "users"}, {t.drawn.priorities, "priorities"}} {
		if d.n > 0 {
			what = append(what, fmt.Sprintf("the %s of %d jobs", d.name, d.n))
		}
	}
	if len(what) == 0 {
		return "tenants, users and priorities are all the trace's own"
	}
	return fmt.Sprintf("synthetic, drawn by seed %d in the shape of %s: %s", t.seed, t.tenancy.name, strings.Join(what, ", "))
}
