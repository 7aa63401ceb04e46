package history

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"strconv"
	"strings"

	"github.com/musterdl/muster/model/unit"
)

// The columns of the tables of PAI, whose files have no header of their own; some copies have one.
const paiTasks, paiJobs = "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type", "job_name,inst_id,user,status,start_time,end_time"

func looksPAI(head []byte) bool {
	line := firstLine(head)
	cells := strings.Split(line, ",")
	return line == paiTasks || len(cells) == 10 && isStatus(cells[3])
}

func isStatus(cell string) bool {
	return cell == "Terminated" || cell == "Failed" || cell == "Running" || cell == "Waiting" || cell == "Interrupted" || cell == "Cancelled"
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
			if field, err := h.paiTask(line, cells, users); err != nil {
				h.wrong(line, field, err)
			}
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

func (h *History) paiTask(line int, cells []string, users map[string]string) (string, error) {
	job, task, status := cells[0], cells[1], cells[3]
	if status == "Running" || status == "Waiting" {
		h.leave(line, "still "+strings.ToLower(status))
		return "", nil
	}
	var x [5]float64 // start, end, cores and devices in hundredths, memory
	for i, c := range [5]int{4, 5, 6, 8, 7} {
		var err error
		if cells[c] == "" {
			continue
		}
		if x[i], err = strconv.ParseFloat(cells[c], 64); err != nil || !(x[i] >= 0 && x[i] < 1e10) {
			return strings.Split(paiTasks, ",")[c], fmt.Errorf("%q: expected a number", cells[c])
		}
	}
	start, end := x[0], x[1]
	if start == 0 || end == 0 {
		h.leave(line, "no start or no end")
		return "", nil
	}
	if end < start {
		return "end_time", fmt.Errorf("%q: lies before the start", cells[5])
	}
	workers, err := strconv.ParseFloat(cells[2], 64)
	if err != nil || !(workers >= 1 && workers <= 1_000_000) {
		return "inst_num", fmt.Errorf("%q: expected a number of instances", cells[2])
	}
	r := run{name: job + "/" + task, user: users[job], class: task, submit: unit.Time(unit.Seconds(start)), ran: unit.Seconds(end - start),
		workers: int32(workers), share: unit.Whole, cpu: unit.Milli(x[2] * 10), memory: unit.MiB(math.Ceil(x[4] * 1024))}
	r.start = r.submit
	switch gpu := x[3]; {
	case gpu > 0 && gpu < 100:
		r.devices, r.share = 1, unit.Milli(math.Ceil(gpu*10))
	default:
		r.devices = int32(math.Ceil(gpu / 100))
	}
	if r.devices > 1024 {
		return "plan_gpu", fmt.Errorf("%q: expected at most 102400, which are 1024 devices", cells[8])
	}
	h.add(r, false)
	return "", nil
}
