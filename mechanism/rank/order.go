package rank

import "math"

// Order puts many things in order by whole keys, those of equal keys as they were: digit by
// digit, and no digit that all share. Its memory is used again; what it returns holds until
// it is asked again.
type Order struct {
	Keys        []uint64 // by thing; set by who asks
	order, next []int32
}

// Begin makes room for the keys of so many things, in the order of their numbers.
func (o *Order) Begin(things int) {
	if cap(o.Keys) < things {
		o.Keys, o.order, o.next = make([]uint64, things), make([]int32, things), make([]int32, things)
	}
	o.Keys, o.order, o.next = o.Keys[:things], o.order[:things], o.next[:things]
	for i := range o.order {
		o.order[i] = int32(i)
	}
}

// Sort puts the things in order of their keys, least first.
func (o *Order) Sort() []int32 {
	const digit = 11
	var all uint64
	for _, k := range o.Keys {
		all |= k ^ o.Keys[0]
	}
	for shift := 0; shift < 64; shift += digit {
		if all>>shift&(1<<digit-1) == 0 {
			continue
		}
		var first [1<<digit + 1]int32
		for _, k := range o.Keys {
			first[k>>shift&(1<<digit-1)+1]++
		}
		for d := range 1 << digit {
			first[d+1] += first[d]
		}
		for _, i := range o.order {
			at := &first[o.Keys[i]>>shift&(1<<digit-1)]
			o.next[*at] = i
			*at++
		}
		o.order, o.next = o.next, o.order
	}
	return o.order
}

// Float is the key of a figure that is a number: keys are in the order of their figures.
func Float(x float64) uint64 {
	b := math.Float64bits(x + 0) // there is one zero
	if b>>63 == 1 {
		return ^b
	}
	return b | 1<<63
}
