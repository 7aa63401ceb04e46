package peers

import (
	"math"
	"math/rand/v2"

	"github.com/musterdl/muster/mechanism/heap"
	"github.com/musterdl/muster/model/unit"
)

// Swarm is what is to be played.
type Swarm struct {
	Stages int
	// Batch is how many microbatches a step has, Window how many of them are under way at once.
	Batch, Window int
	Trainers      int // who take turns in sending microbatches off, each with a Router of its own
	Peers         []Peer
	Forward       unit.Duration // a pass of a peer of speed 1
	Jitter        float64       // a pass takes up to so much less or more, as a part of it
	Hop           unit.Duration // from the trainer to a peer
	WeightsKiB    int64         // of a stage; 0 costs nothing to average or to fetch
	// Rebalance is after how long a peer may move, each time, and Deadline after how long a
	// trainer sends a pass to somebody else, twice as long each further time; 0 is never.
	Rebalance, Deadline unit.Duration
	// Steps and End say when to stop: after so many steps, or then.
	Steps int
	End   unit.Time
	Seed  uint64
}

// Peer is a device that is there for a time.
type Peer struct {
	Speed       float64
	Link        unit.Mbps
	Stage       int // where it begins; Anywhere is where peers are slowest together
	From, Until unit.Time
	// Silent peers leave without a word: only a deadline tells. Others close their connections.
	Silent bool
}

// Anywhere is the stage of a peer that goes where it is needed.
const Anywhere = -1

// refresh is how often trainers learn which peers there are.
const refresh = 30 * unit.Second

// Report is what became of a swarm.
type Report struct {
	Steps []unit.Time // when each ended
	Work  []float64   // that each peer did and that counted, in forward passes
	// Missing and Doubled are gradients of a microbatch and stage that nobody held, or that more
	// than one held, when their step was averaged.
	Missing, Doubled int
	Again            int // passes that were sent to another peer
	Moves            int // peers that changed their stage
}

// Run plays the swarm.
func Run(s Swarm) Report {
	r := run{Swarm: &s, dice: rand.New(rand.NewPCG(s.Seed, 6)), workers: make([]worker, len(s.Peers)), events: heap.Heap[event]{Before: sooner}, report: Report{Work: make([]float64, len(s.Peers))}}
	for t := range s.Trainers {
		r.routers = append(r.routers, NewRouter(s.Seed+uint64(t), s.Stages))
	}
	for i, p := range s.Peers {
		r.workers[i].serves = Anywhere
		r.later(event{at: p.From, kind: comes, peer: int32(i)})
		if p.Until != unit.Never {
			r.later(event{at: p.Until, kind: goes, peer: int32(i)})
		}
	}
	r.later(event{kind: refreshes})
	if s.Rebalance > 0 {
		r.later(event{at: unit.Time(s.Rebalance), kind: rebalances})
	}
	r.begin()
	for len(r.report.Steps) < s.Steps {
		e := r.events.Pop() // trainers refresh for ever
		if e.at > s.End {
			break
		}
		r.at = e.at
		r.happen(e)
	}
	return r.report
}

// run is a swarm under way.
type run struct {
	*Swarm
	at      unit.Time
	dice    *rand.Rand
	events  heap.Heap[event]
	given   int // events, so far
	routers []*Router
	workers []worker
	passes  []pass  // of the step: of each microbatch forward through all stages, and back
	fed     int     // microbatches of the step that were begun
	left    int     // passes of it that are not done
	tries   int32   // that were made, of all passes of all steps
	nowhere []int32 // passes for which nobody is there
	report  Report
}

// worker is a peer, as it knows itself.
type worker struct {
	here         bool
	serves, next int       // stage; Anywhere while it fetches the weights of next
	queue        []ticket  // the first is at work
	held         []int32   // backward passes whose gradients it has added up in this step
	waits, sum   float64   // work in the queue, and its integral over time since the last rebalancing
	since, began unit.Time // of the sum's last change, of the pass at work
}

// pass is one of a microbatch through a stage.
type pass struct {
	state state
	peer  int32 // to whom it went last
	try   int32
	tries int  // so far
	again bool // what follows it was done already, only its gradients were lost
}

type state uint8

const (
	waiting state = iota
	out
	done
)

// ticket is one try of a pass.
type ticket struct{ pass, try int32 }

// stage and work are those of a pass.
func (r *run) stage(id int32) int {
	phase := int(id) % (2 * r.Stages)
	return min(phase, 2*r.Stages-1-phase)
}

func (r *run) backward(id int32) bool { return int(id)%(2*r.Stages) >= r.Stages }

func (r *run) work(id int32) float64 {
	if r.backward(id) {
		return BackwardWeight
	}
	return 1
}

func (r *run) router(id int32) *Router { return r.routers[int(id)/(2*r.Stages)%r.Trainers] }

// takes is how long a pass will be at work.
func (r *run) takes(peer, id int32) unit.Duration {
	jitter := 1 + r.Jitter*(2*r.dice.Float64()-1)
	return unit.Duration(math.Ceil(r.work(id) * jitter * float64(r.Forward) / r.Peers[peer].Speed))
}

// event is something that happens; of those at one time, what was foreseen first comes first.
type event struct {
	at     unit.Time
	nth    int
	kind   kind
	peer   int32
	ticket ticket
}

type kind uint8

const (
	comes      kind = iota // a peer
	goes                   // a peer, for good
	ready                  // a peer has the weights of its stage
	refreshes              // trainers learn who is there
	rebalances             // a peer may move
	arrives                // a pass at its peer
	finishes               // a pass
	overdue                // a pass that has no answer
	averaged               // the gradients of a step
)

func (r *run) later(e event) {
	e.nth = r.given
	r.given++
	r.events.Push(e)
}

// sooner puts the earlier first.
func sooner(a, b *event) bool { return a.at < b.at || a.at == b.at && a.nth < b.nth }
