// Package slurm reads what people write for Slurm and what it prints: spans, amounts,
// batch scripts, accounts.
package slurm

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/musterdl/muster/model/unit"
)

const mostSeconds = 100 * 365 * 86400

// Span reads a span of time in any of Slurm's forms: minutes, MM:SS, HH:MM:SS, D-HH, D-HH:MM
// and D-HH:MM:SS, with parts of a second. Endless is one of its words for no bound.
func Span(s string) (d unit.Duration, endless bool, err error) {
	switch strings.ToUpper(s) {
	case "", "UNLIMITED", "INFINITE", "PARTITION_LIMIT", "NONE", "UNKNOWN", "INVALID", "-1":
		return 0, true, nil
	}
	days, clock, dated := strings.Cut(s, "-")
	if !dated {
		days, clock = "0", s
	}
	parts := strings.Split(clock, ":")
	// What the parts are depends on how many there are, and on whether days stand before them.
	scales := []float64{60, 1} // MM or MM:SS
	if dated || len(parts) == 3 {
		scales = []float64{3600, 60, 1}
	}
	if len(parts) > len(scales) {
		return 0, false, badSpan(s)
	}
	whole, err := strconv.Atoi(days)
	if err != nil || whole < 0 {
		return 0, false, badSpan(s)
	}
	total := float64(whole) * 86400
	for i, p := range parts {
		x, err := strconv.ParseFloat(p, 64)
		if err != nil || !(x >= 0) {
			return 0, false, badSpan(s)
		}
		total += x * scales[i]
	}
	if total > mostSeconds {
		return 0, false, badSpan(s)
	}
	return unit.Seconds(total), false, nil
}

func badSpan(s string) error {
	return fmt.Errorf("%q: expected a span as Slurm writes it, as in 1-12:00:00, 30:00 or 90 (minutes)", s)
}

// Memory reads an amount of memory: K, M, G and T are powers of 1024, and of a bare number
// megabytes are meant. Per is what it is of where a letter behind it says so: c is a core, n a node.
func Memory(s string) (amount unit.MiB, per byte, err error) {
	number := strings.TrimSuffix(strings.ToUpper(s), "B")
	if n := len(number); n > 0 && (number[n-1] == 'C' || number[n-1] == 'N') {
		per, number = number[n-1]|' ', number[:n-1]
	}
	scale := 1.0
	if n := len(number); n > 0 {
		if i := strings.IndexByte("KMGTP", number[n-1]); i >= 0 {
			scale, number = math.Pow(1024, float64(i-1)), strings.TrimSuffix(number[:n-1], "I")
		}
	}
	x, err := strconv.ParseFloat(number, 64)
	if err != nil || !(x >= 0 && x*scale < 1<<40) {
		return 0, 0, fmt.Errorf("%q: expected memory as Slurm writes it, as in 16G or 4000M", s)
	}
	return unit.MiB(math.Ceil(x * scale)), per, nil
}

// GPUs counts the GPUs of a list of generic or trackable resources (gpu:a100:8, gres/gpu=8,
// cpu=16,gres/gpu:a100=4,gres/gpu=4), and names their type where it is said. Where both the sum and the types are there, the sum counts.
func GPUs(list string) (count int, kind string, err error) {
	byType := 0
	total := -1
	for item := range strings.SplitSeq(list, ",") {
		item, ok := strings.CutPrefix(strings.TrimPrefix(strings.TrimSpace(item), "gres/"), "gpu")
		if !ok || item != "" && item[0] != ':' && item[0] != '=' && item[0] != '(' {
			continue // gpumem and gpuutil are no GPUs
		}
		item, _, _ = strings.Cut(item, "(") // gpu:4(S:0-1), gpu:a100:2(IDX:0,1)
		number, model := "1", ""
		for _, part := range strings.FieldsFunc(item, func(r rune) bool { return r == ':' || r == '=' }) {
			if strings.Trim(part, "0123456789") == "" {
				number = part
			} else {
				model = part
			}
		}
		n, err := strconv.Atoi(number)
		if err != nil || n > 1_000_000 {
			return 0, "", fmt.Errorf("%q: expected a number of GPUs, as in gpu:a100:8", list)
		}
		if model == "" {
			total = n
			continue
		}
		byType, kind = byType+n, model
	}
	if total >= 0 {
		return total, kind, nil
	}
	return byType, kind, nil
}

// Amount is one entry of a list of trackable resources (cpu=16,mem=64G,node=2,gres/gpu=8).
func Amount(list, name string) string {
	for item := range strings.SplitSeq(list, ",") {
		if value, ok := strings.CutPrefix(item, name+"="); ok {
			return value
		}
	}
	return ""
}
