package scenario

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/musterdl/muster/model/unit"
)

// window is the time over which a stream's rate was measured.
const window = 10 * unit.Minute

// stream is the request rate of one service, a window after the other, and how the
// gaps between requests vary in each.
type stream struct {
	name     string
	rate, cv []float64
}

// streams are the twelve busiest clients of ServeGen's language/m-small where the data
// is, else twelve made up: a daily wave with noise, each with its own phase.
func streams(data string, seed uint64) ([]stream, bool) {
	if found, err := serveGen(filepath.Join(data, "llm-requests", "servegen_language_m-small.tar.gz")); err == nil && len(found) >= services {
		return found[:services], true
	}
	r := rand.New(rand.NewPCG(seed, 12))
	made := make([]stream, services)
	for i := range made {
		s := stream{name: fmt.Sprint("wave-", i)}
		phase, top := r.Float64(), 5*math.Exp(r.NormFloat64())
		for w := range 144 {
			day := 0.55 + 0.45*math.Sin(2*math.Pi*(float64(w)/144+phase))
			s.rate, s.cv = append(s.rate, top*day*(0.9+0.2*r.Float64())), append(s.cv, 1)
		}
		made[i] = s
	}
	return made, false
}

// serveGen reads the rate of every client, busiest first.
func serveGen(path string) ([]stream, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	plain, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var all []stream
	for archive := tar.NewReader(plain); ; {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if !strings.HasSuffix(head.Name, "-trace.csv") {
			continue
		}
		s, err := readStream(archive)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", path, head.Name, err)
		}
		s.name = strings.TrimSuffix(filepath.Base(head.Name), "-trace.csv")
		all = append(all, s)
	}
	slices.SortStableFunc(all, func(a, b stream) int {
		if x, y := mean(a.rate), mean(b.rate); x != y {
			return int(math.Copysign(1, y-x))
		}
		return strings.Compare(a.name, b.name)
	})
	return all, nil
}

// readStream reads lines of: start of the window in seconds, requests per second,
// coefficient of variation of the gaps, and the fitted distribution.
func readStream(r io.Reader) (s stream, err error) {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		cells := strings.Split(lines.Text(), ",")
		if len(cells) < 3 {
			return s, fmt.Errorf("line %q: expected at least 3 cells", lines.Text())
		}
		rate, err1 := strconv.ParseFloat(cells[1], 64)
		cv, err2 := strconv.ParseFloat(cells[2], 64)
		if err1 != nil {
			return s, fmt.Errorf("line %q: expected a rate", lines.Text())
		}
		if err2 != nil || math.IsNaN(cv) {
			cv = 1 // windows without requests have none
		}
		s.rate, s.cv = append(s.rate, rate), append(s.cv, cv)
	}
	return s, nil
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(max(1, len(x)))
}
