package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/access"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/server/door"
	"github.com/musterdl/muster/internal/spec"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/model/objection"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// submissions takes jobs in: reads them, says whose they are, has their menus written, checks
// all of a request at once, and submits all of them or none.
type submissions struct {
	reader  *reader
	plane   *plane.Plane
	reading reading
	keys    keyLocks
	prepare func(*workload.Job) error
	menu    func(*workload.Job) *objection.Objection
	objects func(*workload.Job) []*objection.Objection
	notHeld string
}

// submit takes jobs: a YAML file, or the same in JSON, which YAML contains. All
// that is wrong is told at once, and then nothing was submitted. Under an
// Idempotency-Key the same request has the same answer for a day, and no effect
// after the first time.
func (b *submissions) submit(w http.ResponseWriter, r *http.Request) error {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/yaml" && kind != "application/json" {
		return door.Refuse(http.StatusUnsupportedMediaType, "the content type is not known: send application/yaml or application/json")
	}
	key := r.Header.Get("Idempotency-Key")
	if len(key) > 128 {
		return door.Refuse(http.StatusBadRequest, "the Idempotency-Key is longer than 128 bytes: send a shorter one")
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(door.ReadBodyTime)) // not all connections have one
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return fmt.Errorf("reading a submission: %w", err)
	}
	jobs, err := b.reading.jobs(r.Context(), cmp.Or(r.URL.Query().Get("file"), "request"), body)
	if err != nil {
		return err
	}
	who := access.From(r.Context())
	// The key is the user's own, and of this very request: another one under the same
	// key is another submission.
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s", who.Key(), key, body))
	if key == "" {
		rand.Read(sum[:]) // nothing to recognise it by
	}
	if jobs, err = b.expand(jobs, who, sum); err != nil {
		return err
	}
	if key != "" {
		unlock, ok := b.keys.lock(string(sum[:]), r.Context().Done())
		if !ok {
			return r.Context().Err()
		}
		defer unlock()
		key = fmt.Sprintf("%s/%x", who.Key(), sum[:16])
	}
	out, err := b.submitAll(r, jobs, key)
	if err != nil {
		return err
	}
	access.CallOf(r.Context()).Note = submitted(out)
	door.WriteJSON(w, http.StatusCreated, out)
	return nil
}

// submitted names some of the jobs for the audit log; the journal has all.
func submitted(out view.Submitted) string {
	const some = 5
	var names []string
	jobs := 0
	for i, j := range out.Jobs {
		if jobs += int(max(1, j.Array)); i < some {
			names = append(names, j.Name)
		}
	}
	if len(out.Jobs) > some {
		names = append(names, "...")
	}
	return fmt.Sprintf("%d jobs: %s", jobs, strings.Join(names, ", "))
}

// expand names the jobs that have no name, writes in whose they are and of which
// tenant, and puts jobs behind those they come after.
func (b *submissions) expand(jobs []workload.Job, who *access.Identity, sum [sha256.Size]byte) ([]workload.Job, error) {
	var wrong, never []door.Problem
	copies, models := 0, 0
	for i := range jobs {
		j := &jobs[i]
		if copies += int(max(1, j.Array)); i >= maxJobs || copies > maxCopies {
			return nil, door.Refuse(http.StatusRequestEntityTooLarge,
				fmt.Sprintf("more than %d jobs, or %d with the copies of arrays: submit them in several requests", maxJobs, maxCopies))
		}
		if j.Name == "" {
			j.Name = madeName(j, sum, i)
		}
		if j.Array == 1 { // its copy
			j.Name, j.Array, j.Copy = j.Name+"-0", 0, 1
		}
		switch {
		case j.User == "":
			j.User = who.Name
		case !who.Owns(j.User):
			wrong = append(wrong, problem(j.Name, objection.Objection{Field: "user", Found: strconv.Quote(j.User), Expected: strconv.Quote(who.Name), Do: "remove it: jobs are submitted as oneself"}))
		}
		tenant, may := who.Tenant(j.Tenant)
		if !may {
			own := cmp.Or(strings.Join(who.Tenants, ", "), "no tenant")
			wrong = append(wrong, problem(j.Name, objection.Objection{Field: "tenant", Found: strconv.Quote(j.Tenant), Expected: own, Do: "choose one of yours"}))
		}
		j.Tenant = tenant
		if j.Pipeline.Model != "" {
			if models++; models > maxModels {
				return nil, door.Refuse(http.StatusRequestEntityTooLarge, fmt.Sprintf("more than %d jobs that name a model, each of which has to be planned: submit them in several requests", maxModels))
			}
			if len(wrong) == 0 {
				never = append(never, b.writeMenu(j)...)
			}
		}
		never = append(never, b.objections(j)...)
	}
	if len(wrong) > 0 {
		return nil, &door.Failure{Status: http.StatusForbidden, Message: "the jobs name other users or tenants", Problems: wrong}
	}
	if len(never) > 0 {
		return nil, &door.Failure{Status: http.StatusBadRequest, Message: "nothing was submitted", Problems: never}
	}
	return inOrder(jobs)
}

// writeMenu has a planner write the menu of a job that names a model, or says why there is no
// plan for it.
func (b *submissions) writeMenu(j *workload.Job) []door.Problem {
	if b.menu == nil {
		return nil
	}
	if o := b.menu(j); o != nil {
		return []door.Problem{problem(j.Name, *o)}
	}
	return nil
}

// objections are the driver's to a job.
func (b *submissions) objections(j *workload.Job) (list []door.Problem) {
	if b.objects == nil {
		return nil
	}
	for _, o := range b.objects(j) {
		list = append(list, problem(j.Name, *o))
	}
	return list
}

// problem is an objection to a job.
func problem(job string, o objection.Objection) door.Problem {
	return door.Problem{Job: job, Field: o.Field, Found: o.Found, Expected: o.Expected, Do: o.Do, Text: "job " + job + ": " + o.Error()}
}

// madeName names a job after its command, and so that a repeated request makes the
// same name.
func madeName(j *workload.Job, sum [sha256.Size]byte, i int) string {
	base := "job"
	if len(j.Command) > 0 {
		base = strings.Map(func(c rune) rune {
			if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' {
				return c
			}
			return '-'
		}, filepath.Base(j.Command[0]))
		base = cmp.Or(strings.Trim(base[:min(len(base), 40)], "-"), "job")
	}
	h := sha256.Sum256(fmt.Appendf(sum[:], "/%d", i))
	return base + "-" + strings.ToLower(base32.StdEncoding.EncodeToString(h[:])[:6])
}

// inOrder puts jobs behind those of the same request that they come after, and
// leaves them in order otherwise.
func inOrder(jobs []workload.Job) ([]workload.Job, error) {
	at := make(map[string]int, len(jobs))
	for i := range jobs {
		for name := range jobs[i].Names() {
			if _, twice := at[name]; twice {
				return nil, door.Refuse(http.StatusBadRequest, fmt.Sprintf("two of the jobs are named %q, arrays expanded: give each a name of its own", name))
			}
			at[name] = i
		}
	}
	for i := range jobs { // an array's own stands for all of its copies
		if _, is := at[jobs[i].ArrayName()]; !is {
			at[jobs[i].ArrayName()] = i
		}
	}
	out := make([]workload.Job, 0, len(jobs))
	const visiting, done = 1, 2
	state := make([]int8, len(jobs))
	var visit func(i int) error
	visit = func(i int) error {
		switch state[i] {
		case done:
			return nil
		case visiting:
			return door.Refuse(http.StatusBadRequest, fmt.Sprintf("job %q comes after itself, by way of others: break the circle", jobs[i].Name))
		}
		state[i] = visiting
		for _, text := range jobs[i].After {
			name, _ := workload.ParseAfter(text)
			if before, here := at[name]; here {
				if err := visit(before); err != nil {
					return err
				}
			}
		}
		state[i] = done
		out = append(out, jobs[i])
		return nil
	}
	for i := range jobs {
		if err := visit(i); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// submitAll submits jobs: all of them, with ids in order, or none.
func (b *submissions) submitAll(r *http.Request, jobs []workload.Job, key string) (out view.Submitted, err error) {
	// The plane checks them itself. They must not be prepared for nothing, though: that
	// may touch what a live job of the same name needs. And what the plane says of a job
	// may not be for this caller.
	raised := slices.ContainsFunc(jobs, func(j workload.Job) bool { return j.Priority > 0 })
	if raised || len(jobs) > 1 || b.prepare != nil && len(jobs[0].Env) > 0 || !access.From(r.Context()).SeesAll() {
		if err := b.check(r.Context(), jobs, key != ""); err != nil {
			return out, err
		}
	}
	events := make([]engine.Event, len(jobs))
	for i := range jobs {
		if b.prepare != nil {
			if err := b.prepare(&jobs[i]); err != nil {
				return out, fmt.Errorf("preparing job %s: %w", jobs[i].Name, err)
			}
		}
		events[i] = engine.Event{Kind: engine.Submit, Spec: &jobs[i], By: access.From(r.Context()).String()}
	}
	id, err := send(r.Context(), b.plane, events, key)
	if err != nil {
		return out, err
	}
	for i := range jobs {
		ref := view.Ref{ID: int32(id), Name: jobs[i].Name}
		if n := jobs[i].Array; n > 1 {
			ref.Array = n
		}
		out.Jobs = append(out.Jobs, ref)
		id += plan.JobID(max(1, jobs[i].Array))
	}
	out.Notes = b.notes(r.Context(), jobs)
	return out, nil
}

// send makes events durable, all or none, and returns the job that the first is about.
func send(ctx context.Context, p *plane.Plane, events []engine.Event, key string) (plan.JobID, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	id, err := p.Together(ctx, events, key)
	return id, refused(err)
}

// refused translates what the plane says of a request.
func refused(err error) error {
	switch {
	case err == nil, errors.Is(err, plane.ErrClosed), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return unavailable(err)
	case errors.Unwrap(err) != nil: // the plane's refusals wrap nothing, failures of its journal do
		return door.Refuse(http.StatusServiceUnavailable, err.Error())
	}
	return door.Refuse(http.StatusConflict, err.Error())
}

// check finds what the plane would refuse, of all jobs at once. Under a key a job may
// be there already, from the same request: only the plane knows.
func (b *submissions) check(ctx context.Context, jobs []workload.Job, keyed bool) error {
	var wrong []door.Problem
	who := access.From(ctx)
	x := b.reader.veil(who)
	err := b.reader.ask(ctx, func(v plan.View) {
		here := map[string]bool{}
		for i := range jobs {
			j := &jobs[i]
			say := func(field, found, do string) {
				wrong = append(wrong, problem(j.Name, objection.Objection{Field: field, Found: found, Do: do}))
			}
			here[j.ArrayName()] = true
			for name := range j.Names() {
				here[name] = true
				if found, do := b.taken(v, x, j, name, keyed); found != "" {
					say("name", found, do)
					break // the next of an array would say the same
				}
			}
			if most := v.Queues().MaxPriority(j.Tenant); j.Priority > most && !who.Administers(j.Tenant) {
				say("priority", fmt.Sprintf("%d, above the %d of its queue", j.Priority, most), "ask for less, or have who administers the queue submit it")
			}
			for _, text := range j.After {
				name, _ := workload.ParseAfter(text)
				_, ok := b.plane.Find(name)
				if a, is := b.plane.FindArray(name); is {
					name, ok = v.Name(a.First), true
				}
				if (!ok || x.name(name) != name) && !here[name] {
					say("after", fmt.Sprintf("%q, which does not exist", name), "submit that first, or in the same request")
				}
			}
			for _, m := range j.Models {
				if _, ok := v.Cluster().ModelID(m); !ok {
					say("models", fmt.Sprintf("%q, which the cluster does not have", m), "choose from those that muster nodes lists")
				}
			}
		}
	})
	if err == nil && len(wrong) > 0 {
		return &door.Failure{Status: http.StatusConflict, Message: "nothing was submitted", Problems: wrong}
	}
	return err
}

// taken tells who has a job's name already, and what to do; nothing where it is free.
func (b *submissions) taken(v plan.View, x veil, j *workload.Job, name string, keyed bool) (found, do string) {
	id, there := b.plane.Find(name)
	switch {
	case !there || v.Job(id).Phase.Over() || keyed && alike(b.plane.Info(id).Spec, j):
		return "", ""
	case x.name(name) != name:
		return fmt.Sprintf("%q, which is taken", name), "choose another name"
	}
	return fmt.Sprintf("a job named %q that is %s", name, v.Standing(id)), "choose another name or cancel it"
}

// alike reports whether a job may be what an earlier sending of the same request
// made. Variables are left out: secrets among them are not kept.
func alike(a, b *workload.Job) bool {
	return a != nil && a.User == b.User && a.Gang == b.Gang && a.Dir == b.Dir && slices.Equal(a.Command, b.Command)
}

// problems tells all that is wrong with a file at once.
func problems(err error) error {
	f := &door.Failure{Status: http.StatusBadRequest, Message: "the jobs cannot be read"}
	var list spec.Problems
	if !errors.As(err, &list) {
		f.Message += ": " + err.Error()
		return f
	}
	for _, p := range list {
		f.Problems = append(f.Problems, door.Problem{Line: p.Line, Column: p.Column, Field: p.Field, Found: p.Found,
			Expected: p.Expected, Do: p.Do, Text: p.Error()})
	}
	return f
}
