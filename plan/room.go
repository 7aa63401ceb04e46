package plan

import "math/bits"

// Room is the index of free capacity: for each device model and number of wholly
// free devices, the set of nodes that have exactly so many; and the nodes that
// have a partly free device. Questions cost the logarithm of the cluster's size.
type Room struct {
	counts  int // free-device counts run from 0 to counts-1
	models  int
	sets    []bitset // by model*counts + free devices
	sizes   []int32  // of the sets
	partial []bitset // by model: nodes with a device that is partly taken
	free    []int64  // by model: wholly free devices in all
	milli   []int64  // by model: free thousandths in all, parts included
	all     []int64  // by model: devices that exist
	counted []inRoom // by node
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
	r.sets, r.sizes = make([]bitset, r.models*r.counts), make([]int32, r.models*r.counts)
	for i := range r.sets {
		r.sets[i] = newBitset(n)
	}
	r.partial = make([]bitset, r.models)
	for i := range r.partial {
		r.partial[i] = newBitset(n)
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
	c.sets, c.partial = make([]bitset, len(r.sets)), make([]bitset, len(r.partial))
	for i := range r.sets {
		c.sets[i] = r.sets[i].copy()
	}
	for i := range r.partial {
		c.partial[i] = r.partial[i].copy()
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
	return r.sets[model*r.counts+free].next(from)
}

// NextPartial returns the first node at or after from with a device that is partly
// free, or free and cut.
func (r *Room) NextPartial(model int, from NodeID) NodeID { return r.partial[model].next(from) }

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
			r.sets[was.set].clear(id)
		}
		if is.set != None {
			r.sizes[is.set]++
			r.sets[is.set].set(id)
		}
	}
	if is.partial {
		r.partial[model].set(id)
	} else {
		r.partial[model].clear(id)
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

// bitset is a set of node ids in two levels of 64-bit words: the upper level says
// which words of the lower are not empty.
type bitset struct{ low, high []uint64 }

func newBitset(n int) bitset {
	words := (n + 63) / 64
	return bitset{low: make([]uint64, words), high: make([]uint64, (words+63)/64)}
}

func (b *bitset) copy() bitset {
	return bitset{append([]uint64(nil), b.low...), append([]uint64(nil), b.high...)}
}

func (b *bitset) set(id NodeID) {
	w := int(id) >> 6
	b.low[w] |= 1 << (id & 63)
	b.high[w>>6] |= 1 << (w & 63)
}

func (b *bitset) clear(id NodeID) {
	w := int(id) >> 6
	if b.low[w] &^= 1 << (id & 63); b.low[w] == 0 {
		b.high[w>>6] &^= 1 << (w & 63)
	}
}

func (b *bitset) next(from NodeID) NodeID {
	w := int(from) >> 6
	if w >= len(b.low) {
		return None
	}
	if x := b.low[w] >> (from & 63); x != 0 {
		return from + NodeID(bits.TrailingZeros64(x))
	}
	w++
	for h := w >> 6; h < len(b.high); h++ {
		x := b.high[h]
		if h == w>>6 {
			x &= ^uint64(0) << (w & 63)
		}
		if x != 0 {
			low := h<<6 + bits.TrailingZeros64(x)
			return NodeID(low<<6 + bits.TrailingZeros64(b.low[low]))
		}
	}
	return None
}
