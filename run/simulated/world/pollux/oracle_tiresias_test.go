package pollux

import "slices"

// Tiresias is the artefact's baseline. It differs from the system of the paper
// (NSDI'19): there are two queues, split at 16 hours of device time; a job is never
// promoted; within a queue jobs go by when they entered it, not by when they first
// ran; service is the wall time between ticks while the job holds devices, restarts
// included, times the devices asked for; the duration is unknown, so there is no
// Gittins index; and every job is placed on the freest nodes whatever its skew.
// A running job that stays admitted never moves.
type Tiresias struct {
	queues [2][]string
	jobs   map[string]*tiresiasJob
}

// tiresiasJob is what Tiresias remembers of a job.
type tiresiasJob struct {
	running        bool
	sinceSeconds   int // when service was last counted
	serviceSeconds int // wall time while running
}

// demoteDeviceSeconds is the attained service that moves a job to the second queue.
const demoteDeviceSeconds = 16 * 3600

// NewTiresias returns a Tiresias that has seen no job.
func NewTiresias() *Tiresias { return &Tiresias{jobs: make(map[string]*tiresiasJob)} }

// Allocate admits jobs queue by queue as long as they fit; one that does not fit is
// passed over, and stopped if it ran.
func (t *Tiresias) Allocate(nowSeconds int, jobs []View, cluster Config) ([]Grant, error) {
	at := make(map[string]int, len(jobs))
	for i, j := range jobs {
		at[j.Name] = i
	}
	t.observe(nowSeconds, jobs, at)
	grants := make([]Grant, len(jobs))
	free := cluster.Nodes * cluster.DevicesPerNode
	var admitted []int
	for _, queue := range t.queues {
		for _, name := range queue {
			i := at[name]
			memory := t.jobs[name]
			if memory.running = jobs[i].Replicas <= free; memory.running {
				free -= jobs[i].Replicas
				grants[i].Nodes = jobs[i].Nodes
				admitted = append(admitted, i)
			}
		}
	}
	room := newRoom(cluster, grants)
	for _, i := range admitted {
		if len(grants[i].Nodes) == 0 {
			grants[i].Nodes = room.take(jobs[i].Replicas)
		}
	}
	return grants, nil
}

// observe forgets finished jobs, queues new ones and counts service.
func (t *Tiresias) observe(nowSeconds int, jobs []View, at map[string]int) {
	for q := range t.queues {
		t.queues[q] = slices.DeleteFunc(t.queues[q], func(name string) bool {
			_, alive := at[name]
			if !alive {
				delete(t.jobs, name)
			}
			return !alive
		})
	}
	for _, j := range jobs {
		memory, known := t.jobs[j.Name]
		if !known {
			memory = &tiresiasJob{}
			t.jobs[j.Name] = memory
			t.queues[0] = append(t.queues[0], j.Name)
		}
		if memory.running {
			memory.serviceSeconds += nowSeconds - memory.sinceSeconds
			if q := slices.Index(t.queues[0], j.Name); q >= 0 && memory.serviceSeconds*j.Replicas >= demoteDeviceSeconds {
				t.queues[0] = slices.Delete(t.queues[0], q, q+1)
				t.queues[1] = append(t.queues[1], j.Name)
			}
		}
		memory.sinceSeconds = nowSeconds
	}
}
