package apitest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/musterdl/muster/run/kube/api"
)

// kept is an object that only schedulers write.
type kept interface {
	*api.Job | *api.Ledger
	object
}

// record is such an object with who wrote it last.
type record[O kept] struct {
	value  O
	writer *Client // nil where a fault did
	lost   bool    // the writer was not answered
}

// records are the objects that only schedulers write: of jobs, and ledgers. A record that is
// overwritten by who should know better is a violation.
type records struct {
	options *Options
	clock   *clock
	store   *store
	feed    *feed
	judge   *judge
	jobs    map[types.NamespacedName]*record[*api.Job]
	ledgers map[string]*record[*api.Ledger]
	words   []Word
}

// ListJobs implements api.Records.
func (c *Client) ListJobs(ctx context.Context) (jobs []api.Job, err error) {
	err = c.call(ctx, Call{Verb: "list"}, func() error {
		for _, r := range c.w.records.jobs {
			jobs = append(jobs, *r.value)
		}
		slices.SortFunc(jobs, func(a, b api.Job) int {
			return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
		})
		return nil
	}, nothing)
	if err != nil {
		return nil, err
	}
	return jobs, nil
}

// GetJob implements api.Records.
func (c *Client) GetJob(ctx context.Context, namespace, name string) (j api.Job, found bool, err error) {
	err = c.call(ctx, Call{Verb: "get"}, func() error {
		if r := c.w.records.jobs[types.NamespacedName{Namespace: namespace, Name: name}]; r != nil {
			j, found = *r.value, true
		}
		return nil
	}, nothing)
	if err != nil {
		return api.Job{}, false, err
	}
	return j, found, nil
}

// PutJob implements api.Records.
func (c *Client) PutJob(ctx context.Context, j *api.Job) (version string, err error) {
	name := types.NamespacedName{Namespace: j.Namespace, Name: j.Name}
	err = c.call(ctx, Call{Verb: "put", Object: api.KindJob + " " + name.String(), What: j.Status.Phase}, func() error {
		w, next := c.w, j.DeepCopy()
		if version, err = put(c, w.records.jobs, name, next, func(j *api.Job) string { return j.Status.Fence }); err == nil {
			w.feed.keep(step{job: next})
			if w.records.orphaned(next) {
				owner := next.OwnerReferences[0].UID
				w.clock.after(w.options.Timing.Controller, func() { w.records.collectRecords(owner) })
			}
		}
		return err
	}, func() { c.w.records.jobs[name].lost = true })
	return version, err
}

// orphaned reports whether the owner of a record is gone already.
func (rs *records) orphaned(j *api.Job) bool {
	return len(j.OwnerReferences) > 0 && rs.store.byUID[j.OwnerReferences[0].UID] == nil
}

// DeleteJob implements api.Records. A record that is not there is as good as deleted.
func (c *Client) DeleteJob(ctx context.Context, namespace, name string) error {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	return c.call(ctx, Call{Verb: "delete", Object: api.KindJob + " " + key.String()}, func() error {
		if c.w.records.jobs[key] != nil {
			c.w.records.dropRecord(key)
		}
		return nil
	}, nothing)
}

func (rs *records) dropRecord(name types.NamespacedName) {
	rs.feed.keep(step{job: rs.jobs[name].value, gone: true})
	delete(rs.jobs, name)
}

// GetLedger implements api.Ledgers.
func (c *Client) GetLedger(ctx context.Context, scheduler string) (l api.Ledger, found bool, err error) {
	err = c.call(ctx, Call{Verb: "get"}, func() error {
		if r := c.w.records.ledgers[scheduler]; r != nil {
			l, found = *r.value, true
		}
		return nil
	}, nothing)
	if err != nil {
		return api.Ledger{}, false, err
	}
	return l, found, nil
}

// PutLedger implements api.Ledgers.
func (c *Client) PutLedger(ctx context.Context, l *api.Ledger) (version string, err error) {
	name := l.Name
	err = c.call(ctx, Call{Verb: "put", Object: api.KindLedger + " " + name}, func() error {
		next := l.DeepCopy()
		if version, err = put(c, c.w.records.ledgers, name, next, func(l *api.Ledger) string { return l.Status.Fence }); err == nil {
			c.w.feed.keep(step{ledger: next})
		}
		return err
	}, func() { c.w.records.ledgers[name].lost = true })
	return version, err
}

// put writes a record; one that was not there and is refused is not there afterwards.
func put[K comparable, O kept](c *Client, records map[K]*record[O], key K, next O, fence func(O) string) (string, error) {
	r := records[key]
	if r == nil {
		r = &record[O]{}
		records[key] = r
	}
	before := ""
	if r.value != nil {
		before = fence(r.value)
	}
	version, err := replace(c.w, c, r, next, before, fence(next))
	if r.value == nil {
		delete(records, key)
	}
	return version, err
}

// replace writes a record over the version that it names.
func replace[O kept](w *World, c *Client, r *record[O], next O, before, fence string) (string, error) {
	name, version := next.GetName(), next.GetResourceVersion()
	switch {
	case name == "":
		return "", apierrors.NewBadRequest("the record has no name")
	case r.value == nil && version != "":
		return "", apierrors.NewNotFound(api.JobResource.GroupResource(), name)
	case r.value == nil:
		w.store.made++
		next.SetUID(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012x", w.store.made)))
		next.SetCreationTimestamp(w.clock.stamp())
	case version != r.value.GetResourceVersion():
		if r.writer == c && !r.lost && !w.clock.frozen {
			w.judge.violate("%s writes record %s over version %q; its own latest is %s", c.name, name, version, r.value.GetResourceVersion())
		}
		if version == "" {
			return "", apierrors.NewAlreadyExists(api.JobResource.GroupResource(), name)
		}
		return "", apierrors.NewConflict(api.JobResource.GroupResource(), name, errModified)
	default:
		next.SetUID(r.value.GetUID())
		next.SetCreationTimestamp(r.value.GetCreationTimestamp())
		if term(fence) < term(before) {
			w.judge.violate("%s writes record %s with fence %q, which is older than %q that is there", c.name, name, fence, before)
		}
	}
	w.store.version++
	next.SetResourceVersion(strconv.FormatInt(w.store.version, 10))
	*r = record[O]{value: next, writer: c}
	return next.GetResourceVersion(), nil
}

// term is the number of a fence, NUMBER/HOLDER.
func term(fence string) int64 {
	number, _, _ := strings.Cut(fence, "/")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Depose has another leader take the ledger over: it carries a newer fence from now
// on. It returns that fence.
func (w *World) Depose() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.records.depose()
}

func (rs *records) depose() string {
	r := rs.ledgers[rs.options.Scheduler]
	if r == nil {
		return ""
	}
	next := r.value.DeepCopy()
	next.Status.Fence = fmt.Sprintf("%d/another", term(next.Status.Fence)+1)
	rs.store.version++
	next.ResourceVersion = strconv.FormatInt(rs.store.version, 10)
	*r = record[*api.Ledger]{value: next}
	rs.feed.keep(step{ledger: next})
	return next.Status.Fence
}

// Word is something that was said about an object.
type Word struct {
	At                    time.Duration
	Client                string
	Object                string
	Kind, Reason, Message string
}

// Say implements api.Voice.
func (c *Client) Say(object corev1.ObjectReference, kind, reason, message string) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.w.records.say(Word{c.w.clock.since(), c.name, nameOf(object), kind, reason, message})
}

func (rs *records) say(w Word) { rs.words = append(rs.words, w) }

// Words are what was said so far.
func (w *World) Words() []Word {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.records.words)
}
