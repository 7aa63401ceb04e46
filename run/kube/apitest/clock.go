package apitest

import (
	"container/heap"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// clock is the time of a World, and what is to happen when.
type clock struct {
	now    time.Time
	start  time.Time
	queue  reactions
	queued int64
	// outages are when nobody can write. Nothing happens by itself where it is frozen.
	outages []Window
	frozen  bool
}

// since is the time that has passed since the World began.
func (ck *clock) since() time.Duration { return ck.now.Sub(ck.start) }

// reaction is something that Kubernetes does at an instant.
type reaction struct {
	at  time.Time
	seq int64
	do  func()
}

type reactions []reaction

// Len is how many there are.
func (r reactions) Len() int { return len(r) }

// Less orders reactions by their time, and then as they were asked for.
func (r reactions) Less(i, j int) bool {
	if c := r[i].at.Compare(r[j].at); c != 0 {
		return c < 0
	}
	return r[i].seq < r[j].seq
}

// Swap is for package heap.
func (r reactions) Swap(i, j int) { r[i], r[j] = r[j], r[i] }

// Push is for package heap.
func (r *reactions) Push(x any) { *r = append(*r, x.(reaction)) }

// Pop is for package heap.
func (r *reactions) Pop() any {
	last := (*r)[len(*r)-1]
	(*r)[len(*r)-1] = reaction{}
	*r = (*r)[:len(*r)-1]
	return last
}

// after has something happen later. Nothing happens by itself where a tape plays.
func (ck *clock) after(d time.Duration, do func()) {
	if ck.frozen {
		return
	}
	ck.queued++
	heap.Push(&ck.queue, reaction{at: ck.now.Add(max(d, 0)), seq: ck.queued, do: do})
}

// step moves the time to the next instant at which something happens and has it all happen.
func (ck *clock) step() bool {
	at, ever := ck.due()
	for len(ck.queue) > 0 && ck.queue[0].at.Equal(at) {
		ck.react()
	}
	return ever
}

// due is when something happens next; false where nothing will.
func (ck *clock) due() (time.Time, bool) {
	if len(ck.queue) == 0 {
		return time.Time{}, false
	}
	return ck.queue[0].at, true
}

// advance moves the time, and has happen what is due by then.
func (ck *clock) advance(to time.Time) {
	for len(ck.queue) > 0 && !ck.queue[0].at.After(to) {
		ck.react()
	}
	if to.After(ck.now) {
		ck.now = to
	}
}

// react has the next thing happen. While the API server is out nobody can write, so it
// waits until the end of that, in the order in which it was due.
func (ck *clock) react() {
	r := heap.Pop(&ck.queue).(reaction)
	if r.at.After(ck.now) {
		ck.now = r.at
	}
	if end, out := within(ck.outages, ck.since()); out {
		ck.queued++
		heap.Push(&ck.queue, reaction{at: ck.start.Add(end), seq: ck.queued, do: r.do})
		return
	}
	r.do()
}

// stamp is the time as objects carry it, in whole seconds.
func (ck *clock) stamp() metav1.Time { return metav1.NewTime(ck.now.Truncate(time.Second)) }
