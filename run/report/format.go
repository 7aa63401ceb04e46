package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/musterdl/muster/run/report/terminal"
)

// timeText writes seconds in the two units that matter: "45.2s", "12m05s", "3h25m",
// "12d03h".
func timeText(sec float64) string {
	if sec < 0 {
		return "-" + timeText(-sec)
	}
	two := func(big, small int64, bigName, smallName string) string {
		units := int64(math.Round(sec / float64(small)))
		per := big / small
		return fmt.Sprintf("%d%s%02d%s", units/per, bigName, units%per, smallName)
	}
	switch {
	case sec == 0:
		return "0s"
	case sec < 0.9995:
		return strconv.FormatFloat(sec*1e3, 'g', 3, 64) + "ms"
	case sec < 59.95:
		return fmt.Sprintf("%.1fs", sec)
	case sec < 3600-0.5:
		return two(60, 1, "m", "s")
	case sec < 86400-30:
		return two(3600, 60, "h", "m")
	}
	return two(86400, 3600, "d", "h")
}

// count writes a whole number with commas.
func count(n int64) string {
	s := strconv.FormatInt(n, 10)
	start := 0
	if n < 0 {
		start = 1
	}
	for i := len(s) - 3; i > start; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// percent writes a part of 1 with one decimal.
func percent(part float64) string { return fmt.Sprintf("%.1f%%", part*100) }

// number writes a plain number without trailing zeros.
func number(x float64) string { return strconv.FormatFloat(x, 'g', 4, 64) }

// ratioText writes a ratio, with its interval where one is given and known.
func ratioText(i *Interval) string {
	switch {
	case i == nil:
		return ""
	case math.IsNaN(i.Point) || math.IsInf(i.Point, 0):
		return "–"
	case !i.Known():
		return fmt.Sprintf("%.3f", i.Point)
	}
	return fmt.Sprintf("%.3f [%.3f, %.3f]", i.Point, i.Low, i.High)
}

// bytesText writes an amount of memory.
func bytesText(n int64) string {
	if n >= 1<<30 {
		return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// wrap breaks text between words into lines of at most width runes; 0 is no limit.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && width > 0 && terminal.Columns(line)+1+terminal.Columns(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
