// Package report is what a history looks like when it is shown, whether it was
// simulated or lived: the one summary of a run (Result), the Collector that
// makes it while the run goes on, and its views as text, as a self-contained
// HTML page and as a trace for Perfetto. It also holds the statistics behind a
// comparison. docs/metrics.md defines every number that appears here.
//
// The package decides nothing and reads no clock: what must be shown as "when",
// and the seed of every bootstrap, are given by the caller.
package report

import (
	"fmt"

	"github.com/musterdl/muster/model/unit"
)

// Result is the summary of one run. A mean or quantile over no job is 0; the
// counts beside it say so.
type Result struct {
	Setting
	Completion
	Gangs
	Activity
	Ledger
	Effort
	// Figures are those that only a claim's stand defines (muster simulate --trace stand:...).
	Figures map[string]float64 `json:"figures,omitempty"`
	// Knows says what the strategy went by, besides the rates at which jobs are seen to go.
	Knows string `json:"knows,omitempty"`
	// Notes are sentences that a reader of the numbers must know.
	Notes []string `json:"notes,omitempty"`
}

// Setting is what was run; the caller fills it in.
type Setting struct {
	Strategy string `json:"strategy"`
	Trace    string `json:"trace"`
	Seed     uint64 `json:"seed"`
	// Load is the factor on the arrival rate of the trace; 1 is as recorded.
	Load float64 `json:"load"`
	// OfferedLoad is the work submitted over what the cluster could do meanwhile.
	OfferedLoad float64 `json:"offered_load"`
	// MeanDurationSec is the mean run time of the jobs as asked and undisturbed.
	MeanDurationSec float64 `json:"mean_duration_s"`
}

// LargeGang is from how many devices on a gang is told of by itself: under most orders such
// jobs wait the longest, and a mean over all jobs does not show it.
const LargeGang = 16 * unit.Whole

// Gangs are the finished jobs that asked for LargeGang devices and more: how many they are, and
// how long they waited, in the mean and at most. The collector fills them in.
type Gangs struct {
	LargeGangs         int64   `json:"large_gangs"`
	AvgGangWaitSec     float64 `json:"avg_gang_wait_s"`
	LongestGangWaitSec float64 `json:"longest_gang_wait_s"`
}

// Completion is what the jobs got. The collector fills in all but the bounds.
// Jobs = Finished + Failed + Cancelled + Refused + Censored.
type Completion struct {
	Jobs      int64 `json:"jobs"`
	Finished  int64 `json:"finished"`
	Failed    int64 `json:"failed"` // of their own making or at their time limit
	Cancelled int64 `json:"cancelled"`
	Refused   int64 `json:"refused"`
	Censored  int64 `json:"censored"` // neither ended nor refused when the history stopped

	AvgJCTSec   float64 `json:"avg_jct_s"`
	P50JCTSec   float64 `json:"p50_jct_s"`
	P95JCTSec   float64 `json:"p95_jct_s"`
	P99JCTSec   float64 `json:"p99_jct_s"`
	AvgWaitSec  float64 `json:"avg_wait_s"`
	AvgSlowdown float64 `json:"avg_slowdown"`
	P99Slowdown float64 `json:"p99_slowdown"`
	MakespanSec float64 `json:"makespan_s"`

	// JCTBoundSec is a lower bound of the average JCT: the largest of those below.
	JCTBoundSec     float64 `json:"jct_bound_s"`
	IsolatedSec     float64 `json:"isolated_s"`
	SquashedSRPTSec float64 `json:"squashed_srpt_s"`
	QueueingSec     float64 `json:"queueing_s"`
}

// Activity is what the scheduler did. The collector fills in the queue, the
// utilisation, the preemptions and the restarts.
type Activity struct {
	LongestQueue int64   `json:"longest_queue"`
	Utilization  float64 `json:"utilization"` // granted, 0..1
	// BusyUtilization is the part of all device time in which devices computed; 0
	// where nobody measured it.
	BusyUtilization float64 `json:"busy_utilization"`
	Preemptions     int64   `json:"preemptions"`
	Restarts        int64   `json:"restarts"`
	Commits         int64   `json:"commits"`
	Events          int64   `json:"events"`
	// DecisionHash is the digest of all decisions in order.
	DecisionHash string `json:"decision_hash"`
}

// Ledger says where the device time went; the caller fills it in.
// DeviceSec = UsefulDeviceSec + OverheadDeviceSec + LostDeviceSec + IdleDeviceSec.
type Ledger struct {
	DeviceSec         float64 `json:"device_s"`
	UsefulDeviceSec   float64 `json:"useful_device_s"`
	OverheadDeviceSec float64 `json:"overhead_device_s"`
	LostDeviceSec     float64 `json:"lost_device_s"`
	IdleDeviceSec     float64 `json:"idle_device_s"`
	// BusyDeviceSec is what jobs kept busy of what they held; Cost is the price of the
	// nodes while they were there.
	BusyDeviceSec float64 `json:"busy_device_s,omitempty"`
	Cost          float64 `json:"cost,omitempty"`
	// Of runs that go by a plan: what they held while they computed; the part of it in which their
	// devices had to wait for a pass; what guests computed in that; by how much longer the runs held
	// their devices than by themselves.
	PlannedDeviceSec float64 `json:"planned_device_s,omitempty"`
	BubbleDeviceSec  float64 `json:"bubble_device_s,omitempty"`
	FilledDeviceSec  float64 `json:"filled_device_s,omitempty"`
	SlowedDeviceSec  float64 `json:"slowed_device_s,omitempty"`
	// Of owners that had guests on their devices, or were slowed by guests over links: what they held
	// meanwhile, and the part of it that they would not have had to hold without them.
	OwnedDeviceSec        float64 `json:"owned_device_s,omitempty"`
	LostToGuestsDeviceSec float64 `json:"lost_to_guests_device_s,omitempty"`
	// Balanced says that the integers behind these figures added up exactly.
	Balanced bool `json:"balanced"`
}

// OwnersSlowdown is how much longer owners held their devices for what they did beside guests than they
// would have without.
func (r *Result) OwnersSlowdown() float64 {
	return r.LostToGuestsDeviceSec / max(1, r.OwnedDeviceSec-r.LostToGuestsDeviceSec)
}

// Effort is what computing the run cost on the machine that computed it.
type Effort struct {
	WallSec      float64 `json:"wall_s"`
	CPUSec       float64 `json:"cpu_s"`
	PeakRSSBytes int64   `json:"peak_rss_bytes"`
}

// Outcome is how a job's story ended.
type Outcome uint8

// The outcomes of a job.
const (
	Unfinished Outcome = iota // still waiting or running when the history stopped
	Finished
	Failed
	TimeLimit
	Cancelled
	Refused
)

var outcomeNames = [...]string{"unfinished", "finished", "failed", "time limit", "cancelled", "refused"}

// String names the outcome.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return fmt.Sprintf("outcome(%d)", uint8(o))
}

// MarshalText writes the outcome's name.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads an outcome's name.
func (o *Outcome) UnmarshalText(text []byte) error {
	for i, name := range outcomeNames {
		if name == string(text) {
			*o = Outcome(i)
			return nil
		}
	}
	return fmt.Errorf("unknown outcome %q: expected one of %q", text, outcomeNames)
}

// JobRecord is what is remembered of one job when its story is over, or when the
// history stops before that.
type JobRecord struct {
	ID     int32  `json:"id"`
	Name   string `json:"name"`
	Tenant string `json:"tenant,omitempty"`

	Submit unit.Time `json:"submit_us"`
	// FirstStart is unit.Never for a job that never started.
	FirstStart unit.Time `json:"first_start_us"`
	// End is when the job ended; for an unfinished one, when the history stopped.
	End     unit.Time  `json:"end_us"`
	Gang    int32      `json:"gang"`
	Devices unit.Milli `json:"devices_milli"` // in all

	// Alone is how long the job would run undisturbed, as asked; 0 is unknown.
	Alone unit.Duration `json:"alone_us,omitempty"`
	// Run is the time with devices and Waited the time without: for a job that
	// ended, they add up to its JCT.
	Run         unit.Duration `json:"run_us"`
	Waited      unit.Duration `json:"waited_us"`
	Preemptions int32         `json:"preemptions"`
	Restarts    int32         `json:"restarts"`
	Outcome     Outcome       `json:"outcome"`
	// FirstLoss and LastLoss are what the job reported; both 0 when it reported none.
	FirstLoss float32 `json:"first_loss,omitempty"`
	LastLoss  float32 `json:"last_loss,omitempty"`
	// Deadline is after submission; 0 is none.
	Deadline unit.Duration `json:"deadline_us,omitempty"`
}

// JCT is the job completion time: from submission to end.
func (j *JobRecord) JCT() unit.Duration { return j.End.Sub(j.Submit) }

// SpanKind is what a stretch of device time was spent on.
type SpanKind uint8

// The kinds of a span.
const (
	SpanRun      SpanKind = iota // work
	SpanOverhead                 // starting, saving, restoring
	SpanLost                     // work that had to be done again
)

// String names the kind.
func (k SpanKind) String() string {
	switch k {
	case SpanRun:
		return "run"
	case SpanOverhead:
		return "overhead"
	case SpanLost:
		return "lost"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Span is a stretch of time on neighbouring lanes: one bar of the Gantt chart.
// A gang on devices that are not neighbours is several spans.
type Span struct {
	Job string
	// Lane is the first lane, Lanes their number; 0 is taken as 1.
	Lane, Lanes int32
	From, To    unit.Time
	Kind        SpanKind
	// Reason is why it started, or why it ended, as a user can read it.
	Reason string
}

// Lane is a row of the Gantt chart and a track of the trace: a device, or a node.
type Lane struct {
	Node string
	Name string
}
