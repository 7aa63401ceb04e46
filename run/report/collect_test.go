package report

import (
	"cmp"
	"encoding/json"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/unit"
)

const sec = unit.Time(unit.Second)

func finished(id int32, submit, end unit.Time) JobRecord {
	return JobRecord{ID: id, Submit: submit, FirstStart: submit, End: end, Gang: 1, Devices: unit.Whole,
		Run: end.Sub(submit), Outcome: Finished}
}

// A history small enough to check by hand: two devices, four jobs.
func TestResultOfAHistoryByHand(t *testing.T) {
	c := NewCollector(Limits{})
	c.Queue(0, 0)
	c.Busy(0, 0, 2000)
	c.Queue(10*sec, 3) // lasts no time, so it is no queue
	c.Queue(10*sec, 1)
	c.Busy(10*sec, 2000, 2000)
	c.Queue(30*sec, 0)
	c.Busy(30*sec, 500, 2000)
	c.Job(JobRecord{Submit: 10 * sec, End: 30 * sec, Run: 20 * unit.Second, Alone: 10 * unit.Second, Preemptions: 1, Outcome: Finished, Gang: 16, Devices: 16000})
	c.Job(JobRecord{Submit: 10 * sec, End: 50 * sec, Run: 20 * unit.Second, Waited: 20 * unit.Second, Alone: 5 * unit.Second, Restarts: 2, Outcome: Finished, Gang: 3, Devices: 24000})
	c.Job(JobRecord{Submit: 12 * sec, End: 42 * sec, Run: 20 * unit.Second, Waited: 10 * unit.Second, Outcome: Finished, Gang: 15, Devices: 15000})
	c.Job(JobRecord{Submit: 12 * sec, End: 20 * sec, Outcome: Failed})
	c.Job(JobRecord{Submit: 13 * sec, End: 60 * sec, Preemptions: 2, Outcome: Unfinished})
	c.Job(JobRecord{Submit: 14 * sec, End: 14 * sec, Outcome: Refused})
	r := c.Result(Result{Setting: Setting{Strategy: "x"}, Completion: Completion{IsolatedSec: 5, SquashedSRPTSec: 7}})

	if r.Jobs != 6 || r.Finished != 3 || r.Failed != 1 || r.Censored != 1 || r.Refused != 1 || r.Cancelled != 0 {
		t.Errorf("counts are %+v", r.Completion)
	}
	for _, m := range []struct {
		name      string
		got, want float64
	}{
		{"average JCT", r.AvgJCTSec, 30}, {"p50", r.P50JCTSec, 30}, {"p95", r.P95JCTSec, 40}, {"p99", r.P99JCTSec, 40},
		{"wait", r.AvgWaitSec, 10}, {"slowdown", r.AvgSlowdown, 5}, {"p99 slowdown", r.P99Slowdown, 8},
		{"large gangs", float64(r.LargeGangs), 2}, {"their wait", r.AvgGangWaitSec, 10}, {"their longest", r.LongestGangWaitSec, 20}, {"makespan", r.MakespanSec, 40}, {"bound", r.JCTBoundSec, 7},
		// granted 0 for 10 s, 2 for 20 s, 0.5 for the 30 s to the last known instant
		{"utilization", r.Utilization, 55.0 / 120},
		{"longest queue", float64(r.LongestQueue), 1}, {"preemptions", float64(r.Preemptions), 3}, {"restarts", float64(r.Restarts), 2},
	} {
		if math.Abs(m.got-m.want) > 1e-9 {
			t.Errorf("%s is %v, want %v", m.name, m.got, m.want)
		}
	}
	if again := c.Result(Result{}); again.AvgJCTSec != r.AvgJCTSec || again.Utilization != r.Utilization {
		t.Error("asking for the result twice changes it")
	}
}

func TestEmptyHistoryHasAResult(t *testing.T) {
	c := NewCollector(Limits{})
	r := c.Result(Result{})
	if r.Jobs != 0 || r.AvgJCTSec != 0 || r.MakespanSec != 0 || r.Utilization != 0 {
		t.Errorf("the result of nothing is %+v", r)
	}
	if v := c.View(); len(v.CDF)+len(v.Queue)+len(v.Share) != 0 {
		t.Errorf("the view of nothing is %+v", v)
	}
}

func TestResultHasItsFields(t *testing.T) {
	text, err := json.Marshal(sampleKnown("fifo"))
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(`strategy trace seed load jobs finished avg_jct_s p50_jct_s p95_jct_s p99_jct_s
		avg_wait_s longest_queue makespan_s utilization preemptions commits events wall_s cpu_s peak_rss_bytes jct_bound_s
		decision_hash offered_load mean_duration_s censored restarts lost_device_s overhead_device_s useful_device_s
		idle_device_s device_s balanced isolated_s squashed_srpt_s queueing_s avg_slowdown p99_slowdown large_gangs avg_gang_wait_s
		longest_gang_wait_s notes`) {
		if _, ok := fields[name]; !ok {
			t.Errorf("a result has no field %s", name)
		}
	}
}

// The nearest-rank quantile by its definition: the least value that enough
// values do not exceed.
func TestQuantileIsNearestRank(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(0, 50), 1, 60).Draw(t, "values")
		permille := rapid.IntRange(1, 1000).Draw(t, "permille")
		sorted := make([]unit.Duration, len(values))
		for i, v := range values {
			sorted[i] = unit.Duration(v)
		}
		slices.Sort(sorted)
		got := Quantile(sorted, permille)
		for _, v := range sorted {
			atMost := 0
			for _, w := range sorted {
				if w <= v {
					atMost++
				}
			}
			if atMost*1000 >= permille*len(sorted) {
				if got != v {
					t.Fatalf("quantile %d of %v is %d, want %d", permille, sorted, got, v)
				}
				return
			}
		}
	})
}

// Whatever a series is fed, its buckets hold the same area as the steps
// themselves, within bounds, and stay few.
func TestSeriesKeepsTheArea(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(2, 40).Draw(t, "limit")
		start := unit.Time(rapid.SampledFrom([]int64{0, 1_700_000_000_000_000}).Draw(t, "start"))
		s := series{limit: limit}
		at, value, area := start, 0.0, 0.0
		low, high := math.Inf(1), math.Inf(-1)
		s.observe(at, 0)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			scale := rapid.SampledFrom([]int64{1, 1000, 1e6, 1e9, 1e12}).Draw(t, "scale")
			d := unit.Duration(rapid.Int64Range(0, 20).Draw(t, "d") * scale)
			if d > 0 {
				low, high = min(low, value), max(high, value)
			}
			at, area = at.Add(d), area+value*d.Seconds()
			value = float64(rapid.IntRange(0, 9).Draw(t, "value"))
			s.observe(at, value)
		}
		points := s.points()
		if len(s.buckets) > limit {
			t.Fatalf("%d buckets, limit %d", len(s.buckets), limit)
		}
		sum := 0.0
		for i := 1; i < len(points); i++ {
			p := points[i-1]
			sum += p.Mean * points[i].At.Sub(p.At).Seconds()
			if p.Min > p.Mean+1e-9 || p.Max < p.Mean-1e-9 || p.Min < low || p.Max > high {
				t.Fatalf("point %+v is outside its own bounds or those of the values, %v..%v", p, low, high)
			}
		}
		thinned, thinSum := thin(points, 7), 0.0
		for i := 1; i < len(thinned); i++ {
			thinSum += thinned[i-1].Mean * thinned[i].At.Sub(thinned[i-1].At).Seconds()
		}
		if len(thinned) > 7 || math.Abs(thinSum-area) > 1e-9*(1+area) {
			t.Fatalf("thinned to %d points that hold %v, not %v", len(thinned), thinSum, area)
		}
		if math.Abs(sum-area) > 1e-9*(1+area) || math.Abs(s.area-area) > 1e-9*(1+area) {
			t.Fatalf("buckets hold %v, the level %v, the steps %v", sum, s.area, area)
		}
	})
}

func TestViewIsBoundedAndSaysWhatIsLeftOut(t *testing.T) {
	c := NewCollector(Limits{Points: 50, Spans: 10, Jobs: 20})
	for i := range 5000 {
		at := unit.Time(i) * sec
		c.Queue(at, i%7)
		c.Busy(at, 1000, 2000)
		c.Span(Span{Job: "a", From: at, To: at + sec})
		c.Job(finished(int32(i), at, at+unit.Time(i+1)))
	}
	v := c.View()
	if len(v.Queue) > 51 || len(v.Share) > 51 || len(v.CDF) > cdfPoints {
		t.Errorf("%d, %d and %d points", len(v.Queue), len(v.Share), len(v.CDF))
	}
	if len(v.Spans) != 10 || v.LeftOut.Spans != 4990 || len(v.Jobs) != 20 || v.JobsLeftOut != 4980 {
		t.Errorf("%d spans and %d left out, %d jobs and %d left out", len(v.Spans), v.LeftOut.Spans, len(v.Jobs), v.JobsLeftOut)
	}
	first, last := v.CDF[0], v.CDF[len(v.CDF)-1]
	if first != (CDFPoint{1e-6, 1.0 / 5000}) || last != (CDFPoint{5e-3, 1}) {
		t.Errorf("the distribution goes from %v to %v", first, last)
	}
}

// Of too many bars the longest are kept, in the order of the run, and what is left out is told.
func TestLongestSpansAreKept(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 20).Draw(t, "limit")
		lengths := rapid.SliceOfN(rapid.Int64Range(1, 50), 1, 100).Draw(t, "lengths")
		c, all := NewCollector(Limits{Spans: limit}), 0.0
		for i, n := range lengths {
			at, lanes := unit.Time(i)*100*sec, int32(i%3)
			c.Span(Span{Job: "a", From: at, To: at + unit.Time(n)*sec, Lanes: lanes})
			all += float64(n) * float64(max(1, lanes))
			if i%7 == 0 {
				c.View() // to look must change nothing
			}
		}
		v := c.View()
		sorted := slices.Clone(lengths)
		slices.SortFunc(sorted, func(a, b int64) int { return cmp.Compare(b, a) })
		kept, shown := sorted[:min(limit, len(sorted))], 0.0
		var got []int64
		for i, s := range v.Spans {
			if i > 0 && s.From <= v.Spans[i-1].From {
				t.Fatalf("bar %d begins at %v, the one before at %v", i, s.From, v.Spans[i-1].From)
			}
			got = append(got, int64(s.To-s.From)/int64(sec))
			shown += s.laneSec()
		}
		slices.SortFunc(got, func(a, b int64) int { return cmp.Compare(b, a) })
		if !slices.Equal(got, kept) {
			t.Fatalf("kept %v, the longest are %v", got, kept)
		}
		left, first := v.LeftOut, int64(0)
		if len(sorted) > limit {
			first = sorted[limit]
		}
		if left.Spans != int64(len(lengths)-len(kept)) || int64(left.Longest)/int64(unit.Second) != first || math.Abs(left.Part-(all-shown)/all) > 1e-9 {
			t.Fatalf("left out %+v; the longest of them is %d s and they take %v of %v s", left, first, all-shown, all)
		}
	})
}

func TestMillionJobsCostLittleMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	c := NewCollector(Limits{Spans: ChartSpans})
	for i := range 1_000_000 {
		at := unit.Time(i) * 30 * sec
		c.Queue(at, i%1000)
		c.Busy(at, unit.Milli(i%8)*unit.Whole, 8*unit.Whole)
		c.Job(finished(int32(i), at, at.Add(unit.Duration(i)*unit.Millisecond)))
		c.Span(Span{Job: "a", From: at, To: at + sec})
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	r := c.Result(Result{})
	if want := 499_999 * 0.001; r.P50JCTSec != want || r.Finished != 1_000_000 {
		t.Errorf("p50 of %d jobs is %v, want %v", r.Finished, r.P50JCTSec, want)
	}
	used := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("%.1f MiB", float64(used)/(1<<20))
	if used > 24<<20 {
		t.Errorf("a million jobs take %d bytes", used)
	}
}

func TestOutcomeIsReadAsItIsWritten(t *testing.T) {
	for o := range Outcome(len(outcomeNames)) {
		text, _ := o.MarshalText()
		var back Outcome
		if err := back.UnmarshalText(text); err != nil || back != o {
			t.Errorf("%s is read as %v, %v", text, back, err)
		}
	}
	if err := new(Outcome).UnmarshalText([]byte("lost")); err == nil {
		t.Error("an unknown outcome is read")
	}
}
