// Package slurm reads what people write for Slurm and what it prints: spans, amounts,
// batch scripts, accounts.
package slurm

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/musterdl/muster/model/unit"
)

const mostSeconds = 100 * 365 * 86400

// spanForm has days, hours, minutes and seconds of each of Slurm's forms: D-HH[:MM[:SS]], HH:MM:SS and MM[:SS].
var spanForm = regexp.MustCompile(`^(?:(\d+)-(\d+)(?::(\d+))?(?::([\d.]+))?|(\d+):(\d+):([\d.]+)|(\d+)(?::([\d.]+))?)$`)

// spanScales are the seconds of spanForm's parts.
var spanScales = []float64{86400, 3600, 60, 1, 3600, 60, 1, 60, 1}

// endlessWords are Slurm's words for no bound.
var endlessWords = []string{"", "UNLIMITED", "INFINITE", "PARTITION_LIMIT", "NONE", "UNKNOWN", "INVALID", "-1"}

// Span reads a span of time in any of Slurm's forms: minutes, MM:SS, HH:MM:SS, D-HH, D-HH:MM
// and D-HH:MM:SS, with parts of a second. Endless is one of its words for no bound.
func Span(s string) (d unit.Duration, endless bool, err error) {
	if slices.Contains(endlessWords, strings.ToUpper(s)) {
		return 0, true, nil
	}
	parts := spanForm.FindStringSubmatch(s)
	total := 0.0
	for i, scale := range spanScales[:max(0, len(parts)-1)] {
		x, _ := strconv.ParseFloat(cmp.Or(parts[i+1], "0"), 64) // a number, by its form
		total += x * scale
	}
	if parts == nil || total > mostSeconds {
		return 0, false, fmt.Errorf("%q: expected a span as Slurm writes it, as in 1-12:00:00, 30:00 or 90 (minutes)", s)
	}
	return unit.Seconds(total), false, nil
}

// memoryForm has the number, its unit, and whether a core or a node is meant.
var memoryForm = regexp.MustCompile(`^(\d+(?:\.\d+)?)([KMGTP]?)(?:I?B)?([CN]?)$`)

// Memory reads an amount of memory: K, M, G and T are powers of 1024, and of a bare number
// megabytes are meant. Per is what it is of where a letter behind it says so: c is a core, n a node.
func Memory(s string) (amount unit.MiB, per byte, err error) {
	parts := memoryForm.FindStringSubmatch(strings.ToUpper(s))
	if parts == nil {
		return 0, 0, fmt.Errorf("%q: expected memory as Slurm writes it, as in 16G or 4000M", s)
	}
	x, _ := strconv.ParseFloat(parts[1], 64) // a number, by its form
	scale := math.Pow(1024, float64(strings.Index("KMGTP", cmp.Or(parts[2], "M"))-1))
	per = (strings.ToLower(parts[3]) + "\x00")[0]
	return unit.MiB(math.Ceil(min(x*scale, 1<<40))), per, nil
}

// gpuForm has the type and the number of GPUs of one resource: gpu, gpu:8, gpu:a100:8, gres/gpu:a100=4. gpumem and gpuutil are none.
var gpuForm = regexp.MustCompile(`^(?:gres/)?gpu(?::([^:=(]*[^:=(\d][^:=(]*))?(?:[:=](\d+))?(?:\(.*)?$`)

// GPUs counts the GPUs of a list of generic or trackable resources (gpu:a100:8, gres/gpu=8,
// cpu=16,gres/gpu:a100=4,gres/gpu=4), and names their type where it is said. Where both the sum and the types are there, the sum counts.
func GPUs(list string) (count int, kind string, err error) {
	byType, total := 0, -1
	for item := range strings.SplitSeq(list, ",") {
		parts := gpuForm.FindStringSubmatch(strings.TrimSpace(item))
		if parts == nil {
			continue
		}
		n, err := strconv.Atoi(cmp.Or(parts[2], "1"))
		if err != nil || n > 1_000_000 {
			return 0, "", fmt.Errorf("%q: expected a number of GPUs, as in gpu:a100:8", list)
		}
		if parts[1] == "" {
			total = n
		} else {
			byType, kind = byType+n, parts[1]
		}
	}
	if total < 0 {
		total = byType
	}
	return total, kind, nil
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
