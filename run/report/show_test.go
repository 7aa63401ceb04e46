package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run/report/terminal"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the expected outputs in testdata")

// golden compares with testdata/name; a person reads the diff after -rewrite.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; it is now:\n%s", path, got)
	}
}

func TestTextOfOneResult(t *testing.T) {
	runs, _ := sampleRuns(120)
	for _, c := range []struct {
		file string
		opts TextOptions
	}{{"result.txt", TextOptions{}}, {"result-60.txt", TextOptions{Width: 60}}} {
		var b bytes.Buffer
		if err := WriteText(&b, runs[0].Result, c.opts); err != nil {
			t.Fatal(err)
		}
		golden(t, c.file, b.Bytes())
	}
}

func TestTextOfAComparison(t *testing.T) {
	runs, _ := sampleRuns(120)
	rows := []Row{runs[0].Row, runs[1].Row}
	rows = append(rows, Row{Result: Result{Setting: Setting{Strategy: "one that starves everybody"},
		Completion: Completion{Jobs: 120, Censored: 120}}})
	for _, c := range []struct {
		file string
		opts TextOptions
	}{{"compare.txt", TextOptions{}}, {"compare-100.txt", TextOptions{Width: 100}}, {"compare-60.txt", TextOptions{Width: 60}},
		{"compare-color.txt", TextOptions{Width: 80, Color: true}}} {
		var b bytes.Buffer
		if err := WriteComparison(&b, rows, c.opts); err != nil {
			t.Fatal(err)
		}
		golden(t, c.file, b.Bytes())
	}
}

// Whatever the width, no line is longer.
func TestTextRespectsTheWidth(t *testing.T) {
	runs, _ := sampleRuns(40)
	rows := []Row{runs[0].Row, runs[1].Row}
	draws.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(50, 200).Draw(t, "width")
		var b bytes.Buffer
		if err := WriteText(&b, runs[0].Result, TextOptions{Width: width}); err != nil {
			t.Fatal(err)
		}
		if err := WriteComparison(&b, rows, TextOptions{Width: width}); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if n := terminal.Columns(strings.TrimSuffix(line, "\n")); n > width {
				t.Fatalf("a line is %d wide, not %d: %s", n, width, line)
			}
		}
	})
}

func TestSpanOfTime(t *testing.T) {
	for _, c := range []struct {
		sec  float64
		want string
	}{{0, "0s"}, {0.0123, "12.3ms"}, {0.99999, "1.0s"}, {45.24, "45.2s"}, {59.96, "1m00s"}, {3599.6, "1h00m"},
		{3600, "1h00m"}, {86399, "1d00h"}, {90000, "1d01h"}, {-61, "-1m01s"}, {1e9, "11574d02h"}} {
		if got := timeText(c.sec); got != c.want {
			t.Errorf("%v s is %s, want %s", c.sec, got, c.want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567", -123: "-123"} {
		if got := count(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}

func TestPerfettoTrace(t *testing.T) {
	var b bytes.Buffer
	p := NewPerfetto(&b)
	p.Begin([]Lane{{"node0", "gpu0"}, {"node0", "gpu1"}, {"node1", "gpu0"}})
	p.Counter(0, "waiting", 1)
	p.Span(Span{Job: `a "quoted" <job>`, Lane: 1, Lanes: 2, From: 0, To: 5 * sec, Reason: "first in line"})
	p.Span(Span{Job: "b", Lane: 0, From: 2 * sec, To: 2 * sec, Kind: SpanOverhead})
	p.Counter(2*sec, "busy devices", 2.5)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	golden(t, "trace.json", b.Bytes())

	var read struct{ TraceEvents []map[string]any }
	if err := json.Unmarshal(b.Bytes(), &read); err != nil {
		t.Fatal(err)
	}
	phases := map[any]int{}
	for _, e := range read.TraceEvents {
		phases[e["ph"]]++
	}
	if phases["X"] != 3 || phases["C"] != 2 || phases["M"] != 6 {
		t.Errorf("the phases are %v", phases)
	}
}

// fullDisk takes so many bytes and no more.
type fullDisk struct{ room int }

var errFull = errors.New("no space left")

func (d *fullDisk) Write(b []byte) (int, error) {
	if d.room -= len(b); d.room < 0 {
		return 0, errFull
	}
	return len(b), nil
}

func TestWritersReportErrors(t *testing.T) {
	p := NewPerfetto(&fullDisk{100_000})
	p.Begin([]Lane{{"n", "d"}})
	for i := range 5000 {
		p.Span(Span{Job: "a", From: unit.Time(i), To: unit.Time(i + 1)})
	}
	if err := p.Close(); !errors.Is(err, errFull) {
		t.Errorf("writing to a full disk says %v", err)
	}
	p = NewPerfetto(io.Discard)
	p.Begin(nil)
	p.Span(Span{Job: "a"})
	if err := p.Close(); err == nil || !strings.Contains(err.Error(), "lane 0 of 0") {
		t.Errorf("a span on no lane says %v", err)
	}
	p = NewPerfetto(io.Discard)
	p.Begin(nil)
	p.Counter(0, "x", math.NaN())
	if err := p.Close(); err == nil {
		t.Error("a counter that is no number is written")
	}
	runs, _ := sampleRuns(5)
	if err := HTML(&fullDisk{}, Page{Runs: runs}); !errors.Is(err, errFull) {
		t.Errorf("a page on a full disk says %v", err)
	}
	if err := WriteText(&fullDisk{}, runs[0].Result, TextOptions{}); !errors.Is(err, errFull) {
		t.Errorf("a text on a full disk says %v", err)
	}
}

// readPage parses a page as XML, stricter than any browser, and returns how often
// each element occurs.
func readPage(t *testing.T, page []byte) map[string]int {
	t.Helper()
	seen := map[string]int{}
	d := xml.NewDecoder(bytes.NewReader(page))
	for {
		token, err := d.Token()
		if err == io.EOF {
			return seen
		}
		if err != nil {
			t.Fatalf("the page is not well formed: %v", err)
		}
		if e, ok := token.(xml.StartElement); ok {
			seen[e.Name.Local]++
		}
	}
}

var outside = regexp.MustCompile(`(?i)(https?:)?//[a-z]|<script|<link|<iframe|@import|url\(|\b(src|href)=`)

func TestPageIsWellFormedAndAlone(t *testing.T) {
	runs, lanes := sampleRuns(120)
	hostile := `</title><script>alert("1")</script>&`
	odd := Run{Row{Result: Result{Setting: Setting{Strategy: hostile, Trace: hostile}, Notes: []string{hostile}}},
		View{Jobs: []JobRecord{{Name: hostile}}, Spans: []Span{{Job: hostile, To: sec, Reason: hostile}}}}
	for _, c := range []struct {
		name   string
		page   Page
		charts int
	}{
		{"nothing", Page{}, 0},
		{"one run", Page{Title: "fifo on toy", When: "21 November", Runs: runs[:1], Lanes: lanes}, 3 + 1},
		{"two runs", Page{Title: "two", Runs: runs, Lanes: lanes}, 3 + 2},
		{"hostile names", Page{Title: hostile, When: hostile, Runs: []Run{odd, runs[0]}, Lanes: []Lane{{hostile, hostile}}}, 3 + 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			if err := HTML(&b, c.page); err != nil {
				t.Fatal(err)
			}
			seen := readPage(t, b.Bytes())
			if seen["svg"] != c.charts || seen["html"] != 1 {
				t.Errorf("%d drawings, want %d; elements %v", seen["svg"], c.charts, seen)
			}
			if found := outside.Find(b.Bytes()); found != nil {
				t.Errorf("the page reaches outside: %s", found)
			}
			if left := regexp.MustCompile(`#010[2-5]|NaN|Inf`).Find(b.Bytes()); left != nil {
				t.Errorf("the page contains %s", left)
			}
		})
	}
}

// The picture must show what the table says: a bar per span and a row per job.
func TestPageShowsEverySpanAndJob(t *testing.T) {
	runs, lanes := sampleRuns(60)
	var b bytes.Buffer
	if err := HTML(&b, Page{Title: "x", Runs: runs[:1], Lanes: lanes}); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	if got, want := strings.Count(page, "<rect "), len(runs[0].View.Spans); got != want {
		t.Errorf("%d bars for %d spans", got, want)
	}
	for _, want := range []string{">train-59<", "node3/gpu3", "started: first in line", "finished</title>", timeText(runs[0].Result.AvgJCTSec)} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	runs[0].View.LeftOut, runs[0].View.JobsLeftOut = LeftOut{Spans: 1000, Longest: 12 * unit.Second, Part: .0314}, 456
	b.Reset()
	if err := HTML(&b, Page{Title: "x", Runs: runs[:1]}); err != nil {
		t.Fatal(err)
	}
	shown := len(runs[0].View.Spans)
	for _, want := range []string{fmt.Sprintf("Of %s bars the %d longest are shown; the others are 12.0s or shorter, together 3.1%% of the time", count(int64(1000+shown)), shown), "456 others are not"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// Axes reach around whatever must be drawn, with few marks.
func TestTicksSurroundTheData(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		low := math.Pow(10, rapid.Float64Range(-3, 10).Draw(t, "low"))
		high := low * math.Pow(10, rapid.Float64Range(0, 3).Draw(t, "more"))
		ticks := logTimeTicks(low, high)
		if n := len(ticks); n < 2 || n > 17 || ticks[0].Value > low || (ticks[n-1].Value < high && high < 3e10) {
			t.Fatalf("%v..%v s has %v", low, high, ticks)
		}
		length := timeTicks(high)
		if n := len(length); n < 2 || n > 10 || length[n-1].Value != high {
			t.Fatalf("%v s has %v", high, length)
		}
		most := rapid.Float64Range(0, 1e7).Draw(t, "most")
		counts := countTicks(most)
		if n := len(counts); n < 2 || n > 8 || counts[n-1].Value < most {
			t.Fatalf("%v has %v", most, counts)
		}
	})
}

// TestKept: a deadline is kept, missed by so much, or missed by who did not finish.
func TestKept(t *testing.T) {
	for want, j := range map[string]JobRecord{
		"kept":      {End: 10, Deadline: 10, Outcome: Finished},
		"5.0s late": {End: unit.Time(15 * unit.Second), Deadline: 10 * unit.Second, Outcome: Finished},
		"missed":    {End: 5, Deadline: 10, Outcome: Failed},
		"–":         {End: 5, Deadline: 10, Outcome: Unfinished},
	} {
		if got := j.kept(); got != want {
			t.Errorf("%+v: %q, expected %q", j, got, want)
		}
	}
}
