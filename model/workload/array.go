package workload

import (
	"fmt"
	"iter"
	"strings"
)

// Copies returns the copies NAME-0, NAME-1, ... of an array job, which share their
// lists, or the job itself if it is none. A job without a name gets one first.
func (j *Job) Copies() []Job {
	if j.Array <= 1 {
		return []Job{*j}
	}
	copies := make([]Job, 0, j.Array)
	for name := range j.Names() {
		c := *j
		c.Name, c.Array, c.Copy = name, 0, int32(len(copies))+1
		copies = append(copies, c)
	}
	return copies
}

// Names yields the names of the copies, or the job's own if it is no array.
func (j *Job) Names() iter.Seq[string] {
	return func(yield func(string) bool) {
		if j.Array <= 1 {
			yield(j.Name)
			return
		}
		for i := range j.Array {
			if !yield(fmt.Sprintf("%s-%d", j.Name, i)) {
				return
			}
		}
	}
}

// ArrayName is the name of the array that the job is a copy of, or its own if it is none.
func (j *Job) ArrayName() string {
	if j.Copy == 0 {
		return j.Name
	}
	return strings.TrimSuffix(j.Name, fmt.Sprintf("-%d", j.Copy-1))
}
