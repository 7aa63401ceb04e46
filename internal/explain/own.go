package explain

import (
	"fmt"
	"strings"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/calendar"
	"github.com/musterdl/muster/schedule/obstacle"
)

// ownPhase is what keeps a job out of the queue whatever room there is: a person, its
// failures, or another job. The engine writes these reasons when it changes the phase,
// so that they are never old.
func (q *question) ownPhase() (cause, bool) {
	name, r := q.v.Name(q.id), q.job.Reason
	c := cause{code: r.Code, words: r.Words(q.v)}
	switch q.job.Phase {
	case plan.Held:
		c.needs = []string{"muster release " + name}
		if r.Code == plan.CrashLoop {
			c.words = fmt.Sprintf("failed %s in a row and is held", count(r.A, "time"))
			c.needs = []string{"what makes it fail to be mended: muster logs " + name, "then muster release " + name}
		}
	case plan.Backoff:
		c.words = fmt.Sprintf("attempt %d failed (%s); it will be tried again %s", q.job.Attempt, plan.FailureClass(r.B), q.away(q.job.NotBefore))
		c.needs = []string{"its back-off to pass, or muster release " + name + " to try at once"}
	case plan.Blocked:
		q.dependency(&c)
	default:
		return c, false
	}
	if q.v.Paused() {
		c.needs = append(c.needs, "then muster unpause: all decisions are paused")
	}
	return c, true
}

// dependency tells of the job that this one comes after.
func (q *question) dependency(c *cause) {
	c.code = plan.WaitsForJob
	left := int64(q.job.Blockers)
	c.words = "comes after " + count(left, "job") + " that must finish first"
	c.needs = []string{strings.TrimPrefix(c.words, "comes after ")}
	first := plan.JobID(q.job.Reason.A)
	if stuck, why := q.stuck(q.id); stuck != plan.None {
		c.never, c.words, c.needs = true, fmt.Sprintf("comes after %s, which %s", q.v.Name(stuck), why), []string{q.v.Name(stuck) + " to finish; muster why " + q.v.Name(stuck) + " says what keeps it"}
		return
	}
	if q.job.Reason.Code != plan.WaitsForJob || first < 0 || q.v.Job(first).Phase.Over() {
		return // that one has finished since, others have not
	}
	o := q.v.Job(first)
	c.words = fmt.Sprintf("comes after %s, which is %s", q.v.Name(first), q.v.Standing(first))
	if left > 1 {
		c.words += fmt.Sprintf(", and %s more", count(left-1, "job"))
	}
	c.needs = []string{q.v.Name(first) + " to finish"}
	if o.Run != plan.None {
		c.holders = q.holders([]ending{{run: o.Run, at: calendar.Told(q.v, o.Run)}})
		c.needs = []string{strings.Replace(q.toEnd(c.holders), " to end", " to finish", 1)}
	}
}

func (q *question) paused() (cause, bool) {
	return cause{code: plan.ByUser, words: "a person has paused all decisions: nothing is started", needs: []string{"muster unpause"}}, q.v.Paused()
}

// Never says why a job that has no devices can never start as things are; it is empty of
// any other. It says what Why says, and costs less.
func (s *Site) Never(id plan.JobID) string {
	j := s.v.Job(id)
	if j.Phase.Over() || j.Run != plan.None {
		return ""
	}
	if stuck, why := s.stuck(id); stuck != plan.None {
		return fmt.Sprintf("comes after %s, which %s", s.v.Name(stuck), why)
	}
	q := &question{Site: s, id: id, job: j, shape: s.v.Shape(id), never: obstacle.Never(s.v, s.ledger(), id), brief: true}
	if q.never.Code == plan.NoReason {
		return ""
	}
	q.n = q.shape.Least()
	for _, f := range [...]func(q *question) (cause, bool){(*question).impossible, (*question).limited} {
		if c, ok := f(q); ok {
			return c.words
		}
	}
	return ""
}

// stuck is a job that another comes after and that can never start, with why; plan.None is none.
func (s *Site) stuck(id plan.JobID) (plan.JobID, string) {
	for before := range s.v.Blockers(id) {
		if why := s.Never(before); why != "" {
			return before, why
		}
	}
	return plan.None, ""
}

// impossible is a job that would not fit if the whole cluster were well and idle.
func (q *question) impossible() (cause, bool) {
	if q.never.Code != plan.Unsatisfiable {
		return cause{}, false
	}
	c, all := q.v.Cluster(), q.v.CapacityFor(q.job.Shape, q.shape.Models)
	devices, memory, cpu, host := int32(0), unit.MiB(0), unit.Milli(0), unit.MiB(0)
	for id := range c.Nodes {
		n := &c.Nodes[id]
		if !q.v.Allows(q.shape, plan.NodeID(id)) {
			continue
		}
		devices, cpu, host = max(devices, n.Count), max(cpu, n.CPU), max(host, n.Memory)
		if n.Count > 0 {
			memory = max(memory, c.Models[n.Model].Memory)
		}
	}
	out := cause{code: plan.Unsatisfiable}
	say := func(need, format string, args ...any) (cause, bool) {
		out.never = true
		out.words, out.needs = "can never start here: "+fmt.Sprintf(format, args...), []string{need}
		return out, true
	}
	anew := "to be submitted anew with "
	switch shape := q.shape; {
	case devices == 0 && shape.Devices > 0:
		return say("nodes of that model", "%s, and no node has any", q.wish())
	case unit.MiB(shape.Memory) > memory && shape.Devices > 0:
		return say(anew+"less device memory, or larger devices", "wants %s of memory on every device; the largest that it may use has %s", unit.MiB(shape.Memory), memory)
	case shape.Devices > devices:
		return say(anew+"smaller workers", "%s; the largest node has %d", q.wish(), devices)
	case unit.Milli(shape.CPU) > cpu:
		return say(anew+"fewer cores", "wants %s for every worker; the largest node has %s", cores(int64(shape.CPU)), cores(int64(cpu)))
	case unit.MiB(shape.Host) > host:
		return say(anew+"less host memory", "wants %s of host memory for every worker; the largest node has %s", unit.MiB(shape.Host), host)
	}
	return say(fmt.Sprintf("%sat most %s, or a larger cluster", anew, workers(all)),
		"%s; the whole cluster, if it were idle, would hold %d of its %s", q.wish(), all, workers(int64(q.n)))
}
