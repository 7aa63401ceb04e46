package chronus

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/unit"
)

// task is a job of the experiment. Times are whole minutes in the trace.
type task struct {
	submit   unit.Time
	runs     unit.Duration
	believed unit.Duration
	due      unit.Time // Never: best effort
	size     int64

	done     unit.Duration
	end      unit.Time
	admitted bool
	running  bool
}

// left is how much longer a task is believed to run; one that has outlived its
// estimate is believed to need a tenth of it more.
func (t *task) left() unit.Duration {
	if t.done < t.believed {
		return t.believed - t.done
	}
	return t.believed / 10
}

// policy picks who runs for the next tick: indices of tasks, from those that have
// arrived and not ended. It is told first of those that arrived since.
type policy func(now unit.Time, tasks []task, alive, arrived []int) (run []int)

// simulate runs tasks, in order of submission, on so many devices; it is decided at
// every tick who runs until the next, and nothing is lost by stopping.
func simulate(tasks []task, tick unit.Duration, decide policy) {
	var alive []int
	next := 0
	for now := unit.Time(0); next < len(tasks) || len(alive) > 0; now = now.Add(tick) {
		arrived := len(alive)
		for ; next < len(tasks) && tasks[next].submit <= now; next++ {
			alive = append(alive, next)
		}
		for _, i := range alive {
			tasks[i].running = false
		}
		for _, i := range decide(now, tasks, alive, alive[arrived:]) {
			t := &tasks[i]
			t.running = true
			if t.done += tick; t.done >= t.runs {
				t.end = now.Add(tick - (t.done - t.runs))
			}
		}
		alive = slices.DeleteFunc(alive, func(i int) bool { return tasks[i].end != 0 })
	}
}

// ranked is a policy that gives the devices to the first by some rank; running ones
// come first where it does not preempt.
func ranked(devices int64, preempt bool, rank func(t *task) [2]int64) policy {
	started := map[int]bool{}
	return func(_ unit.Time, tasks []task, alive, _ []int) (run []int) {
		order, room := slices.Clone(alive), devices
		key := func(i int) [3]int64 {
			k := rank(&tasks[i])
			if !preempt && started[i] {
				return [3]int64{-1, 0, 0}
			}
			return [3]int64{0, k[0], k[1]}
		}
		slices.SortFunc(order, func(a, b int) int {
			ka, kb := key(a), key(b)
			return cmp.Or(slices.Compare(ka[:], kb[:]), cmp.Compare(a, b))
		})
		for _, i := range order {
			if tasks[i].size <= room {
				room -= tasks[i].size
				started[i] = true
				run = append(run, i)
			}
		}
		return run
	}
}

// leased is the policy under test. A task that is not admitted runs as best effort.
func leased(c Config, devices int64) policy {
	s := newSelector(c, devices)
	return func(now unit.Time, tasks []task, alive, arrived []int) (run []int) {
		for _, h := range slices.Clone(s.cal.Holdings()) {
			if tasks[h.Job].end != 0 {
				s.cal.Drop(h.Job)
			}
		}
		state := func(i int) live { return live{job: plan.JobID(i), size: tasks[i].size, left: tasks[i].left()} }
		left := func(job plan.JobID) unit.Duration { return tasks[job].left() }
		for _, i := range arrived {
			if t := &tasks[i]; t.due != unit.Never {
				t.admitted, _ = s.admit(now, s.ask(state(i), t.due), left)
			}
		}
		jobs := make([]live, len(alive))
		for k, i := range alive {
			jobs[k] = state(i)
		}
		chosen, _ := s.choose(now, jobs, nil)
		for _, job := range chosen {
			run = append(run, int(job))
		}
		return run
	}
}

// outcome is what became of the tasks.
type outcome struct {
	missed, missedAdmitted, admitted, bestEffortMin float64 // shares, and a mean
}

func count(tasks []task) (o outcome) {
	var strict, free float64
	for i := range tasks {
		t := &tasks[i]
		late := t.end > t.due
		switch {
		case t.due == unit.Never:
			free++
			o.bestEffortMin += t.end.Sub(t.submit).Seconds() / 60
			continue
		case t.admitted:
			o.admitted++
			if late {
				o.missedAdmitted++
			}
		}
		if strict++; late {
			o.missed++
		}
	}
	o.missedAdmitted /= max(1, o.admitted)
	o.missed /= max(1, strict)
	o.admitted /= max(1, strict)
	o.bestEffortMin /= max(1, free)
	return o
}

// sample draws one row in so many of a published trace, without those of no device.
func sample(r io.Reader, oneIn int, seed uint64) ([]task, error) {
	z, err := gzip.NewReader(bufio.NewReader(r))
	if err != nil {
		return nil, fmt.Errorf("reading the trace: %w", err)
	}
	rows := csv.NewReader(z)
	if _, err := rows.Read(); err != nil {
		return nil, fmt.Errorf("reading the trace's heading: %w", err)
	}
	var tasks []task
	chance := rand.New(rand.NewPCG(seed, 60))
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading the trace: %w", err)
		}
		const size, submit, duration, due, best = 2, 3, 6, 8, 10
		var n [5]int64
		for i, column := range []int{size, submit, duration, due, best} {
			if n[i], err = strconv.ParseInt(row[column], 10, 64); err != nil {
				return nil, fmt.Errorf("job %s: %w", row[0], err)
			}
		}
		if chance.IntN(oneIn) != 0 || n[0] == 0 {
			continue
		}
		t := task{size: n[0], submit: unit.Time(n[1]) * unit.Time(unit.Minute), runs: unit.Duration(n[2]) * unit.Minute, due: unit.Never}
		if n[4] == 0 {
			t.due = t.submit.Add(unit.Duration(n[3]) * unit.Minute)
		}
		tasks = append(tasks, t)
	}
	slices.SortStableFunc(tasks, func(a, b task) int { return cmp.Compare(a.submit, b.submit) })
	return tasks, nil
}

// believing returns tasks afresh, with estimates wrong by up to a part.
func believing(tasks []task, wrong float64, seed uint64) []task {
	tasks, chance := slices.Clone(tasks), rand.New(rand.NewPCG(seed, 20))
	for i := range tasks {
		tasks[i].believed = unit.Duration(float64(tasks[i].runs) * (1 + wrong*(2*chance.Float64()-1)))
	}
	return tasks
}
