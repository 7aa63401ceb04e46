package bound

import (
	"math/bits"

	"github.com/musterdl/muster/unit"
)

// wide is a whole number of 128 bits: device-microseconds of many jobs do not fit
// in 64.
type wide struct {
	hi, lo uint64
}

func product(a, b uint64) wide {
	hi, lo := bits.Mul64(a, b)
	return wide{hi, lo}
}

func (a wide) plus(b wide) wide {
	lo, carry := bits.Add64(a.lo, b.lo, 0)
	hi, _ := bits.Add64(a.hi, b.hi, carry)
	return wide{hi, lo}
}

func (a wide) minus(b wide) wide {
	lo, borrow := bits.Sub64(a.lo, b.lo, 0)
	hi, _ := bits.Sub64(a.hi, b.hi, borrow)
	return wide{hi, lo}
}

func (a wide) less(b wide) bool {
	return a.hi < b.hi || a.hi == b.hi && a.lo < b.lo
}

// over divides and rounds down; what no Duration can hold becomes Forever.
func (a wide) over(n uint64) unit.Duration {
	if a.hi >= n {
		return unit.Forever
	}
	quotient, _ := bits.Div64(a.hi, a.lo, n)
	return unit.Duration(min(quotient, uint64(unit.Forever)))
}
