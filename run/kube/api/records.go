package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// jobsPerPage is how many records are asked for at a time.
const jobsPerPage = 500

// ListJobs implements Records: as they are now, not as a cache of the server had them.
func (c *Client) ListJobs(ctx context.Context) ([]Job, error) {
	for again := false; ; again = true {
		jobs, err := c.listJobs(ctx)
		if apierrors.IsResourceExpired(err) && !again {
			continue // the pages took longer than the server remembers
		}
		if err != nil {
			return nil, fmt.Errorf("listing job records: %w", err)
		}
		return jobs, nil
	}
}

func (c *Client) listJobs(ctx context.Context) (jobs []Job, err error) {
	var page struct {
		Metadata metav1.ListMeta `json:"metadata"`
		Items    []Job           `json:"items"`
	}
	for {
		r := c.records.Get().Resource(JobResource.Resource).Param("limit", strconv.Itoa(jobsPerPage))
		if page.Metadata.Continue != "" {
			r.Param("continue", page.Metadata.Continue)
		}
		page.Metadata, page.Items = metav1.ListMeta{}, nil
		if err := receive(ctx, r, &page); err != nil {
			return nil, err
		}
		jobs = append(jobs, page.Items...)
		if page.Metadata.Continue == "" {
			return jobs, nil
		}
	}
}

// PutJob implements Records. The job is not changed.
func (c *Client) PutJob(ctx context.Context, j *Job) (version string, err error) {
	whole := *j
	whole.APIVersion, whole.Kind = GroupVersion.String(), KindJob
	version, err = c.put(ctx, JobResource.Resource, &whole.ObjectMeta, &whole)
	if err != nil {
		return "", fmt.Errorf("keeping the record of job %s/%s: %w", j.Namespace, j.Name, err)
	}
	return version, nil
}

// DeleteJob implements Records. A record that is not there is as good as deleted.
func (c *Client) DeleteJob(ctx context.Context, namespace, name string) error {
	err := send(ctx, c.records.Delete().Namespace(namespace).Resource(JobResource.Resource).Name(name))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting the record of job %s/%s: %w", namespace, name, err)
	}
	return nil
}

// GetJob implements Records.
func (c *Client) GetJob(ctx context.Context, namespace, name string) (j Job, found bool, err error) {
	found, err = get(ctx, c.records.Get().Namespace(namespace).Resource(JobResource.Resource).Name(name), &j)
	if err != nil {
		return Job{}, false, fmt.Errorf("reading the record of job %s/%s: %w", namespace, name, err)
	}
	return j, found, nil
}

// GetLedger implements Ledgers.
func (c *Client) GetLedger(ctx context.Context, scheduler string) (l Ledger, found bool, err error) {
	found, err = get(ctx, c.records.Get().Resource(LedgerResource.Resource).Name(scheduler), &l)
	if err != nil {
		return Ledger{}, false, fmt.Errorf("reading ledger %s: %w", scheduler, err)
	}
	return l, found, nil
}

// PutLedger implements Ledgers. The ledger is not changed.
func (c *Client) PutLedger(ctx context.Context, l *Ledger) (version string, err error) {
	whole := *l
	whole.APIVersion, whole.Kind = GroupVersion.String(), KindLedger
	version, err = c.put(ctx, LedgerResource.Resource, &whole.ObjectMeta, &whole)
	if err != nil {
		return "", fmt.Errorf("keeping ledger %s: %w", l.Name, err)
	}
	return version, nil
}

// put makes an object that has no version, and replaces one that has.
func (c *Client) put(ctx context.Context, resource string, meta *metav1.ObjectMeta, object any) (version string, err error) {
	meta.ManagedFields = nil
	body, err := json.Marshal(object)
	if err != nil {
		return "", err
	}
	r := c.records.Post()
	if meta.ResourceVersion != "" {
		r = c.records.Put().Name(meta.Name)
	}
	if meta.Namespace != "" {
		r.Namespace(meta.Namespace)
	}
	var written struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	r.Resource(resource).SetHeader("Accept", onlyMetadata).SetHeader("Content-Type", inJSON).Body(body)
	if err := receive(ctx, r, &written); err != nil {
		return "", err
	}
	if written.Metadata.ResourceVersion == "" {
		return "", errors.New("the server's answer has no resourceVersion")
	}
	return written.Metadata.ResourceVersion, nil
}

// receive makes a call and reads its answer.
func receive(ctx context.Context, r *rest.Request, into any) error {
	result := r.Do(ctx)
	if err := result.Error(); err != nil { // which, other than Raw, reads what the server says
		return err
	}
	body, err := result.Raw()
	if err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}

// get reads an object that may not be there. That its kind is not there is an error:
// a scheduler that can keep nothing must not think that it begins anew. The server
// answers for a kind that it does not know in a form of its own.
func get(ctx context.Context, r *rest.Request, into any) (found bool, err error) {
	err = receive(ctx, r, into)
	if apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		return false, nil
	}
	return err == nil, err
}
