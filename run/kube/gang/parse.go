package gang

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// maxSizes is the most numbers of workers of an elastic job.
const maxSizes = 8

// maxText bounds the length of an annotation that is read.
const maxText = 4096

// parseSpan reads a span of time that is more than nothing. A plain number is
// refused: it has meant seconds, minutes and hours to different people.
func parseSpan(s string) (unit.Duration, error) {
	const expected = "a span of time such as 90s or 2h30m, more than 0s"
	if _, err := strconv.ParseFloat(strings.TrimSpace(s), 64); err == nil || len(s) > maxText {
		return 0, fmt.Errorf("%s, with its unit", expected)
	}
	d, err := unit.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%s, at most 1000 years", expected)
	}
	return d, nil
}

// parseDeadline reads a span of time, or an instant after created.
func parseDeadline(s string, created unit.Time) (unit.Duration, error) {
	at, err := time.Parse(time.RFC3339, strings.TrimSpace(s))
	if err != nil {
		d, err := parseSpan(s)
		if err != nil {
			return 0, fmt.Errorf("%w, or an instant such as 2026-07-01T18:00:00Z", err)
		}
		return d, nil
	}
	if d := unit.Time(at.UnixMicro()).Sub(created); d > 0 {
		return d, nil
	}
	return 0, fmt.Errorf("an instant after the job's creation")
}

// saving is a checkpoint whose save lasts what it says, or what it does not say.
type saving struct {
	workload.Checkpoint
	timed bool
}

// parseCheckpoint reads "every=30m,save=20s,load=40s,on-request". A save or load of 0s takes no time worth telling.
func parseCheckpoint(s string) (saving, error) {
	var c saving
	if len(s) > maxText {
		return c, fmt.Errorf("every=, save=, load= and on-request, with commas between")
	}
	seen := map[string]bool{}
	for _, part := range strings.Split(s, ",") {
		name, value, has := strings.Cut(strings.TrimSpace(part), "=")
		name = strings.TrimSpace(name)
		into, known := map[string]*unit.Duration{"every": &c.Every, "save": &c.Save, "load": &c.Load}[name]
		if seen[name] || has != known || !known && name != "on-request" {
			return saving{}, fmt.Errorf("every=, save=, load= and on-request, each at most once, with commas between, not %s", quote(part))
		}
		seen[name] = true
		if !known {
			c.OnRequest = true
			continue
		}
		d, err := parseSpan(value)
		if none, bad := unit.ParseDuration(value); bad == nil && none == 0 && name != "every" {
			d, err = 0, nil
		}
		if err != nil {
			return saving{}, fmt.Errorf("%w, after %s=", err, name)
		}
		*into = d
	}
	c.timed = seen["save"]
	return c, nil
}

// parseSizes reads "2-8" or "2,4,8" for a job that was submitted with so many.
func parseSizes(s string, asked int32) ([]int32, error) {
	expected := fmt.Errorf("a range such as 2-8, or at most %d numbers such as 2,4,8, from 1 to %d", maxSizes, maxGang)
	if len(s) > maxText {
		return nil, expected
	}
	if low, high, ok := strings.Cut(s, "-"); ok {
		l, okl := parseIndex(strings.TrimSpace(low))
		h, okh := parseIndex(strings.TrimSpace(high))
		if !okl || !okh || l < 1 || h < l || h > maxGang {
			return nil, expected
		}
		if asked < l || asked > h {
			return nil, fmt.Errorf("a range with the %d that the job asks for in it", asked)
		}
		return spread(l, h, asked), nil
	}
	var sizes []int32
	for _, part := range strings.Split(s, ",") {
		n, ok := parseIndex(strings.TrimSpace(part))
		if !ok || n < 1 || n > maxGang {
			return nil, expected
		}
		sizes = append(sizes, n)
	}
	slices.Sort(sizes)
	sizes = slices.Compact(sizes)
	if len(sizes) > maxSizes {
		return nil, expected
	}
	if !slices.Contains(sizes, asked) {
		return nil, fmt.Errorf("numbers with the %d that the job asks for among them", asked)
	}
	return sizes, nil
}

// spread chooses at most maxSizes numbers of a range: all of a short one, else the
// ends, the number asked for, and doublings of the least, as evenly among them as
// there is room for.
func spread(low, high, asked int32) []int32 {
	var sizes []int32
	if high-low < maxSizes {
		for n := low; n <= high; n++ {
			sizes = append(sizes, n)
		}
		return sizes
	}
	sizes = []int32{low, asked, high}
	slices.Sort(sizes)
	sizes = slices.Compact(sizes)
	var doublings []int32
	for n := int64(low) * 2; n < int64(high); n *= 2 {
		if !slices.Contains(sizes, int32(n)) {
			doublings = append(doublings, int32(n))
		}
	}
	room := min(maxSizes-len(sizes), len(doublings))
	for i := range room {
		sizes = append(sizes, doublings[i*len(doublings)/room])
	}
	slices.Sort(sizes)
	return sizes
}

// parseModels reads names with commas between.
func parseModels(s string) ([]string, error) {
	var models []string
	for _, part := range strings.Split(s, ",") {
		m := strings.TrimSpace(part)
		if !printable(m) || slices.Contains(models, m) || len(models) == 64 {
			return nil, fmt.Errorf("at most 64 device models such as A100,H100, each once")
		}
		models = append(models, m)
	}
	return models, nil
}

// parseSkew reads a part of one.
func parseSkew(s string) (unit.Milli, error) {
	m, err := unit.ParseMilli(s)
	if err != nil || m > unit.Whole {
		return 0, fmt.Errorf("a part of the model from 0 to 1, such as 0.12 or 120m")
	}
	return m, nil
}

// parseTraffic reads a bandwidth.
func parseTraffic(s string) (unit.Mbps, error) {
	b, err := unit.ParseMbps(s)
	if err != nil || b > math.MaxInt32 {
		return 0, fmt.Errorf("a bandwidth such as 2Gbps, up to %v", unit.Mbps(math.MaxInt32))
	}
	return b, nil
}

// maxName is the longest name of a queue, user or kind of work, as in the files that
// Muster reads.
const maxName = 128

// printable reports whether a text is one word that can be shown.
func printable(s string) bool {
	return s != "" && len(s) <= maxName && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || unicode.IsSpace(r) })
}

// parseName reads the name of a queue or user.
func parseName(s string) (string, error) {
	bad := strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./@", r))
	})
	if s == "" || bad || len(s) > maxName || s[0] == '-' || s[0] == '.' {
		return "", fmt.Errorf("at most %d letters, digits and - _ . / @, and no - or . at the beginning", maxName)
	}
	return s, nil
}
