package advise

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/musterdl/muster/run/kube/api"
)

// records are the records that the driver keeps of jobs, in memory. There is one writer,
// so no write is in conflict with another.
type records struct {
	jobs   map[types.NamespacedName]api.Job
	ledger *api.Ledger
}

var (
	_ api.Records = (*records)(nil)
	_ api.Ledgers = (*records)(nil)
)

func newRecords() *records { return &records{jobs: map[types.NamespacedName]api.Job{}} }

// ListJobs implements api.Records.
func (r *records) ListJobs(context.Context) ([]api.Job, error) {
	list := make([]api.Job, 0, len(r.jobs))
	for _, j := range r.jobs {
		list = append(list, j)
	}
	slices.SortFunc(list, func(a, b api.Job) int { return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name) })
	return list, nil
}

// GetJob implements api.Records.
func (r *records) GetJob(_ context.Context, namespace, name string) (api.Job, bool, error) {
	j, ok := r.jobs[types.NamespacedName{Namespace: namespace, Name: name}]
	return j, ok, nil
}

// PutJob implements api.Records. Records of jobs that are over go, as in reality they
// go with their owners.
func (r *records) PutJob(_ context.Context, j *api.Job) (string, error) {
	put(r.jobs, types.NamespacedName{Namespace: j.Namespace, Name: j.Name}, *j, j.Status.Ended != nil)
	return "1", nil
}

// DeleteJob implements api.Records.
func (r *records) DeleteJob(_ context.Context, namespace, name string) error {
	delete(r.jobs, types.NamespacedName{Namespace: namespace, Name: name})
	return nil
}

// GetLedger implements api.Ledgers.
func (r *records) GetLedger(context.Context, string) (api.Ledger, bool, error) {
	if r.ledger == nil {
		return api.Ledger{}, false, nil
	}
	return *r.ledger, true, nil
}

// PutLedger implements api.Ledgers.
func (r *records) PutLedger(_ context.Context, l *api.Ledger) (string, error) {
	r.ledger = l
	return "1", nil
}
