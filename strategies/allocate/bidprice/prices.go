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
	size         int     // of levels
	cores        float64 // beside the device
	rate, asked  float64 // how many come while the cluster fills once, and how many fillings take
	worth        float64 // in devices
	devices, cpu int32   // of the task
}

// class is devices on nodes that look alike when they are empty.
type class struct {
	model   int32
	devices int32 // of one node
	cpu     int64
}

// table is what the free part of a device is worth on models that allow the same items: by
// price of a core and by level.
type table struct {
	items  []int32
	values [len(corePrices)][levels + 1]float64
	parts  [len(corePrices)][]float64           // by item: its weight in a filling
	sums   [len(corePrices)][levels + 1]float64 // of the weights of all fillings
	lots   [len(corePrices)]float64             // devices that are filled at a price
}

// prices are the worths of the items that usually come, and what they make of what is free.
type prices struct {
	items  []item
	tables []*table // by model
}

// classes counts the devices of each class of a cluster, in the order of their first nodes.
func classes(v plan.View) (list []class, devices []float64) {
	known := map[class]int{}
	for i := range v.Cluster().Nodes {
		n := &v.Cluster().Nodes[i]
		c := class{n.Model, n.Count, int64(n.CPU)}
		at, ok := known[c]
		if !ok {
			at = len(list)
			known[c], list, devices = at, append(list, c), append(devices, 0)
		}
		devices[at] += float64(n.Count)
	}
	return list, devices
}

// expect notes the items of the mix and gives models with the same ones one table.
func (p *prices) expect(v plan.View, mix *fragment.Mix) {
	p.items, p.tables = p.items[:0], make([]*table, v.Room().Models())
	known, sum := map[fragment.Task]int32{}, 0.0
	for model := range p.tables {
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
			t.items = append(t.items, id)
		}
		p.tables[model] = t
		for _, other := range p.tables[:model] {
			if slices.Equal(other.items, t.items) {
				p.tables[model] = other
				break
			}
		}
	}
	for i := range p.items {
		p.items[i].rate *= float64(v.Devices()) / sum
	}
}

// settle finds the worths at which the best fillings of an empty cluster ask for as much of
// every item as comes.
func (p *prices) settle(v plan.View, mix *fragment.Mix) {
	p.expect(v, mix)
	list, devices := classes(v)
	for range rounds {
		p.fill()
		for i, c := range list {
			if t := p.tables[c.model]; c.devices > 0 {
				t.lots[t.cheapest(c)] += devices[i]
			}
		}
		p.correct()
	}
	p.fill()
}

// fill works out all tables for the present worths.
func (p *prices) fill() {
	for model, t := range p.tables {
		if slices.Index(p.tables, t) < model {
			continue
		}
		t.lots = [len(corePrices)]float64{}
		for price := range corePrices {
			p.fillAt(t, price)
		}
	}
}

// fillAt sums the weights of all ways to fill a level, in any order: the value is the logarithm
// of that, a maximum over the fillings that is blurred. Weights are scaled by level, so that
// the sums stay within what a float holds.
func (p *prices) fillAt(t *table, price int) {
	scale := 0.0
	weights, sums := t.parts[price][:0], &t.sums[price]
	for _, id := range t.items {
		i := &p.items[id]
		w := (i.worth - corePrices[price]*i.cores) / blur
		weights = append(weights, w)
		scale = max(scale, (w+math.Log(float64(len(t.items))))/float64(i.size))
	}
	for k, id := range t.items {
		weights[k] = math.Exp(weights[k] - scale*float64(p.items[id].size))
	}
	for level := range sums {
		sum := math.Exp(-scale * float64(level))
		for k, id := range t.items {
			if size := p.items[id].size; size <= level {
				sum += weights[k] * sums[level-size]
			}
		}
		sums[level] = sum
		t.values[price][level] = blur * (math.Log(sum) + scale*float64(level))
	}
	t.parts[price] = weights
}

// cheapest is the price of a core at which an empty node of a class is worth least: there its
// fillings take about as many cores as it has.
func (t *table) cheapest(c class) (price int) {
	least := math.Inf(1)
	for i, each := range corePrices {
		if worth := each*float64(c.cpu)/1000 + float64(c.devices)*t.values[i][levels]; worth < least {
			least, price = worth, i
		}
	}
	return price
}

// correct counts what the fillings ask for, and raises the worth of what they ask for too
// little of.
func (p *prices) correct() {
	for i := range p.items {
		p.items[i].asked = 0
	}
	for model, t := range p.tables {
		if slices.Index(p.tables, t) == model {
			for price, lots := range t.lots {
				if lots > 0 {
					p.ask(t, price, lots)
				}
			}
		}
	}
	for i := range p.items {
		item := &p.items[i]
		item.worth += blur / 2 * max(-most, min(most, math.Log(item.rate/max(item.asked, item.rate*1e-9))))
	}
}

// ask adds what so many devices are filled with: from level to level, by the weights.
func (p *prices) ask(t *table, price int, devices float64) {
	var at [levels + 1]float64
	at[levels] = devices
	for level := levels; level > 0; level-- {
		if at[level] == 0 {
			continue
		}
		for k, id := range t.items {
			if i := &p.items[id]; i.size <= level {
				part := at[level] * t.parts[price][k] * t.sums[price][level-i.size] / t.sums[price][level]
				at[level-i.size] += part
				i.asked += part
			}
		}
	}
}

// worth is what a node has free is worth, in devices: at the price of a core at which it is worth
// least.
func (t *table) worth(n *fragment.Node) float64 {
	least := math.Inf(1)
	for i, each := range corePrices {
		worth := each * float64(n.CPU) / 1000
		for _, free := range n.Free {
			worth += t.values[i][free*levels/1000]
		}
		least = min(least, worth)
	}
	return least
}
