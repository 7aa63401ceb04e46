package explain

import (
	"fmt"

	"github.com/musterdl/muster/plan"
)

// device is the least by which a queue holds less or more than it deserves, for that to be told:
// nobody holds a part of a device.
const device = 1000

// above are the queues beside the job's own, or beside one above it, that hold more than they
// deserve while that one holds less; none where its queue has what it deserves.
func (q *question) above() (own int32, others []int32) {
	l, models := q.ledger(), q.shape.Models
	if len(q.v.Queues().Queues) == 0 || q.shape.Devices == 0 {
		return 0, nil
	}
	for own = l.Leaf(q.v.QueueOf(q.job.Tenant)); own > 0 && len(others) == 0; own = l.Parent(own) {
		if l.Short(own, models) < device {
			continue
		}
		for _, b := range l.Below(l.Parent(own)) {
			if l.Short(b, models) <= -device {
				others = append(others, b)
			}
		}
		if len(others) > 0 {
			return own, others
		}
	}
	return own, others
}

// unequal says which queues hold more than they deserve, where the job's own holds less.
func (q *question) unequal() (words string) {
	own, others := q.above()
	l, models := q.ledger(), q.shape.Models
	standing := func(b int32) string {
		return fmt.Sprintf("%s deserves %s and holds %s", q.queueName(l.Queue(b)), plan.Amount(l.Deserved(b, models)), plan.Amount(l.Deserved(b, models)-l.Short(b, models)))
	}
	for i, b := range others {
		if i == 0 {
			words = "; " + standing(own)
		}
		words += ", " + standing(b)
	}
	return words
}

// ofAbove are the runs of queues that hold more than they deserve, of those that are to end.
func (q *question) ofAbove() (list []ending) {
	_, others := q.above()
	l := q.ledger()
	for _, e := range q.endings() {
		leaf := l.Leaf(q.v.QueueOf(q.v.Job(q.v.Run(e.run).Job).Tenant))
		for _, b := range others {
			if l.Counts(b, leaf) {
				list = append(list, e)
			}
		}
	}
	return list
}

// notGuaranteed are the runs that are to end, without those of other queues that hold only what
// they are guaranteed.
func (q *question) notGuaranteed() (list []ending) {
	own := q.v.QueueOf(q.job.Tenant)
	for _, e := range q.endings() {
		if theirs := q.v.QueueOf(q.v.Job(q.v.Run(e.run).Job).Tenant); theirs == own || !q.onlyGuaranteed(theirs) {
			list = append(list, e)
		}
	}
	return list
}

// onlyGuaranteed reports whether a queue, or one above it, holds no more than it is guaranteed.
func (s *Site) onlyGuaranteed(queue int32) bool {
	const any = ^uint64(0)
	return s.ledger().Guaranteed(s.ledger().Leaf(queue), any, 0)
}
