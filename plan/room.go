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
	for i := range s.Nodes {
		r.all[s.Nodes[i].Model] += int64(s.Nodes[i].Count)
		r.add(s, NodeID(i))
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

// add and remove put a node in the index and take it out, by what it has at the
// moment; a node that takes no new runs is in no set.
func (r *Room) add(s *State, id NodeID)    { r.count(s, id, 1) }
func (r *Room) remove(s *State, id NodeID) { r.count(s, id, -1) }

func (r *Room) count(s *State, id NodeID, sign int64) {
	n := &s.Nodes[id]
	if n.Status != Up {
		return
	}
	at := int(n.Model)*r.counts + int(n.FreeDevices)
	set := &r.sets[at]
	r.sizes[at] += int32(sign)
	milli, partial := int64(0), false
	for d := n.First; d < n.First+DeviceID(n.Count); d++ {
		dev := &s.Devices[d]
		if dev.Status.Out() {
			continue
		}
		milli += int64(dev.Free)
		partial = partial || dev.Free > 0 && !dev.Whole()
	}
	r.free[n.Model] += sign * int64(n.FreeDevices)
	r.milli[n.Model] += sign * milli
	if sign > 0 {
		set.set(id)
		if partial {
			r.partial[n.Model].set(id)
		}
	} else {
		set.clear(id)
		r.partial[n.Model].clear(id)
	}
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
