package history

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strings"

	"github.com/musterdl/muster/model/unit"
)

// The columns of the tables of PAI, whose files have no header of their own; some copies have one.
const paiTasks, paiJobs = "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type", "job_name,inst_id,user,status,start_time,end_time"

var (
	paiFields = strings.Split(paiTasks, ",")
	// paiLive are the states of tasks that had not ended.
	paiLive   = []string{"Running", "Waiting"}
	paiStates = append([]string{"Terminated", "Failed", "Interrupted", "Cancelled"}, paiLive...)
)

func looksPAI(head []byte) bool {
	line := firstLine(head)
	cells := strings.Split(line, ",")
	return line == paiTasks || len(cells) == 10 && slices.Contains(paiStates, cells[3])
}

// readPAI makes a job of each task, as the tasks of one job ask for unlike things.
func readPAI(h *History, in *bufio.Reader, open func(string) (io.ReadCloser, error)) error {
	h.took("each task for a job of its own, its instances for workers; plan_gpu for hundredths of a device, above one rounded up to whole ones")
	h.took("start_time for the submission, as the tables have no other: waiting is already inside it")
	users := map[string]string{}
	if err := h.paiUsers(users, open); err != nil {
		return err
	}
	return lines(in, func(line int, text string) error {
		cells := strings.Split(text, ",")
		switch {
		case text == paiTasks:
		case len(cells) != 10:
			h.wrong(line, "", fmt.Errorf("%d cells: expected %s", len(cells), paiTasks))
		default:
			h.paiTask(line, cells, users)
		}
		return nil
	})
}

// paiUsers reads who submitted which job from the table of jobs, where that lies beside the tasks.
func (h *History) paiUsers(users map[string]string, open func(string) (io.ReadCloser, error)) error {
	const file = "pai_job_table.csv"
	in, err := open(file)
	if errors.Is(err, fs.ErrNotExist) {
		h.took("no users: they are in %s, which is not beside this file", file)
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	h.took("users from %s", file)
	return lines(in, func(_ int, text string) error {
		if cells := strings.Split(text, ","); len(cells) == 6 && text != paiJobs {
			users[strings.Clone(cells[0])] = h.word(cells[2])
		}
		return nil
	})
}

// instances reads how many workers a task has.
func instances(cell string) (int32, error) {
	x, ok := within(cell, 1, 1_000_000)
	if !ok {
		return 0, fmt.Errorf("%q: expected a number of instances", cell)
	}
	return int32(x), nil
}

// paiField reads what is asked for or a time, empty where it is none.
func (w *row) paiField(cells []string, field string) float64 {
	return readOr(w, field, cells[slices.Index(paiFields, field)], 0, func(cell string) (float64, error) {
		x, ok := within(cell, 0, mostSeconds)
		if !ok {
			return 0, fmt.Errorf("%q: expected a number", cell)
		}
		return x, nil
	})
}

func (h *History) paiTask(line int, cells []string, users map[string]string) {
	w := row{line: line}
	job, task, status := cells[0], cells[1], cells[3]
	w.leave(slices.Contains(paiLive, status), "still "+strings.ToLower(status))
	start, end := w.paiField(cells, "start_time"), w.paiField(cells, "end_time")
	cpu, gpu, memory := w.paiField(cells, "plan_cpu"), w.paiField(cells, "plan_gpu"), w.paiField(cells, "plan_mem")
	w.leave(min(start, end) == 0, "no start or no end")
	w.want(end >= start, "end_time", "%q: lies before the start", cells[5])
	workers := read(&w, "inst_num", cells[2], instances)
	r := run{name: job + "/" + task, user: users[job], class: task, submit: unit.Time(unit.Seconds(start)), ran: unit.Seconds(end - start),
		workers: workers, share: unit.Whole, cpu: unit.Milli(cpu * 10), memory: unit.MiB(math.Ceil(memory * 1024))}
	r.start = r.submit
	r.devices = int32(math.Ceil(gpu / 100))
	if gpu > 0 && gpu < 100 {
		r.share = unit.Milli(math.Ceil(gpu * 10))
	}
	w.want(gpu <= 102400, "plan_gpu", "%q: expected at most 102400, which are 1024 devices", cells[8])
	h.keep(&w, r, false)
}
