package taskgraph

import (
	"math"

	"github.com/musterdl/muster/mechanism/maxmin"
	"github.com/musterdl/muster/model/unit"
)

// mesh is the links that some transfers use together, and all transfers on them. When
// one comes or goes, the rates of those it shares links with, directly or through
// others, are filled anew.
type mesh struct {
	links   []hop // per resource
	flows   []transfer
	free    []int32 // places in flows that are empty
	changed []int32 // links to look at before time moves on
	round   int32   // counts the calls of setRates that had something to do

	// Used again from one filling to the next.
	filler     maxmin.Filler
	capacities []float64 // bits per microsecond, per resource
	reached    []int32   // links
	batch      []int32   // transfers
	asked      []maxmin.Flow
	rates      []float64
}

// hop is a link of the mesh.
type hop struct {
	in, moving bool      // it is one; bytes have been moving over it
	since      unit.Time // then
	round      int32     // the last in which it was reached
	on         []int32   // the transfers there
}

// transfer is a task on the mesh.
type transfer struct {
	task, class int32
	round       int32 // the last in which it was reached
	uses        []maxmin.Use
	left        float64   // bits, at the time of since
	rate        float64   // bits per microsecond
	since       unit.Time // it has this rate
	due         unit.Time // when the last bit leaves at this rate
}

func newMesh(g *Graph, routes []route) (m mesh) {
	m.links, m.capacities = make([]hop, len(routes)), make([]float64, len(routes))
	for i := range routes {
		m.capacities[i] = float64(g.Resources[i].Bandwidth)
		if len(routes[i].links) < 2 {
			continue
		}
		for _, u := range routes[i].links {
			m.links[u.Link].in = true
		}
	}
	return m
}

// add puts a task on its links.
func (m *mesh) add(t int32, c *clock) {
	task := &c.g.Tasks[t]
	f := transfer{task: t, class: task.Priority, uses: c.routes[task.Resource].links, left: 8 * float64(task.Bytes), since: c.now, due: never}
	id := int32(len(m.flows))
	if last := len(m.free) - 1; last >= 0 {
		id, m.free = m.free[last], m.free[:last]
		m.flows[id] = f
	} else {
		m.flows = append(m.flows, f)
	}
	for _, u := range f.uses {
		m.links[u.Link].on = append(m.links[u.Link].on, id)
		m.changed = append(m.changed, u.Link)
		c.at[u.Link].enter(c.now)
	}
}

// remove takes a transfer off its links.
func (m *mesh) remove(id int32, c *clock) {
	for _, u := range m.flows[id].uses {
		on := m.links[u.Link].on
		for i := range on {
			if on[i] == id {
				on[i] = on[len(on)-1]
				m.links[u.Link].on = on[:len(on)-1]
				break
			}
		}
		m.changed = append(m.changed, u.Link)
		c.at[u.Link].last = c.now
	}
	m.flows[id].due = never
	m.free = append(m.free, id)
}

// setRates gives new rates where transfers have come or gone.
func (m *mesh) setRates(c *clock) {
	if len(m.changed) == 0 {
		return
	}
	m.round++
	for _, l := range m.changed {
		if m.links[l].round != m.round {
			m.gather(l)
			m.fill(c)
		}
	}
	m.changed = m.changed[:0]
}

// gather finds the links and transfers that share with one link, directly or through others.
func (m *mesh) gather(l int32) {
	m.reached, m.batch = append(m.reached[:0], l), m.batch[:0]
	m.links[l].round = m.round
	for i := 0; i < len(m.reached); i++ {
		for _, id := range m.links[m.reached[i]].on {
			f := &m.flows[id]
			if f.round == m.round {
				continue
			}
			f.round = m.round
			m.batch = append(m.batch, id)
			for _, u := range f.uses {
				if x := &m.links[u.Link]; x.round != m.round {
					x.round = m.round
					m.reached = append(m.reached, u.Link)
				}
			}
		}
	}
}

// fill sets the rates of what was gathered.
func (m *mesh) fill(c *clock) {
	m.asked = m.asked[:0]
	for _, id := range m.batch {
		m.asked = append(m.asked, maxmin.Flow{Uses: m.flows[id].uses, Class: m.flows[id].class})
	}
	m.rates = m.filler.Fill(m.capacities, m.asked, m.rates)
	for _, l := range m.reached {
		x := &m.links[l]
		if x.moving {
			c.line.Busy[l] += c.now.Sub(x.since)
		}
		x.moving, x.since = false, c.now
	}
	for i, id := range m.batch {
		f := &m.flows[id]
		if m.rates[i] != f.rate {
			f.set(m.rates[i], c.now)
			if f.due != never {
				c.events.push(item[unit.Time]{f.due, id, due})
			}
		}
		if f.rate > 0 {
			for _, u := range f.uses {
				m.links[u.Link].moving = true
			}
		}
	}
}

// set changes the rate of a transfer and with it when it is due: rounded up.
func (f *transfer) set(rate float64, now unit.Time) {
	f.left = max(0, f.left-f.rate*float64(now.Sub(f.since)))
	f.rate, f.since, f.due = rate, now, never
	if wait := math.Ceil(f.left/rate - slack); wait < longest {
		f.due = now.Add(unit.Duration(max(0, wait)))
	}
}
