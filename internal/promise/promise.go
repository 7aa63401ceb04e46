// Package promise says of a live cluster's jobs when they start and end, and keeps
// every word of it: a promise is appended to a log that is never edited, what became of
// the job is appended later, and how good promises were is folded from both.
//
// A promise is made outside the plane's goroutine, on a copy of the state: the engine is
// run forward through futures whose run times and arrivals are drawn from the cluster's
// own past (forecast, internal/forecast/eta, ahead), and the range is corrected by how past ones
// turned out. Who asks again within some seconds is told the same.
package promise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterdl/muster/internal/budget"
	"github.com/musterdl/muster/internal/explain"
	"github.com/musterdl/muster/internal/forecast"
	"github.com/musterdl/muster/internal/forecast/eta"
	"github.com/musterdl/muster/internal/forecast/promiselog"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Config is a keeper of promises.
type Config struct {
	Plane *plane.Plane
	Path  string // the log's file, of Open
	Log   *slog.Logger
	// Budget is how long the forward runs behind one answer may take.
	Budget time.Duration
	// Fresh is how long an answer is given again.
	Fresh time.Duration
	// After is how long a job waits before it is promised something unasked, and Every
	// the least time between such promises.
	After unit.Duration
	Every time.Duration
}

// Default returns the configuration used where none is given, without a file.
func Default(p *plane.Plane, log *slog.Logger) Config {
	return Config{Plane: p, Log: log, Budget: 5 * time.Second, Fresh: 5 * time.Second, After: 5 * unit.Second, Every: 10 * time.Second}
}

// Limits that are not settings.
const (
	atOnce       = 2       // answers that are worked on
	mostWaitFor  = 16      // answers that wait for that
	leastFutures = 5       // fewer say nothing of a range
	mostUnasked  = 32      // jobs that are promised something together
	keptEntries  = 100_000 // of the log at hand: scores and corrections are of the latest
	keptAnswers  = 4096
	leastJudged  = 20 // promises of a queue before its own calibration is told
	lookEvery    = time.Second
	// Of the processor, by what promises are looked ahead for: the rest of a request's second
	// is for the copy of the state, and for what past waits tell where this was not enough.
	mostUsed    = 700 * time.Millisecond
	unaskedPart = 2  // of the budget is what unasked promises may take: one in so many
	unaskedRest = 19 // times as long as they took, nothing is promised unasked
)

// ErrBusy says that too many ask at once.
var ErrBusy = errors.New("too many ask when their jobs start: try again in some seconds")

// Keeper makes promises and keeps them. It is safe for concurrent use.
type Keeper struct {
	config Config
	busy   chan struct{}
	queue  chan struct{}

	mu      sync.Mutex
	log     *promiselog.Log // nil where there is no file, or it is closed
	entries []forecast.Entry
	open    map[plan.JobID]*pending // promised and not over
	answers map[plan.JobID]*given
	cost    time.Duration // of one forward run, of late
	unasked time.Time     // when something may be promised unasked again

	next  plan.JobID   // first that the watch has not seen
	fresh []plan.JobID // seen, and nothing was promised

	// What is known of displacements to come, and when and for how long that was looked
	// for; stale says that something has changed since.
	coming     atomic.Pointer[map[plan.JobID]coming]
	stale      bool
	foreseen   time.Time
	foreseeing time.Duration
}

// pending is a job that something was promised about.
type pending struct{ started bool }

// given is an answer, or one under way.
type given struct {
	done chan struct{} // closed when the rest is there
	at   time.Time
	when view.When
	err  error
}

// New returns a keeper that has promised nothing and keeps no file.
func New(config Config) *Keeper {
	config.Path = ""
	return &Keeper{config: config, busy: make(chan struct{}, atOnce), queue: make(chan struct{}, atOnce+mostWaitFor),
		open: map[plan.JobID]*pending{}, answers: map[plan.JobID]*given{}}
}

// Open reads the log of config.Path and goes on with it.
func Open(config Config) (*Keeper, error) {
	k := New(config)
	k.config.Path = config.Path
	// The names of people's jobs are in it.
	file, err := os.OpenFile(config.Path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("opening the log of promises: %w", err)
	}
	entries, damage, err := promiselog.Read(config.Path)
	if err != nil {
		return nil, err
	}
	for _, d := range damage {
		config.Log.Warn("the log of promises has a line that is none, and it is passed over", "file", config.Path, "where", d.String())
	}
	if k.log, err = promiselog.Open(config.Path); err != nil {
		return nil, err
	}
	for i := range entries {
		k.took(entries[i])
	}
	return k, nil
}

// Close closes the log; nothing is promised any more.
func (k *Keeper) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.log == nil {
		return nil
	}
	log := k.log
	k.log = nil
	return log.Close()
}

// keep appends entries to the log, and takes them in only then.
func (k *Keeper) keep(entries ...forecast.Entry) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.config.Path != "" {
		if k.log == nil {
			return errors.New("the log of promises is closed")
		}
		if err := k.log.Append(entries...); err != nil {
			return err
		}
	}
	for i := range entries {
		k.took(entries[i])
	}
	return nil
}

// took takes an entry in.
func (k *Keeper) took(e forecast.Entry) {
	if k.entries = append(k.entries, e); len(k.entries) > 2*keptEntries {
		k.entries = append([]forecast.Entry(nil), k.entries[len(k.entries)-keptEntries:]...)
	}
	switch {
	case e.Promise != nil:
		if id := plan.JobID(e.Promise.Job); k.open[id] == nil {
			k.open[id] = &pending{}
		}
	case e.Outcome.What == forecast.Started:
		if p := k.open[plan.JobID(e.Outcome.Job)]; p != nil {
			p.started = true
		}
	default:
		delete(k.open, plan.JobID(e.Outcome.Job))
	}
}

// latest are the entries at hand. What is in the list does not change.
func (k *Keeper) latest() []forecast.Entry {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.entries[max(0, len(k.entries)-keptEntries):]
}

// Scores say how good promises were, by queue; the first is all queues together.
func (k *Keeper) Scores(now unit.Time) []forecast.Score { return forecast.Scores(k.latest(), now) }

// When says when a job starts and ends. What it says is in the log before it returns.
func (k *Keeper) When(ctx context.Context, id plan.JobID) (view.When, error) {
	select {
	case k.queue <- struct{}{}:
		defer func() { <-k.queue }()
	default:
		return view.When{}, ErrBusy
	}
	k.mu.Lock()
	a := k.answers[id]
	if a == nil || a.over(k.config.Fresh) {
		a = &given{done: make(chan struct{})}
		k.forget()
		k.answers[id] = a
		go k.answer(context.WithoutCancel(ctx), id, a) // others may wait for it too
	}
	k.mu.Unlock()
	select {
	case <-a.done:
		return a.when, a.err
	case <-ctx.Done():
		return view.When{}, ctx.Err()
	}
}

// over reports whether an answer is too old to be given again.
func (a *given) over(fresh time.Duration) bool {
	select {
	case <-a.done:
		return a.err != nil || time.Since(a.at) >= fresh
	default:
		return false
	}
}

// forget bounds the answers that are kept.
func (k *Keeper) forget() {
	if len(k.answers) < keptAnswers {
		return
	}
	for id, a := range k.answers {
		if a.over(k.config.Fresh) {
			delete(k.answers, id)
		}
	}
}

func (k *Keeper) answer(ctx context.Context, id plan.JobID, a *given) {
	defer close(a.done)
	k.busy <- struct{}{}
	defer func() { <-k.busy }()
	fork, err := k.config.Plane.Fork(ctx)
	if err == nil {
		a.when, err = k.forecast(ctx, fork, id)
	}
	a.at, a.err = time.Now(), err
}

// forecast answers on a copy of the state.
func (k *Keeper) forecast(ctx context.Context, fork plane.Fork, id plan.JobID) (view.When, error) {
	v := fork.State.View()
	j := v.Job(id)
	w := view.WhenOf(v, plane.JobInfo{}, id, explain.Of(v, nil))
	if w.Words != "" {
		return w, nil
	}
	promises, err := k.promise(ctx, fork, []plan.JobID{id}, k.config.Budget)
	if err != nil {
		return w, err
	}
	if len(promises) == 0 {
		w.Words = "it has ended"
		return w, nil
	}
	p := &promises[0]
	if j.Run == plan.None || v.Run(j.Run).Status == plan.Promised {
		w.SetStart(p.Start)
	}
	if p.Basis == forecast.FromFutures {
		w.SetEnd(p.End)
	}
	w.Basis, w.Samples, w.LookedUs = words(v, p), p.Samples, int64(p.Looked)
	w.Calibration = calibration(k.Scores(v.Now()), p)
	return w, nil
}

// words say what a promise rests on.
func words(v plan.View, p *forecast.Promise) string {
	if p.Basis == forecast.FromPast {
		return "the past waits of jobs like it, since looking ahead took too long"
	}
	text := fmt.Sprintf("%d forward runs with sampled run times and arrivals", p.Samples)
	if isCold(v) {
		text = fmt.Sprintf("%d forward runs with run times about as declared, since few jobs have finished here", p.Samples)
	}
	if p.Start != seen(p.RawStart, p.Looked) || p.End != seen(p.RawEnd, p.Looked) {
		text += ", corrected by how past ranges turned out"
	}
	return text
}

// calibration is that of the promise's queue, or, where it has few, of all.
func calibration(scores []forecast.Score, p *forecast.Promise) *view.Calibration {
	of := func(s *forecast.Score) forecast.Tally {
		if p.Running {
			return s.End
		}
		return s.Start
	}
	var found view.Calibration
	for i := range scores {
		s := &scores[i]
		if s.Queue == "" || s.Queue == p.Queue && of(s).Judged() >= leastJudged {
			found = view.Calibration{Queue: s.Queue, Coverage: view.Rate(of(s)), Promises: of(s).Judged()}
		}
	}
	return &found
}

// promise makes promises and keeps them. Where looking ahead takes longer than it may, or
// more of the processor, past waits are all they rest on.
func (k *Keeper) promise(ctx context.Context, fork plane.Fork, jobs []plan.JobID, most time.Duration) (promises []forecast.Promise, err error) {
	defer caught(&err)
	v := fork.State.View()
	jobs = slices.DeleteFunc(slices.Clone(jobs), func(id plan.JobID) bool { return int(id) >= v.Jobs() || v.Job(id).Phase.Over() })
	if len(jobs) == 0 {
		return nil, nil
	}
	book := forecast.NewBook(forecast.DefaultConformal())
	eta.Waits(v, book)
	for _, e := range k.latest() {
		book.Take(e)
	}
	c := eta.Default()
	c.Ahead, c.Seed = forward(fork), fork.Seed
	within, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	within, spare := budget.Within(within, mostUsed)
	defer spare()
	draw := eta.Promises
	if isCold(v) {
		draw = cold
	}
	for again := true; again; { // what one takes has to be learned
		began := time.Now()
		c.Futures, again = k.futures(eta.Default().Futures, min(most, mostUsed))
		if promises, err = draw(within, c, book, jobs); err != nil {
			break
		}
		k.spent(time.Since(began) / time.Duration(c.Futures))
	}
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		k.spent(min(most, mostUsed))
		c.Futures = 0
		promises, err = eta.Promises(ctx, c, book, jobs)
	}
	if err != nil {
		return nil, err
	}
	entries := make([]forecast.Entry, len(promises))
	for i := range promises {
		p := &promises[i]
		if p.Basis == forecast.FromFutures {
			p.Start, p.End = seen(p.Start, p.Looked), seen(p.End, p.Looked)
		}
		entries[i].Promise = p
	}
	return promises, k.keep(entries...)
}

// seen is a range as far as was looked: what stands at the end of that comes later, and
// nobody knows when.
func seen(r forecast.Range, looked unit.Time) forecast.Range {
	later := func(t unit.Time) unit.Time {
		if t >= looked {
			return unit.Never
		}
		return t
	}
	return forecast.Range{Low: min(r.Low, looked), Median: later(r.Median), High: later(r.High)}
}

// futures is how many fit half the budget, by what one took of late; none are known to
// fit, and few tell, where none has been looked at.
func (k *Keeper) futures(most int, budget time.Duration) (n int, unknown bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.cost == 0 {
		return leastFutures, true
	}
	return min(most, max(leastFutures, int(budget/2/k.cost))), false
}

// spent notes what a forward run took.
func (k *Keeper) spent(each time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.cost == 0 {
		k.cost = each
	}
	k.cost = max(1, (k.cost+each)/2)
}
