package plan

import "github.com/musterdl/muster/model/bitset"

// Room is the index of free capacity: for each device model and number of wholly
// free devices, the set of nodes that have exactly so many; and the nodes that
// have a partly free device. Questions cost the logarithm of the cluster's size.
type Room struct {
	counts  int // free-device counts run from 0 to counts-1
	models  int
	sets    []bitset.Set // by model*counts + free devices
	sizes   []int32      // of the sets
	partial []bitset.Set // by model: nodes with a device that is partly taken
	free    []int64      // by model: wholly free devices in all
	milli   []int64      // by model: free thousandths in all, parts included
	all     []int64      // by model: devices that exist
	counted []inRoom     // by node
}

// inRoom is what a node is in the index as: in one of the sets, or in none where it takes no
// new runs.
type inRoom struct {
	set, free, milli int32
	partial          bool
}

func newRoom(s *State) Room {
	r := Room{models: len(s.Cluster.Models)}
	for i := range s.Nodes {
		r.counts = max(r.counts, int(s.Nodes[i].Count)+1)
	}
	n := len(s.Nodes)
	r.sets, r.sizes = make([]bitset.Set, r.models*r.counts), make([]int32, r.models*r.counts)
	for i := range r.sets {
		r.sets[i] = bitset.New(n)
	}
	r.partial = make([]bitset.Set, r.models)
	for i := range r.partial {
		r.partial[i] = bitset.New(n)
	}
	r.free = make([]int64, r.models)
	r.milli = make([]int64, r.models)
	r.all = make([]int64, r.models)
	r.counted = make([]inRoom, n)
	for i := range s.Nodes {
		r.all[s.Nodes[i].Model] += int64(s.Nodes[i].Count)
		r.counted[i].set = None
		r.recount(s, NodeID(i))
	}
	return r
}

func (r *Room) copy() Room {
	c := *r
	c.sets, c.partial = make([]bitset.Set, len(r.sets)), make([]bitset.Set, len(r.partial))
	for i := range r.sets {
		c.sets[i] = r.sets[i].Clone()
	}
	for i := range r.partial {
		c.partial[i] = r.partial[i].Clone()
	}
	c.sizes = append([]int32(nil), r.sizes...)
	c.free = append([]int64(nil), r.free...)
	c.milli = append([]int64(nil), r.milli...)
	c.counted = append([]inRoom(nil), r.counted...)
	return c
}

// Free is the number of wholly free devices of the allowed models on nodes that
// take new runs.
func (r *Room) Free(models uint64) int64 { return sum(r.free, models) }

// FreeMilli is the same in thousandths, with the free parts of shared devices.
func (r *Room) FreeMilli(models uint64) int64 { return sum(r.milli, models) }

func sum(of []int64, models uint64) (n int64) {
	for m := range of {
		if models&(1<<m) != 0 {
			n += of[m]
		}
	}
	return n
}

// Groups is how many groups of so many wholly free devices of one node there are, as far
// as none shares a device with another.
func (r *Room) Groups(models uint64, devices int) (n int64) {
	for m := range r.models {
		for c := devices; c < r.counts && models&(1<<m) != 0; c++ {
			n += int64(r.sizes[m*r.counts+c]) * int64(c/devices)
		}
	}
	return n
}

// All is the number of devices of the allowed models, whatever their state.
func (r *Room) All(models uint64) int64 { return sum(r.all, models) }

// MostFree is the largest number of free devices a node can have.
func (r *Room) MostFree() int { return r.counts - 1 }

// Models is the number of device models.
func (r *Room) Models() int { return r.models }

// Next returns the first node at or after from that has exactly free wholly free
// devices of the model, or None.
func (r *Room) Next(model, free int, from NodeID) NodeID {
	return NodeID(r.sets[model*r.counts+free].Next(int32(from)))
}

// NextPartial returns the first node at or after from with a device that is partly
// free, or free and cut.
func (r *Room) NextPartial(model int, from NodeID) NodeID {
	return NodeID(r.partial[model].Next(int32(from)))
}

// NextAny returns the first node at or after from, of the allowed models, with
// at least least free devices, or None.
func (r *Room) NextAny(models uint64, least int, from NodeID) NodeID {
	best := NodeID(None)
	for m := range r.models {
		if models&(1<<m) == 0 {
			continue
		}
		for c := least; c < r.counts; c++ {
			if n := r.Next(m, c, from); n != None && (best == None || n < best) {
				best = n
			}
		}
	}
	return best
}

// recount puts a node in the index by what it has at the moment, after anything on it was
// edited.
func (r *Room) recount(s *State, id NodeID) {
	was, is := &r.counted[id], r.of(s, id)
	if *was == is {
		return
	}
	model := s.Nodes[id].Model
	r.free[model] += int64(is.free - was.free)
	r.milli[model] += int64(is.milli - was.milli)
	if was.set != is.set {
		if was.set != None {
			r.sizes[was.set]--
			r.sets[was.set].Remove(int32(id))
		}
		if is.set != None {
			r.sizes[is.set]++
			r.sets[is.set].Add(int32(id))
		}
	}
	if is.partial {
		r.partial[model].Add(int32(id))
	} else {
		r.partial[model].Remove(int32(id))
	}
	*was = is
}

// of is what a node has at the moment.
func (r *Room) of(s *State, id NodeID) inRoom {
	n := &s.Nodes[id]
	if n.Status != Up {
		return inRoom{set: None}
	}
	c := inRoom{set: n.Model*int32(r.counts) + n.FreeDevices, free: n.FreeDevices}
	devices := s.Devices[n.First : n.First+DeviceID(n.Count)]
	for i := range devices {
		if dev := &devices[i]; !dev.Status.Out() {
			c.milli += dev.Free
			c.partial = c.partial || dev.Free > 0 && !dev.Whole()
		}
	}
	return c
}
