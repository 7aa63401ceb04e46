// Package unit holds the quantities every other package speaks in: instants and
// durations in whole microseconds, memory in mebibytes, parts of a device in
// thousandths, bandwidth in megabits per second. They are integers, so that sums
// balance exactly and the same events give the same bytes.
//
// It also reads and writes quantities as people write them: "16GiB", "25Gbps",
// "2h30m", "500m" (half a device or half a core).
package unit

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Time is an instant: microseconds since the start of the history at hand (the
// first submission of a trace, or the Unix epoch live).
type Time int64

// Duration is a span of time in microseconds.
type Duration int64

// Spans of time.
const (
	Microsecond Duration = 1
	Millisecond          = 1000 * Microsecond
	Second               = 1000 * Millisecond
	Minute               = 60 * Second
	Hour                 = 60 * Minute
	Day                  = 24 * Hour
)

// Never is the instant that does not come, and Forever the span that does not end.
const (
	Never   Time     = math.MaxInt64
	Forever Duration = math.MaxInt64
)

// Add returns the instant d after t; Never stays Never.
func (t Time) Add(d Duration) Time {
	if t == Never || d == Forever {
		return Never
	}
	if s := t + Time(d); d < 0 || s >= t {
		return s
	}
	return Never
}

// Sub returns the span from u to t.
func (t Time) Sub(u Time) Duration { return Duration(t - u) }

// Seconds returns t in seconds since the start of the history.
func (t Time) Seconds() float64 { return float64(t) / 1e6 }

// Seconds returns d in seconds.
func (d Duration) Seconds() float64 { return float64(d) / 1e6 }

// Seconds returns the Duration closest to s seconds.
func Seconds(s float64) Duration {
	switch us := math.Round(s * 1e6); {
	case us >= math.MaxInt64:
		return Forever
	case us <= math.MinInt64:
		return math.MinInt64
	default:
		return Duration(us)
	}
}

// String writes d the way a person would: "2h30m", "45s", "120ms".
func (d Duration) String() string {
	switch {
	case d == Forever:
		return "forever"
	case d < 0:
		return "-" + (-d).String()
	case d == 0:
		return "0s"
	case d < Millisecond:
		return fmt.Sprintf("%dus", int64(d))
	case d < Second:
		return trimZeros(fmt.Sprintf("%.3f", float64(d)/1e3)) + "ms"
	case d < Minute:
		return trimZeros(fmt.Sprintf("%.3f", float64(d)/1e6)) + "s"
	}
	d = (d + Second/2) / Second * Second // before it is split, so that there are no 60 seconds
	var b strings.Builder
	for _, p := range []struct {
		size Duration
		name string
	}{{Day, "d"}, {Hour, "h"}, {Minute, "m"}} {
		if n := d / p.size; n > 0 {
			fmt.Fprintf(&b, "%d%s", n, p.name)
			d -= n * p.size
		}
	}
	if s := d / Second; s > 0 {
		fmt.Fprintf(&b, "%ds", s)
	}
	return b.String()
}

// MiB is an amount of memory in mebibytes.
type MiB int64

// String writes m in the largest binary unit that keeps it short.
func (m MiB) String() string {
	switch {
	case m >= 1<<20 && m%(1<<10) == 0:
		return trimZeros(fmt.Sprintf("%.2f", float64(m)/(1<<20))) + "TiB"
	case m >= 1<<10:
		return trimZeros(fmt.Sprintf("%.2f", float64(m)/(1<<10))) + "GiB"
	}
	return fmt.Sprintf("%dMiB", int64(m))
}

// Milli is thousandths of one device or one core: 1000 is a whole one.
type Milli int64

// Whole is one whole device or core.
const Whole Milli = 1000

// String writes whole numbers as such and parts with an m: "2", "500m".
func (m Milli) String() string {
	if m%Whole == 0 {
		return strconv.FormatInt(int64(m/Whole), 10)
	}
	return strconv.FormatInt(int64(m), 10) + "m"
}

// Mbps is bandwidth in megabits (10^6 bits) per second.
type Mbps int64

// String writes b in Gbps from there on.
func (b Mbps) String() string {
	if b >= 1000 {
		return trimZeros(fmt.Sprintf("%.3f", float64(b)/1000)) + "Gbps"
	}
	return fmt.Sprintf("%dMbps", int64(b))
}

func trimZeros(s string) string {
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// ParseDuration reads "90s", "2h30m", "1d", "1.5h" or, without a unit, seconds.
func ParseDuration(s string) (Duration, error) {
	total, rest := 0.0, strings.TrimSpace(s)
	if rest == "" {
		return 0, fmt.Errorf("empty duration: write one like 90s, 2h30m or 1d")
	}
	if v, err := strconv.ParseFloat(rest, 64); err == nil {
		return boundedDuration(s, v)
	}
	for rest != "" {
		v, unit, next, err := number(rest)
		if err != nil {
			return 0, fmt.Errorf("%q is not a duration: write one like 90s, 2h30m or 1d", s)
		}
		scale, ok := map[string]float64{"us": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600, "d": 86400}[unit]
		if !ok {
			return 0, fmt.Errorf("%q is not a duration: unknown unit %q, use us, ms, s, m, h or d", s, unit)
		}
		total, rest = total+v*scale, next
	}
	return boundedDuration(s, total)
}

func boundedDuration(s string, seconds float64) (Duration, error) {
	const most = 1000 * 365 * 86400 // a thousand years: more is a mistake
	if math.IsNaN(seconds) || seconds < 0 || seconds > most {
		return 0, fmt.Errorf("duration %q is out of range: expected 0 to 1000 years", s)
	}
	return Seconds(seconds), nil
}

// ParseMiB reads "16GiB", "512MiB", "16GB" (decimal), or, without a unit, bytes.
func ParseMiB(s string) (MiB, error) {
	v, unit, rest, err := number(strings.TrimSpace(s))
	if err != nil || rest != "" {
		return 0, fmt.Errorf("%q is not an amount of memory: write one like 16GiB or 512MiB", s)
	}
	scale, ok := map[string]float64{"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
		"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}[unit]
	if !ok {
		return 0, fmt.Errorf("%q is not an amount of memory: unknown unit %q, use MiB, GiB or TiB", s, unit)
	}
	m := math.Ceil(v * scale / (1 << 20))
	if m < 0 || m > 1<<40 {
		return 0, fmt.Errorf("memory %q is out of range", s)
	}
	return MiB(m), nil
}

// ParseMbps reads "25Gbps", "200Mbps" or "1Tbps".
func ParseMbps(s string) (Mbps, error) {
	v, unit, rest, err := number(strings.TrimSpace(s))
	if err != nil || rest != "" {
		return 0, fmt.Errorf("%q is not a bandwidth: write one like 25Gbps", s)
	}
	scale, ok := map[string]float64{"Mbps": 1, "Gbps": 1e3, "Tbps": 1e6}[unit]
	if !ok {
		return 0, fmt.Errorf("%q is not a bandwidth: use Mbps, Gbps or Tbps", s)
	}
	b := math.Round(v * scale)
	if b < 0 || b > 1e12 {
		return 0, fmt.Errorf("bandwidth %q is out of range", s)
	}
	return Mbps(b), nil
}

// ParseMilli reads "2" (two whole ones), "0.5" or "500m" (half of one).
func ParseMilli(s string) (Milli, error) {
	v, unit, rest, err := number(strings.TrimSpace(s))
	if err != nil || rest != "" || (unit != "" && unit != "m") {
		return 0, fmt.Errorf("%q is not a count: write one like 2, 0.5 or 500m", s)
	}
	if unit == "" {
		v *= 1000
	}
	if v < 0 || v > 1e12 {
		return 0, fmt.Errorf("count %q is out of range", s)
	}
	return Milli(math.Round(v)), nil
}

// number splits a leading number and the letters behind it from s.
func number(s string) (value float64, unit, rest string, err error) {
	i := 0
	for i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i] == '.') {
		i++
	}
	if value, err = strconv.ParseFloat(s[:i], 64); err != nil {
		return 0, "", "", err
	}
	j := i
	for j < len(s) && (s[j] >= 'a' && s[j] <= 'z' || s[j] >= 'A' && s[j] <= 'Z') {
		j++
	}
	if j == i && j < len(s) {
		return 0, "", "", fmt.Errorf("unexpected %q", s[i:])
	}
	return value, s[i:j], s[j:], nil
}
