package view

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Span writes a duration in the two units that matter: "45s", "12m05s", "3h25m",
// "12d03h".
func Span(d unit.Duration) string { return SpanSec(d.Seconds()) }

// SpanSec is Span for seconds.
func SpanSec(sec float64) string {
	two := func(small, per int64, bigName, smallName string) string {
		n := int64(sec) / small
		return fmt.Sprintf("%d%s%02d%s", n/per, bigName, n%per, smallName)
	}
	switch {
	case sec < 0:
		return "-" + SpanSec(-sec)
	case sec < 1 && sec > 0:
		return fmt.Sprintf("%.0fms", sec*1000)
	case sec < 10 && sec != float64(int64(sec)):
		return fmt.Sprintf("%.1fs", sec)
	case sec < 60:
		return fmt.Sprintf("%ds", int64(sec))
	case sec < 3600:
		return two(1, 60, "m", "s")
	case sec < 86400:
		return two(60, 60, "h", "m")
	}
	return two(3600, 24, "d", "h")
}

// nearest is SpanSec of a time that nobody knows exactly, to the nearest of what it shows last.
func nearest(sec float64) string {
	step := 1.
	switch {
	case sec >= 86400:
		step = 3600
	case sec >= 3600:
		step = 60
	}
	return SpanSec(math.Round(sec/step) * step)
}

// number writes a count of devices without trailing zeros.
func number(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

func devices(n float64) string { return plan.Devices(milli(n)) }

// milli is what a count of devices is in thousandths.
func milli(n float64) int64 { return int64(math.Round(n * 1000)) }

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// place writes where a run is: "node0:0,1 node1:0-3".
func placeText(places []Place) string {
	var b strings.Builder
	for i, p := range places {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(p.Node)
		if len(p.Devices) > 0 {
			b.WriteByte(':')
			b.WriteString(ranges(p.Devices))
		}
		if p.Share > 0 {
			b.WriteString("*" + number(p.Share))
		}
	}
	return b.String()
}

// ranges writes ascending numbers as "0-3,6".
func ranges(ids []int32) string {
	var b strings.Builder
	for i := 0; i < len(ids); {
		j := i
		for j+1 < len(ids) && ids[j+1] == ids[j]+1 {
			j++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(int(ids[i])))
		if j > i {
			b.WriteString("-" + strconv.Itoa(int(ids[j])))
		}
		i = j + 1
	}
	return b.String()
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

func lossText(x float64) string {
	if x == 0 {
		return "-"
	}
	return strconv.FormatFloat(x, 'g', 4, 64)
}

func percent(part float64) string { return fmt.Sprintf("%.0f%%", part*100) }
