package bidprice

import (
	"math"
	"slices"

	"github.com/musterdl/muster/allocate/fragment"
	"github.com/musterdl/muster/plan"
)

const (
	// levels are the steps in which what a device has free counts.
	levels = 100
	// blur is how much less than the best a filling may be worth and still be expected,
	// in devices: who comes next is not ours to choose. Between half and twice as much
	// the openb lists fill equally well within .1 %.
	blur = .02
	// rounds is how often worths are corrected by what is asked against what comes.
	rounds = 20
	// most bounds one correction, in units of half the blur.
	most = 3
)

// corePrices are the prices of a core that are tried for a node, in devices.
var corePrices = [...]float64{0, .005, .01, .015, .02, .03, .045, .07, .1, .16, .3, .6}

// item is one device's part of the tasks of a kind.
type item struct {
	size        int     // in levels
	cores       float64 // beside the device
	rate, asked float64 // how many come while the cluster fills once, and how many its fillings take
	worth       float64 // in devices
}

// class is nodes that look alike when they are empty.
type class struct{ model, devices, milliCores int32 }

// table is what a device is worth on models that allow the same items.
type table struct {
	items []int32 // by ascending size
	sizes []int   // theirs, each once
	at    [len(corePrices)]filling
}

// filling is all ways to fill a device at a price of a core, in any order, each with a weight
// that falls by e for each blur that it is worth less. Weights are scaled by what they fill, so
// that sums stay within what a float holds.
type filling struct {
	scale   float64             // the logarithm, by level
	weights []float64           // by item
	heavy   []float64           // sums of weights, by size
	sums    [levels + 1]float64 // of all fillings of so many levels
	values  [levels + 1]float64 // what is worth so much, in devices: a blurred maximum
	devices float64             // that are filled at this price
}

// prices are the worths of the items that usually come, and what they make of what is free.
type prices struct {
	items  []item
	tables []*table // those that differ
	of     []*table // by model
}

// classes counts the devices of each class of a cluster, in the order of their first nodes.
func classes(v plan.View) (list []class, devices []float64) {
	known := map[class]int{}
	for i := range v.Cluster().Nodes {
		n := &v.Cluster().Nodes[i]
		c := class{n.Model, n.Count, int32(n.CPU)}
		at, ok := known[c]
		if !ok {
			at = len(list)
			known[c], list, devices = at, append(list, c), append(devices, 0)
		}
		devices[at] += float64(n.Count)
	}
	return list, devices
}

// findWorths finds the worths at which the best fillings of the empty cluster ask for as much of
// every item as comes.
func (p *prices) findWorths(v plan.View, mix *fragment.Mix) {
	p.expect(v, mix)
	list, devices := classes(v)
	for range rounds {
		p.fill()
		for i, c := range list {
			p.of[c.model].cheapest(c).devices += devices[i]
		}
		p.correct()
	}
	p.fill()
	for _, t := range p.tables {
		for i := range t.at {
			f := &t.at[i]
			for level := range f.values {
				f.values[level] = f.value(level)
			}
		}
	}
}

// expect notes the items of the mix and gives models with the same ones one table.
func (p *prices) expect(v plan.View, mix *fragment.Mix) {
	*p = prices{of: make([]*table, v.Room().Models())}
	known, sum := map[fragment.Task]int32{}, 0.0
	for model := range p.of {
		t := &table{}
		for _, task := range mix.Tasks(model) {
			id, ok := known[task.Task]
			if !ok {
				id = int32(len(p.items))
				known[task.Task] = id
				i := item{size: int(task.Share*levels+999) / 1000, cores: float64(task.CPU) / 1000 / float64(task.Devices), rate: float64(task.Count) * float64(task.Devices)}
				i.worth = float64(i.size) / levels
				sum += i.rate * float64(task.Share) / 1000
				p.items = append(p.items, i)
			}
			if size := p.items[id].size; len(t.sizes) == 0 || t.sizes[len(t.sizes)-1] != size {
				t.sizes = append(t.sizes, size)
			}
			t.items = append(t.items, id)
		}
		at := slices.IndexFunc(p.tables, func(other *table) bool { return slices.Equal(other.items, t.items) })
		if at < 0 {
			at, p.tables = len(p.tables), append(p.tables, t)
		}
		p.of[model] = p.tables[at]
	}
	for i := range p.items {
		p.items[i].rate *= float64(v.Devices()) / sum
	}
}

// fill works out all fillings for the present worths.
func (p *prices) fill() {
	for _, t := range p.tables {
		for i := range t.at {
			p.fillAt(t, &t.at[i], corePrices[i])
		}
	}
}

func (p *prices) fillAt(t *table, f *filling, price float64) {
	f.scale, f.devices, f.weights, f.heavy = 0, 0, f.weights[:0], f.heavy[:0]
	for _, id := range t.items {
		i := &p.items[id]
		w := (i.worth - price*i.cores) / blur
		f.weights = append(f.weights, w)
		f.scale = max(f.scale, (w+math.Log(float64(len(t.items))))/float64(i.size))
	}
	last := 0
	for k, id := range t.items {
		size := p.items[id].size
		if size != last {
			last, f.heavy = size, append(f.heavy, 0)
		}
		f.weights[k] = math.Exp(f.weights[k] - f.scale*float64(size))
		f.heavy[len(f.heavy)-1] += f.weights[k]
	}
	for level := range f.sums {
		sum := math.Exp(-f.scale * float64(level))
		for s, size := range t.sizes {
			if size > level {
				break
			}
			sum += f.heavy[s] * f.sums[level-size]
		}
		f.sums[level] = sum
	}
}

// value is what so many levels of a device are worth.
func (f *filling) value(level int) float64 {
	return blur * (math.Log(f.sums[level]) + f.scale*float64(level))
}

// cheapest is the filling at the price of a core at which an empty node of a class is worth
// least: it takes about as many cores as the node has.
func (t *table) cheapest(c class) *filling {
	least, best := math.Inf(1), 0
	for i, price := range corePrices {
		if worth := price*float64(c.milliCores)/1000 + float64(c.devices)*t.at[i].value(levels); worth < least {
			least, best = worth, i
		}
	}
	return &t.at[best]
}

// correct counts what the fillings ask for, and raises the worth of what they ask for too
// little of.
func (p *prices) correct() {
	for i := range p.items {
		p.items[i].asked = 0
	}
	for _, t := range p.tables {
		for i := range t.at {
			if t.at[i].devices > 0 {
				p.ask(t, &t.at[i])
			}
		}
	}
	for i := range p.items {
		item := &p.items[i]
		item.worth += blur / 2 * max(-most, min(most, math.Log(item.rate/max(item.asked, item.rate*1e-9))))
	}
}

// ask adds what the devices of a filling take: from level to level, by the weights.
func (p *prices) ask(t *table, f *filling) {
	var at [levels + 1]float64
	asked := make([]float64, len(t.sizes)) // by size, over its weight
	at[levels] = f.devices
	for level := levels; level > 0; level-- {
		for s, size := range t.sizes {
			if size > level || at[level] == 0 {
				break
			}
			part := at[level] * f.sums[level-size] / f.sums[level]
			at[level-size] += part * f.heavy[s]
			asked[s] += part
		}
	}
	s := -1
	for k, id := range t.items {
		if s < 0 || p.items[id].size != t.sizes[s] {
			s++
		}
		p.items[id].asked += asked[s] * f.weights[k]
	}
}

// worth is what a node has free is worth, in devices: at the price of a core at which it is worth
// least.
func (t *table) worth(n *fragment.Node) float64 {
	least := math.Inf(1)
	for i, price := range corePrices {
		worth := price * float64(n.CPU) / 1000
		for _, free := range n.Free {
			worth += t.at[i].values[free*levels/1000]
		}
		least = min(least, worth)
	}
	return least
}
