package trainer

import (
	"math"
	"slices"
	"time"

	"golang.org/x/sys/unix"
	"gonum.org/v1/gonum/blas/blas32"

	"github.com/musterdl/muster/run/trainer/progress"
)

// probe finds out how long this worker's device takes for the same work, by the clock: a slow device
// takes longer for whatever it computes, slow layers do not.
//
// A device is slow in two ways, and no short look sees both. Where it does less in a second, as at a
// lower frequency or with a neighbour in its caches, the least time of a small product tells. Where it
// stands still now and then, as when another process has it or a quota is used up, the product falls
// between two halts; what tells then is how long passes take for each second that this process computes.
// What the same work takes is the product of the two.
type probe struct {
	product  [3]blas32.General // the third is what the first two make
	products []time.Duration   // what the last took, at most productsMost
	quick    time.Duration     // the least time of any
	read     time.Duration     // that it takes to ask for the processor time
	// When there was a product last, and when passes were looked at; looks says that those of this
	// step are.
	multiplied, looked time.Time
	looks              bool

	// Of the present window: its steps, and how long passes took by the clock and in processor time.
	steps        int
	passes, busy time.Duration

	// per is of how many steps a window is. All workers have the same, so that what holds up all of them
	// is in the same window of each. It is agreed on with each report, from the steps since the last.
	per, since int
	agreed     time.Time
	windows    int64
	times      []float64 // of the last windows: seconds by the clock for a product, 0 where it was not found
	best       float64   // the least of all
}

// A product has probeSide^3 multiplications, few enough for one core to be done in a tenth of a
// millisecond. Products and looks at passes each take one part in probePart of a worker's time, at most:
// half a percent together. Of productsMost one is hardly ever interrupted.
const (
	probeSide    = 64
	probePart    = 400
	productsMost = 4
)

func newProbe() *probe {
	p := &probe{}
	for i := range p.product {
		p.product[i] = matrix(aligned(probeSide*probeSide), probeSide, probeSide)
		ones(p.product[i].Data)
	}
	// Both quickest times are known in advance: each says when there is another, and one disturbed first
	// product would put that off by hundreds of times as long.
	for range measured {
		p.quick = quicker(p.quick, p.multiply())
		began := time.Now()
		processorTime()
		p.read = quicker(p.read, time.Since(began))
	}
	return p
}

// multiply says how long a product takes.
func (p *probe) multiply() time.Duration {
	began := time.Now()
	mul(p.product[0], p.product[1], 0, p.product[2])
	return max(time.Since(began), 1)
}

// quicker is the lesser of two times, the first of which is 0 where there is none yet.
func quicker(least, took time.Duration) time.Duration {
	if least == 0 {
		return took
	}
	return min(least, took)
}

// processorTime is what this process has computed so far, 0 where the system does not tell.
func processorTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// between is called between two steps, the next of which has so many passes.
func (p *probe) between(passes int) {
	if p == nil {
		return
	}
	now := time.Now()
	if now.Sub(p.multiplied) >= probePart*p.quick {
		took := p.multiply()
		now = now.Add(took)
		p.multiplied = now
		if p.products = append(p.products, took); len(p.products) > productsMost {
			p.products = slices.Delete(p.products, 0, 1)
		}
		p.quick = quicker(p.quick, took)
	}
	if p.since++; p.per > 0 && p.steps >= p.per {
		p.close()
	}
	p.steps++
	if p.looks = now.Sub(p.looked) >= probePart*2*time.Duration(passes)*p.read; p.looks {
		p.looked = now
	}
}

// close ends the window, and begins the next one.
func (p *probe) close() {
	is := 0.
	if len(p.products) == productsMost && p.busy > 0 {
		is = slices.Min(p.products).Seconds() * p.passes.Seconds() / p.busy.Seconds()
		if p.best == 0 || is < p.best {
			p.best = is
		}
	}
	p.windows++
	if p.times = append(p.times, is); len(p.times) > progress.WindowsMost {
		p.times = slices.Delete(p.times, 0, 1)
	}
	p.steps, p.passes, p.busy = 0, 0, 0
}

// start is when a pass begins in processor time, 0 where nobody looks.
func (p *probe) start() time.Duration {
	if p == nil || !p.looks {
		return 0
	}
	return processorTime()
}

// took notes that a pass which began then took so long by the clock, without what it waited for.
func (p *probe) took(start, long time.Duration) {
	if start > 0 {
		p.busy += processorTime() - start
		p.passes += long
	}
}

// probeFloats is what a worker tells the others: how long the steps since the last report took, and the
// times of its windows.
const probeFloats = 1 + progress.WindowsMost

// tell writes it into x.
func (p *probe) tell(x []float32) {
	if p == nil {
		return
	}
	x[0] = float32(time.Since(p.agreed).Seconds())
	for i, is := range p.times {
		if is > 0 {
			x[1+i] = float32(is / p.best)
		}
	}
}

// heard takes in what all workers wrote, one behind the other, and says what it tells of their devices.
func (p *probe) heard(x []float32) *progress.Devices {
	if p == nil {
		return nil
	}
	all, took := make([][]float64, len(p.times)), 0.
	for own := range slices.Chunk(x, probeFloats) {
		took += float64(own[0]) * probeFloats / float64(len(x))
		for i := range all {
			all[i] = append(all[i], thousandths(own[1+i]))
		}
	}
	if !p.agreed.IsZero() { // else it is the beginning, of which nobody knows how long it took
		p.per = max(1, int(math.Ceil(progress.WindowLeast.Seconds()*float64(p.since)/took)))
	}
	p.agreed, p.since = time.Now(), 0
	return &progress.Devices{Windows: p.windows, Times: all}
}
