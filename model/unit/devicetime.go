package unit

import "math/bits"

// DeviceTime is use added up: thousandths of a device times microseconds, in 128
// bits, since a cluster of 100,000 devices fills 64 of them within a day. It is not
// negative.
type DeviceTime struct{ Hi, Lo uint64 }

// Use is what milli thousandths of a device amount to over d; neither is negative.
func Use(milli int64, d Duration) DeviceTime {
	hi, lo := bits.Mul64(uint64(milli), uint64(d))
	return DeviceTime{hi, lo}
}

// Plus adds two uses.
func (t DeviceTime) Plus(u DeviceTime) DeviceTime {
	lo, carry := bits.Add64(t.Lo, u.Lo, 0)
	hi, _ := bits.Add64(t.Hi, u.Hi, carry)
	return DeviceTime{hi, lo}
}

// Minus takes u, which is not more, from t.
func (t DeviceTime) Minus(u DeviceTime) DeviceTime {
	lo, borrow := bits.Sub64(t.Lo, u.Lo, 0)
	hi, _ := bits.Sub64(t.Hi, u.Hi, borrow)
	return DeviceTime{hi, lo}
}

// Less reports whether t is less than u.
func (t DeviceTime) Less(u DeviceTime) bool { return t.Hi < u.Hi || t.Hi == u.Hi && t.Lo < u.Lo }

// Over is how long milli thousandths of a device take for t, rounded down; what no
// Duration can hold is Forever.
func (t DeviceTime) Over(milli uint64) Duration {
	if t.Hi >= milli {
		return Forever
	}
	q, _ := bits.Div64(t.Hi, t.Lo, milli)
	return Duration(min(q, uint64(Forever)))
}

// MilliSeconds is t in whole thousandths of a device times seconds.
func (t DeviceTime) MilliSeconds() int64 {
	const second = uint64(Second)
	q, _ := bits.Div64(t.Hi%second, t.Lo, second)
	return int64(q)
}

// Hours is t in device-hours.
func (t DeviceTime) Hours() float64 {
	const hour = 1000 * float64(Hour)
	return (float64(t.Hi)*(1<<32)*(1<<32) + float64(t.Lo)) / hour
}
